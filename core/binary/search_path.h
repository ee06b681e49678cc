/* SPDX-License-Identifier: MIT */
/*
 * From a marker's search path to the file of an archive.  AMD's rules: a relative path
 * is resolved against the directory of the binary, symlinks followed as far as the path
 * exists; the first "@GFXARCH@" stands for an architecture.
 */
#ifndef KP_CORE_BINARY_SEARCH_PATH_H
#define KP_CORE_BINARY_SEARCH_PATH_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/span.h"

#define KP_SEARCH_ARCH "@GFXARCH@"

/* Does PATTERN have the placeholder? */
bool kp_search_has_arch(const char *pattern);

/*
 * The directory that was resolved last, zeroed at first: the archives of one look-up
 * mostly share it.  To be kept no longer, since links may change.
 */
struct kp_search_memo {
	char *dir, *real;
};

void kp_search_memo_fini(struct kp_search_memo *memo);

/*
 * The archive PATTERN names for ARCH (ignored without placeholder), seen from BINARY; an
 * absolute one as it stands.  Of a relative one the leading components that exist are
 * resolved as the kernel does, symlinks before "..", and the others by their spelling
 * alone: what std::filesystem::weakly_canonical does.  It is relative only where no
 * component exists.  The last component, if it is a name, is left as it is: a linked
 * archive keeps the link's name.  Nothing but the names is looked at.  MEMO may be NULL.
 * The caller frees *out.
 * OUT_OF_MEMORY; INVALID_ARGUMENT for a path of more than KP_NAME_MAX bytes.
 */
kpack_error_t kp_search_resolve(const char *pattern, struct kp_span arch,
				const char *binary, struct kp_search_memo *memo,
				char **out, struct kpackx_error *why);

/*
 * The archs an agent called ARCH can run, from the most specific to the bare processor:
 * all subsets of its features in their order ("a:x:y", "a:x", "a:y", "a"), an
 * "amdgcn-amd-amdhsa--" in front taken off, empty features left out.  With more features,
 * all subsets with the first come before all without it.  The sign of a feature is a part
 * of its name.  Features after the first KP_FEATURES_MAX are left out, which is always
 * compatible.  No processor, or more than KP_NAME_MAX bytes: none.  TARGET is
 * NUL-terminated and valid during the call.  FN returns false to stop.
 */
void kp_search_targets(struct kp_span arch, bool (*fn)(struct kp_span target, void *arg),
		       void *arg);

#endif
