/* SPDX-License-Identifier: MIT */
/*
 * LLVM's offload binary: images, each with a map of strings, as `llvm-offload-binary` (before:
 * `clang-offload-packager`) packs them and linkers concatenate them in .llvm.offloading.
 *
 *                     v1        v2        v3
 *   magic             0         0         0       10 FF 10 AD
 *   version           4 u32     4 u32     4 u32
 *   size              8 u64     8 u64     8 u64   of all this, padding included
 *   entries' offset   16 u64    16 u64    16 u64
 *   entry size (40)   24 u64    -         -       a v1 has one entry
 *   entries           -         24 u64    24 u64  their number
 *   inflated size     -         -         32 u64  0: not compressed
 *
 *   entry             0 u16 image kind, 2 u16 offload kind, 4 u32 flags,
 *                     8 u64 strings' offset, 16 u64 their number,
 *                     24 u64 image's offset, 32 u64 its size
 *   string            0 u64 key's offset, 8 u64 value's offset, from v2 on 16 u64 its size
 *
 * Offsets are from the magic.  Keys end with a NUL, and so do values of v1.  Of a compressed one
 * what follows the header is one zstd or zlib stream; offsets are those of the inflated one.
 */
#ifndef KP_CORE_FORMAT_LLVM_OFFLOAD_BINARY_H
#define KP_CORE_FORMAT_LLVM_OFFLOAD_BINARY_H

#include "core/base/sink.h"
#include "core/format/format.h"

enum kp_offload_image_kind {
	KP_OFFLOAD_NONE,
	KP_OFFLOAD_OBJECT,
	KP_OFFLOAD_BITCODE,
	KP_OFFLOAD_CUBIN,
	KP_OFFLOAD_FATBINARY,
	KP_OFFLOAD_PTX,
	KP_OFFLOAD_SPIRV,
	KP_OFFLOAD_IMAGE_KINDS,
};

/*
 * An image's pairs are its strings as they are stored, in their order, equal keys too; then
 * "image kind", always, and where there are flags "image flags" ("0x1").  A key may have the same
 * name: kp_offload_strings counts what is the file's.
 */
#define KP_OFFLOAD_FLAGS_NAME "image flags"
#define KP_OFFLOAD_KIND_NAME "image kind"

/* "object", "bitcode" ...; NULL: unknown, of which pairs have the number. */
const char *kp_offload_image_kind_name(unsigned kind);

/* The extension LLVM's tool gives such a file, "o", "bc" ...; "" where it gives none. */
const char *kp_offload_image_kind_ext(unsigned kind);

/* The kind LLVM's tools mean by an extension; NONE: none. */
enum kp_offload_image_kind kp_offload_image_kind_by_ext(const char *ext);

/* Which kind the image's pairs say. */
unsigned kp_offload_image_kind(const struct kp_image *image);

/* How many of the image's pairs are strings of the file. */
size_t kp_offload_strings(const struct kp_image *image);

/* The value of the image's string NAME, of equal ones the last, as LLVM's tools see it; or NULL. */
const struct kp_pair *kp_offload_string(const struct kp_image *image, const char *name);

/*
 * Offload kinds are bits: 1 openmp, 2 cuda, 4 hip, 8 sycl, 0 none; 3 is what LLVM up to 20
 * calls hip.  NULL: another number, which image.kind has in decimal.
 */
const char *kp_offload_kind_name(unsigned kind);

/* The number of a name; 0 of any other text, as for LLVM's tools. */
unsigned kp_offload_kind_number(const char *name);

/* An image to write. */
struct kp_offload_image {
	uint16_t image_kind, offload_kind;
	uint32_t flags;
	const struct kp_pairs *strings; /* in the order they are stored */
	struct kp_source bytes;
};

struct kp_offload_form {
	unsigned version; /* 1: a binary for each image; 2, 3: one for all of them */
	enum { KP_OFFLOAD_PLAIN, KP_OFFLOAD_ZSTD, KP_OFFLOAD_ZLIB } method; /* of v3 */
	int level; /* 0: LLVM's */
};

/* Read version and method of container C of SRC; the level becomes 0. */
kpack_error_t kp_offload_form_read(const struct kp_source *src,
				   const struct kp_container *c,
				   struct kp_offload_form *out, struct kpackx_error *why);

/*
 * Write N images, byte by byte as LLVM's tool writes them.  No image is no byte in v1, and a
 * binary without entries else.
 * INVALID_ARGUMENT: another version; a method with v1 and v2; a key with a NUL, a value with
 * one in v1.  NOT_IMPLEMENTED: built without zlib.
 */
kpack_error_t kp_offload_write(const struct kp_offload_image *images, size_t n,
			       const struct kp_offload_form *form, struct kp_sink *sink,
			       struct kpackx_error *why);

#endif
