/* SPDX-License-Identifier: MIT */
/*
 * What is installed for the GPUs of a machine - Debian packages with code of GPUs, which state it
 * in their field X-Rocm-Gpu-Architecture - and what is missing.
 */
#ifndef PACKER_GPU_INSTALLED_H
#define PACKER_GPU_INSTALLED_H

#include "names.h"

struct gpu_installed_package {
	char *name;
	char *gpus;     /* the field; NULL: the package has none */
	char *suggests; /* the field Suggests; NULL: the package has none */
	char *base;     /* the package that a package for GPUs enhances; or NULL */
};

struct gpu_installed {
	struct gpu_installed_package *items; /* by name, bytewise */
	size_t count, cap;
};

/*
 * Take the installed packages that have one of the fields from STATUS, text in the form of
 * dpkg's file `status`.  The caller finishes OUT.
 */
void gpu_installed_parse(struct kp_span status, struct gpu_installed *out);
void gpu_installed_fini(struct gpu_installed *list);

/* Whether the package has code that one of GPUS loads, or may load: GPUs are not known. */
bool gpu_installed_serves(const struct gpu_installed_package *p,
			  const struct kp_choice *gpus);
/*
 * The name of the package with the code of P for GPU, on the heap; NULL: an installed package
 * has it, or P has no packages for GPUs.
 */
char *gpu_installed_lacks(const struct gpu_installed *list,
			  const struct gpu_installed_package *p,
			  const struct kp_target *gpu);

#endif
