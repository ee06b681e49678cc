/* SPDX-License-Identifier: MIT */
/*
 * kpackfs --in-place TREE: files that packing moved from a tree into archives are at their
 * old paths again.
 *
 * A place is a directory of the tree where the archives are mounted with subdir=.  Where that
 * would hide nothing, because below the directory are only directories that the archives have,
 * too, the mount itself is there: libraries find their directory as it was.  Where other files
 * stand beside packed ones, it becomes the lower layer of an overlay under the directory itself;
 * the mount is made aside and loses its name at once, so that it ends with the overlay.  A place
 * is where packed files are and no higher, because everything below it becomes read-only; an
 * overlay shows what is below it, so there are no places in it.
 *
 * Nothing is remembered but by the kernel: our mounts are those of type fuse.kpackfs, and
 * overlays of the source "kpackfs".  So both directions can be repeated, and go on after a run
 * that was killed.
 *
 * Root goes from the tree's directory to each place by descriptors, never through a link, and
 * mounts on what it found, whatever the path means by then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/mountinfo.h"
#include "core/base/path.h"
#include "core/base/file.h"
#include "core/view/view.h"
#include "fs/base/log.h"
#include "fs/base/mount_point.h"
#include "core/base/text.h"
#include "mount.h"
#include "sources.h"

#define RUN_DIR "/run/kpackfs" /* only root can write there */

static bool fail_at(const char *path, const char *why)
{
	log_about(LOG_ERR, path, why);
	return false;
}

/* "DIR/NAME" on the heap, also if one of them is "", or DIR is "/"; NULL: no memory, logged. */
static char *join_path(const char *dir, const char *name)
{
	bool slash = *dir && *name && strcmp(dir, "/") != 0;
	char *path;

	if (asprintf(&path, "%s%s%s", dir, slash ? "/" : "", name) >= 0)
		return path;
	fail_at(dir, "out of memory");
	return NULL;
}

/* --- what is mounted ------------------------------------------------------------------ */

/* A mount of ours in the tree. */
struct mounted {
	char *path;
	long id;
};

struct mounted_list {
	struct mounted *items; /* in the order of the mount table */
	size_t count, cap;
};

static void mounted_list_fini(struct mounted_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
}

/* Find what root or this user has mounted in the tree. */
static bool find_mounted(const char *tree, struct mounted_list *out)
{
	struct kpackx_error why = {0};
	struct kp_mounts table;
	struct kp_mount m;
	bool fine = kp_mounts_open(&table);
	uid_t user;

	while (fine && kp_mounts_next(&table, &m)) {
		if (!kp_mount_is_kpackfs(&m) ||
		    (kp_mount_fuse_user(&m, &user) && user != 0 && user != getuid()) ||
		    (strcmp(tree, "/") != 0 &&
		     !kp_path_within(kp_span_str(m.path), tree)))
			continue;
		if (kp_room(&out->items, out->count, &out->cap, "mounts", &why))
			fine = fail_at(tree, why.text);
		else if ((out->items[out->count].path = join_path(m.path, "")))
			out->items[out->count++].id = m.id;
		else
			fine = false;
	}
	fine = fine && feof(table.file);
	if (!fine)
		fail_at("/proc/self/mountinfo", "cannot be read");
	kp_mounts_close(&table);
	return fine;
}

static const struct mounted *mounted_at(const struct mounted_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return &list->items[i];
	return NULL;
}

/*
 * What is in use loses its name, so that packages can be installed, and programs read on in the
 * files that they have open.
 */
static bool unmount(const struct mounted *m)
{
	enum unmount u = mount_point_unmount_id(m->path, m->id, false);

	if (u == UNMOUNT_BUSY) {
		log_about(LOG_WARNING, m->path,
			  "in use: unmounted all the same; files that are open "
			  "can be read until they are closed");
		u = mount_point_unmount_id(m->path, m->id, true);
	}
	if (u == UNMOUNT_DONE)
		return true;
	return fail_at(m->path, errno == EBUSY ? "cannot be unmounted" : strerror(errno));
}

