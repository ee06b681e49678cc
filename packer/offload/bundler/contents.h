/* SPDX-License-Identifier: MIT */
/*
 * What a bundled file holds, by the type of its files: a text bundle; bundles, plain and
 * compressed, one after another; or an object with a section for each entry.
 */
#ifndef PACKER_OFFLOAD_BUNDLER_CONTENTS_H
#define PACKER_OFFLOAD_BUNDLER_CONTENTS_H

#include "bundler.h"
#include "core/format/format.h"

struct bundler_parts {
	struct kp_source src; /* what the images' or the containers' offsets refer to */
	struct kp_containers list; /* images with an ID are the entries */
	bool object;               /* entries are sections */
	bool binary;               /* offsets of images refer to their containers */
	struct kp_payload loaded;  /* of the CCOB that is container LOADED_NUMBER */
	size_t loaded_number;
	uint64_t ignored; /* bytes behind the last bundle that are none */
};

/* Does -type take TYPE? */
bool bundler_type_known(const char *type);

/* Is SRC an ELF, which sections can be added to? */
bool bundler_is_object(const struct kp_source *src);

/*
 * List the entries of SRC, which must outlive OUT; none are a success.  Compressed bundles of
 * text are decoded, others as far as their header.
 * INVALID_FORMAT: it begins like a bundle, and is damaged.
 * NOT_IMPLEMENTED: an object of a kind whose sections are not read.  On failure OUT is empty.
 */
kpack_error_t bundler_parts_read(const struct bundler *b, const struct kp_source *src,
				 struct bundler_parts *out, struct kpackx_error *why);
void bundler_parts_free(struct bundler_parts *parts);

/* The bytes of image NUMBER; they stay until the next call. */
kpack_error_t bundler_parts_open(struct bundler_parts *parts, size_t number,
				 struct kp_source *out, struct kpackx_error *why);

/* Of an object: does image NUMBER only stand for the object itself?  It is one NUL byte. */
bool bundler_parts_is_mark(struct bundler_parts *parts, size_t number);

#endif
