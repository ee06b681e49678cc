/* SPDX-License-Identifier: MIT */
#include "lookup.h"
#include <search.h>
#include <stdlib.h>
#include "api_call.h"
#include "core/base/bounds.h"
#include "lookup_trace.h"
#include "core/base/alloc.h"
#include "core/elf/search_path.h"
#include "trace.h"
#include "trusted.h"
#include "core/archive/find.h"

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

kpack_error_t kp_lookup_add_place(struct kp_lookup *l, const char *place,
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
