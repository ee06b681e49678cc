/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include "fs/base/log.h"
#include "invalidate.h"

/*
 * Names after which all are taken back at once, where library and kernel can.  Below, that
 * would cost more: what is not named any more loses its pages.
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

/* The name first: that waits for a listing which is being read, and may be kept. */
static int tell(struct invalidation *n, const struct change *c)
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
	int err = tell(notices, c);

	/* ENOENT: the kernel does not know it. */
	if (err && err != -ENOENT)
		log_print(LOG_INFO, "the kernel was not notified of a change: %s",
			  strerror(-err));
}