/*
 * Unmount what is in the tree, but not what KEEP has; the last one first: an overlay may be on
 * top of another mount.
 */
static bool unmount_tree(const char *tree, const struct mounted_list *keep)
{
	struct mounted_list list = {0};
	bool fine = find_mounted(tree, &list);

	for (size_t i = fine ? list.count : 0; i-- > 0;) {
		bool kept = false;

		for (size_t k = 0; k < keep->count; k++)
			kept |= keep->items[k].id == list.items[i].id;
		if (!kept && !unmount(&list.items[i]))
			fine = false;
	}
	mounted_list_fini(&list);
	return fine;
}

/* --- where to mount ------------------------------------------------------------------- */

struct place {
	char *path;   /* below the tree; "": the tree itself */
	int fd;       /* the directory */
	bool overlay; /* other files stand beside packed ones */
};

struct in_place {
	struct settings *s;
	int lock;                    /* keeps other runs waiting; -1: none */
	sigset_t signals;            /* to be restored in children */
	struct mounted_list mounted; /* before this run */
	/* Of all entries, which say what packing left empty; of those that are shown, perhaps the same. */
	struct kp_view *all, *shown;
	struct place *places;
	size_t n_places, places_cap;
};

static void drop_places(struct in_place *p, size_t first)
{
	while (p->n_places > first) {
		free(p->places[--p->n_places].path);
		close(p->places[p->n_places].fd);
	}
}

/* Find the directory of V that shows the tree's directory PATH. */
static bool find_shown(const struct in_place *p, const struct kp_view *v,
		       const char *path, uint32_t *dir)
{
	char *whole = join_path(p->s->subdir ? p->s->subdir : "", path);
	bool found = whole && kp_view_find_dir(v, kp_span_str(whole), dir);

	free(whole);
	return found;
}

/*
 * Whether libraries look for packed files in the tree's directory DIR, at PATH: the archives show
 * files there that it lacks, or, unless it is KEPT for its own files, directories of GPUs, which
 * libraries look up from the directory above.
 */
