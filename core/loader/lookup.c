/* SPDX-License-Identifier: MIT */
/*
 * A look-up tries candidate archives in order: those of the environment, then those that the
 * marker's search path names for each wanted target.  Each is opened when it is its turn.  For
 * each target, best first, the archives that are open are asked; the first object that decodes is
 * the answer.  Why every candidate failed is told at the end, and with ROCM_KPACK_DEBUG on the way.
 */
#include "lookup.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "api_call.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/span.h"
#include "core/base/text.h"
#include "core/elf/search_path.h"
#include "trace.h"
#include "trusted.h"

/* Bytes of a path or a key in an error message, which has 240 bytes in all. */
#define KP_SHOWN_MAX 80

/* Maximum number of architectures of an archive, and of a request, in a message. */
enum { DECLARED_MAX = 8, WANTED_MAX = 4 };

/*
 * Format S for printing.  A long S is cut to its end, where names differ, if possible at
 * the beginning of a path component.
 */
static char *kp_shown(const char *s, char out[KP_SHOWN_MAX])
{
	size_t n = strlen(s), keep = KP_SHOWN_MAX - 16;
	const char *slash;

	if (n <= keep)
		return kp_text_escape(kp_span_str(s), out, KP_SHOWN_MAX);
	slash = strchr(s + n - keep, '/');
	memcpy(out, "...", 3);
	kp_text_escape(kp_span_str(slash ? slash : s + n - keep), out + 3,
		       KP_SHOWN_MAX - 3);
	return out;
}

static void add_shown(struct kp_line *line, const char *s)
{
	char text[KP_SHOWN_MAX];

	kp_line_add(line, "%s", kp_shown(s, text));
}

/* Add " gfx900 gfx906", at most MAX architectures. */
static void add_declared(struct kp_line *line, const struct kpack_archive *a, size_t max)
{
	size_t n = kp_archive_arch_count(a);

	for (size_t i = 0; i < n && i < max; i++) {
		kp_line_add(line, " ");
		kp_line_add_name(line, kp_archive_arch(a, i));
	}
	kp_line_add(line, "%s", n == 0 ? " nothing" : n > max ? " ..." : "");
}

/* ---- why nothing was found ---- */

static void say_opened(const struct kp_lookup_file *f, struct kp_line *line)
{
	if (!f->held)
		return;
	kp_line_add(line, "; ");
	add_shown(line, f->path);
	kp_line_add(line, " offers");
	add_declared(line, kp_cached_archive(f->held), DECLARED_MAX);
}

static bool is_missing(const struct kp_lookup_file *f)
{
	return !f->held && f->why.code == KPACK_ERROR_FILE_NOT_FOUND;
}

static void say_faulty(const struct kp_lookup_file *f, struct kp_line *line)
{
	if (!f->tried || f->held || is_missing(f))
		return;
	kp_line_add(line, "; ");
	add_shown(line, f->path);
	kp_line_add(line, ": %s", f->why.text);
}

static void say_missing(const struct kp_lookup_file *f, struct kp_line *line)
{
	if (!f->tried || !is_missing(f))
		return;
	kp_line_add(line, "; no file ");
	add_shown(line, f->path);
}

/* Add the files that were tried and what they offer, the most relevant first. */
static void say_files(const struct kp_lookup *l, struct kp_line *line)
{
	static void (*const parts[])(const struct kp_lookup_file *, struct kp_line *) = {
		say_opened, say_faulty, say_missing};

	for (size_t p = 0; p < KP_COUNT(parts); p++)
		for (size_t i = 0; i < l->n_files && line->used < KP_LINE_MAX; i++)
			parts[p](&l->files[i], line);
}

static void say_wanted(const struct kp_lookup_want *want, struct kp_line *line)
{
	const char *between = " ";

	for (size_t i = 0; i < want->n_archs && i < WANTED_MAX; i++) {
		if (!want->archs[i])
			continue;
		kp_line_add(line, "%s", between);
		add_shown(line, want->archs[i]);
		between = ", ";
	}
}

