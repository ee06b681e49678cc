/* SPDX-License-Identifier: MIT */
/* Objects that are linked later (.o, members of static libraries) with less device code. */
#ifndef KP_CORE_ELF_RELOCATABLE_H
#define KP_CORE_ELF_RELOCATABLE_H

#include "core/base/errors.h"
#include "core/base/file.h"

struct kp_relocatable_fill {
	uint64_t offset; /* of the section with the device code, in the object */
	uint64_t size;   /* the bytes that it has, and... */
	uint64_t rest;   /* ... that it gets */
	/* The containers in the section: where they begin, and where they will begin. */
	const uint64_t *from, *to; /* both ascending */
	size_t n;
};

/* The changed object. */
struct kp_relocatable {
	uint64_t before; /* bytes of the object before the section, and after it */
	uint64_t after;
	uint8_t *bytes; /* both, one after the other, changed; owned */
	uint64_t size;  /* of the new object; zeros follow the section's contents */
};

/*
 * Replace the contents of a section of the 64-bit little-endian relocatable object SRC by
 * fewer bytes.  Sections after it move up, as far as alignments allow, and symbols
 * and relocations that lead to a container follow it.
 * NOT_IMPLEMENTED: something leads into the middle of a container; another section shares
 * bytes with the section; the host's part of the object has more than 256 MiB; nothing
 * would be saved.  INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_relocatable_refill(const struct kp_source *src,
				    const struct kp_relocatable_fill *fill,
				    struct kp_relocatable *out, struct kpackx_error *why);
void kp_relocatable_fini(struct kp_relocatable *r);

#endif
