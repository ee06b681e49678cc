/* SPDX-License-Identifier: MIT */
/*
 * A watch is on a directory, and counts only for the names that matter there: the next
 * component of a path, or all archives.  Each round marks the places that it names, and
 * the end of a round removes the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/file.h"
#include "fs/base/path_walk.h"
#include "inotify.h"

#define NAMES_MAX 64 /* if more names of a directory matter, all names do */

/* Events of a directory on the way to a path, and of a directory with archives. */
#define NAMES_MASK                                                                       \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |          \
	 IN_MOVE_SELF | IN_ATTRIB)
#define FILES_MASK (NAMES_MASK | IN_MODIFY | IN_CLOSE_WRITE)

struct place {
	int wd;
	uint32_t mask;
	unsigned round;
	bool archives; /* names *.kpack matter */
	bool all;      /* all names matter */
	char **names;  /* the names that matter besides */
	size_t n_names;
};

struct watch {
	int events, mounts;
	struct place *places;
	size_t count;
	unsigned round;
	char blind[PATH_MAX + 128];
};

struct watch *watch_new(void)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	w->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	return w;
}

static void forget_names(struct place *p)
{
	for (size_t i = 0; i < p->n_names; i++)
		free(p->names[i]);
	free(p->names);
	p->names = NULL;
	p->n_names = 0;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->count; i++)
		forget_names(&w->places[i]);
	free(w->places);
	if (w->events >= 0)
		close(w->events);
	if (w->mounts >= 0)
		close(w->mounts);
	free(w);
}

int watch_events(const struct watch *w)
{
	return w->events;
}

int watch_mounts(const struct watch *w)
{
	return w->mounts;
}

const char *watch_blind(const struct watch *w)
{
	return w->blind[0] ? w->blind : NULL;
}

/* Note why changes may go unnoticed; only the first reason of a round is kept. */
static void note_blind(struct watch *w, const char *path, const char *why)
{
	if (!w->blind[0])
		snprintf(w->blind, sizeof(w->blind), "%s: %s", path, why);
}

/* As note_blind, for the file that is open at FD. */
static void note_blind_at(struct watch *w, int fd, const char *why)
{
	char proc[KP_FD_NAME_SIZE], path[PATH_MAX];
	ssize_t size = readlink(kp_fd_name(fd, proc), path, sizeof(path) - 1);

	path[size < 0 ? 0 : size] = '\0';
	note_blind(w, size < 0 ? "/proc" : path, why);
}

void watch_begin(struct watch *w)
{
	w->round++;
	w->blind[0] = '\0';
	if (w->events < 0)
		note_blind(w, "inotify", "not available");
}

/* Directories. */

static struct place *find_place(const struct watch *w, int wd)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->places[i].wd == wd)
			return &w->places[i];
	return NULL;
}

static struct place *place_of(struct watch *w, int wd)
{
	struct place *p = find_place(w, wd), *list;

	if (p)
		return p;
	list = reallocarray(w->places, w->count + 1, sizeof(*list));
	if (!list)
		return NULL;
	w->places = list;
	p = &list[w->count++];
	*p = (struct place){.wd = wd};
	return p;
}

/*
 * Watch the directory open at DIR in this round for the events of MASK, in addition to
 * those watched already.
 */
static struct place *watch_dir(struct watch *w, int dir, uint32_t mask)
{
	const uint32_t how = IN_ONLYDIR | IN_EXCL_UNLINK;
	char proc[KP_FD_NAME_SIZE];
	struct place *p;
	int wd;

	if (w->events < 0)
		return NULL;
	/* Add to the mask, do not replace it: this round may have watched DIR already. */
	wd = inotify_add_watch(w->events, kp_fd_name(dir, proc),
			       mask | how | IN_MASK_ADD);
	p = wd < 0 ? NULL : place_of(w, wd);
	if (!p) {
		if (errno != ENOTDIR)
			note_blind_at(w, dir,
				      errno == ENOSPC
					      ? "fs.inotify.max_user_watches is reached"
					      : strerror(errno));
		return NULL;
	}
	if (p->round != w->round) {
		forget_names(p);
		p->archives = p->all = false;
		p->mask = 0;
		p->round = w->round;
	}
	p->mask |= mask;
	return p;
}