static bool lacks_files(const struct in_place *p, int dir, const char *path, bool kept)
{
	const struct kp_view_dir *d;
	uint32_t shown;
	struct stat st;

	if (!find_shown(p, p->shown, path, &shown))
		return false;
	d = kp_view_dir(p->shown, shown);
	for (uint32_t i = d->first; i < d->first + d->count; i++) {
		struct kp_view_name n = kp_view_name(p->shown, i);
		char name[NAME_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)n.text.size,
			 (const char *)n.text.data);
		if (n.kind == KP_VIEW_DIR ? !kept && strstr(name, "gfx") != NULL
					  : fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

/*
 * Find the places in the directory open at FD, which is closed: at PATH of the tree, and number
 * NODE in the view of all entries.  *KEPT: it has something that a mount would hide.
 */
static bool find_places(struct in_place *p, int fd, const char *path, uint32_t node,
			bool *kept)
{
	size_t first = p->n_places;
	DIR *list = fdopendir(fd);
	struct kpackx_error why = {0};
	const struct dirent *e;
	bool fine = list || fail_at(path, strerror(errno));

	if (!list)
		close(fd);
	while (fine && (errno = 0, e = readdir(list))) {
		struct kp_view_name n;
		uint32_t number;
		char *below, *whole;
		int child;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!kp_view_lookup(p->all, node, kp_span_str(e->d_name), &number) ||
		    (n = kp_view_name(p->all, number)).kind != KP_VIEW_DIR) {
			*kept = true;
			continue;
		}
		below = join_path(path, e->d_name);
		whole = below ? join_path(p->s->mountpoint, below) : NULL;
		if (!whole) {
			fine = false;
		} else if (mounted_at(&p->mounted, whole)) {
			*kept = true; /* it is done */
		} else if ((child = openat(dirfd(list), e->d_name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
						   O_CLOEXEC)) < 0) {
			*kept = true; /* no directory */
			if (errno != ENOTDIR && errno != ELOOP)
				fine = fail_at(whole, strerror(errno));
		} else {
			bool inside = false;

			fine = find_places(p, child, below, n.index, &inside);
			*kept |= inside;
		}
		free(whole);
		free(below);
	}
	if (fine && errno)
		fine = fail_at(path, strerror(errno));
	if (fine && lacks_files(p, dirfd(list), path, *kept)) {
		/* this directory, instead of the places in it */
		struct place place = {.overlay = *kept};

		drop_places(p, first);
		place.path = join_path(path, "");
		place.fd = fcntl(dirfd(list), F_DUPFD_CLOEXEC, 3);
		if (!place.path || place.fd < 0)
			fine = fail_at(path, "no descriptor is left");
		else if (kp_room(&p->places, p->n_places, &p->places_cap, "places", &why))
			fine = fail_at(path, why.text);
		if (fine) {
			p->places[p->n_places++] = place;
		} else {
			free(place.path);
			kp_close_keeping_errno(place.fd);
		}
	}
	if (list)
		closedir(list);
	return fine;
}

/* Find all places.  What archives and views take is freed: each mount is a child process. */
static bool decide_places(struct in_place *p, int tree)
{
	struct sources sources = {.paths = p->s->sources.list,
				  .n_paths = p->s->sources.count};
	const struct kp_view_options select = {.select = &p->s->arches};
	struct kpack_archive **archives = NULL;
	struct kpackx_error why = {0};
	bool changed, kept = false, fine = sources_scan(&sources, SCAN_FIRST, &changed);
	size_t n = 0;
	uint32_t root;
	int fd = -1;

	if (fine && kp_new(&archives, sources.count + 1, "archives", &why))
		fine = fail_at(p->s->mountpoint, why.text);
	for (size_t i = 0; i < sources.count && fine; i++) {
		struct source_item *item = &sources.items[i];

		/* one that is refused is left out, as a mount does */
		fd = source_open(item, &why);
		if (fd < 0 || kp_archive_open_fd(fd, item->path, &archives[n], &why))
			log_about(LOG_WARNING, item->path, why.text);
		else
			n++;
	}
	sources_fini(&sources);
	if (fine && kp_view_new(archives, n, NULL, &p->all, &why))
		fine = fail_at(p->s->mountpoint, why.text);
	p->shown = p->all;
	if (fine && !kp_choice_is_all(&p->s->arches) &&
	    kp_view_new(archives, n, &select, &p->shown, &why))
		fine = fail_at(p->s->mountpoint, why.text);
	if (fine) { /* entries by key are no files of a tree */
		kp_view_hide(p->all, 0, kp_span_str(KP_TOC_NAME));
		kp_view_hide(p->shown, 0, kp_span_str(KP_TOC_NAME));
	}
	if (fine && find_shown(p, p->all, "", &root)) {
		fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fine = fd >= 0 ? find_places(p, fd, "", root, &kept)
			       : fail_at(p->s->mountpoint, strerror(errno));
	}
	if (p->shown != p->all)
		kp_view_free(p->shown);
	kp_view_free(p->all);
	for (size_t i = 0; i < n; i++)
		kp_archive_close(archives[i]);
	free(archives);
	return fine;
}

/* --- mounting ------------------------------------------------------------------------- */

typedef int mount_program(struct settings *s);

/*
 * In a child: make the mount of PLACE at the directory AT, which is called NAME.  The daemon must
 * not open archives through an overlay to come, which would be in use for ever: a source that it
 * covers gets the name of its descriptor.
 */
static int mount_in_child(struct in_place *p, const struct place *place, int at,
			  const char *name, mount_program *mount)
{
	struct settings *s = p->s;
	char proc[KP_FD_NAME_SIZE], *tree = s->mountpoint, *part = s->subdir;
	KP_AUTO_FREE char *covered = join_path(tree, place->path);
	int by_fd = s->place ? fcntl(at, F_DUPFD_CLOEXEC, 3) : 0;

	for (size_t i = 0; covered && place->overlay && i < s->sources.count; i++) {
		char **source = &s->sources.list[i];
		int fd = -1;

		if (strcmp(covered, "/") == 0 ||
		    kp_path_within(kp_span_str(*source), covered))
			fd = open(*source, O_PATH | O_CLOEXEC);
		if (fd < 0)
			continue;
		free(*source);
		*source = strdup(kp_fd_name(fd, proc));
		if (!*source)
			return 1;
	}
	settings_leave_place(s);
	s->place = by_fd;
	s->mountpoint = strdup(name);
	s->subdir = join_path(part ? part : "", place->path);
	free(tree);
	free(part);
	if (by_fd < 0 || !covered || !s->mountpoint || !s->subdir)
		return 1;
	drop_places(p, 0); /* no daemon keeps the directories of others */
	return mount(s);
}

/* Make the mount of PLACE at the directory AT, called NAME.  false: it failed, logged. */
static bool make_mount(struct in_place *p, const struct place *place, int at,
		       const char *name, mount_program *mount)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		close(p->lock);
		sigprocmask(SIG_SETMASK, &p->signals, NULL);
		exit(mount_in_child(p, place, at, name, mount));
	}
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			break;
	if (child < 0)
		return fail_at(name, strerror(errno));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/*
 * Put an overlay on PLACE: on top the directory itself, below it a mount that is made aside.  The
 * overlay may not allow more than the file system of the directory.
 */
