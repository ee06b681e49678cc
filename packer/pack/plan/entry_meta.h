/* SPDX-License-Identifier: MIT */
/*
 * The metadata of entries: what the archive says of an object besides where it is.  Small:
 * what is longer than the bounds in entry_meta.c is left out, no loader reads it.
 */
#ifndef PACKER_PACK_PLAN_ENTRY_META_H
#define PACKER_PACK_PLAN_ENTRY_META_H

#include "packer/pack/archives/archive_set.h"
#include "packer/pack/scan/input.h"

/*
 * Add to F what the container of IMAGE in IN says of it - "keys" of an offload binary,
 * "fatbin" of CUDA's, "member" of an archive - and what the object SRC of TYPE says of
 * itself: "triple" of bitcode, "signatures" of cuTile's kernels.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t entry_meta_facts(const struct input *in, size_t image, const char *type,
			       const struct kp_source *src, struct facts *f,
			       struct kpackx_error *why);

/* The metadata of every entry of an image, with FACTS; the caller frees it. */
kpack_error_t entry_meta_image(const struct input *in, size_t image,
			       const struct kp_content *content,
			       const struct facts *facts, uint8_t **map, size_t *size,
			       struct kpackx_error *why);

/* The same of a key of an object of a database, with all that is known about it. */
kpack_error_t entry_meta_file(const struct library_object *object,
			      const struct kp_content *content, const struct facts *more,
			      uint8_t **map, size_t *size, struct kpackx_error *why);

#endif
