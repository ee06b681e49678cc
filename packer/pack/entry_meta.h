/* SPDX-License-Identifier: MIT */
/*
 * The metadata of entries: what an archive says about an object besides its location.  It
 * is small: facts longer than the bounds in entry_meta.c are left out, as no loader reads
 * them.
 */
#ifndef PACKER_PACK_PLAN_ENTRY_META_H
#define PACKER_PACK_PLAN_ENTRY_META_H

#include "archive_set.h"
#include "packer/scan/input.h"

/*
 * Add to F what the container of IMAGE in IN says about it ("keys" of an offload binary,
 * "fatbin" of a CUDA fatbin, "member" of an archive), and what the object SRC of TYPE
 * says about itself ("triple" of bitcode, "signatures" of cuTile's kernels).  IO_ERROR,
 * OUT_OF_MEMORY.
 */
kpack_error_t entry_meta_facts(const struct input *in, size_t image, const char *type,
			       const struct kp_source *src, struct facts *f,
			       struct kpackx_error *why);

/* Write the metadata of an image's entries, with FACTS; the caller frees *MAP. */
kpack_error_t entry_meta_image(const struct input *in, size_t image,
			       const struct kp_content *content,
			       const struct facts *facts, uint8_t **map, size_t *size,
			       struct kpackx_error *why);

/*
 * As entry_meta_image, for a key of a database's object: with its path, mode, library and
 * role, and the facts MORE.
 */
kpack_error_t entry_meta_file(const struct library_object *object,
			      const struct kp_content *content, const struct facts *more,
			      uint8_t **map, size_t *size, struct kpackx_error *why);

#endif
