/* SPDX-License-Identifier: MIT */
/*
 * From a request to its reply.  Three ranges of inode numbers lead three ways: the root
 * and numbers from TREE_FIRST on to the tree (fs/tree/inodes.h), those between to .kpackfs
 * (control.h).  A read of a file goes on to fs/content, which replies by op_read_answer,
 * now or later, from any thread.
 *
 * The kernel is allowed to keep everything for ever: names, names that do not exist,
 * attributes, listings, pages.  It opens files and directories without asking, if it can.
 * What changes is invalidated at the end of this file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include "ops.h"
#include "core/archive/naming.h"
#include "fs/base/log.h"

/*
 * Seconds that the kernel may cache an answer: changes are invalidated when they happen.
 */
#define FOREVER 1e9
#define NAME_BYTES 255

static struct fs *fs_of(fuse_req_t req)
{
	struct fs *fs = fuse_req_userdata(req);

	atomic_fetch_add_explicit(&fs->requests, 1, memory_order_relaxed);
	return fs;
}

static bool is_control(fuse_ino_t ino)
{
	return ino != TREE_ROOT && ino < TREE_FIRST;
}

/* --- the session ----------------------------------------------------------------------- */

static void op_init(void *user, struct fuse_conn_info *conn)
{
	struct fs *fs = user;

	conn->want |= conn->capable & (FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_CACHE_SYMLINKS |
				       FUSE_CAP_EXPLICIT_INVAL_DATA);
	/* Content never changes under an inode.  Splicing costs more than copying.  An
	 * open with O_TRUNC must be refused, so the kernel must not merge it into OPEN,
	 * which it may not send. */
	conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
				  FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
				  FUSE_CAP_ATOMIC_O_TRUNC);
	/*
	 * Reads ahead of the kernel are background requests.  Most of those that are under way
	 * are parked at a piece and cost no thread, so more than the kernel's default of 12 are let in;
	 * the barrier's readers (control.c) are kept below this number.
	 */
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	fs->no_open = !fs->always_open && conn->capable & FUSE_CAP_NO_OPEN_SUPPORT;
	fs->no_opendir = !fs->always_open && conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT;
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct inodes *inodes = fs_of(req)->inodes;
	const struct edition *e = inodes_enter(inodes);
	struct statvfs st = {
		.f_bsize = 4096,
		.f_frsize = 4096,
		.f_blocks = (e->bytes + 4095) / 4096,
		.f_files = (fsfilcnt_t)tree_dir_count(e->tree) + tree_file_count(e->tree),
		.f_flag = ST_RDONLY,
		.f_namemax = NAME_BYTES,
	};

	(void)ino;
	inodes_leave(inodes);
	fuse_reply_statfs(req, &st);
}

/* --- names and attributes ---------------------------------------------------------------- */

static struct fuse_entry_param entry_of(const struct stat *st)
{
	return (struct fuse_entry_param){
		.ino = st->st_ino,
		.generation = 1,
		.attr = *st,
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
}

/* Between inodes_enter and inodes_leave. */
static void reply_inode(fuse_req_t req, const struct stat *st)
{
	struct fuse_entry_param e = entry_of(st);
	struct inodes *inodes = fs_of(req)->inodes;

	inodes_count(inodes, st->st_ino);
	/* A killed caller did not get the inode and will not forget it. */
	if (fuse_reply_entry(req, &e))
		inodes_uncount(inodes, st->st_ino);
}

static void reply_node(fuse_req_t req, const struct edition *e, struct tree_node node)
{
	struct stat st;

	tree_stat(e->tree, node, &st);
	reply_inode(req, &st);
}

/*
 * Compilers and loaders ask for many names that do not exist, again and again.  An entry with
 * inode 0 and a timeout makes the kernel remember that; ENOENT would not.
 */
static void reply_negative(fuse_req_t req)
{
	const struct fuse_entry_param e = {.entry_timeout = FOREVER};

	fuse_reply_entry(req, &e);
}

/*
 * A snapshot's attributes never change, but its name stands for another at the next
 * look-up.
 */
static void reply_control(fuse_req_t req, fuse_ino_t ino, const struct stat *st)
{
	struct fuse_entry_param e = entry_of(st);

	e.ino = ino;
	e.entry_timeout = ino == CONTROL_DIR ? FOREVER : 0;
	/* A killed caller did not get the snapshot and will not forget it. */
	if (fuse_reply_entry(req, &e))
		control_forget(fs_of(req)->control, ino, 1);
}

/* NFS servers look up "." and ".." of inodes that the kernel has forgotten. */
static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fs_of(req);
	const struct edition *now;
	struct tree_node found;
	struct inode inode;
	struct edition *e;
	struct stat st;
	fuse_ino_t ino;
	int err;

