/* SPDX-License-Identifier: MIT */
#include "lookup.h"
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "limits.h"
#include "memory.h"
#include "search.h"
#include "text.h"
#include "trace.h"

/* Bytes of a path or a key in an error, of which there are 240. */
#define SHOWN_MAX 80

/*
 * S as it is printed; of a long one the end, where names differ, from the beginning of a
 * component where there is one.
 */
static char *shown(const char *s, char out[SHOWN_MAX])
{
	size_t n = strlen(s), keep = SHOWN_MAX - 16;
	const char *slash;

	if (n <= keep)
		return kp_text_escape(kp_span_str(s), out, SHOWN_MAX);
	slash = strchr(s + n - keep, '/');
	memcpy(out, "...", 3);
	kp_text_escape(kp_span_str(slash ? slash : s + n - keep), out + 3, SHOWN_MAX - 3);
	return out;
}

/* ---- files ---- */

static int cmp_path(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep_path(void *path)
{
	(void)path;
}

kpack_error_t kp_lookup_add(struct kp_lookup *l, char *path, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	if (tfind(path, &l->paths, cmp_path))
		goto drop;
	if (l->n_files == KP_SEARCH_FILES_MAX) {
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "more than %d archives to look into", KP_SEARCH_FILES_MAX);
		goto drop;
	}
	if (!kp_grow(&l->files, l->n_files, &l->files_cap, sizeof(*l->files)) ||
	    !tsearch(path, &l->paths, cmp_path)) {
		err = kp_fail_memory(why, sizeof(*l->files), "a list of archives");
		goto drop;
	}
	l->files[l->n_files++] = (struct kp_lookup_file){.path = path};
	return KPACK_SUCCESS;
drop:
	free(path);
	return err;
}

void kp_lookup_fini(struct kp_lookup *l)
{
	tdestroy(l->paths, keep_path);
	for (size_t i = 0; i < l->n_files; i++) {
		kp_cache_put(l->cache, l->files[i].held);
		free(l->files[i].path);
	}
	free(l->files);
	*l = (struct kp_lookup){0};
}

static const struct kpack_archive *opened(const struct kp_lookup_file *f)
{
	return f->held ? kp_cached_archive(f->held) : NULL;
}

static void try_file(struct kp_lookup *l, struct kp_lookup_file *f)
{
	char path[SHOWN_MAX];

	f->tried = true;
	if (kp_cache_get(l->cache, f->path, &f->held, &f->why) == KPACK_SUCCESS)
		kp_trace(l->trace, "opened %s", shown(f->path, path));
	else
		kp_trace(l->trace, "%s: %s", shown(f->path, path), f->why.text);
}

/* ---- choosing ---- */

struct choice {
	struct kp_lookup *lookup;
	const char *key;
	bool any_arch;                /* an archive offers a target */
	struct kp_lookup_file *file;  /* the one, or NULL */
	char target[KP_NAME_MAX + 1]; /* what it has the key for */
};

static bool offers(const struct kpack_archive *a, struct kp_span target)
{
	size_t n = kp_archive_arch_count(a);

	for (size_t i = 0; i < n; i++)
		if (kp_span_is(target, kp_archive_arch(a, i)))
			return true;
	return false;
}

static bool choose(struct kp_span target, void *arg)
{
	struct choice *c = arg;
	struct kp_lookup *l = c->lookup;
	size_t entry;

	for (size_t i = 0; i < l->n_files; i++) {
		struct kp_lookup_file *f = &l->files[i];

		if (!f->tried)
			try_file(l, f);
		if (!f->held || !offers(opened(f), target))
			continue;
		c->any_arch = true;
		if (!kp_archive_find(opened(f), kp_span_str(c->key), target, &entry))
			continue;
		c->file = f;
		memcpy(c->target, target.data, target.size + 1);
		return false;
	}
	return true;
}

static kpack_error_t decode(const struct choice *c, void **data, size_t *size,
			    struct kpackx_error *why)
{
	char path[SHOWN_MAX], key[SHOWN_MAX], target[64];
	kpack_error_t err;

	shown(c->file->path, path);
	shown(c->key, key);
	kp_text_escape(kp_span_str(c->target), target, sizeof(target));
	err = kpackx_get_kernel(kp_cached_archive(c->file->held), c->key, c->target, data,
				size, why);
	if (err)
		return kp_fail_prefix(why, err, "%s: %s %s", path, key, target);
	kp_trace(c->lookup->trace, "%s %s: %zu bytes from %s", key, target, *size, path);
	return KPACK_SUCCESS;
}

