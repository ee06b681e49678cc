/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cgroup.h"
#include "core/base/mountinfo.h"

struct version {
	const char *type, *option; /* in mountinfo; option NULL: any */
	const char *inactive;
	const char *files[4]; /* two limits, usage, stat */
};

/* If both versions are mounted, version 1 manages memory if it has that controller. */
static const struct version versions[] = {
	{"cgroup",
	 "memory",
	 "total_inactive_file",
	 {"memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "memory.stat"}},
	{"cgroup2",
	 NULL,
	 "inactive_file",
	 {"memory.max", "memory.high", "memory.current", "memory.stat"}},
};

static FILE *open_text(const char *root, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* True if WORD is in LIST, which is separated by commas. */
static bool list_has(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; *list; list += strspn(list, ",")) {
		if (strcspn(list, ",\n") == n && strncmp(list, word, n) == 0)
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

/* The part of PATH below BASE; "" if PATH is elsewhere, as in a container's own view. */
static const char *path_below(const char *path, const char *base)
{
	size_t n = strcmp(base, "/") == 0 ? 0 : strlen(base);

	if (strncmp(path, base, n) || (path[n] && path[n] != '/'))
		return "";
	return strcmp(path + n, "/") == 0 ? "" : path + n;
}

/* Find the path of this process in V's tree, from a line "N:memory:PATH" or "0::PATH". */
static bool find_path(const char *root, const struct version *v, char path[PATH_MAX])
{
	FILE *f = open_text(root, "/proc/self/cgroup");
	char line[PATH_MAX + 64], controllers[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *rest = strchr(line, ':');
		size_t n = rest ? strcspn(rest + 1, ":") : 0;

		if (!rest || n >= sizeof(controllers) || rest[1 + n] != ':')
			continue;
		memcpy(controllers, rest + 1, n);
		controllers[n] = '\0';
		if (v->option ? !list_has(controllers, v->option) : n > 0)
			continue;
		found = sscanf(rest + n + 2, "%4095[^\n]", path) == 1;
	}
	if (f)
		fclose(f);
	return found;
}

/* Find the mount POINT of V, and BASE, the directory of V that is mounted there. */
static bool find_mount(const char *root, const struct version *v, char point[PATH_MAX],
		       char base[PATH_MAX])
{
	struct kp_mounts mounts = {.file = open_text(root, "/proc/self/mountinfo")};
	bool found = false;
	struct kp_mount m;

	while (!found && kp_mounts_next(&mounts, &m)) {
		found = strcmp(m.type, v->type) == 0 &&
			(!v->option || list_has(m.options, v->option)) &&
			strlen(m.path) < PATH_MAX && strlen(m.root) < PATH_MAX;
		if (found) {
			strcpy(point, m.path);
			strcpy(base, m.root);
		}
	}
	kp_mounts_close(&mounts);
	return found;
}

static int open_file(int directory, const char *name)
{
	return name ? openat(directory, name, O_RDONLY | O_CLOEXEC) : -1;
}

static void level_close(struct cgroup_level *l)
{
	const int fds[] = {l->limits[0], l->limits[1], l->usage, l->stat};

	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Add a level.  The root cgroup has no limits, and is left out. */
static void add_level(struct cgroup *c, const struct version *v, int directory)
{
	struct cgroup_level l = {
		.limits = {open_file(directory, v->files[0]),
			   open_file(directory, v->files[1])},
		.usage = open_file(directory, v->files[2]),
		.stat = open_file(directory, v->files[3]),
	};

	if (l.limits[0] >= 0 && l.usage >= 0)
		c->levels[c->count++] = l;
	else
		level_close(&l);
}

/* Add all levels from PATH up to the directory that is its first LEAST bytes. */
static void add_levels(struct cgroup *c, const struct version *v, char *path,
		       size_t least)
{
	while (c->count < CGROUP_LEVELS) {
		int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		char *slash = strrchr(path, '/');

		if (directory >= 0)
			add_level(c, v, directory);
		if (directory >= 0 && c->directory < 0)
			c->directory = directory;
		else if (directory >= 0)
			close(directory);
		if (!slash || (size_t)(slash - path) < least)
			return;
		*slash = '\0';
	}
}

void cgroup_open(struct cgroup *c, const char *root)
{
	char own[PATH_MAX], point[PATH_MAX], base[PATH_MAX], path[3 * PATH_MAX];

	*c = (struct cgroup){.directory = -1};
	for (int i = 0; i < 2 && c->count == 0; i++) {
		const struct version *v = &versions[i];

		if (!find_path(root, v, own) || !find_mount(root, v, point, base))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", root, point,
			 path_below(own, base));
		c->inactive = v->inactive;
		add_levels(c, v, path, strlen(root) + strlen(point));
	}
}

void cgroup_close(struct cgroup *c)
{
	for (unsigned i = 0; i < c->count; i++)
		level_close(&c->levels[i]);
	if (c->directory >= 0)
		close(c->directory);
	*c = (struct cgroup){.directory = -1};
}

/*
 * The number in a file.  CGROUP_NO_LIMIT: the file is absent or has no number, as "max",
 * or has the huge number by which version 1 means no limit.
 */
static uint64_t read_number(int fd)
{
	char text[32];
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);
	uint64_t value;
	char *end;

	if (n <= 0)
		return CGROUP_NO_LIMIT;
	text[n] = '\0';
	value = strtoull(text, &end, 10);
	return end == text || value > UINT64_MAX / 4 ? CGROUP_NO_LIMIT : value;
}

static uint64_t level_limit(const struct cgroup_level *l)
{
	uint64_t hard = read_number(l->limits[0]), high = read_number(l->limits[1]);

	return high < hard ? high : hard;
}

/* Bytes of page cache that is not in use. */
static uint64_t level_inactive(const struct cgroup_level *l, const char *name)
{
	char text[8192], *line = text;
	ssize_t n = l->stat < 0 ? 0 : pread(l->stat, text, sizeof(text) - 1, 0);
	size_t length = strlen(name);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	while (strncmp(line, name, length) || line[length] != ' ') {
		line = strchr(line, '\n');
		if (!line++)
			return 0;
	}
	return strtoull(line + length, NULL, 10);
}

uint64_t cgroup_limit(const struct cgroup *c)
{
	uint64_t least = CGROUP_NO_LIMIT;

	for (unsigned i = 0; i < c->count; i++) {
		uint64_t limit = level_limit(&c->levels[i]);

		if (limit < least)
			least = limit;
	}
	return least;
}

/*
 * The statistics are read last, and only if needed, because they cost the kernel some
 * work.
 */
static bool level_is_full(const struct cgroup_level *l, const char *inactive,
			  unsigned percent)
{
	uint64_t limit = level_limit(l), usage, most;

	if (limit == CGROUP_NO_LIMIT)
		return false;
	most = limit / 100 * percent;
	usage = read_number(l->usage);
	return usage != CGROUP_NO_LIMIT && usage > most &&
	       usage - most > level_inactive(l, inactive);
}

bool cgroup_is_full(const struct cgroup *c, unsigned percent)
{
	for (unsigned i = 0; i < c->count; i++)
		if (level_is_full(&c->levels[i], c->inactive, percent))
			return true;
	return false;
}
