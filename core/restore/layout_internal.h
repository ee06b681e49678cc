/* SPDX-License-Identifier: MIT */
/*
 * The format of a layout, and its data in memory, shared by the files that make, parse
 * and apply it.
 *
 *   { "version": 1, "size": u64,
 *     "targets": [ [id or nil, arch, host] ... ],     every distinct kind of entry
 *     "wrappers": [ container ... ],
 *     "containers": [ {
 *       "format": "bundle" | "ccob" | "code-object", "offset": gap, "size": gap,
 *       "entries": [ [target, gap, size, content] ... ],
 *       "bytes": [ [offset, bin] ... ],         bytes between entries that are not zero
 *       "ccob": { "version", "method", "hash", "payload", "level", "long", "xxh3", "kept" }
 *     } ... ],
 *     "xxh3": bin }                          KP_LAYOUT_HASH bytes for each object
 *
 * Gaps are modulo 2^64, and small numbers in usual files.  The gap of an entry or
 * container counts from the page boundary after the end of the previous one (or of the
 * header); the gap of a container's size counts from the end of its last entry, unless
 * the container is compressed.  The content is true for an object, whose hash is the next
 * one in "xxh3"; the bytes of a host entry; or nil: empty, or not packed.  "level",
 * "long" and "xxh3" (of the whole container) say how it was compressed, as far as known:
 * the level may be a guess.  Level 0, without the others, is unknown; earlier versions
 * wrote it for a container that their zstd did not reproduce.  "kept" (optional) is the
 * size of the container's difference from its payload (difference.h), which follows the
 * compressed map: a skippable frame for each, in the containers' order.  Earlier versions
 * ignore it.
 */
#ifndef KP_CORE_LAYOUT_INTERNAL_H
#define KP_CORE_LAYOUT_INTERNAL_H

#include "core/format/bundle.h"
#include "core/format/ccob.h"
#include "layout.h"

#define KP_LAYOUT_VERSION 1

/* Bytes that one run of bytes between entries costs besides its own bytes. */
#define KP_LAYOUT_PIECE_COST 16
#define KP_LAYOUT_PIECES_MAX (KP_LAYOUT_INLINE_MAX / KP_LAYOUT_PIECE_COST)

/* Bytes of a payload that belong to no entry and are not zero. */
struct kp_layout_piece {
	uint64_t offset;
	struct kp_span bytes;
};

struct kp_layout_container {
	const struct kp_format *format;
	uint64_t offset, size; /* in the section */
	uint64_t payload_size; /* equals size, unless compressed */
	size_t first_image, n_images;
	size_t first_piece, n_pieces;
	uint32_t index; /* kp_layout_index */
	struct kp_ccob_form form;
	uint8_t xxh3[16];     /* of the compressed container, if form.level is not 0 */
	uint64_t kept;        /* bytes of the difference from its payload; 0: none */
	uint64_t kept_offset; /* parsed layout: in layout->section */
};

struct kp_layout_target {
	char *id;
	char arch[KP_TARGET_TEXT_MAX];
	bool host;
};

struct kp_layout_heap {
	uint8_t *bytes; /* of host entries and pieces */
	size_t n_bytes; /* while making a layout: used of KP_LAYOUT_INLINE_MAX */
	uint8_t *kept;  /* while making a layout: the frames of differences */
	size_t n_kept;
	struct kp_layout_target *targets;
	struct kp_layout_piece *pieces;
	size_t n_targets, n_pieces;
	size_t containers_cap, images_cap, targets_cap, pieces_cap;
};

/* Magic and size before the bytes of a skippable frame. */
#define KP_LAYOUT_SKIP_MAGIC 0x184d2a50
#define KP_LAYOUT_SKIP_HEADER 8

/* The offset from which a gap counts, after an END. */
static inline uint64_t kp_layout_expected(uint64_t end)
{
	return (end + 4095) & ~UINT64_C(4095);
}

/* The planned bytes of a container. */
struct kp_layout_place {
	uint64_t size; /* 0: the container is not written */
	bool whole;    /* no image is missing */
	bool encoded;  /* a CCOB, not its payload */
	bool same;     /* a CCOB with its original bytes */
	bool kept;     /* a CCOB from its kept difference */
	int level;     /* of a CCOB, if it is not the layout's; or 0 */
};

/* Allocate the heap of LAYOUT, which must be zeroed. */
kpack_error_t kp_layout_begin(struct kp_layout *layout, struct kpackx_error *why);

/*
 * Whether LIST has more than KP_LAYOUT_SECTION_MAX bytes.  Entries may share bytes, so
 * both are limited: the payloads' bytes, and the entries'.
 */
bool kp_layout_is_too_much(const struct kp_containers *list);

/* Append a zeroed member to the list; NULL: out of memory. */
struct kp_layout_container *kp_layout_add_container(struct kp_layout *layout);
struct kp_layout_image *kp_layout_add_image(struct kp_layout *layout);
struct kp_layout_piece *kp_layout_add_piece(struct kp_layout *layout);

/* Bytes of the bundle header in C's payload; 0 for a code object. */
uint64_t kp_layout_header_size(const struct kp_layout *layout,
			       const struct kp_layout_container *c);

/* Number the containers as archives do: by wrapper, then containers without a wrapper. */
void kp_layout_number(struct kp_layout *layout);

/* Encode LAYOUT as MessagePack.  NOT_IMPLEMENTED: more than KP_LAYOUT_MAX bytes. */
kpack_error_t kp_layout_encode(const struct kp_layout *layout,
			       struct kp_layout_bytes *out, struct kpackx_error *why);

#endif
