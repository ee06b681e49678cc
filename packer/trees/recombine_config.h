/* SPDX-License-Identifier: MIT */
/* AMD's configuration file, which says what `kpack recombine` makes. */
#ifndef PACKER_RECOMBINE_CONFIG_H
#define PACKER_RECOMBINE_CONFIG_H

#include "core/base/errors.h"
#include "core/base/faults.h"
#include "core/base/span.h"

/* Size limit of the file in bytes: real files have a few thousand. */
#define RECOMBINE_CONFIG_MAX (1 << 20)

struct recombine_group {
	char *name; /* its trees are called <component>_<name> */
	char *display_name;
	char **arches; /* as spelled in the file; each in one group only */
	size_t n_arches;
};

struct recombine_config {
	char *primary;                  /* primary_shard */
	struct recombine_group *groups; /* in the file's order */
	size_t n_groups;
	bool error_on_duplicate;   /* error_on_duplicate_device_code: true */
	bool verify_generic;       /* verify_generic_artifacts_match: false */
	bool error_on_missing;     /* error_on_missing_architecture: false */
	struct kp_faults warnings; /* unknown fields */
};

/*
 * Read the file PATH, or parse TEXT.  INVALID_ARGUMENT names the faulty field, or the
 * line and column of invalid JSON.  FILE_NOT_FOUND, IO_ERROR.  The caller calls
 * recombine_config_fini even after an error.
 */
kpack_error_t recombine_config_read(const char *path, struct recombine_config *out,
				    struct kpackx_error *why);
kpack_error_t recombine_config_parse(struct kp_span text, struct recombine_config *out,
				     struct kpackx_error *why);
void recombine_config_fini(struct recombine_config *config);

#endif
