/* SPDX-License-Identifier: MIT */
/*
 * The archives that exist in the output before a run: which belong to its group, and what
 * will stay in them.
 */
#ifndef PACKER_PACK_ARCHIVES_EXISTING_ARCHIVES_H
#define PACKER_PACK_ARCHIVES_EXISTING_ARCHIVES_H

#include "core/archive/archive.h"
#include "core/base/errors.h"
#include "core/base/span.h"

struct existing_archive {
	char *file;      /* name in the directory */
	char *stem;      /* what follows the group: "_gfx942", "-rdna" */
	unsigned number; /* of the volume, from 1 */
	bool foreign;    /* of another group, whose name begins alike */
	uint64_t bytes;  /* stored bytes that stay, with their length words */
	uint32_t frames; /* objects that stay */
	char *moved;     /* text: an entry that the run stores in another archive */
	bool obsolete;   /* it has entries that are replaced by nothing */
};

struct existing {
	struct existing_archive *items;
	size_t count;
};

/* The fate of an existing entry. */
enum existing_fate {
	ENTRY_STAYS,
	ENTRY_REPLACED,
	ENTRY_OBSOLETE, /* not stored by the run, and goes */
	ENTRY_MOVED,    /* stored by the run, but in another archive */
};
typedef enum existing_fate existing_fate_fn(const void *arg,
					    const struct existing_archive *archive,
					    const struct kpack_archive *opened,
					    size_t entry);

/*
 * List the archives of GROUP in DIR, in order of name.  One that cannot be read counts as
 * one of the group, with all its bytes.
 */
kpack_error_t existing_open(const char *dir, const char *group, existing_fate_fn *fate,
			    const void *arg, struct existing *out,
			    struct kpackx_error *why);
void existing_close(struct existing *list);

/* Returns the archive named FILE, or NULL. */
const struct existing_archive *existing_find(const struct existing *list,
					     const char *file);

#endif
