/* SPDX-License-Identifier: MIT */
/*
 * Resolving a marker's search path to the file of an archive.  AMD's rules: a relative
 * path starts at the directory of the binary, and symlinks are followed as far as the
 * path exists; the first "@GFXARCH@" stands for an architecture.
 */
#ifndef KP_CORE_HOST_SEARCH_PATH_H
#define KP_CORE_HOST_SEARCH_PATH_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/span.h"

#define KP_SEARCH_ARCH "@GFXARCH@"

/* Whether PATTERN has the placeholder. */
bool kp_search_has_arch(const char *pattern);

/*
 * The directory that was resolved last, which most archives of one look-up share.  Zero
 * it before a look-up, and free it after the look-up, since links may change.
 */
struct kp_search_memo {
	char *dir, *real;
	/*
	 * Finds real paths instead of realpath, unless NULL: for a caller that may not let
	 * the kernel follow every link.  A path for which it returns NULL does not exist.
	 */
	char *(*find)(const char *path, void *arg);
	void *arg;
};

void kp_search_memo_fini(struct kp_search_memo *memo);

/*
 * Return the path of the archive that PATTERN names for ARCH (ignored without
 * placeholder).  An absolute path is returned as it is.  A relative path starts at the
 * directory of BINARY; its leading components that exist are resolved as the kernel does,
 * symlinks before "..", and the remaining components by their spelling alone, as
 * std::filesystem::weakly_canonical does.  The result is relative only if no component
 * exists.  The last component, if it is a name, is not resolved: a linked archive keeps
 * the link's name.  No file is opened.  MEMO may be NULL.  The caller frees *out.
 * OUT_OF_MEMORY; INVALID_ARGUMENT: a path of more than KP_NAME_MAX bytes.
 */
kpack_error_t kp_search_resolve(const char *pattern, struct kp_span arch,
				const char *binary, struct kp_search_memo *memo,
				char **out, struct kpackx_error *why);

/*
 * Call FN with the targets that an agent named ARCH can run, from the most specific to
 * the bare processor: all subsets of its features in their order ("a:x:y", "a:x", "a:y",
 * "a"), without an "amdgcn-amd-amdhsa--" in front, and without empty features.  All
 * subsets with the first feature come before all subsets without it, and so on.  The sign
 * of a feature is a part of its name.  Features after the first KP_FEATURES_MAX are
 * omitted, which is always compatible.  If ARCH has no processor or more than KP_NAME_MAX
 * bytes, FN is not called.
 * TARGET is NUL-terminated and valid during the call.  FN returns false to stop.
 */
void kp_search_targets(struct kp_span arch, bool (*fn)(struct kp_span target, void *arg),
		       void *arg);

#endif