/* Fail with CODE; the message lists the files, with what each offers or why it failed. */
static kpack_error_t kp_lookup_fail(const struct kp_lookup *l,
				    const struct kp_lookup_want *want, kpack_error_t code,
				    struct kpackx_error *why)
{
	struct kp_line line = {.used = 0};
	char key[KP_SHOWN_MAX];

	kp_shown(want->key, key);
	if (code == KPACK_ERROR_ARCHIVE_NOT_FOUND)
		kp_line_add(&line, "no archive to look for %s in", key);
	else if (code == KPACK_ERROR_ARCH_NOT_FOUND)
		kp_line_add(&line, "no archive offers");
	else
		kp_line_add(&line, "no %s for", key);
	if (code != KPACK_ERROR_ARCHIVE_NOT_FOUND)
		say_wanted(want, &line);
	say_files(l, &line);
	return kp_fail(why, code, "%s", line.text);
}

/* ---- trace lines ---- */

/* A search for a wanted target among those that an archive declares. */
struct search {
	const struct kpack_archive *archive;
	bool found;
};

static bool look_for(struct kp_span target, void *arg)
{
	struct search *s = arg;

	s->found = kp_lookup_declares(s->archive, target);
	return !s->found;
}

static bool declares_any(const struct kpack_archive *a, const struct kp_lookup_want *want)
{
	struct search s = {.archive = a};

	for (size_t i = 0; i < want->n_archs && !s.found; i++)
		if (want->archs[i])
			kp_search_targets(kp_span_str(want->archs[i]), look_for, &s);
	return s.found;
}

/* F was tried: it was opened or not, and declares a wanted target or not. */
static void kp_lookup_trace_tried(const struct kp_lookup *l,
				  const struct kp_lookup_file *f,
				  const struct kp_lookup_want *want)
{
	struct kp_line line;
	const struct kpack_archive *a;
	bool wanted;

	if (!l->trace)
		return;
	if (!f->held) {
		kp_trace_name(true, "passed over", f->path, f->why.text);
		return;
	}
	a = kp_cached_archive(f->held);
	wanted = declares_any(a, want);
	line.used = 0;
	kp_line_add(&line, wanted ? "looked into: " : "passed over: ");
	kp_line_add_name(&line, f->path);
	kp_line_add(&line, wanted ? ": declares" : ": not for these archs: declares");
	add_declared(&line, a, SIZE_MAX);
	kp_trace_line(&line);
}

/* Begin a line with "WHAT: PATH: KEY TARGET". */
static void begin_line(struct kp_line *line, const char *what,
		       const struct kp_lookup_file *f, const char *key,
		       const char *target)
{
	line->used = 0;
	kp_line_add(line, "%s: ", what);
	kp_line_add_name(line, f->path);
	kp_line_add(line, ": ");
	kp_line_add_name(line, key);
	kp_line_add(line, " ");
	kp_line_add_name(line, target);
}

/* F declares TARGET, but has no entry for it; REFUSAL, unless NULL, says why. */
static void kp_lookup_trace_lacks(const struct kp_lookup *l,
				  const struct kp_lookup_file *f, const char *key,
				  const char *target, const char *refusal)
{
	struct kp_line line;

	if (!l->trace)
		return;
	begin_line(&line, "passed over", f, key, target);
	if (refusal)
		kp_line_add(&line, ": refused: %s", refusal);
	else
		kp_line_add(&line, ": declared, but without that key");
	kp_trace_line(&line);
}

/* F has an entry, but it cannot be decoded. */
static void kp_lookup_trace_damaged(const struct kp_lookup *l,
				    const struct kp_lookup_file *f, const char *key,
				    const char *target, const struct kpackx_error *why)
{
	struct kp_line line;

	if (!l->trace)
		return;
	begin_line(&line,
		   l->strict ? "damaged, final by ROCM_KPACK_STRICT" : "passed over", f,
		   key, target);
	kp_line_add(&line, ": %s: %s", kpackx_error_name(why->code), why->text);
	kp_trace_line(&line);
}

