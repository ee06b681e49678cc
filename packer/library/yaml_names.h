/* SPDX-License-Identifier: MIT */
/* The files that a YAML file names. */
#ifndef PACKER_CLOSURE_YAML_NAMES_H
#define PACKER_CLOSURE_YAML_NAMES_H

#include <stdbool.h>
#include "core/base/errors.h"
#include "core/base/span.h"

/* A scalar that ends like the name of a file. */
struct yaml_name {
	char *text;
	char *gpu; /* named by a key above it, or by an "arch" next to it; or NULL */
};

struct yaml_names {
	struct yaml_name *items;
	size_t count, cap;
	char **gpus; /* GPUs that the file mentions anywhere, each once */
	size_t n_gpus, gpus_cap;
};

/*
 * Collect every scalar of BYTES that names a .co, .hsaco, .dat or .yaml, and Tensile's
 * placeholders, which name PREFIX.yaml.  Aliases are not followed: their target is read
 * where it is defined.  The caller must finish OUT in any case.  INVALID_FORMAT: not YAML
 * (WHY names the line), or beyond a limit; OUT_OF_MEMORY.
 */
kpack_error_t yaml_names_read(struct kp_span bytes, struct yaml_names *out,
			      struct kpackx_error *why);
void yaml_names_fini(struct yaml_names *names);

#endif