static bool has_name(const struct place *p, const char *name)
{
	for (size_t i = 0; i < p->n_names; i++)
		if (strcmp(p->names[i], name) == 0)
			return true;
	return false;
}

static void add_name(struct place *p, const char *name)
{
	char **list, *copy;

	if (p->all || has_name(p, name))
		return;
	list = p->n_names < NAMES_MAX
		       ? reallocarray(p->names, p->n_names + 1, sizeof(*list))
		       : NULL;
	copy = list ? strdup(name) : NULL;
	if (list)
		p->names = list;
	if (copy)
		list[p->n_names++] = copy;
	else
		p->all = true;
}

/*
 * True if the file open at FD is on a file system that other machines change without notice
 * to this kernel.
 */
static bool is_remote(int fd)
{
	static const unsigned types[] = {
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
	struct statfs st;

	if (fstatfs(fd, &st))
		return false;
	for (size_t i = 0; i < KP_COUNT(types); i++)
		if ((unsigned)st.f_type == types[i])
			return true;
	return false;
}

static void check_remote(struct watch *w, int fd)
{
	if (is_remote(fd))
		note_blind_at(w, fd, "changes on this file system are not reported");
}

/* Paths. */

/*
 * Watch each directory on the way to PATH for the name that the path has there.  true:
 * PATH exists, and WAY is at its end.  path_walk_end is to be called.
 */
static bool watch_way(struct watch *w, const char *path, struct path_walk *way)
{
	bool fine = path_walk_begin(way, path);
	char name[NAME_MAX + 1];

	while (fine && path_walk_name(way, name)) {
		struct place *p = NULL;

		if (strcmp(name, "..") != 0)
			p = watch_dir(w, way->at,
				      path_walk_is_last(way) ? FILES_MASK : NAMES_MASK);
		if (p)
			add_name(p, name);
		fine = path_walk_step(way, name);
	}
	return fine && !errno;
}

void watch_source(struct watch *w, const char *path)
{
	struct place *p = NULL;
	struct path_walk way;
	struct stat st;

	if (watch_way(w, path, &way) && fstat(way.at, &st) == 0) {
		check_remote(w, way.at);
		if (S_ISDIR(st.st_mode))
			p = watch_dir(w, way.at, FILES_MASK);
	}
	if (p)
		p->archives = true;
	path_walk_end(&way);
}

void watch_archive(struct watch *w, const char *path)
{
	struct path_walk way;
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return;
	if (watch_way(w, path, &way))
		check_remote(w, way.at);
	path_walk_end(&way);
}

void watch_end(struct watch *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->count; i++) {
		struct place *p = &w->places[i];

		if (p->round == w->round) {
			w->places[kept++] = *p;
			continue;
		}
		inotify_rm_watch(w->events, p->wd);
		forget_names(p);
	}
	w->count = kept;
}

/* Events. */

static bool event_matters(const struct watch *w, const struct inotify_event *e)
{
	const struct place *p;

	if (e->mask & IN_Q_OVERFLOW)
		return true;
	p = find_place(w, e->wd);
	if (!p)
		return false;
	/* An event of the directory itself.  Its attributes matter only if it has the
	 * archives, because the mount shows them then. */
	if (e->len == 0)
		return !(e->mask & (IN_ATTRIB | IN_IGNORED)) || p->archives;
	if (!(e->mask & (p->mask | IN_UNMOUNT)))
		return false;
	return p->all || (p->archives && kp_is_archive_name(e->name)) ||
	       has_name(p, e->name);
}

bool watch_read(struct watch *w)
{
	char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	bool any = false;
	int left = 0;
	ssize_t n;

	/* only the events that exist now: new ones may come as fast as they are read */
	if (ioctl(w->events, FIONREAD, &left) < 0)
		return false;
	for (; left > 0 && (n = read(w->events, bytes, sizeof(bytes))) > 0;
	     left -= (int)n) {
		for (char *at = bytes; at < bytes + n; at += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)(void *)at;
			any = any || event_matters(w, e);
		}
	}
	return any;
}
