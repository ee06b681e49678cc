/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include "fs/base/log.h"
#include "invalidate.h"

/*
 * If more names change, all names are invalidated at once, if library and kernel can do
 * that.  For fewer names it costs more, because a file that loses its last name loses its
 * pages.
 */
#define NAMES_MAX 20000

static bool take_all_back(struct invalidation *n)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
	if (n->names > NAMES_MAX && !n->all)
		n->all = fuse_lowlevel_notify_increment_epoch(n->session) == 0;
#endif
	return n->all;
}

/*
 * A name comes before its listing: invalidating it waits for a listing that is being
 * read.
 */
static int send_change(struct invalidation *n, const struct change *c)
{
	switch (c->what) {
	case CHANGED_NAME:
		n->names++;
		if (take_all_back(n))
			return 0;
		return fuse_lowlevel_notify_inval_entry(n->session, c->ino, c->name,
							strlen(c->name));
	case CHANGED_NAMES:
		return fuse_lowlevel_notify_inval_inode(n->session, c->ino, 0, 0);
	case CHANGED_STAT:
		/* a negative offset: attributes only, the bytes are the same */
		return fuse_lowlevel_notify_inval_inode(n->session, c->ino, -1, 0);
	}
	return 0;
}

void invalidate_send(void *notices, const struct change *c)
{
	int err = send_change(notices, c);

	/* ENOENT: the kernel does not know the name or inode. */
	if (err && err != -ENOENT)
		log_print(LOG_INFO, "the kernel was not notified of a change: %s",
			  strerror(-err));
}
