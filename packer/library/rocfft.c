/* SPDX-License-Identifier: MIT */
/*
 * rocFFT: its kernel caches, which are SQLite databases that contain code; and databases
 * whose table "kernels" has the paths of code objects.
 */
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "arch_name.h"
#include "cache_summary.h"
#include "kernel_cache.h"
#include "kernel_paths.h"
#include "path_keys.h"
#include "sqlite_header.h"

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcmp(path + n - m, end) == 0;
}

static bool is_database_name(const char *path)
{
	return ends_with(path, ".db") || ends_with(path, ".sqlite") ||
	       ends_with(path, ".sqlite3");
}

/* Whether PATH is below a directory in which an invalid database is a fault. */
static bool is_in_fft(const char *path)
{
	static const char *const dirs[] = {"rocfft", "hipfft", "fft"};
	struct kp_span rest;

	for (size_t i = 0; i < KP_COUNT(dirs); i++)
		if (path_below(path, dirs[i], &rest))
			return true;
	return false;
}

static bool probe_file(const struct library *self, const struct library_question *q)
{
	(void)self;
	return is_database_name(q->path) || is_in_fft(q->path);
}

/* --- kernel caches -------------------------------------------------------------------- */

/*
 * Refuse a database with the journal of an unfinished change: it is only whole together
 * with the journal, which cannot be played back on a read-only mount.
 */
static kpack_error_t check_journal(const struct library_question *q,
				   struct kpackx_error *why)
{
	static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	struct file_bytes bytes;
	uint8_t head[8] = {0};
	size_t file;
	kpack_error_t err;
	char *path = xasprintf("%s-journal", q->path);
	bool there = file_tree_find(q->tree, kp_span_str(path), &file) &&
		     q->tree->items[file].size >= sizeof(head);

	free(path);
	if (!there)
		return KPACK_SUCCESS;
	KP_TRY(file_tree_open(q->tree, file, &bytes, why));
	err = kp_source_read(&bytes.source, 0, head, sizeof(head), why);
	file_bytes_close(&bytes);
	if (!err && memcmp(head, magic, sizeof(head)) == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "next to it is the journal of an unfinished change; "
			       "open it once with sqlite3 to undo the change");
	return err;
}

/* Warn of rows for another GPU than the name's: rocFFT does not look for them there. */
static void compare_arches(const struct cache_summary *s, const char *named,
			   struct library_object *out)
{
	for (size_t i = 0; i < s->n_arches; i++) {
		if (!*named || arch_agrees(named, s->arches[i].canonical))
			continue;
		library_warn(out,
			     "its name says %s, but %llu of its %llu rows are for %s",
			     named, (unsigned long long)s->arches[i].rows,
			     (unsigned long long)s->rows, s->arches[i].text);
		return;
	}
	if (s->n_strange)
		library_warn(out, "the arch of %llu of its %llu rows is no GPU: %s",
			     (unsigned long long)s->n_strange,
			     (unsigned long long)s->rows, s->strange);
}

static kpack_error_t describe_cache(struct sqlite_file *f, const char *named,
				    struct library_object *out, struct kpackx_error *why)
{
	struct cache_summary *s = xmalloc(sizeof(*s));
	kpack_error_t err = cache_summary_read(f, s, why);

	if (!err) {
		cache_summary_facts(s, &out->facts);
		compare_arches(s, named, out);
	}
	free(s);
	return err;
}

/* --- either kind ---------------------------------------------------------------------- */

/* Look at its tables.  NAMED: the cache's arch; NULL: its name is not that of a cache. */
static kpack_error_t look_inside(const struct library_question *q, const char *named,
				 bool *mine, struct library_object *out,
				 struct kpackx_error *why)
{
	struct sqlite_file *f = NULL;
	kpack_error_t err = sqlite_file_open(q->source, &f, why);

	if (!err && named)
		err = cache_is_there(f, mine, why);
	if (!err)
		err = *mine ? describe_cache(f, named, out, why)
			    : kernel_paths_are_there(f, mine, why);
	sqlite_file_close(f);
	return err;
}

static kpack_error_t describe_database(const struct library_question *q,
				       const char *named, bool *mine,
				       struct library_object *out,
				       struct kpackx_error *why)
{
	facts_string(&out->facts, "container", "sqlite");
	out->role = "cache";
	out->at_random = true;
	if (named && *named)
		library_add_arch(out, named);
	return look_inside(q, named, mine, out, why);
}

static bool is_damage(kpack_error_t err)
{
	return err == KPACK_ERROR_INVALID_FORMAT;
}

static kpack_error_t check_file(const struct library *self,
				const struct library_question *q, bool *mine,
				struct library_object *out, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX];
	const char *named = kernel_cache_named(q->path, arch) ? arch : NULL;
	bool expected = named || (is_in_fft(q->path) && is_database_name(q->path));
	kpack_error_t err;

	(void)self;
	*mine = false;
	if (!expected && !sqlite_header_probe(q->head, q->head_size))
		return KPACK_SUCCESS;
	err = sqlite_header_check(q->source, q->head, q->head_size, why);
	if (is_damage(err) && expected && q->plain) {
		*mine = true;
		if (named && *named)
			library_add_arch(out, named);
		return KPACK_SUCCESS;
	}
	if (!err)
		err = describe_database(q, named, mine, out, why);
	if (!err && *mine && !q->plain)
		err = check_journal(q, why);
	if (is_damage(err) && !expected && !*mine)
		return KPACK_SUCCESS;
	return err;
}

const struct library library_rocfft = {.name = "rocfft",
				       .probe = probe_file,
				       .check = check_file,
				       .finish = path_keys_add};
