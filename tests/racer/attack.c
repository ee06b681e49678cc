/* SPDX-License-Identifier: MIT */
#include "attack.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char *const kind_names[ATTACK_KINDS] = {
	"link",      "swap", "flip", "dangling", "hard", "fifo", "device",
	"directory", "away", "fake", "none",     "cut",  "mount"};

void area_init(struct area *area, const char *dir)
{
	area->dir = dir;
	snprintf(area->work, PATH_MAX, "%s/work", dir);
	snprintf(area->home, PATH_MAX, "%s/work/home", dir);
	snprintf(area->canary, PATH_MAX, "%s/canary", dir);
}

bool attack_parse(const char *text, struct attack *out)
{
	for (int k = 0; k < ATTACK_KINDS; k++) {
		size_t n = strlen(kind_names[k]);
		char *end = (char *)text + n;

		if (strncmp(text, kind_names[k], n) != 0)
			continue;
		*out = (struct attack){.kind = k};
		if (*end == ':')
			out->level = (int)strtol(end + 1, &end, 10);
		if (*end == '@')
			out->which = strtoul(end + 1, &end, 10);
		return *end == '\0' && out->which < 2;
	}
	return false;
}

void attack_print(const struct attack *a, char out[32])
{
	snprintf(out, 32, "%s:%d@%zu", kind_names[a->kind], a->level, a->which);
}

/* --- paths --------------------------------------------------------------------------- */

int attack_levels(const struct area *area, const char *path)
{
	int n = 0;

	for (const char *p = path + strlen(area->work); *p; p++)
		n += *p == '/';
	return n;
}

