/* SPDX-License-Identifier: MIT */
/*
 * The new list is made beside the last one and compared with it.  An archive keeps its
 * serial as long as its file is the same: device, inode number, size, and both times.
 *
 * Where a file system does not answer any more, because its server or its disk is gone, the
 * archives that were seen there last stay in the list with their serials, beside an item that
 * says why: what the mount shows must not go because of a broken cable.  They go when the
 * file system answers that they are gone.
 *
 * A watch is on a directory, and counts only for the names that matter there: the next
 * component of a path, or all archives.  Each scan marks the directories that it watches,
 * and its end removes the other watches.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/walk.h"
#include "fs/base/log.h"
#include "sources.h"

/* --- watches -------------------------------------------------------------------------- */

/* Events of a directory on the way to a path, and of a directory with archives. */
#define NAMES_MASK                                                                       \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |          \
	 IN_MOVE_SELF | IN_ATTRIB)
#define FILES_MASK (NAMES_MASK | IN_MODIFY | IN_CLOSE_WRITE)

/* A directory that is watched. */
struct place {
	int wd;
	uint32_t mask;
	unsigned round;  /* the last in which it was watched */
	bool archives;   /* names *.kpack matter */
	bool all;        /* all names matter */
	char *names[64]; /* the names that matter besides; if there are more, all do */
	size_t n_names;
};

void sources_watch(struct sources *s)
{
	s->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	s->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	s->watched = true;
}

static void forget_names(struct place *p)
{
	while (p->n_names)
		free(p->names[--p->n_names]);
}

static bool has_name(const struct place *p, const char *name)
{
	for (size_t i = 0; i < p->n_names; i++)
		if (strcmp(p->names[i], name) == 0)
			return true;
	return false;
}

static struct place *find_place(const struct sources *s, int wd)
{
	for (size_t i = 0; i < s->n_places; i++)
		if (s->places[i].wd == wd)
			return &s->places[i];
	return NULL;
}

/* Note why changes of the file open at FD may go unnoticed, if it is the first such reason. */
static void note_blind(struct sources *s, int fd, const char *why)
{
	char proc[KP_FD_NAME_SIZE], path[PATH_MAX];
	ssize_t size = readlink(kp_fd_name(fd, proc), path, sizeof(path) - 1);

	path[size < 0 ? 0 : size] = '\0';
	if (!s->blind[0])
		snprintf(s->blind, sizeof(s->blind), "%s: %s", size < 0 ? "/proc" : path,
			 why);
}

/*
 * Watch the directory open at DIR in this round for the events of MASK, in addition to
 * those watched already.  NULL: it cannot be, which is noted, or DIR is no directory.
 */
static struct place *watch_dir(struct sources *s, int dir, uint32_t mask)
{
	char proc[KP_FD_NAME_SIZE];
	struct place *p = NULL;
	int wd;

	if (s->events < 0)
		return NULL;
	/* Add to the mask, do not replace it: this round may have watched DIR already. */
	wd = inotify_add_watch(s->events, kp_fd_name(dir, proc),
			       mask | IN_ONLYDIR | IN_EXCL_UNLINK | IN_MASK_ADD);
	if (wd >= 0)
		p = find_place(s, wd);
	if (wd >= 0 && !p &&
	    kp_grow(&s->places, s->n_places, &s->cap_places, sizeof(*s->places))) {
		p = &s->places[s->n_places++];
		*p = (struct place){.wd = wd};
	}
	if (!p) {
		if (errno != ENOTDIR)
			note_blind(s, dir,
				   errno == ENOSPC
					   ? "fs.inotify.max_user_watches is reached"
					   : strerror(errno));
		return NULL;
	}
	if (p->round != s->round) {
		forget_names(p);
		p->archives = p->all = false;
		p->mask = 0;
		p->round = s->round;
	}
	p->mask |= mask;
	return p;
}

/*
 * Watch each directory on the way to PATH for the name that the path has there; if PATH is a
 * SOURCE and a directory, also that one, for the archives in it.
 */
