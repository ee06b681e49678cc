/* SPDX-License-Identifier: MIT */
#include "policy_mounts.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/lock.h"

/* --- the mount table ----------------------------------------------------------------- */

bool mount_table_read(struct kp_mounts *mounts, const char *tree, struct mount_table *out)
{
	struct kp_mount m;

	*out = (struct mount_table){0};
	while (kp_mounts_next(mounts, &m)) {
		bool overlay = strcmp(m.type, "overlay") == 0;

		if ((!overlay && strcmp(m.type, "fuse.kpackfs") != 0) ||
		    !policy_is_in_tree(m.path, tree))
			continue;
		xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
		out->items[out->count++] =
			(struct mount_now){xstrdup(m.path), m.device, overlay};
	}
	return mounts->file && feof(mounts->file);
}

bool mount_table_find(const char *tree, struct mount_table *out)
{
	char *real = below_real(tree);
	struct kp_mounts mounts;
	struct stat st;
	size_t kept = 0;
	bool done;

	mount_table_fini(out);
	errno = 0;
	done = kp_mounts_open(&mounts) && (!real || mount_table_read(&mounts, real, out));
	if (!done)
		report_error(tree, "cannot read /proc/self/mountinfo: %s",
			     strerror(errno));
	kp_mounts_close(&mounts);
	/* the overlays that show the tree itself are its file system */
	for (size_t i = 0; i < out->count; i++) {
		if (out->items[i].overlay && below_stat(real, &st) == 0 &&
		    out->items[i].device == st.st_dev)
			free(out->items[i].path);
		else
			out->items[kept++] = out->items[i];
	}
	out->count = kept;
	free(real);
	return done;
}

void mount_table_fini(struct mount_table *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->items[i].path);
	free(m->items);
	*m = (struct mount_table){0};
}

size_t mount_table_count(const struct mount_table *m, bool overlay)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n += m->items[i].overlay == overlay;
	return n;
}

bool mount_table_covers(const struct mount_table *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (policy_is_in_tree(path, m->items[i].path))
			return true;
	return false;
}

const struct mount_now *mount_table_get(const struct mount_table *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->items[i].path, path) == 0)
			return &m->items[i];
	return NULL;
}

/* --- the lock ------------------------------------------------------------------------ */

/* The descriptor of the lock, as which the scripts get it and look for it; see firm.sh. */
enum { SCRIPT_LOCK = 9 };
static int mounts_locked = -1;

bool mounts_lock(void)
{
	const char *given = secure_getenv("KPACKFS_RUN");
	const char *run = given ? given : "/run/kpackfs";
	char *path = xasprintf("%s/.lock", run);
	struct kpackx_error why = {0};
	int fd = -1;
	bool done;

	if (!below_make_root(run, 0755, &why))
		fd = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
	done = fd < 0 || !lock_wait(fd, path, NULL, &why);
	if (!done) {
		report_why(NULL, &why);
		lock_close(fd);
		fd = -1;
	}
	mounts_locked = fd;
	free(path);
	return done;
}

void mounts_unlock(void)
{
	lock_close(mounts_locked);
	mounts_locked = -1;
}

/* --- the scripts --------------------------------------------------------------------- */

/* Run ARGV without its output.  Returns whether it succeeded. */
static bool run_script(char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int status, err, lock;
	pid_t child;

	fflush(stdout);
	if (posix_spawn_file_actions_init(&actions))
		return false;
	for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	/* glibc 2.28 closes a descriptor that is duplicated as itself */
	lock = mounts_locked < 0 ? -1
				 : fcntl(mounts_locked, F_DUPFD_CLOEXEC, SCRIPT_LOCK + 1);
	if (lock >= 0)
		posix_spawn_file_actions_adddup2(&actions, lock, SCRIPT_LOCK);
	err = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (lock >= 0)
		close(lock);
	return !err && waitpid(child, &status, 0) >= 0 && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* Call the script of KIND with its options and the tree, as installed or as built. */
static bool call_script(enum policy_mount kind, const char *const *argv)
{
	static const char *const places[] = {"share/kpackfs/mount", "../contrib/mount"};
	const char *name = policy_mount_name(kind);
	char *program = below_real("/proc/self/exe"), *path = NULL, *kpackfs;
	const char *args[8] = {0};
	bool done = false;

	if (!program)
		return false;
	*strrchr(program, '/') = '\0';
	kpackfs = xasprintf("%s/kpackfs", program);
	if (setenv("KPACKFS", kpackfs, 1) < 0)
		xalloc_fail(0);
	for (size_t i = 0; i < KP_COUNT(places) && !path; i++) {
		path = xasprintf("%s/../%s/%s", program, places[i], name);
		if (below_access(path, X_OK) < 0) {
			free(path);
			path = NULL;
		}
	}
	if (path) {
		args[0] = path;
		for (size_t i = 0; argv[i]; i++)
			args[i + 1] = argv[i];
		done = run_script((char *const *)args);
	} else {
		report_error(NULL, "the script %s of kpackfs is not installed", name);
	}
	free(path);
	free(kpackfs);
	free(program);
	return done;
}

bool mounts_make(const char *tree, enum policy_mount kind, const char *arch)
{
	char *list = xasprintf("arch=%s", arch);
	bool done;

	/* a comma separates mount options, and a semicolon targets */
	for (char *c = list; *c; c++)
		if (*c == ',')
			*c = ';';
	done = call_script(kind, (const char *const[]){"-i", "-o", list, tree, NULL});
	if (!done)
		report_error(tree, "its archives cannot be mounted");
	free(list);
	return done;
}

bool mounts_remove(const char *tree, bool overlay)
{
	const char *const argv[] = {"-i", "-l", "-u", tree, NULL};
	struct mount_table now = {0};
	bool done = mount_table_find(tree, &now);

	if (overlay || mount_table_count(&now, true))
		done &= call_script(POLICY_OVERLAY, argv);
	if (mount_table_count(&now, false)) {
		/* what counts is what stays */
		call_script(POLICY_IN_PLACE, argv);
		done &= mount_table_find(tree, &now) && !mount_table_count(&now, false);
	}
	mount_table_fini(&now);
	if (!done)
		report_error(tree, "what is mounted in it cannot be unmounted");
	return done;
}