	if (strlen(name) > NAME_BYTES) {
		fuse_reply_err(req, ENAMETOOLONG);
	} else if (!is_control(parent)) {
		now = inodes_enter(fs->inodes);
		if (parent == TREE_ROOT && strcmp(name, KP_CONTROL_NAME) == 0 &&
		    control_find(fs->control, CONTROL_DIR, 0, &st))
			reply_control(req, CONTROL_DIR, &st);
		else if (!inodes_find(fs->inodes, parent, &inode))
			fuse_reply_err(req, ESTALE);
		else if (strcmp(name, ".") == 0)
			reply_inode(req, &inode.st);
		else if (!inode.node.is_dir)
			fuse_reply_err(req, ENOTDIR);
		else if (inode.retired)
			fuse_reply_err(req, ENOENT); /* a retired directory is empty */
		else if (strcmp(name, "..") == 0)
			reply_node(req, now, tree_parent(now->tree, inode.node.index));
		else if (tree_lookup(now->tree, inode.node.index, kp_span_str(name),
				     &found))
			reply_node(req, now, found);
		else
			reply_negative(req);
		inodes_leave(fs->inodes);
	} else if (strcmp(name, ".") == 0 && control_find(fs->control, parent, 1, &st)) {
		reply_control(req, parent, &st);
	} else if (parent != CONTROL_DIR) {
		fuse_reply_err(req, control_find(fs->control, parent, 0, &st) ? ENOTDIR
									      : ESTALE);
	} else if (strcmp(name, "..") == 0) {
		now = inodes_enter(fs->inodes);
		reply_node(req, now, tree_root(now->tree));
		inodes_leave(fs->inodes);
	} else {
		/* the text may take a while: it holds its edition, and not up a swap of
		 * editions */
		e = inodes_edition(fs->inodes);
		err = control_lookup(fs->control, e, kp_span_str(name), &ino, &st);
		edition_unref(e);
		if (err == ENOENT)
			reply_negative(req);
		else if (err)
			fuse_reply_err(req, err);
		else
			reply_control(req, ino, &st);
	}
}

/* Both keep a count for each number: what the kernel has forgotten may be freed. */
static void forget_inode(struct fs *fs, fuse_ino_t ino, uint64_t n)
{
	if (is_control(ino))
		control_forget(fs->control, ino, n);
	else
		inodes_forget(fs->inodes, ino, n);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	forget_inode(fs_of(req), ino, n);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
			    struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget_inode(fs_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct inode inode;
	bool found;

	(void)fi;
	if (is_control(ino)) {
		found = control_find(fs->control, ino, 0, &inode.st);
	} else {
		inodes_enter(fs->inodes);
		found = inodes_find(fs->inodes, ino, &inode);
	}
	if (found)
		fuse_reply_attr(req, &inode.st, FOREVER);
	else
		fuse_reply_err(req, ESTALE);
	if (!is_control(ino)) /* after the answer: see inodes.h */
		inodes_leave(fs->inodes);
}

/* --- files ------------------------------------------------------------------------------- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	if (fs_of(req)->no_open) {
		/* From now on the kernel opens files itself, and keeps their pages. */
		fuse_reply_err(req, ENOSYS);
		return;
	}
	if ((fi->flags & O_ACCMODE) != O_RDONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

/*
 * Reads are not interrupted: a parked read is answered soon, and if a signal came while a
 * page was touched through mmap, EINTR would cause a SIGBUS.
 */
static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct file_content file;
	int err;

	(void)fi;
	if (off < 0) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	if (is_control(ino)) {
		if (!control_read(fs->control, ino, (uint64_t)off, size, req))
			fuse_reply_err(req, ESTALE);
		return;
	}
	inodes_enter(fs->inodes);
	err = inodes_file(fs->inodes, ino, &file);
	inodes_leave(fs->inodes);
	if (err) {
		fuse_reply_err(req, err);
		return;
	}
	if (file.bundle)
		content_read_bundle(fs->content, file.bundle, (uint64_t)off, size,
				    op_read_answer, req);
	else
		content_read(fs->content, file.entry, (uint64_t)off, size, op_read_answer,
			     req);
	file_content_unref(&file);
}

