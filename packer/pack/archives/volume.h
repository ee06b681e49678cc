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

/* "GROUP[.NUMBER]STEM.kpack" on the heap, or NULL; volume 1 has no number. */
char *volume_file_name(const char *group, unsigned number, const char *stem);

/*
 * Split NAME into the number of a volume and a stem; false: it is no archive of GROUP.
 * The stem, which is borrowed from NAME, begins with '_' before an architecture and '-'
 * before a family.
 */
bool volume_split_name(const char *name, const char *group, unsigned *number,
		       struct kp_span *stem);

/* Free V; an unpublished archive leaves nothing.  Accepts a half-made one. */
void volume_fini(struct volume *v);

#endif