/* The entry of F was decoded, and has SIZE bytes. */
static void kp_lookup_trace_chosen(const struct kp_lookup *l,
				   const struct kp_lookup_file *f, const char *key,
				   const char *target, size_t size)
{
	struct kp_line line;

	if (!l->trace)
		return;
	begin_line(&line, "chosen", f, key, target);
	kp_line_add(&line, ": %zu bytes", size);
	kp_trace_line(&line);
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
	struct kpackx_error reason = {0};
	bool refused = kp_trusted_file(&path, &reason) != KPACK_SUCCESS;
	kpack_error_t err = KPACK_SUCCESS;

	if (tfind(path, &l->paths, cmp_path)) {
		kp_trace_name(l->trace, "candidate", path, "named before");
		goto drop;
	}
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
	kp_trace_name(l->trace, "candidate", path, NULL);
	/* a file that is not trusted now is not opened later, even if it was replaced */
	l->files[l->n_files++] =
		(struct kp_lookup_file){.path = path, .tried = refused, .why = reason};
	return KPACK_SUCCESS;
drop:
	free(path);
	return err;
}

/* Add a directory without archives as a candidate, so that the message lists it. */
static kpack_error_t add_empty(struct kp_lookup *l, const char *dir,
			       struct kpackx_error *why)
{
	size_t before = l->n_files;
	struct kp_lookup_file *f;
	char *path = strdup(dir);

	if (!path)
		return kp_fail_memory(why, strlen(dir), "a path");
	KP_TRY(kp_lookup_add(l, path, why));
	if (l->n_files == before)
		return KPACK_SUCCESS;
	f = &l->files[before];
	f->tried = true;
	kp_fail(&f->why, KPACK_ERROR_ARCHIVE_NOT_FOUND, "a directory without *.kpack");
	kp_trace_name(l->trace, "passed over", dir, f->why.text);
	return KPACK_SUCCESS;
}

/* Add each path until one fails.  Takes ownership of PATHS. */
static kpack_error_t add_all(struct kp_lookup *l, char **paths, size_t n,
			     struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < n; i++) {
		if (err)
			free(paths[i]);
		else
			err = kp_lookup_add(l, paths[i], why);
	}
	free(paths);
	return err;
}

/*
 * Append a place to the candidates: a file, or all archives of a directory
 * (kp_archives_find).  The directory is listed during this call; one that cannot be
 * listed becomes a candidate that cannot be opened.  Errors as for kp_lookup_add.
 */
static kpack_error_t add_place(struct kp_lookup *l, const char *place,
			       struct kpackx_error *why)
{
	struct kpackx_error reason = {0};
	char **paths, *path;
	size_t n;

	switch (kp_archives_find(place, &paths, &n, &reason)) {
	case KPACK_SUCCESS:
		KP_TRY(add_all(l, paths, n, why));
		return n ? KPACK_SUCCESS : add_empty(l, place, why);
	case KPACK_ERROR_OUT_OF_MEMORY:
		return kp_fail(why, reason.code, "%s", reason.text);
	default: /* opening it reports the fault, or finds an archive opened before */
		path = strdup(place);
		return path ? kp_lookup_add(l, path, why)
			    : kp_fail_memory(why, strlen(place), "a path");
	}
}

void kp_lookup_fini(struct kp_lookup *l)
{
	tdestroy(l->paths, keep_path);
	for (size_t i = 0; i < l->n_files; i++) {
		kp_cache_put(l->files[i].held);
		free(l->files[i].path);
	}
	free(l->files);
	*l = (struct kp_lookup){0};
}

static void try_file(struct kp_lookup *l, struct kp_lookup_file *f,
		     const struct kp_lookup_want *want)
{
	if (f->tried)
		return;
	f->tried = true;
	kp_cache_get(l->cache, f->path, &f->held, &f->why);
	kp_lookup_trace_tried(l, f, want);
}

struct kp_lookup_file *kp_lookup_next(struct kp_lookup *l, struct kp_lookup_file *f,
				      const struct kp_lookup_want *want)
{
	struct kp_lookup_file **next = f ? &f->next : &l->open;

	while (!*next && l->n_tried < l->n_files) {
		struct kp_lookup_file *candidate = &l->files[l->n_tried++];

		try_file(l, candidate, want);
		if (candidate->held)
			*next = candidate;
	}
	return *next;
}