void op_read_answer(void *token, const void *data, size_t size,
		    const struct kpackx_error *why)
{
	if (!why)
		fuse_reply_buf(token, data, size);
	else if (why->code == KPACK_ERROR_KERNEL_NOT_FOUND ||
		 why->code == KPACK_ERROR_FILE_NOT_FOUND)
		fuse_reply_err(token, ENOENT);
	else if (why->code == KPACK_ERROR_OUT_OF_MEMORY)
		fuse_reply_err(token, ENOMEM);
	else if (why->code == KPACK_ERROR_IO_ERROR && why->sys_errno)
		fuse_reply_err(token, why->sys_errno);
	else
		fuse_reply_err(token, EIO);
}

/* --- directories ------------------------------------------------------------------------- */

/*
 * An offset is the position of the next name; "." and ".." have 0 and 1, and
 * the first name has 2.  Positions in the tree outlive their edition (inodes.h): who lists a
 * directory in several requests neither misses nor repeats a name that stayed when a reload
 * comes between two of them.
 */

#define FIRST_POSITION 2

struct listing {
	fuse_req_t req;
	bool plus;
	char *buf;
	size_t size, used;
};

/* Add a name; false when it does not fit. */
static bool list_add(struct listing *l, const char *name,
		     const struct fuse_entry_param *e, off_t next)
{
	char *at = l->buf + l->used;
	size_t room = l->size - l->used;
	size_t n = l->plus ? fuse_add_direntry_plus(l->req, at, room, name, e, next)
			   : fuse_add_direntry(l->req, at, room, name, &e->attr, next);

	if (n > room)
		return false;
	l->used += n;
	return true;
}

/* Add a name without attributes: it is not looked up, so that there is none to be forgotten. */
static bool list_plain(struct listing *l, const char *name, uint64_t ino, mode_t type,
		       off_t next)
{
	struct fuse_entry_param e = {.attr = {.st_ino = ino, .st_mode = type}};

	return list_add(l, name, &e, next);
}

static bool list_dots(struct listing *l, uint64_t self, uint64_t parent, off_t from)
{
	return (from > 0 || list_plain(l, ".", self, S_IFDIR, 1)) &&
	       (from > 1 || list_plain(l, "..", parent, S_IFDIR, 2));
}

/* Call COUNT for each listed name of E from FIRST to END. */
static void count_listed(struct inodes *inodes, const struct edition *e, uint32_t first,
			 uint32_t end, void (*count)(struct inodes *, uint64_t))
{
	for (; first < end; first++) {
		struct kp_view_name name = kp_view_name(e->view, first);

		if (name.text.size <= NAME_BYTES)
			count(inodes, tree_named(e->tree, &name).ino);
	}
}