static void watch_path(struct sources *s, const char *path, bool source)
{
	/* other machines change these file systems without notice to this kernel */
	static const unsigned remote[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB 2 */
		0x65735546, /* FUSE */
		0x01021997, /* 9P */
		0x00c36400, /* Ceph */
		0x5346414f, /* AFS */
		0x6b414653, /* kAFS */
		0x0bd00bd0, /* Lustre */
		0x47504653, /* GPFS */
		0x73757245, /* Coda */
		0x01161970, /* GFS2 */
		0x7461636f, /* OCFS2 */
		0x786f4256, /* VirtualBox */
		0xbacbacbc, /* VMware */
	};
	struct kp_walk way;
	bool fine = kp_walk_begin(&way, AT_FDCWD, path);
	char name[NAME_MAX + 1];
	struct statfs st;
	struct place *p;

	while (fine && kp_walk_name(&way, name)) {
		p = NULL;
		if (strcmp(name, "..") != 0)
			p = watch_dir(s, way.at,
				      kp_walk_is_last(&way) ? FILES_MASK : NAMES_MASK);
		if (p && !p->all && !has_name(p, name)) {
			char *copy =
				p->n_names < KP_COUNT(p->names) ? strdup(name) : NULL;

			if (copy)
				p->names[p->n_names++] = copy;
			else
				p->all = true;
		}
		fine = kp_walk_step(&way, name);
	}
	if (fine && !errno) {
		bool known = fstatfs(way.at, &st) == 0;

		for (size_t i = 0; known && i < KP_COUNT(remote); i++)
			if ((unsigned)st.f_type == remote[i])
				note_blind(
					s, way.at,
					"changes on this file system are not reported");
		p = source ? watch_dir(s, way.at, FILES_MASK) : NULL;
		if (p)
			p->archives = true;
	}
	kp_walk_end(&way);
}

bool sources_read_events(struct sources *s)
{
	char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	bool any = false;
	int left = 0;
	ssize_t n;

	/* only the events that exist now: new ones may come as fast as they are read */
	if (ioctl(s->events, FIONREAD, &left) < 0)
		return false;
	for (; left > 0 && (n = read(s->events, bytes, sizeof(bytes))) > 0;
	     left -= (int)n) {
		for (char *at = bytes; at < bytes + n; at += sizeof(*e) + e->len) {
			const struct place *p;

			e = (const struct inotify_event *)(void *)at;
			p = find_place(s, e->wd);
			if (e->mask & IN_Q_OVERFLOW)
				any = true;
			else if (p && e->len == 0)
				/* An event of the directory itself.  Its attributes matter only if
				 * it has the archives, because the mount shows them then. */
				any |= !(e->mask & (IN_ATTRIB | IN_IGNORED)) ||
				       p->archives;
			else if (p && e->mask & (p->mask | IN_UNMOUNT))
				any |= p->all ||
				       (p->archives && kp_is_archive_name(e->name)) ||
				       has_name(p, e->name);
		}
	}
	return any;
}

/* --- the list ------------------------------------------------------------------------- */

static void free_items(struct source_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(items[i].path);
		free(items[i].error);
	}
	free(items);
}

static bool fail_memory(void)
{
	log_print(LOG_ERR, "out of memory");
	return false;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_bytes(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim);
}

/* Add an item.  Takes PATH (NULL: no memory), and copies ERROR, which may be NULL. */
static bool add_item(struct sources *now, char *path, const char *error, uint32_t source)
{
	struct source_item *item;

	if (!path || !kp_grow(&now->items, now->count, &now->cap, sizeof(*item))) {
		free(path);
		return fail_memory();
	}
	item = &now->items[now->count++];
	*item = (struct source_item){.path = path, .source = source};
	if (error)
		item->error = strdup(error);
	return !error || item->error || fail_memory();
}

/* Whether ERR says that a file system does not answer, not what is in it. */
static bool is_away(int err)
{
	return err == EIO || err == ESTALE || err == ENOTCONN || err == ETIMEDOUT ||
	       err == EHOSTDOWN;
}

/* ITEM is the archive OLD of the last list. */
static void keep_archive(struct source_item *item, const struct source_item *old)
{
	item->serial = old->serial;
	item->refused = old->refused;
	item->retry = old->retry;
	item->st = old->st;
}

