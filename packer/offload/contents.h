/* SPDX-License-Identifier: MIT */
/*
 * The entries of a bundled file.  The file type decides its form: a text bundle; bundles,
 * plain and compressed, one after another; or an object with a section for each entry.
 */
#ifndef PACKER_OFFLOAD_BUNDLER_CONTENTS_H
#define PACKER_OFFLOAD_BUNDLER_CONTENTS_H

#include "bundler.h"
#include "core/format/format.h"

struct bundler_contents {
	struct kp_source src; /* what the images' or the containers' offsets refer to */
	struct kp_containers list; /* images with an ID are the entries */
	bool object;               /* entries are sections */
	bool binary;               /* offsets of images refer to their containers */
	struct kp_payload loaded;  /* of the CCOB that is container LOADED_NUMBER */
	size_t loaded_number;
	uint64_t ignored; /* bytes behind the last bundle that are not a bundle */
};

/* Whether -type accepts TYPE. */
bool bundler_type_known(const char *type);

/* Whether SRC is an ELF file, to which sections can be added. */
bool bundler_is_object(const struct kp_source *src);

/*
 * List the entries of SRC, which must outlive OUT; a file without entries is a success.
 * Compressed text bundles are decoded; other compressed bundles only up to their header.
 * INVALID_FORMAT: SRC begins like a bundle and is damaged.
 * NOT_IMPLEMENTED: an object of a kind whose sections are not read.  On failure OUT is
 * empty.
 */
kpack_error_t bundler_contents_read(const struct bundler *b, const struct kp_source *src,
				    struct bundler_contents *out,
				    struct kpackx_error *why);
void bundler_contents_free(struct bundler_contents *parts);

/* Set OUT to the bytes of image NUMBER, valid until the next call. */
kpack_error_t bundler_contents_open(struct bundler_contents *parts, size_t number,
				    struct kp_source *out, struct kpackx_error *why);

/* Whether image NUMBER of an object is one NUL byte: it stands for the object itself. */
bool bundler_contents_is_mark(struct bundler_contents *parts, size_t number);

#endif
