/* SPDX-License-Identifier: MIT */
/* What /etc/kpack/policy.d wants of trees: a file NAME.conf for each. */
#ifndef PACKER_POLICY_POLICY_H
#define PACKER_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"
#include "core/base/span.h"

#define POLICY_DIR "/etc/kpack/policy.d"

enum policy_action { POLICY_THIN, POLICY_PACK };
enum policy_mount { POLICY_NO_MOUNT, POLICY_IN_PLACE, POLICY_OVERLAY };

struct policy {
	char *name; /* "rocm" of rocm.conf */
	char *tree; /* absolute, without a slash at its end, but for "/", and without links */
	char *arch; /* a list as --arch has it */
	enum policy_action action;
	enum policy_mount mount;
	bool strip_debug; /* code loses its debugging information, too */
	bool overlaps;    /* with another policy's tree */
	bool wrong;       /* it was reported, and only the name is known */
};

struct policies {
	struct policy *items; /* by name, bytewise */
	size_t count, cap;
};

/*
 * Parse the text of a policy into OUT, whose name stays.  INVALID_FORMAT: WHY names line
 * and value.  The caller finishes OUT in any case.
 */
kpack_error_t policy_parse(struct kp_span text, struct policy *out,
			   struct kpackx_error *why);
void policy_fini(struct policy *p);

/*
 * Read a file that, when root runs the program, only root may write; the caller frees
 * its bytes.  It may be a link of root's, to where nobody else can put another file.
 * INVALID_ARGUMENT: other users may change it; INVALID_FORMAT: it has more than MOST bytes.
 */
kpack_error_t policy_file_load(const char *path, uint64_t most, uint8_t **out,
			       size_t *size, struct kpackx_error *why);

/*
 * Read the policies of the directory DIR; with N NAMES only these.  false: a policy is
 * wrong or missing, which was reported.  Root takes policies only from a directory and from
 * files that nobody else may write.  No DIR: no policies.
 */
bool policies_read(const char *dir, char *const *names, size_t n, struct policies *out);
void policies_fini(struct policies *list);

/* The values in a policy's file: "thin", "in-place". */
const char *policy_action_name(enum policy_action action);
const char *policy_mount_name(enum policy_mount mount);

/* Whether PATH is TREE or below it. */
bool policy_is_in_tree(const char *path, const char *tree);

#endif
