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
 * Is NAME one of those of GROUP?  A stem begins with '_' before an architecture and with '-'
 * before a family; it is borrowed from NAME.
 */
bool volume_split_name(const char *name, const char *group, unsigned *number,
		       struct kp_span *stem);

/* Free it; unpublished, it leaves nothing.  Accepts a half-made one. */
void volume_fini(struct volume *v);

#endif
