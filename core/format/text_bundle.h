/* SPDX-License-Identifier: MIT */
/*
 * Text bundles: preprocessed sources, LLVM IR, assembly, dependencies.  Every entry lies
 * between two marker comments, to which the line feed before them belongs:
 *
 *   LF comment SP "__CLANG_OFFLOAD_BUNDLE____START__ " ID LF
 *   contents
 *   LF comment SP "__CLANG_OFFLOAD_BUNDLE____END__ " ID LF
 *
 * so that the contents need not end with a line feed.
 */
#ifndef KP_CORE_FORMAT_LLVM_TEXT_BUNDLE_H
#define KP_CORE_FORMAT_LLVM_TEXT_BUNDLE_H

#include "core/base/sink.h"
#include "format.h"

/*
 * Return the text that begins a comment in files of clang-offload-bundler's TYPE ("ll":
 * ";"); NULL: not a text type.
 */
const char *kp_text_bundle_comment(const char *type);

/*
 * List the entries of SRC, a text bundle whose comments begin with COMMENT; text before
 * the first entry and between entries is ignored.  OUT has one container, whose images
 * refer to SRC; a bundle without entries is a success.  IDs may repeat, and the ID of an
 * end marker is not compared.
 * INVALID_FORMAT: an entry has no end, or another entry begins in it; an ID is longer
 * than KP_ENTRY_ID_MAX.  On failure OUT is empty.
 */
kpack_error_t kp_text_bundle_read(const struct kp_source *src, const char *comment,
				  struct kp_containers *out, struct kpackx_error *why);

/* An entry to write. */
struct kp_text_entry {
	struct kp_span id;
	struct kp_source contents;
};

/*
 * Write N entries in the given order.
 * INVALID_ARGUMENT: an entry's ID or contents cannot be written so that readers find
 * them.
 */
kpack_error_t kp_text_bundle_write(const struct kp_text_entry *entries, size_t n,
				   const char *comment, struct kp_sink *sink,
				   struct kpackx_error *why);

#endif