/* ---- choosing ---- */

bool kp_lookup_declares(const struct kpack_archive *a, struct kp_span target)
{
	size_t n = kp_archive_arch_count(a);

	for (size_t i = 0; i < n; i++)
		if (kp_span_is(target, kp_archive_arch(a, i)))
			return true;
	return false;
}

struct choice {
	struct kp_lookup *lookup;
	const struct kp_lookup_want *want;
	void **data; /* the results */
	size_t *size;
	bool any_arch; /* an archive declares a target */
	bool found;
	struct kpackx_error damage;  /* the first one; code 0: none */
	struct kpackx_error refusal; /* the first one; code 0: none */
};

enum answer { ABSENT, DAMAGED, FOUND };

static enum answer decode_entry(struct choice *c, const struct kp_lookup_file *f,
				size_t entry, const char *target)
{
	char path[KP_SHOWN_MAX], key[KP_SHOWN_MAX], arch[KP_SHOWN_MAX];
	struct kpackx_error why = {0};
	kpack_error_t err =
		kp_call_decode(kp_cached_archive(f->held), entry, c->data, c->size, &why);

	if (!err) {
		kp_lookup_trace_chosen(c->lookup, f, c->want->key, target, *c->size);
		return FOUND;
	}
	kp_lookup_trace_damaged(c->lookup, f, c->want->key, target, &why);
	if (!c->damage.code) {
		c->damage = why;
		kp_fail_prefix(&c->damage, err, "%s: %s %s", kp_shown(f->path, path),
			       kp_shown(c->want->key, key), kp_shown(target, arch));
	}
	return DAMAGED;
}

/* Note that F lacks the entry, or refused it when it was opened. */
static void note_absent(struct choice *c, const struct kp_lookup_file *f,
			const char *target)
{
	const char *refusal =
		kp_archive_refusal(kp_cached_archive(f->held), kp_span_str(c->want->key),
				   kp_span_str(target));
	char path[KP_SHOWN_MAX];

	kp_lookup_trace_lacks(c->lookup, f, c->want->key, target, refusal);
	if (refusal && !c->refusal.code)
		kp_fail(&c->refusal, KPACK_ERROR_KERNEL_NOT_FOUND, "%s: refused: %s",
			kp_shown(f->path, path), refusal);
}

static enum answer ask_archive(struct choice *c, struct kp_lookup_file *f,
			       struct kp_span target)
{
	const char *key = c->want->key, *arch = (const char *)target.data;
	const struct kpack_archive *a = kp_cached_archive(f->held);
	size_t entry;

	if (!kp_lookup_declares(a, target))
		return ABSENT;
	c->any_arch = true;
	if (kp_archive_find_kernel(a, kp_span_str(key), target, &entry))
		return decode_entry(c, f, entry, arch);
	note_absent(c, f, arch);
	return ABSENT;
}

static bool choose_archive(struct kp_span target, void *arg)
{
	struct choice *c = arg;
	struct kp_lookup_file *f = NULL;

	while ((f = kp_lookup_next(c->lookup, f, c->want))) {
		enum answer answer = ask_archive(c, f, target);

		c->found = answer == FOUND;
		if (c->found || (answer == DAMAGED && c->lookup->strict))
			return false;
	}
	return true;
}

/*
 * An archive that could not be opened for lack of memory may have the object: report
 * that.
 */
static void note_starved(struct choice *c)
{
	char path[KP_SHOWN_MAX];

	for (size_t i = 0; i < c->lookup->n_files && !c->damage.code; i++) {
		const struct kp_lookup_file *f = &c->lookup->files[i];

		if (f->why.code == KPACK_ERROR_OUT_OF_MEMORY)
			kp_fail(&c->damage, f->why.code, "%s: %s",
				kp_shown(f->path, path), f->why.text);
	}
}

/* Return the error code when no archive has the key. */
static kpack_error_t outcome(const struct choice *c)
{
	if (c->any_arch)
		return KPACK_ERROR_KERNEL_NOT_FOUND;
	/* a list that names no arch at all has not opened anything yet */
	return kp_lookup_next(c->lookup, NULL, c->want) ? KPACK_ERROR_ARCH_NOT_FOUND
							: KPACK_ERROR_ARCHIVE_NOT_FOUND;
}

