/* SPDX-License-Identifier: MIT */
#include "judge.h"
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static FTS *walk(const char *dir)
{
	char *const roots[] = {(char *)dir, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);

	if (!fts)
		err(2, "%s", dir);
	return fts;
}

/* --- listings ------------------------------------------------------------------------ */

static uint64_t hash(uint64_t h, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

static uint64_t hash_content(const char *path)
{
	unsigned char buf[16384];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
	uint64_t h = 0xcbf29ce484222325;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		h = hash(h, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	return h;
}

static void print_attributes(FILE *to, const char *path)
{
	char names[4096], value[4096];
	ssize_t size = llistxattr(path, names, sizeof(names)), n;

	for (char *p = names; size > 0 && p < names + size; p += strlen(p) + 1) {
		n = lgetxattr(path, p, value, sizeof(value));
		fprintf(to, " %s=%016" PRIx64, p,
			hash(0, (unsigned char *)value, n > 0 ? (size_t)n : 0));
	}
}

static void print_file(FILE *to, const char *path, const char *name,
		       const struct stat *st)
{
	char link[PATH_MAX] = "";

	fprintf(to, "%s mode %o owner %u:%u time %lld.%09ld", name, st->st_mode,
		st->st_uid, st->st_gid, (long long)st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec);
	if (S_ISREG(st->st_mode))
		fprintf(to, " size %lld content %016" PRIx64, (long long)st->st_size,
			hash_content(path));
	if (S_ISLNK(st->st_mode) && readlink(path, link, sizeof(link) - 1) >= 0)
		fprintf(to, " to %s", link);
	if (!S_ISLNK(st->st_mode))
		print_attributes(to, path);
	putc('\n', to);
}

void listing_take(struct listing *l, const char *dir)
{
	size_t state_size, times_size, skip = strlen(dir);
	FILE *state, *times;
	FTS *fts = walk(dir);
	FTSENT *e;

	*l = (struct listing){0};
	state = open_memstream(&l->state, &state_size);
	times = open_memstream(&l->times, &times_size);
	if (!state || !times)
		err(2, "memory");
	while ((e = fts_read(fts))) {
		const char *name = e->fts_path + skip;
		const struct stat *st = e->fts_statp;

		if (e->fts_info == FTS_DP)
			continue;
		name = *name ? name + 1 : ".";
		print_file(state, e->fts_path, name, st);
		fprintf(times, "%s changed at %lld.%09ld\n", name,
			(long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
	}
	fts_close(fts);
	fclose(state);
	fclose(times);
}

void listing_fini(struct listing *l)
{
	free(l->state);
	free(l->times);
	*l = (struct listing){0};
}

static size_t line_length(const char *p)
{
	return strcspn(p, "\n");
}

static const char *next_line(const char *p)
{
	p += line_length(p);
	return *p ? p + 1 : p;
}

/* The order of the lines of two files' names. */
static int compare_names(const char *a, const char *b)
{
	size_t n = strcspn(a, " "), m = strcspn(b, " ");
	int c = !*a || !*b ? !*a - !*b : strncmp(a, b, n < m ? n : m);

	return c ? c : (n > m) - (n < m);
}

static void print_change(char *out, size_t room, const char *before, const char *after)
{
	int order = compare_names(before, after);

	if (order == 0)
		snprintf(out, room, "%.*s -> %.*s", (int)line_length(before), before,
			 (int)(line_length(after) - strcspn(after, " ") - 1),
			 after + strcspn(after, " ") + 1);
	else if (order < 0)
		snprintf(out, room, "removed %.*s", (int)line_length(before), before);
	else
		snprintf(out, room, "new %.*s", (int)line_length(after), after);
}

const char *listing_difference(const char *before, const char *after)
{
	static char text[4 * PATH_MAX];
	size_t used = 0;

	text[0] = '\0';
	while (*before || *after) {
		int order = compare_names(before, after);
		size_t n = line_length(before);

		if (order != 0 || n != line_length(after) ||
		    strncmp(before, after, n) != 0) {
			if (used && used + 3 < sizeof(text))
				used += (size_t)sprintf(text + used, " | ");
			print_change(text + used, sizeof(text) - used, before, after);
			used += strlen(text + used);
		}
		before = order <= 0 ? next_line(before) : before;
		after = order >= 0 ? next_line(after) : after;
	}
	return used ? text : NULL;
}

/* --- secrets ------------------------------------------------------------------------- */

static void add_secret(struct secrets *s, const char *hex)
{
	struct secret *new;

	s->items = reallocarray(s->items, s->count + 1, sizeof(*s->items));
	if (!s->items)
		err(2, "memory");
	new = &s->items[s->count++];
	new->size = strlen(hex) / 2;
	new->bytes = malloc(new->size);
	if (!new->bytes)
		err(2, "memory");
	for (size_t i = 0; i < new->size; i++) {
		const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};

		new->bytes[i] = (char)strtoul(digits, NULL, 16);
	}
}

void secrets_read(struct secrets *s, const char *file)
{
	FILE *from = fopen(file, "re");
	char line[1024];

	*s = (struct secrets){0};
	if (!from)
		err(2, "%s", file);
	while (fgets(line, sizeof(line), from)) {
		line[line_length(line)] = '\0';
		add_secret(s, line);
	}
	fclose(from);
}

static bool has_secret(const struct secrets *s, const char *path, off_t size)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	void *map = fd < 0 ? MAP_FAILED
			   : mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
	bool found = false;

	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return false;
	for (size_t i = 0; i < s->count && !found; i++)
		found = memmem(map, (size_t)size, s->items[i].bytes, s->items[i].size);
	munmap(map, (size_t)size);
	return found;
}

/* In a process of the user's: the path of the first file with a secret goes to OUT. */
static void search(const struct secrets *s, const char *dir, uid_t user, int out)
{
	FTS *fts;
	FTSENT *e;

	if (setgroups(0, NULL) < 0 || setgid(user) < 0 || setuid(user) < 0)
		_exit(2);
	fts = walk(dir);
	while ((e = fts_read(fts)))
		if (e->fts_info == FTS_F && e->fts_statp->st_size > 0 &&
		    has_secret(s, e->fts_path, e->fts_statp->st_size)) {
			_exit(write(out, e->fts_path, e->fts_pathlen) < 0 ? 2 : 1);
		}
	_exit(0);
}

const char *secrets_find(const struct secrets *s, const char *dir, uid_t user)
{
	static char found[PATH_MAX];
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		err(2, "process");
	if (pid == 0)
		search(s, dir, user, ends[1]);
	close(ends[1]);
	n = read(ends[0], found, sizeof(found) - 1);
	close(ends[0]);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) > 1)
		errx(2, "the search for secrets failed");
	found[n > 0 ? n : 0] = '\0';
	return WEXITSTATUS(status) == 1 ? found : NULL;
}