/* ---- saying why ---- */

struct line {
	char text[240];
	size_t used;
};

static void __attribute__((format(printf, 2, 3)))
say(struct line *line, const char *fmt, ...)
{
	size_t room = sizeof(line->text) - line->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line->text + line->used, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		line->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void say_opened(const struct kp_lookup_file *f, struct line *line)
{
	char path[SHOWN_MAX], arch[64];
	size_t n;

	if (!f->held)
		return;
	n = kp_archive_arch_count(opened(f));
	say(line, "; %s offers", shown(f->path, path));
	for (size_t i = 0; i < n && i < 8; i++)
		say(line, " %s",
		    kp_text_escape(kp_span_str(kp_archive_arch(opened(f), i)), arch,
				   sizeof(arch)));
	say(line, "%s", n == 0 ? " nothing" : n > 8 ? " ..." : "");
}

static bool is_missing(const struct kp_lookup_file *f)
{
	return !f->held && f->why.code == KPACK_ERROR_FILE_NOT_FOUND;
}

static void say_faulty(const struct kp_lookup_file *f, struct line *line)
{
	char path[SHOWN_MAX];

	if (f->tried && !f->held && !is_missing(f))
		say(line, "; %s: %s", shown(f->path, path), f->why.text);
}

static void say_missing(const struct kp_lookup_file *f, struct line *line)
{
	char path[SHOWN_MAX];

	if (f->tried && is_missing(f))
		say(line, "; no file %s", shown(f->path, path));
}

/* Which files were looked into, what they offer; the most telling ones first. */
static void say_files(const struct kp_lookup *l, struct line *line)
{
	static void (*const parts[])(const struct kp_lookup_file *, struct line *) = {
		say_opened, say_faulty, say_missing};

	for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++)
		for (size_t i = 0; i < l->n_files; i++)
			parts[p](&l->files[i], line);
}

static void say_archs(const struct kp_lookup_want *want, struct line *line)
{
	const char *between = " ";
	char arch[64];

	for (size_t i = 0; i < want->n_archs && i < 4; i++) {
		if (!want->archs[i])
			continue;
		kp_text_escape(kp_span_str(want->archs[i]), arch, sizeof(arch));
		say(line, "%s%s", between, arch);
		between = ", ";
	}
}

/* What it means that nothing was chosen. */
static kpack_error_t outcome(const struct choice *c)
{
	struct kp_lookup *l = c->lookup;
	kpack_error_t code = KPACK_ERROR_ARCHIVE_NOT_FOUND;

	if (c->any_arch)
		return KPACK_ERROR_KERNEL_NOT_FOUND;
	for (size_t i = 0; i < l->n_files; i++) {
		if (!l->files[i].tried) /* the list named no arch at all */
			try_file(l, &l->files[i]);
		if (l->files[i].held)
			code = KPACK_ERROR_ARCH_NOT_FOUND;
	}
	return code;
}

static kpack_error_t nothing_found(const struct choice *c,
				   const struct kp_lookup_want *want,
				   struct kpackx_error *why)
{
	kpack_error_t code = outcome(c);
	struct line line = {.used = 0};
	char key[SHOWN_MAX];

	shown(want->key, key);
	if (code == KPACK_ERROR_ARCHIVE_NOT_FOUND)
		say(&line, "no archive to look for %s in", key);
	else if (code == KPACK_ERROR_ARCH_NOT_FOUND)
		say(&line, "no archive offers");
	else
		say(&line, "no %s for", key);
	if (code != KPACK_ERROR_ARCHIVE_NOT_FOUND)
		say_archs(want, &line);
	say_files(c->lookup, &line);
	return kp_fail(why, code, "%s", line.text);
}

kpack_error_t kp_lookup_load(struct kp_lookup *l, const struct kp_lookup_want *want,
			     void **data, size_t *size, struct kpackx_error *why)
{
	struct choice c = {.lookup = l, .key = want->key};
	struct kpackx_error first = {0}, later;

	for (size_t i = 0; i < want->n_archs; i++) {
		if (!want->archs[i])
			continue;
		c.file = NULL;
		kp_search_targets(kp_span_str(want->archs[i]), choose, &c);
		if (c.file && !decode(&c, data, size, first.code ? &later : &first))
			return KPACK_SUCCESS;
	}
	if (!first.code)
		return nothing_found(&c, want, why);
	if (why)
		*why = first;
	return first.code;
}