/*
 * The SOURCE cannot be listed, because of WHY.  If it is just away, its archives of the list
 * LAST stay; look_at_item does not look at what has a serial.
 */
static bool keep_source(struct sources *now, const struct sources *last, uint32_t source,
			const struct kpackx_error *why)
{
	const char *path = now->paths[source];
	bool away = is_away(why->sys_errno), ok;

	/* before its archives: the list is sorted by path, unless the source is a file */
	ok = add_item(now, strdup(path), why->text, source);
	if (ok)
		now->items[now->count - 1].away = away;
	for (size_t i = 0; ok && away && i < last->count; i++) {
		const struct source_item *old = &last->items[i];
		struct source_item *item = &now->items[now->count - 1];

		if (old->source != source || !old->serial)
			continue;
		if (strcmp(old->path, path) != 0) {
			ok = add_item(now, strdup(old->path), NULL, source);
			item = &now->items[now->count - 1];
		}
		if (!ok)
			break;
		keep_archive(item, old);
	}
	return ok;
}

/* Add an item for each archive of a SOURCE; LAST is the list before. */
static bool list_source(struct sources *now, const struct sources *last, uint32_t source,
			unsigned how)
{
	const char *path = now->paths[source];
	/* O_PATH: a file is not opened, as it can be a FIFO, or not readable */
	KP_AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	struct kpackx_error why = {0};
	char **paths = NULL;
	size_t count = 0;
	bool ok = true;

	if (fd < 0 ? kp_fail_errno(&why, errno, "cannot look at it")
		   : kp_archives_find_at(fd, path, &paths, &count, &why)) {
		if (!(how & SCAN_FIRST))
			return keep_source(now, last, source, &why);
		log_about(LOG_ERR, path, why.text);
		return false;
	}
	if (count == 0 && how & SCAN_FIRST)
		log_about(LOG_WARNING, path, "no archives (*.kpack) here");
	for (size_t i = 0; i < count; i++) {
		if (ok)
			ok = add_item(now, paths[i], NULL, source);
		else
			free(paths[i]);
	}
	free(paths);
	return ok;
}

/*
 * Look at ITEM, and give it the serial that it had in the list LAST, which is sorted by
 * source and path, if the file is unchanged, or else a new one.  false: no memory.
 */
static bool look_at_item(struct sources *now, struct source_item *item,
			 struct sources *last, unsigned how)
{
	const struct source_item *old = kp_find(last->items, last->count, item,
						KP_BY_NUMBER(struct source_item, source),
						KP_BY_TEXT(struct source_item, path));
	struct kpackx_error why = {0};
	struct stat link;

	if (item->error || item->serial)
		return true;
	/* the directory of a link is watched already, as that of any archive */
	if (last->watched && lstat(item->path, &link) == 0 && S_ISLNK(link.st_mode))
		watch_path(last, item->path, false);
	if (stat(item->path, &item->st)) {
		kp_fail_errno(&why, errno, "cannot look at it");
		item->st = (struct stat){0};
		item->away = is_away(why.sys_errno);
		if (item->away && old && old->serial)
			keep_archive(item, old);
		item->error = strdup(why.text);
		return item->error || fail_memory();
	}
	if (old && !old->serial)
		old = NULL;
	if (old && same_bytes(&old->st, &item->st) &&
	    same_time(old->st.st_ctim, item->st.st_ctim) &&
	    !(how & SCAN_FORCED && old->refused)) {
		keep_archive(item, old);
		/* its server did not answer: the outcome of this attempt will be told anew */
		item->fresh = old->retry;
		item->refused = old->refused && !item->fresh;
		item->retry = false;
		now->again = now->again || item->fresh;
	} else {
		item->serial = ++now->last_serial;
		item->fresh = true;
		if (old && same_bytes(&old->st, &item->st))
			item->was = old->serial;
	}
	return true;
}

