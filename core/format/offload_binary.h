/* SPDX-License-Identifier: MIT */
/*
 * LLVM's offload binary: images, each with a map of strings.  `llvm-offload-binary`,
 * formerly `clang-offload-packager`, packs them; linkers concatenate them in
 * .llvm.offloading.
 *
 *                     v1        v2        v3
 *   magic             0         0         0       10 FF 10 AD
 *   version           4 u32     4 u32     4 u32
 *   size              8 u64     8 u64     8 u64   of the binary with its padding
 *   entries' offset   16 u64    16 u64    16 u64
 *   entry size (40)   24 u64    -         -       v1 has one entry
 *   entry count       -         24 u64    24 u64
 *   inflated size     -         -         32 u64  0: not compressed
 *
 *   entry             0 u16 image kind, 2 u16 offload kind, 4 u32 flags,
 *                     8 u64 offset of the strings, 16 u64 number of strings,
 *                     24 u64 offset of the image, 32 u64 size of the image
 *   string            0 u64 key's offset, 8 u64 value's offset, v2: 16 u64 value's size
 *
 * Offsets count from the magic.  Keys end with a NUL, and so do values of v1.  In a
 * compressed binary one zstd or zlib stream follows the header; offsets refer to the
 * inflated binary.
 */
#ifndef KP_CORE_FORMAT_LLVM_OFFLOAD_BINARY_H
#define KP_CORE_FORMAT_LLVM_OFFLOAD_BINARY_H

#include "core/base/sink.h"
#include "format.h"

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
 * An image's pairs are its strings as stored, in order, including equal keys; then always
 * "image kind", and if flags are set "image flags" ("0x1").  A stored key may have one of
 * these names too: kp_offload_strings counts the pairs that come from the file.
 */
#define KP_OFFLOAD_FLAGS_NAME "image flags"
#define KP_OFFLOAD_KIND_NAME "image kind"

/* Return the extension that LLVM's tool gives such a file, "o", "bc" ...; "" for none. */
const char *kp_offload_image_kind_ext(unsigned kind);

/* Return the kind that an extension means to LLVM's tools, or KP_OFFLOAD_NONE. */
enum kp_offload_image_kind kp_offload_image_kind_by_ext(const char *ext);

/* Return the kind that the image's pairs state. */
unsigned kp_offload_image_kind(const struct kp_image *image);

/* Return how many of the image's pairs are strings from the file. */
size_t kp_offload_strings(const struct kp_image *image);

/* Return the image's last string with key NAME, as LLVM's tools do, or NULL. */
const struct kp_pair *kp_offload_string(const struct kp_image *image, const char *name);

/*
 * Return the name of an offload kind.  Kinds are bits: 1 openmp, 2 cuda, 4 hip, 8 sycl, 0
 * none; 3 is hip up to LLVM 20.  NULL: any other number; image.kind has it in decimal.
 */
const char *kp_offload_kind_name(unsigned kind);

/* Return the number of a name; 0 for any other text, as LLVM's tools do. */
unsigned kp_offload_kind_number(const char *name);

/* An image to write. */
struct kp_offload_image {
	uint16_t image_kind, offload_kind;
	uint32_t flags;
	const struct kp_pairs *strings; /* in the order they are stored */
	struct kp_source bytes;
};

struct kp_offload_form {
	unsigned version; /* 1: one binary per image; 2, 3: one binary for all images */
	enum { KP_OFFLOAD_PLAIN, KP_OFFLOAD_ZSTD, KP_OFFLOAD_ZLIB } method; /* v3 only */
	int level; /* 0: LLVM's default */
};

/* Read the version and method of container C of SRC; the level becomes 0. */
kpack_error_t kp_offload_form_read(const struct kp_source *src,
				   const struct kp_container *c,
				   struct kp_offload_form *out, struct kpackx_error *why);

/*
 * Write N images, byte for byte as LLVM's tool writes them.  With N = 0 it writes nothing
 * in v1, and a binary without entries in v2 and v3.
 * INVALID_ARGUMENT: unknown version; a method other than PLAIN with v1 or v2; in v1 a
 * value with a NUL.  NOT_IMPLEMENTED: zlib, in a build without it.
 */
kpack_error_t kp_offload_write(const struct kp_offload_image *images, size_t n,
			       const struct kp_offload_form *form, struct kp_sink *sink,
			       struct kpackx_error *why);

#endif
