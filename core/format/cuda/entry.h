/* SPDX-License-Identifier: MIT */
/*
 * One entry of a CUDA fatbin: a header of 64 bytes or more, then the payload.
 *
 *   0 u16 kind           20 u32 options record, 0: none    40 u64 flags
 *   2 u16 0x0101         24 u16 version: minor             48 u64 identity (LTO-IR)
 *   4 u32 header bytes   26 u16          major             56 u64 decoded bytes
 *   8 u64 payload bytes  28 u32 SM number
 *  16 u32 compressed     32 u32 file name, 36 u32 its length
 *
 * The options record is u32 offset, u32 length.  Offsets are from the entry's beginning, and
 * what they lead to stands in its header.  NVIDIA publishes none of this.
 */
#ifndef KP_CORE_FORMAT_CUDA_ENTRY_H
#define KP_CORE_FORMAT_CUDA_ENTRY_H

#include "core/format/format.h"

#define KP_CUDA_ENTRY_HEADER 64

enum kp_cuda_kind {
	KP_CUDA_PTX = 1,
	KP_CUDA_CUBIN = 2,
	KP_CUDA_LTO_IR = 8,
};

struct kp_cuda_entry {
	uint16_t kind, minor, major;
	uint32_t sm;
	uint64_t at;     /* where its header begins */
	uint64_t header; /* bytes of the payload */
	uint64_t room;   /* bytes behind it: the next entry follows them */
	uint64_t stored; /* of these, the image's as they are stored */
	uint64_t size;   /* the image's bytes, decoded */
	uint64_t flags, identity;
	uint32_t options, name, name_size;
	const struct kp_cuda_codec *codec; /* NULL: stored as it is */
};

/*
 * Read the entry at AT of SRC, a whole container.
 * INVALID_FORMAT: it does not fit, or cannot decode to as many bytes as it says.
 */
kpack_error_t kp_cuda_entry_read(const struct kp_source *src, uint64_t at,
				 struct kp_cuda_entry *out, struct kpackx_error *why);

/* Set IMAGE's kind, arch and pairs. */
kpack_error_t kp_cuda_entry_state(const struct kp_source *src,
				  const struct kp_cuda_entry *e, struct kp_image *image,
				  struct kpackx_error *why);

/*
 * Write the image's SIZE bytes to OUT.
 * NOT_IMPLEMENTED: compressed by an unknown method, or one that is not built in.
 */
kpack_error_t kp_cuda_entry_decode(const struct kp_source *src,
				   const struct kp_cuda_entry *e, uint8_t *out,
				   struct kpackx_error *why);

#endif