kpack_error_t kp_lookup_load(struct kp_lookup *l, const struct kp_lookup_want *want,
			     void **data, size_t *size, struct kpackx_error *why)
{
	struct choice c = {.lookup = l, .want = want, .data = data, .size = size};
	const struct kpackx_error *fault;

	for (size_t i = 0; i < want->n_archs && !c.found; i++)
		if (want->archs[i])
			kp_search_targets(kp_span_str(want->archs[i]), choose_archive,
					  &c);
	if (c.found)
		return KPACK_SUCCESS;
	note_starved(&c);
	fault = c.damage.code ? &c.damage : &c.refusal;
	if (!fault->code)
		return kp_lookup_fail(l, want, outcome(&c), why);
	if (why)
		*why = *fault;
	return fault->code;
}

static kpack_error_t add_list(struct kp_lookup *l, const char *name,
			      const struct kp_path_list *list, struct kpackx_error *why)
{
	kpack_error_t err;
	size_t at = 0;
	char *path;

	while (!(err = kp_path_list_next(list, &at, &path, why)) && path) {
		kp_trace_name(l->trace, name, path, NULL);
		err = add_place(l, path, why);
		free(path);
		if (err)
			break;
	}
	return err;
}

/* A marker's search path, which is resolved for each target. */
struct pattern {
	struct kp_lookup *lookup;
	struct kp_search_memo *memo;
	const char *text;
	const char *binary;
	struct kpackx_error *why;
	kpack_error_t err;
};

static bool add_target(struct kp_span target, void *arg)
{
	struct pattern *p = arg;
	char *path;

	p->err = kp_search_resolve(p->text, target, p->binary, p->memo, &path, p->why);
	if (p->err == KPACK_ERROR_INVALID_ARGUMENT) {
		/* too long for any file */
		kp_trace_name(p->lookup->trace, "passed over", p->text, p->why->text);
		p->err = KPACK_SUCCESS;
	} else if (p->err == KPACK_SUCCESS) {
		p->err = kp_lookup_add(p->lookup, path, p->why);
	}
	return p->err == KPACK_SUCCESS;
}

static kpack_error_t add_pattern(struct pattern *p, const struct kp_lookup_want *want)
{
	p->err = KPACK_SUCCESS;
	if (!kp_search_has_arch(p->text)) {
		add_target((struct kp_span){0}, p);
		return p->err;
	}
	for (size_t i = 0; i < want->n_archs && !p->err; i++)
		if (want->archs[i])
			kp_search_targets(kp_span_str(want->archs[i]), add_target, p);
	return p->err;
}

static kpack_error_t add_patterns(struct kp_lookup *l, const struct kp_marker *m,
				  const char *binary, const struct kp_lookup_want *want,
				  struct kpackx_error *why)
{
	struct kp_search_memo memo = {0};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < m->n_search_paths && !err; i++) {
		struct pattern p = {.lookup = l,
				    .memo = &memo,
				    .text = m->search_paths[i],
				    .binary = binary,
				    .why = why};

		kp_trace_name(l->trace, "search path", p.text, NULL);
		err = add_pattern(&p, want);
	}
	kp_search_memo_fini(&memo);
	return err;
}

static void trace_replaced(const struct kp_lookup *l, const struct kp_marker *m)
{
	for (size_t i = 0; i < m->n_search_paths; i++)
		kp_trace_name(l->trace, "search path", m->search_paths[i],
			      "replaced by ROCM_KPACK_PATH");
}

kpack_error_t kp_candidates_add(const struct kp_environment *env,
				const struct kp_marker *m, const char *binary,
				const struct kp_lookup_want *want, struct kp_lookup *l,
				struct kpackx_error *why)
{
	if (env->instead.size) {
		trace_replaced(l, m);
		return add_list(l, "ROCM_KPACK_PATH", &env->instead, why);
	}
	KP_TRY(add_list(l, "ROCM_KPACK_PATH_PREFIX", &env->before, why));
	return add_patterns(l, m, binary, want, why);
}
