/* SPDX-License-Identifier: MIT */
/*
 * One entry of a CUDA fatbin: a header of 64 bytes or more, then the payload.
 *
 *   0 u16 kind           20 u32 options record, 0: none    40 u64 flags
 *   2 u16 0x0101         24 u16 version: minor             48 u64 identity (LTO-IR)
 *   4 u32 header bytes   26 u16          major             56 u64 decoded bytes
 *   8 u64 payload bytes  28 u32 SM number
 *  16 u32 compressed     32 u32 file name, 36 u32 name length
 *
 * The options record is u32 offset, u32 length.  Offsets count from the entry's beginning
 * and lead into its header.  NVIDIA does not publish this format.
 */
#ifndef KP_CORE_FORMAT_CUDA_ENTRY_H
#define KP_CORE_FORMAT_CUDA_ENTRY_H

#include "format.h"

#define KP_CUDA_ENTRY_HEADER 64

enum kp_cuda_kind {
	KP_CUDA_PTX = 1,
	KP_CUDA_CUBIN = 2,
	KP_CUDA_LTO_IR = 8,
};

struct kp_cuda_entry {
	uint16_t kind, minor, major;
	uint32_t sm;
	uint64_t at;     /* offset of the header */
	uint64_t header; /* bytes of the header */
	uint64_t room;   /* bytes of the payload, after which the next entry begins */
	uint64_t stored; /* bytes of the payload that the stored image takes */
	uint64_t size;   /* bytes of the decoded image */
	uint64_t flags, identity;
	uint32_t options, name, name_size;
	const struct kp_cuda_codec *codec; /* NULL: not compressed */
};

/*
 * Read the entry at offset AT of SRC, a whole container.
 * INVALID_FORMAT: the entry passes the end, or cannot decode to the size it states.
 */
kpack_error_t kp_cuda_entry_read(const struct kp_source *src, uint64_t at,
				 struct kp_cuda_entry *out, struct kpackx_error *why);

/* Set IMAGE's kind, arch and pairs from entry E. */
kpack_error_t kp_cuda_entry_state(const struct kp_source *src,
				  const struct kp_cuda_entry *e, struct kp_image *image,
				  struct kpackx_error *why);

/*
 * Write the image's SIZE bytes to OUT.
 * NOT_IMPLEMENTED: compressed by a method that is unknown or not built in.
 */
kpack_error_t kp_cuda_entry_decode(const struct kp_source *src,
				   const struct kp_cuda_entry *e, uint8_t *out,
				   struct kpackx_error *why);

#endif
