/* SPDX-License-Identifier: MIT */
/*
 * The architectures that a converted binary was built for, as its layout says, or that its
 * archives have where there is none; and which of them are installed for it.
 */
#ifndef PACKER_BINARY_BUILT_ARCHES_H
#define PACKER_BINARY_BUILT_ARCHES_H

#include "binary.h"
#include "reachable_archives.h"

struct built_arches {
	const char **items; /* sorted; of the layout and the archives */
	size_t count;
	bool *installed; /* per item */
};

/*
 * The architectures of B with the archives in REACH. A must be zeros, and finished in any
 * case.
 */
kpack_error_t built_arches_find(const struct binary *b, const struct reach *reach,
				struct built_arches *a, struct kpackx_error *why);
void built_arches_fini(struct built_arches *a);

bool built_arches_installed(const struct built_arches *a, const char *arch);

/* Does GPU run any code of the binary, or any that is INSTALLED? */
bool built_arches_run(const struct built_arches *a, const struct kp_target *gpu,
		      bool installed);

#endif