static bool find_target(const struct area *area, const char *path, int level,
			char out[PATH_MAX])
{
	if (level > attack_levels(area, path))
		return false;
	snprintf(out, PATH_MAX, "%s", path);
	while (level-- > 0)
		*strrchr(out, '/') = '\0';
	return true;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/*
 * The canary directory that stands for TARGET: of the same path, or else of the same path
 * without the directories above, as those of staging are; else of the nearest directory
 * above.
 */
static void find_canary_dir(const struct area *area, const char *target,
			    char out[PATH_MAX])
{
	const char *rel = target + strlen(area->work);
	char root[PATH_MAX];
	const char *rest;

	snprintf(out, PATH_MAX, "%s%s", area->canary, rel);
	if (is_dir(out))
		return;
	rest = strchr(rel + 1, '/'); /* after home */
	rest = rest ? strchr(rest + 1, '/') : NULL;
	if (rest) {
		snprintf(root, PATH_MAX, "%s%s", area->canary, rel);
		root[strlen(area->canary) + (size_t)(rest - rel)] = '\0';
	}
	while (rest && is_dir(root)) {
		rest = strchr(rest + 1, '/');
		if (rest && snprintf(out, PATH_MAX, "%s%s", root, rest) < PATH_MAX &&
		    is_dir(out))
			return;
	}
	snprintf(out, PATH_MAX, "%s%s", area->canary, rel);
	while (!is_dir(out))
		*strrchr(out, '/') = '\0';
}

static void split_path(const char *path, char dir[PATH_MAX], const char **name)
{
	snprintf(dir, PATH_MAX, "%s", path);
	*strrchr(dir, '/') = '\0';
	*name = strrchr(path, '/') + 1;
}

/* The canary file that stands for TARGET: of the same name, or else another one. */
static bool find_canary_file(const struct area *area, const char *target,
			     char out[PATH_MAX])
{
	char parent[PATH_MAX], dir[PATH_MAX];
	const char *name;

	split_path(target, parent, &name);
	find_canary_dir(area, parent, dir);
	if (snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && is_file(out))
		return true;
	return snprintf(out, PATH_MAX, "%s/passwd", dir) < PATH_MAX && is_file(out);
}

static bool find_new_name(const struct area *area, const char *target, char out[PATH_MAX])
{
	char parent[PATH_MAX], dir[PATH_MAX];
	const char *name;

	split_path(target, parent, &name);
	find_canary_dir(area, parent, dir);
	return snprintf(out, PATH_MAX, "%s/new-%s", dir, name) < PATH_MAX;
}

/* --- doing --------------------------------------------------------------------------- */

static void become(uid_t user)
{
	setfsgid(user);
	setfsuid(user);
}

/* The number of faccessat2, which the headers of an older system do not know. */
enum { FACCESSAT2 = 439 };

bool attack_possible(const struct area *area, const char *path, int level)
{
	char dir[PATH_MAX];
	long status;

	if (!find_target(area, path, level + 1, dir))
		return false;
	become(ATTACKER);
	status = syscall(FACCESSAT2, AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS);
	become(0);
	return status == 0 || errno == ENOSYS;
}

static bool move_aside(const struct area *area, struct attack_done *d)
{
	static unsigned number;

	if (!is_there(d->target))
		return true;
	if (snprintf(d->aside, PATH_MAX, "%s/aside/%u", area->work, number++) < PATH_MAX)
		d->moved = rename(d->target, d->aside) == 0;
	if (!d->moved && snprintf(d->aside, PATH_MAX, "%s.aside", d->target) < PATH_MAX)
		/* a directory of another user's stays in its directory */
		d->moved = rename(d->target, d->aside) == 0;
	return d->moved;
}

static int put_special(enum attack_kind kind, const char *target)
{
	int status;

	if (kind == ATTACK_DIRECTORY)
		return mkdir(target, 0755);
	if (kind == ATTACK_FIFO)
		return mkfifo(target, 0666);
	/* users cannot make devices, but may have been given one */
	become(0);
	status = mknod(target, S_IFCHR | 0666, makedev(1, 3));
	if (status == 0)
		status = lchown(target, ATTACKER, ATTACKER);
	become(ATTACKER);
	return status;
}

static int put_hard_link(const char *canary, const char *target)
{
	int status;

	/* where users may link the files of others */
	become(0);
	status = link(canary, target);
	become(ATTACKER);
	return status;
}

static int put_hostile(enum attack_kind kind, const char *canary, const char *target)
{
	switch (kind) {
	case ATTACK_LINK:
	case ATTACK_SWAP:
	case ATTACK_FLIP:
	case ATTACK_DANGLING:
		return symlink(canary, target);
	case ATTACK_HARD:
		return put_hard_link(canary, target);
	case ATTACK_AWAY:
		return 0;
	case ATTACK_FAKE:
		return mkdir(target, 0755);
	default:
		return put_special(kind, target);
	}
}

/* What fusermount3 does where the system's administrator allows allow_other. */
static bool put_mount(struct attack_done *d, bool file)
{
	struct stat st = {.st_mode = 0};
	char data[128];
	int made = file ? mknod(d->target, S_IFREG | 0644, 0) : mkdir(d->target, 0755);

	become(0);
	if (made == 0 && lstat(d->target, &st) == 0)
		d->connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(data, sizeof(data),
		 "fd=%d,rootmode=%o,user_id=%d,group_id=%d,allow_other", d->connection,
		 st.st_mode & S_IFMT, ATTACKER, ATTACKER);
	if (d->connection >= 0 &&
	    mount("none", d->target, "fuse.hangs", MS_NOSUID | MS_NODEV, data) < 0) {
		close(d->connection);
		d->connection = -1;
	}
	become(ATTACKER);
	return d->connection >= 0;
}

static bool find_canary(const struct area *area, enum attack_kind kind,
			const char *target, char out[PATH_MAX])
{
	if (kind == ATTACK_DANGLING)
		return find_new_name(area, target, out);
	if (kind == ATTACK_HARD)
		return !is_dir(target) && find_canary_file(area, target, out);
	if (kind == ATTACK_LINK || kind == ATTACK_SWAP || kind == ATTACK_FLIP) {
		if (!is_dir(target))
			return find_canary_file(area, target, out);
		find_canary_dir(area, target, out);
	}
	return true;
}

/* The user's own files, because others cannot be cut. */
static bool cut_files(const struct area *area)
{
	char *const roots[] = {(char *)area->home, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;
	bool any = false;

	while (fts && (e = fts_read(fts)))
		if (e->fts_info == FTS_F)
			any |= truncate(e->fts_path, e->fts_statp->st_size / 2) == 0;
	if (fts)
		fts_close(fts);
	return any;
}

static bool put_link(const struct area *area, const char *target, bool dir)
{
	char canary[PATH_MAX];

	if (dir)
		find_canary_dir(area, target, canary);
	else if (!find_canary_file(area, target, canary))
		return false;
	return symlink(canary, target) == 0 || errno == EEXIST;
}

/* In the new directory, put a link in place of each entry of the old one. */
static bool put_links(const struct area *area, const struct attack_done *d)
{
	char target[PATH_MAX];
	struct dirent *e;
	bool ok = true;
	DIR *old;

	become(0); /* where only the names are to be guessed */
	old = opendir(d->aside);
	become(ATTACKER);
	while (old && ok && (e = readdir(old)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			ok = snprintf(target, PATH_MAX, "%s/%s", d->target, e->d_name) <
				     PATH_MAX &&
			     put_link(area, target, e->d_type == DT_DIR);
	if (old)
		closedir(old);
	return old && ok;
}

bool attack_do(const struct area *area, const struct attack *a, const char *path,
	       struct attack_done *d)
{
	char canary[PATH_MAX] = "";
	bool file;

	*d = (struct attack_done){.connection = -1};
	errno = EINVAL;
	if (!find_target(area, path, a->level, d->target) ||
	    !find_canary(area, a->kind, d->target, canary))
		return false;
	if (a->kind == ATTACK_AWAY && !is_there(d->target))
		return false;
	file = is_file(d->target);
	become(ATTACKER);
	if (a->kind == ATTACK_NONE)
		d->done = true;
	else if (a->kind == ATTACK_CUT)
		d->done = cut_files(area);
	else if (a->kind == ATTACK_MOUNT)
		d->done = move_aside(area, d) && put_mount(d, file);
	else
		d->done = move_aside(area, d) &&
			  put_hostile(a->kind, canary, d->target) == 0 &&
			  (a->kind != ATTACK_FAKE || put_links(area, d));
	become(0);
	return d->done;
}

void attack_undo(struct attack_done *d)
{
	become(ATTACKER);
	unlink(d->target);
	if (d->moved)
		rename(d->aside, d->target);
	become(0);
	d->done = false;
}

void attack_unmount(struct attack_done *d)
{
	if (d->connection < 0)
		return;
	umount2(d->target, MNT_DETACH | UMOUNT_NOFOLLOW);
	close(d->connection);
	d->connection = -1;
}
