/* SPDX-License-Identifier: MIT */
#include "mounts.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/path.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/lock.h"

/* --- the mount table ----------------------------------------------------------------- */

static void free_mount(struct mount_now *m)
{
	free(m->path);
}

/* Whether PATH is TREE or below it. */
static bool is_below(const char *path, const char *tree)
{
	return strcmp(tree, "/") == 0 || kp_path_within(kp_span_str(path), tree);
}

bool mount_table_read(struct kp_mounts *mounts, const char *tree, struct mount_table *out)
{
	struct kp_mount m;
	bool overlay;

	*out = (struct mount_table){0};
	while (kp_mounts_next(mounts, &m)) {
		overlay = strcmp(m.type, "overlay") == 0;
		if ((!overlay && strcmp(m.type, "fuse.kpackfs") != 0) ||
		    !is_below(m.path, tree))
			continue;
		xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
		out->items[out->count++] =
			(struct mount_now){xstrdup(m.path), m.device, overlay};
	}
	return mounts->file && feof(mounts->file);
}

/* Remove the overlays that show the directory REAL itself: they are its file system. */
static void drop_own(struct mount_table *m, const char *real)
{
	struct stat st;
	size_t kept = 0;

	if (below_stat(real, &st) < 0)
		return;
	for (size_t i = 0; i < m->count; i++) {
		if (m->items[i].overlay && m->items[i].device == st.st_dev)
			free_mount(&m->items[i]);
		else
			m->items[kept++] = m->items[i];
	}
	m->count = kept;
}

kpack_error_t mount_table_find(const char *tree, struct mount_table *out,
			       struct kpackx_error *why)
{
	char *real = below_real(tree);
	struct kp_mounts mounts;
	bool done;

	*out = (struct mount_table){0};
	done = kp_mounts_open(&mounts) && (!real || mount_table_read(&mounts, real, out));
	if (!done)
		mount_table_fini(out);
	else if (real)
		drop_own(out, real);
	kp_mounts_close(&mounts);
	free(real);
	return done ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_IO_ERROR,
			      "cannot read /proc/self/mountinfo");
}

void mount_table_fini(struct mount_table *m)
{
	for (size_t i = 0; i < m->count; i++)
		free_mount(&m->items[i]);
	free(m->items);
	*m = (struct mount_table){0};
}

bool mount_table_covers(const struct mount_table *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (is_below(path, m->items[i].path))
			return true;
	return false;
}

bool mount_table_has_device(const struct mount_table *m, dev_t device)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->items[i].device == device)
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

/* --- the scripts --------------------------------------------------------------------- */

/* From the program's directory: as installed, and as built. */
static const char *const places[] = {"/../share/kpackfs/mount", "/../../contrib/mount"};

/* The program's directory, on the heap; NULL: /proc is not mounted. */
static char *program_dir(void)
{
	char *program = below_real("/proc/self/exe");

	if (program)
		*strrchr(program, '/') = '\0';
	return program;
}

/* The script NAME, on the heap; NULL: there is none. */
static char *find_script(const char *dir, const char *name)
{
	for (size_t i = 0; i < KP_COUNT(places); i++) {
		char *path = xasprintf("%s%s/%s", dir, places[i], name);

		if (below_access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

/* The descriptor of the lock, as which the scripts get it and look for it; see firm.sh. */
enum { SCRIPT_LOCK = 9 };
static int mounts_locked = -1;

/* Run ARGV without its output.  Its exit status; -1: it has none. */
static int run_script(char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int status, err, lock;
	pid_t child;

	fflush(stdout);
	if (posix_spawn_file_actions_init(&actions))
		return -1;
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
					 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY,
					 0);
	/* glibc 2.28 closes a descriptor that is duplicated as itself */
	lock = mounts_locked < 0 ? -1
				 : fcntl(mounts_locked, F_DUPFD_CLOEXEC, SCRIPT_LOCK + 1);
	if (lock >= 0)
		posix_spawn_file_actions_adddup2(&actions, lock, SCRIPT_LOCK);
	err = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (lock >= 0)
		close(lock);
	if (err || waitpid(child, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool mounts_lock(void)
{
	const char *run = secure_getenv("KPACKFS_RUN");
	char *path = xasprintf("%s/.lock", run ? run : "/run/kpackfs");
	struct kpackx_error why = {0};
	int fd = -1;
	bool done;

	if (!below_make_root(run ? run : "/run/kpackfs", 0755, &why))
		fd = below_open(path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
	done = fd < 0 || !lock_wait(fd, path, NULL, &why);
	if (done) {
		mounts_locked = fd;
	} else {
		report_why(NULL, &why);
		lock_close(fd);
	}
	free(path);
	return done;
}

void mounts_unlock(void)
{
	lock_close(mounts_locked);
	mounts_locked = -1;
}

/* Call the script of KIND for P's tree with OPTIONS, NULL-terminated. */
static bool call_script(const struct policy *p, enum policy_mount kind,
			char *const *options)
{
	const char *name = policy_mount_name(kind);
	char *dir = program_dir(), *argv[8];
	char *script = dir ? find_script(dir, name) : NULL;
	char *kpackfs = dir ? xasprintf("%s/kpackfs", dir) : NULL;
	int n = 0, status = -1;

	if (!script) {
		report_error(p->tree, "the script %s of kpackfs is not installed", name);
	} else {
		setenv("KPACKFS", kpackfs, 1);
		argv[n++] = script;
		for (; *options; options++)
			argv[n++] = *options;
		argv[n++] = p->tree;
		argv[n] = NULL;
		status = run_script(argv);
	}
	free(kpackfs);
	free(script);
	free(dir);
	return status == 0;
}

bool mounts_make(const struct policy *p, const char *arch)
{
	char *list = xasprintf("arch=%s", arch);
	char option_i[] = "-i", option_o[] = "-o";
	char *options[] = {option_i, option_o, list, NULL};
	bool done;

	/* a comma separates mount options, and a semicolon targets */
	for (char *c = list; *c; c++)
		if (*c == ',')
			*c = ';';
	done = call_script(p, p->mount, options);
	if (!done)
		report_error(p->tree, "its archives cannot be mounted");
	free(list);
	return done;
}

/* How many of M are overlays, or are not. */
static size_t count_mounts(const struct mount_table *m, bool overlay)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n += m->items[i].overlay == overlay;
	return n;
}

bool mounts_remove(const struct policy *p)
{
	char option_i[] = "-i", option_l[] = "-l", option_u[] = "-u";
	char *options[] = {option_i, option_l, option_u, NULL};
	struct kpackx_error why = {0};
	struct mount_table now;
	bool done = !mount_table_find(p->tree, &now, &why);

	if (!done)
		report_why(p->tree, &why);
	/* an overlay that is gone may have left its lower layer elsewhere */
	if (p->mount == POLICY_OVERLAY || count_mounts(&now, true))
		done &= call_script(p, POLICY_OVERLAY, options);
	if (count_mounts(&now, false))
		done &= call_script(p, POLICY_IN_PLACE, options);
	mount_table_fini(&now);
	if (!done)
		report_error(p->tree, "what is mounted in it cannot be unmounted");
	return done;
}
