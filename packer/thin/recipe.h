/* SPDX-License-Identifier: MIT */
/*
 * How the original of a file is made from the file that replaced it, and from bytes that
 * are kept in an archive: JSON, the object of an entry.
 */
#ifndef PACKER_THIN_RECIPE_H
#define PACKER_THIN_RECIPE_H

#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* The offset of a part that is in the archive. */
#define RECIPE_KEPT UINT64_MAX

struct recipe_part {
	uint64_t offset; /* in the changed file; RECIPE_KEPT: the next kept bytes */
	uint64_t size;
};

struct recipe {
	uint64_t size; /* of the original */
	uint8_t xxh3[16];
	bool removed; /* nothing replaced the file; the next two are zeros */
	uint64_t changed_size;
	uint8_t changed_xxh3[16];
	/* attributes of a file that was removed */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
	struct timespec kept; /* when */
	struct recipe_part *parts;
	size_t n_parts, parts_cap;
};

/* Add a part, to the last one if it goes on. */
void recipe_add(struct recipe *r, uint64_t offset, uint64_t size);

/* The JSON, on the heap. */
char *recipe_write(const struct recipe *r);

/*
 * OUT is untouched on failure.  INVALID_METADATA: TEXT is no recipe, or its parts are not
 * the original's size or outside the changed file.
 */
kpack_error_t recipe_parse(struct kp_span text, struct recipe *out,
			   struct kpackx_error *why);
void recipe_fini(struct recipe *r);

#endif