static bool make_overlay(struct in_place *p, const struct place *place, const char *path,
			 mount_program *mount_below)
{
	char run[] = RUN_DIR "/XXXXXX", tmp[] = "/tmp/kpackfs-XXXXXX", *aside,
	     target[KP_FD_NAME_SIZE], options[128];
	const unsigned long kept = ST_NOSUID | ST_NODEV | ST_NOEXEC;
	int at = -1, lower = -1;
	struct statvfs fs;
	bool fine = false;

	/* root of a user namespace may have no place in /run */
	aside = mkdtemp(run) ? run : mkdtemp(tmp);
	if (!aside)
		return fail_at(tmp, strerror(errno));
	at = open(aside, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (make_mount(p, place, at, aside, mount_below)) {
		lower = open(aside, O_PATH | O_DIRECTORY | O_CLOEXEC);
		snprintf(options, sizeof(options),
			 "lowerdir=/proc/self/fd/%d:/proc/self/fd/%d", place->fd, lower);
		fine = fstatvfs(place->fd, &fs) == 0 &&
		       mount(KP_OVERLAY_SOURCE, kp_fd_name(place->fd, target), "overlay",
			     MS_RDONLY | (fs.f_flag & kept), options) == 0;
		if (!fine)
			log_about(LOG_ERR, path,
				  "no overlay can be mounted here: see dmesg");
	}
	kp_close_keeping_errno(lower);
	kp_close_keeping_errno(at);
	/* also after a failure: the daemon may have mounted before it failed */
	umount2(aside, MNT_DETACH | UMOUNT_NOFOLLOW);
	if (rmdir(aside))
		log_about(LOG_WARNING, aside, strerror(errno));
	return fine;
}

/* Mount all places, or, after a failure, none of them. */
static bool mount_places(struct in_place *p, mount_program *mount)
{
	bool fine = true;
	sigset_t pending;

	for (size_t i = 0; i < p->n_places && fine; i++) {
		const struct place *place = &p->places[i];
		char *path = join_path(p->s->mountpoint, place->path), line[PATH_MAX];

		if (path && place->overlay && !p->s->place)
			log_about(LOG_WARNING, path,
				  "packed files belong beside others here: only root can "
				  "show them, by an overlay");
		else if (path &&
			 (place->overlay ? make_overlay(p, place, path, mount)
					 : make_mount(p, place, place->fd, path, mount)))
			puts(kp_message_escape(kp_span_str(path), line, sizeof(line)));
		else
			fine = false;
		free(path);
		/* a signal asks to end; it is dealt with when the mounts are whole, or none */
		if (sigpending(&pending) == 0 &&
		    (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		     sigismember(&pending, SIGHUP)))
			fine = false;
	}
	if (!fine)
		unmount_tree(p->s->mountpoint, &p->mounted);
	return fine;
}

/* --- both directions ------------------------------------------------------------------ */

/*
 * Keep other runs waiting until this one ends, and signals.  Only root's runs share the mounts of
 * a machine, and only root can open the file, so that nobody else can lock it.  -1: no lock.
 */
static int begin_work(sigset_t *signals)
{
	sigset_t ends;
	int fd = -1;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, signals);
	signal(SIGCHLD, SIG_DFL); /* the program's parent may have set it to be ignored */
	if (geteuid() == 0 && (mkdir(RUN_DIR, 0755) == 0 || errno == EEXIST))
		fd = open(RUN_DIR "/.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		log_about(LOG_WARNING, RUN_DIR "/.lock",
			  "another process has locked it: waiting");
		flock(fd, LOCK_EX);
	}
	return fd;
}

