/* SPDX-License-Identifier: MIT */
/* One archive of a set, being written. */
#ifndef PACKER_PACK_ARCHIVES_VOLUME_H
#define PACKER_PACK_ARCHIVES_VOLUME_H

#include "core/writer/store.h"

struct volume {
	unsigned number;
	char *file; /* name in the directory */
	struct kp_store store;
};

/* Free V; an unpublished archive leaves nothing.  Accepts a half-made one. */
void volume_fini(struct volume *v);

#endif