/* The attributes of the first source matter only without archives. */
static bool lists_differ(const struct sources *a, const struct sources *b)
{
	if (a->count != b->count)
		return true;
	for (size_t i = 0; i < a->count; i++) {
		const struct source_item *x = &a->items[i], *y = &b->items[i];

		if (x->serial != y->serial || x->source != y->source ||
		    strcmp(x->path, y->path) != 0 || !x->error != !y->error ||
		    (x->error && strcmp(x->error, y->error) != 0))
			return true;
	}
	return a->count == 0 &&
	       (a->look.st_mode != b->look.st_mode || a->look.st_uid != b->look.st_uid ||
		a->look.st_gid != b->look.st_gid ||
		!same_time(a->look.st_mtim, b->look.st_mtim));
}

/* Of what is away in the SOURCE, the first; or NULL. */
static const struct source_item *find_away(const struct sources *s, uint32_t source)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].source == source && s->items[i].away)
			return &s->items[i];
	return NULL;
}

bool sources_scan(struct sources *s, unsigned how, bool *changed)
{
	struct sources now = {
		.paths = s->paths, .look = s->look, .last_serial = s->last_serial};
	size_t places = 0;
	bool ok = true;
	struct stat st;

	/* watches first, then the scan: a change in between causes another scan */
	if (s->watched) {
		s->round++;
		strcpy(s->blind, s->events < 0 ? "inotify: not available" : "");
	}
	for (size_t i = 0; s->watched && i < s->n_paths; i++)
		watch_path(s, s->paths[i], true);
	/* the attributes of the first source that stat can read are for the directories of
	 * an empty mount; if there is no such source, the last ones stay */
	for (size_t i = 0; i < s->n_paths; i++) {
		if (stat(s->paths[i], &st))
			continue;
		now.look = st;
		break;
	}
	for (uint32_t i = 0; ok && i < s->n_paths; i++)
		ok = list_source(&now, s, i, how);
	for (size_t i = 0; ok && i < now.count; i++)
		ok = look_at_item(&now, &now.items[i], s, how);
	/* directories that this scan has not watched matter no more */
	for (size_t i = 0; i < s->n_places; i++) {
		struct place *p = &s->places[i];

		if (p->round == s->round) {
			s->places[places++] = *p;
			continue;
		}
		inotify_rm_watch(s->events, p->wd);
		forget_names(p);
	}
	s->n_places = places;
	if (!ok) {
		free_items(now.items, now.count);
		return false;
	}
	s->away = false;
	for (uint32_t i = 0; i < s->n_paths; i++) {
		const struct source_item *away = find_away(&now, i);

		if (away && !find_away(s, i)) /* not at each scan */
			log_print(LOG_WARNING,
				  "%s: %s; the archives that were seen there stay",
				  away->path, away->error);
		s->away = s->away || away;
	}
	*changed = lists_differ(s, &now);
	free_items(s->items, s->count);
	s->items = now.items;
	s->count = now.count;
	s->cap = now.cap;
	s->look = now.look;
	s->last_serial = now.last_serial;
	s->again = now.again;
	return true;
}

bool sources_refuse(struct sources *s, uint32_t serial, int err)
{
	for (size_t i = 0; i < s->count; i++) {
		struct source_item *item = &s->items[i];

		if (item->serial != serial)
			continue;
		item->refused = true;
		item->retry = item->retry || is_away(err); /* or source_open failed */
		return item->retry;
	}
	return false;
}

int source_open(struct source_item *item, struct kpackx_error *why)
{
	/* O_NONBLOCK: a FIFO must not block before its type is known */
	int fd = open(item->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	kpack_error_t err;
	struct stat st;

	err = fd < 0 ? kp_fail_errno(why, errno, "cannot open")
		     : kp_file_check(fd, &st, why);
	if (!err) {
		item->st = st;
		return fd;
	}
	item->refused = true;
	item->retry = is_away(why->sys_errno);
	if (fd >= 0)
		close(fd);
	return -1;
}

void sources_fini(struct sources *s)
{
	free_items(s->items, s->count);
	for (size_t i = 0; i < s->n_places; i++)
		forget_names(&s->places[i]);
	free(s->places);
	if (s->watched && s->events >= 0)
		close(s->events);
	if (s->watched && s->mounts >= 0)
		close(s->mounts);
	*s = (struct sources){0};
}
