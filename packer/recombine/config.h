/* SPDX-License-Identifier: MIT */
/* What `kpack recombine` is to make: AMD's configuration file. */
#ifndef PACKER_RECOMBINE_CONFIG_H
#define PACKER_RECOMBINE_CONFIG_H

#include "core/base/errors.h"
#include "core/base/faults.h"
#include "core/base/span.h"

/* Bytes of the file: real ones have a few thousand. */
#define RECOMBINE_CONFIG_MAX (1 << 20)

struct recombine_group {
	char *name; /* of its trees: <component>_<name> */
	char *display_name;
	char **arches; /* as written; each in one group only */
	size_t n_arches;
};

struct recombine_config {
	char *primary;                  /* primary_shard */
	struct recombine_group *groups; /* as they stand in the file */
	size_t n_groups;
	bool error_on_duplicate;   /* error_on_duplicate_device_code: true */
	bool verify_generic;       /* verify_generic_artifacts_match: false */
	bool error_on_missing;     /* error_on_missing_architecture: false */
	struct kp_faults warnings; /* fields that mean nothing */
};

/* Is --config built in?  It needs jansson. */
bool recombine_config_built(void);

/*
 * Read the file PATH, or TEXT.  INVALID_ARGUMENT: what is wrong, and in which field; of
 * text that is no JSON the line and column.  FILE_NOT_FOUND, IO_ERROR, OUT_OF_MEMORY.
 * OUT must be finished in any case.
 */
kpack_error_t recombine_config_read(const char *path, struct recombine_config *out,
				    struct kpackx_error *why);
kpack_error_t recombine_config_parse(struct kp_span text, struct recombine_config *out,
				     struct kpackx_error *why);
void recombine_config_fini(struct recombine_config *config);

#endif