enum end in_place_mount(struct settings *s, mount_program *mount)
{
	struct in_place p = {.s = s};
	const char *tree = s->mountpoint;
	int fd = s->place ? s->place : open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
	enum end end = NO_MOUNT;
	bool fine = true;
	size_t kept = 0;

	if (fd < 0) {
		log_about(LOG_ERR, tree, strerror(errno));
		return NO_MOUNT;
	}
	p.lock = begin_work(&p.signals);
	/* root mounts for all users */
	if (s->place && !s->shared && fuse_opt_add_arg(&s->args, "-oallow_other"))
		goto out;
	s->shared |= s->place != 0;
	if (!find_mounted(tree, &p.mounted))
		goto out;
	/*
	 * What a daemon that died has left is unmounted, so that it is mounted anew.  A mount is
	 * asked for the file system's size, and for names, because an overlay asks only one of its
	 * layers for the size, and the kernel may know the names.
	 */
	for (size_t i = 0; i < p.mounted.count; i++) {
		const struct mounted *m = &p.mounted.items[i];
		struct statvfs size;
		bool dead = statvfs(m->path, &size) < 0 &&
			    (errno == ENOTCONN || errno == ECONNABORTED);
		DIR *dir = opendir(m->path);

		dead |= !dir && errno == ENOTCONN;
		errno = 0;
		while (dir && readdir(dir))
			continue;
		dead |= dir && (errno == ENOTCONN || errno == ECONNABORTED);
		if (dir)
			closedir(dir);
		if (!dead) {
			p.mounted.items[kept++] = *m;
			continue;
		}
		fine &= unmount(m);
		free(m->path);
	}
	p.mounted.count = kept;
	if (!fine)
		goto out;
	for (size_t i = 0; i < p.mounted.count; i++)
		log_about(LOG_WARNING, p.mounted.items[i].path,
			  "mounted already: it stays, with the options that it has");
	if ((mounted_at(&p.mounted, tree) || decide_places(&p, fd)) &&
	    mount_places(&p, mount))
		end = OK;
out:
	drop_places(&p, 0);
	free(p.places);
	mounted_list_fini(&p.mounted);
	kp_close_keeping_errno(p.lock);
	if (!s->place)
		close(fd);
	return fflush(stdout) ? SYSTEM : end;
}

enum end in_place_undo(struct settings *s)
{
	const struct mounted_list none = {0};
	sigset_t signals;
	int lock = begin_work(&signals);
	bool fine;

	settings_leave_place(s); /* it would be in use */
	fine = unmount_tree(s->mountpoint, &none);
	kp_close_keeping_errno(lock);
	return fine ? OK : NO_MOUNT;
}