/* Reply with the names of the directory INO, but for those that are too long. */
static void list_directory(struct listing l, fuse_ino_t ino, off_t from)
{
	struct inodes *inodes = fs_of(l.req)->inodes;
	off_t at;
	const struct edition *e;
	struct inode inode;
	const char *name;

	l.buf = malloc(l.size);
	if (!l.buf) {
		fuse_reply_err(l.req, ENOMEM);
		return;
	}
	if (from < 0)
		from = INT64_MAX;
	at = from > FIRST_POSITION ? from - FIRST_POSITION : 0;
	if (ino == CONTROL_DIR) {
		if (list_dots(&l, CONTROL_DIR, TREE_ROOT, from))
			while ((name = control_name((size_t)at)) &&
			       list_plain(&l, name, CONTROL_LISTED + (uint64_t)at,
					  S_IFREG, at + 1 + FIRST_POSITION))
				at++;
		fuse_reply_buf(l.req, l.buf, l.used);
		free(l.buf);
		return;
	}

	/* the answer is sent before inodes_leave: see inodes.h */
	e = inodes_enter(inodes);
	if (!inodes_find(inodes, ino, &inode)) {
		fuse_reply_err(l.req, ESTALE);
	} else if (!inode.node.is_dir) {
		fuse_reply_err(l.req, ENOTDIR);
	} else {
		const struct tree_node dir = inode.node;
		const struct kp_view_dir *d = NULL; /* a retired directory is empty */
		uint32_t first = 0, end = 0, all = 0;
		uint64_t i = 0;

		if (!inode.retired) {
			d = kp_view_dir(e->view, dir.index);
			if (at)
				i = inodes_position(inodes, dir.ino, (uint64_t)at);
			first = end = d->first + (uint32_t)(i < d->count ? i : d->count);
			if (list_dots(&l, dir.ino, tree_parent(e->tree, dir.index).ino,
				      from))
				all = d->first + d->count;
		}
		for (; end < all; end++) {
			struct kp_view_name shown = kp_view_name(e->view, end);
			struct tree_node node = tree_named(e->tree, &shown);
			off_t next = (off_t)inodes_encode_position(inodes,
								   end + 1 - d->first) +
				     FIRST_POSITION;
			struct fuse_entry_param entry;
			char text[NAME_BYTES + 1];
			struct stat st;

			if (shown.text.size > NAME_BYTES)
				continue;
			memcpy(text, shown.text.data, shown.text.size);
			text[shown.text.size] = '\0';
			if (l.plus) {
				tree_stat(e->tree, node, &st);
				entry = entry_of(&st);
				if (!list_add(&l, text, &entry, next))
					break;
			} else if (!list_plain(&l, text, node.ino,
					       node.is_dir ? S_IFDIR : S_IFREG, next)) {
				break;
			}
		}
		/* A name with its attributes counts as a look-up.  Before the reply: the kernel
		 * may forget a name before that returns. */
		if (l.plus)
			count_listed(inodes, e, first, end, inodes_count);
		if (fuse_reply_buf(l.req, l.buf, l.used) && l.plus)
			count_listed(inodes, e, first, end, inodes_uncount);
	}
	inodes_leave(inodes);
	free(l.buf);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	if (fs_of(req)->no_opendir) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->cache_readdir = fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	(void)fi;
	list_directory((struct listing){.req = req, .size = size}, ino, off);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi)
{
	(void)fi;
	list_directory((struct listing){.req = req, .size = size, .plus = true}, ino,
		       off);
}

/*
 * Requests that would change the tree.  The kernel refuses them itself if the mount is `ro`,
 * but it may have been mounted or remounted without; without a handler the answer would be
 * ENOSYS.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static void refuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
			   struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
			 off_t off, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off,
			     off_t len, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_create(fuse_req_t req, fuse_ino_t parent, const char *name,
			  mode_t mode, struct fuse_file_info *fi)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
			 dev_t device)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
			   const char *name)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
			const char *name)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
			  fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	fuse_reply_err(req, EROFS);
}

static void refuse_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_reply_err(req, EROFS);
}

#pragma GCC diagnostic pop

/*
 * A request without a handler is answered with ENOSYS once, and the kernel sends no more
 * of that type.  That is why xattrs_add is separate: `ls -l` would ask for three extended
 * attributes of each file.
 */
const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.open = op_open,
	.read = op_read,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.statfs = op_statfs,

	.setattr = refuse_setattr,
	.write = refuse_write,
	.fallocate = refuse_fallocate,
	.create = refuse_create,
	.mknod = refuse_mknod,
	.mkdir = refuse_mkdir,
	.symlink = refuse_symlink,
	.link = refuse_link,
	.rename = refuse_rename,
	.unlink = refuse_remove,
	.rmdir = refuse_remove,
};

/* --- invalidation --------------------------------------------------------------------- */

/*
 * If more names change, all names are invalidated at once, if library and kernel can do
 * that.  For fewer names it costs more, because a file that loses its last name loses its
 * pages.
 */
#define NAMES_MAX 20000

void invalidate_send(void *notices, const struct change *c)
{
	struct invalidation *n = notices;
	int err = 0;

	/* A name comes before its listing: invalidating it waits for a listing that is being
	 * read. */
	switch (c->what) {
	case CHANGED_NAME:
		n->names++;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
		if (n->names > NAMES_MAX && !n->all)
			n->all = fuse_lowlevel_notify_increment_epoch(n->session) == 0;
#endif
		if (!n->all)
			err = fuse_lowlevel_notify_inval_entry(n->session, c->ino,
							       c->name, strlen(c->name));
		break;
	case CHANGED_NAMES:
		err = fuse_lowlevel_notify_inval_inode(n->session, c->ino, 0, 0);
		break;
	case CHANGED_STAT:
		/* a negative offset: attributes only, the bytes are the same */
		err = fuse_lowlevel_notify_inval_inode(n->session, c->ino, -1, 0);
		break;
	}
	/* ENOENT: the kernel does not know the name or inode. */
	if (err && err != -ENOENT)
		log_print(LOG_INFO, "the kernel was not notified of a change: %s",
			  strerror(-err));
}
