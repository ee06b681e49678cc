/* SPDX-License-Identifier: MIT */
/*
 * Text bundles: preprocessed sources, LLVM IR, assembly, dependencies.  Every entry stands
 * between two comments, which begin with the line feed before them:
 *
 *   LF comment SP "__CLANG_OFFLOAD_BUNDLE____START__ " ID LF
 *   contents
 *   LF comment SP "__CLANG_OFFLOAD_BUNDLE____END__ " ID LF
 *
 * so that contents keep or lack their last line feed.
 */
#ifndef KP_CORE_FORMAT_LLVM_TEXT_BUNDLE_H
#define KP_CORE_FORMAT_LLVM_TEXT_BUNDLE_H

#include "core/base/sink.h"
#include "core/format/format.h"

/* What begins a comment in files of clang-offload-bundler's TYPE ("ll": ";"); NULL: no text. */
const char *kp_text_bundle_comment(const char *type);

/*
 * List the entries of SRC, a text bundle whose comments begin with COMMENT; what stands
 * before the first entry and between entries is passed over.  OUT has one container, whose
 * images refer to SRC; none at all are a success.  IDs may repeat, that of an end marker is
 * not compared.
 * INVALID_FORMAT: an entry without an end, or in which another begins; an ID longer than
 * KP_ENTRY_ID_MAX.  On failure OUT is empty.
 */
kpack_error_t kp_text_bundle_read(const struct kp_source *src, const char *comment,
				  struct kp_containers *out, struct kpackx_error *why);

/* An entry to write. */
struct kp_text_entry {
	struct kp_span id;
	struct kp_source contents;
};

/* Write N entries, in their order. */
kpack_error_t kp_text_bundle_write(const struct kp_text_entry *entries, size_t n,
				   const char *comment, struct kp_sink *sink,
				   struct kpackx_error *why);

#endif
