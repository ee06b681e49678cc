/* SPDX-License-Identifier: MIT */
/*
 * A look-up tries candidate archives in order: those of the environment, then those that the
 * marker's search path names for each wanted target.  Each is opened when it is its turn.  For
 * each target, best first, the archives that are open are asked; the first object that decodes is
 * the answer.  Why every candidate failed is told at the end, and with ROCM_KPACK_DEBUG on the way.
 */
#include "lookup.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/archive/entry.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/span.h"
#include "core/base/text.h"
#include "core/host/search_path.h"
#include "trace.h"

/* Bytes of a path or a key in an error message, which has 240 bytes in all. */
#define KP_SHOWN_MAX 80

/* Maximum number of architectures of an archive, and of a request, in a message. */
enum { DECLARED_MAX = 8, WANTED_MAX = 4 };

/* How many members one path can be: a target ID has two colons, a directory may have more. */
enum { JOINED_MAX = 8 };

/* ---- files that may be loaded ---- */

bool kp_is_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}

/*
 * Check PART, a directory or the file.  Others may write to a sticky directory that is AROUND the
 * file's own: what root has there stays root's.
 */
static kpack_error_t check_one(const char *part, bool around, struct kpackx_error *why)
{
	const char *fault = NULL;
	struct stat st;

	if (lstat(part, &st) != 0)
		return kp_fail_errno(why, errno, "cannot open");
	/* trusted are root and the user that the program became, not the one that started it */
	if (S_ISLNK(st.st_mode))
		fault = "a symbolic link";
	else if (st.st_uid != 0 && (st.st_uid != geteuid() || st.st_uid == getuid()))
		fault = "another user's";
	else if (around && S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX))
		fault = NULL;
	/* the group's bit is also the mask of an access control list */
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		fault = "others may write to it";
	return fault ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "not trusted in a program with more rights than its "
			       "user: %s: %s",
			       part, fault)
		     : KPACK_SUCCESS;
}

/*
 * Replace *PATH by its canonical form, and check the root, then each directory of that, then all of
 * it.  AROUND: the last directory is not the one that matters.
 */
static kpack_error_t check_path(char **path, bool around, struct kpackx_error *why)
{
	char *real = realpath(*path, NULL), *last;

	if (!real)
		return kp_fail_errno(why, errno, "cannot open");
	free(*path);
	*path = real;
	/* nobody can exchange what was checked */
	last = strrchr(real, '/');
	KP_TRY(check_one("/", around || last != real, why));
	for (char *p = strchr(real + 1, '/'); p; p = strchr(p + 1, '/')) {
		kpack_error_t err;

		*p = '\0';
		err = check_one(real, around || p != last, why);
		*p = '/';
		KP_TRY(err);
	}
	return check_one(real, false, why);
}

kpack_error_t kp_trusted_file(char **path, struct kpackx_error *why)
{
	return kp_is_secure() ? check_path(path, false, why) : KPACK_SUCCESS;
}

kpack_error_t kp_trusted_binary(const char *binary, char **out, struct kpackx_error *why)
{
	const char *slash = strrchr(binary, '/'), *name = slash ? slash + 1 : binary;
	kpack_error_t err;
	char *dir;

	*out = NULL;
	if (!kp_is_secure()) {
		*out = strdup(binary);
		return *out ? KPACK_SUCCESS
			    : kp_fail_memory(why, strlen(binary), "a path");
	}
	dir = slash ? strndup(binary, (size_t)(slash - binary) + 1) : strdup(".");
	if (!dir)
		return kp_fail_memory(why, strlen(binary), "a path");
	err = check_path(&dir, true, why);
	if (!err && asprintf(out, "%s/%s", dir, name) < 0) {
		*out = NULL;
		err = kp_fail_memory(why, strlen(binary), "a path");
	}
	free(dir);
	return err;
}

/* ---- the environment ---- */

static bool is_on(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && *value != '0';
}

/* Split at colons into members, which may be empty; an escaped colon, "\:", is none. */
static kpack_error_t read_paths(struct kp_path_list *list, const char *name,
				struct kpackx_error *why)
{
	const char *from = secure_getenv(name);
	bool any = false;
	char *to;

	if (!from)
		return KPACK_SUCCESS;
	to = list->text = malloc(strlen(from) + 1);
	if (!to)
		return kp_fail_memory(why, strlen(from), name);
	for (; *from; from++) {
		bool escaped = from[0] == '\\' && from[1] == ':';

		from += escaped;
		*to++ = escaped || *from != ':' ? *from : '\0';
		any |= to[-1] != '\0';
	}
	*to++ = '\0';
	list->size = any ? (size_t)(to - list->text) : 0;
	return KPACK_SUCCESS;
}

kpack_error_t kp_environment_read(struct kp_environment *out, struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct kp_environment){
		.disabled = is_on("ROCM_KPACK_DISABLE"),
		.strict = is_on("ROCM_KPACK_STRICT"),
		.trace = is_on("ROCM_KPACK_DEBUG"),
	};
	err = read_paths(&out->instead, "ROCM_KPACK_PATH", why);
	if (!err)
		err = read_paths(&out->before, "ROCM_KPACK_PATH_PREFIX", why);
	if (err)
		kp_environment_fini(out);
	return err;
}

void kp_environment_fini(struct kp_environment *e)
{
	free(e->instead.text);
	free(e->before.text);
	*e = (struct kp_environment){0};
}

/* ---- the candidates ---- */

/*
 * A binary may name hundreds of archives, and each target the same ones again: a tree of the paths
 * tells in no time whether one is a candidate already.
 */
static int cmp_path(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Append a file, unless its path is a candidate already.  Takes PATH, on failure too. */
static kpack_error_t add_candidate(struct kp_lookup *l, char *path,
				   struct kpackx_error *why)
{
	struct kpackx_error reason = {0};
	bool refused = kp_trusted_file(&path, &reason) != KPACK_SUCCESS;
	kpack_error_t err = KPACK_SUCCESS;

	if (tfind(path, &l->paths, cmp_path)) {
		kp_trace_name(l->env->trace, "candidate", path, "named before");
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
	kp_trace_name(l->env->trace, "candidate", path, NULL);
	/* a file that is not trusted now is not opened later, even if it was replaced */
	l->files[l->n_files++] =
		(struct kp_lookup_file){.path = path, .tried = refused, .why = reason};
	return KPACK_SUCCESS;
drop:
	free(path);
	return err;
}

/*
 * Add the places of LIST: of each, the file, or all archives of the directory.  A place that cannot be
 * listed becomes a candidate, whose opening reports the fault, or finds an archive that was opened
 * before; and so does a directory without archives, so that the message lists it.
 */
static kpack_error_t add_places(struct kp_lookup *l, const char *name,
				const struct kp_path_list *list, struct kpackx_error *why)
{
	size_t ends[JOINED_MAX]; /* of members, behind their zeros */

	for (size_t at = 0, next; at < list->size; at = next) {
		size_t most = 0, joined = 0, n = 0, before = l->n_files;
		KP_AUTO_FREE char *place = NULL;
		struct kpackx_error reason = {0};
		kpack_error_t err, listed;
		char **paths = NULL, *copy;

		next = at + 1;
		if (!list->text[at])
			continue;
		/* A member that names no file is joined with the next ones, with the colons between
		 * them, if the whole names one: names of archives have colons before features. */
		for (next = at; most < JOINED_MAX && next < list->size; most++)
			ends[most] = next += strlen(list->text + next) + 1;
		place = malloc(next - at);
		if (!place)
			return kp_fail_memory(why, next - at, "a path");
		memcpy(place, list->text + at, next - at);
		while (access(place, F_OK) < 0 && ++joined < most)
			place[ends[joined - 1] - at - 1] = ':';
		if (joined == most) { /* no such file, however many are joined */
			joined = 0;
			place[ends[0] - at - 1] = '\0';
		}
		next = ends[joined];
		kp_trace_name(l->env->trace, name, place, NULL);

		listed = kp_archives_find(place, &paths, &n, &reason);
		if (listed == KPACK_ERROR_OUT_OF_MEMORY)
			return kp_fail(why, reason.code, "%s", reason.text);
		err = KPACK_SUCCESS;
		for (size_t i = 0; !listed && i < n; i++) {
			if (err)
				free(paths[i]);
			else
				err = add_candidate(l, paths[i], why);
		}
		if (!listed)
			free(paths);
		KP_TRY(err);
		if (!listed && n)
			continue;
		copy = strdup(place);
		if (!copy)
			return kp_fail_memory(why, strlen(place), "a path");
		KP_TRY(add_candidate(l, copy, why));
		if (!listed && l->n_files > before) {
			struct kp_lookup_file *f = &l->files[before];

			f->tried = true;
			kp_fail(&f->why, KPACK_ERROR_ARCHIVE_NOT_FOUND,
				"a directory without *.kpack");
			kp_trace_name(l->env->trace, "passed over", place, f->why.text);
		}
	}
	return KPACK_SUCCESS;
}

/* A marker's search path, which is resolved for each target. */
struct pattern {
	struct kp_lookup *lookup;
	struct kp_search_memo memo;
	const char *text, *binary;
	struct kpackx_error *why;
	kpack_error_t err;
};

static bool add_target(struct kp_span target, void *arg)
{
	struct pattern *p = arg;
	char *path;

	p->err = kp_search_resolve(p->text, target, p->binary, &p->memo, &path, p->why);
	if (p->err == KPACK_ERROR_INVALID_ARGUMENT) {
		/* too long for any file */
		kp_trace_name(p->lookup->env->trace, "passed over", p->text,
			      p->why->text);
		p->err = KPACK_SUCCESS;
	} else if (p->err == KPACK_SUCCESS) {
		p->err = add_candidate(p->lookup, path, p->why);
	}
	return p->err == KPACK_SUCCESS;
}

kpack_error_t kp_lookup_find(struct kp_lookup *l, const struct kp_marker *m,
			     const char *binary, struct kpackx_error *why)
{
	const struct kp_environment *env = l->env;
	struct pattern p = {.lookup = l, .why = why};
	kpack_error_t err;
	char *trusted;

	err = kp_trusted_binary(binary, &trusted, why);
	if (err)
		return err == KPACK_ERROR_OUT_OF_MEMORY
			       ? err
			       : kp_fail_prefix(why, KPACK_ERROR_ARCHIVE_NOT_FOUND,
						"the binary's directory");
	p.binary = trusted;
	if (env->instead.size) {
		for (size_t i = 0; i < m->n_search_paths; i++)
			kp_trace_name(env->trace, "search path", m->search_paths[i],
				      "replaced by ROCM_KPACK_PATH");
		p.err = add_places(l, "ROCM_KPACK_PATH", &env->instead, why);
	} else {
		p.err = add_places(l, "ROCM_KPACK_PATH_PREFIX", &env->before, why);
	}
	for (size_t i = 0; i < m->n_search_paths && !env->instead.size && !p.err; i++) {
		p.text = m->search_paths[i];
		kp_trace_name(env->trace, "search path", p.text, NULL);
		if (!kp_search_has_arch(p.text))
			add_target((struct kp_span){0}, &p);
		for (size_t k = 0; kp_search_has_arch(p.text) && k < l->n_archs && !p.err;
		     k++)
			if (l->archs[k])
				kp_search_targets(kp_span_str(l->archs[k]), add_target,
						  &p);
	}
	kp_search_memo_fini(&p.memo);
	free(trusted);
	return p.err;
}

static void keep_path(void *path)
{
	(void)path;
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

/* ---- what messages and trace lines show ---- */

/*
 * Format S for printing.  A long S is cut to its end, where names differ, if possible at
 * the beginning of a path component.
 */
static char *shown(const char *s, char out[KP_SHOWN_MAX])
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

/* Print "WHAT: PATH: KEY TARGET: " and what FMT gives, if lines are printed. */
static void __attribute__((format(printf, 5, 6)))
trace_entry(const struct kp_lookup *l, const char *what, const struct kp_lookup_file *f,
	    const char *target, const char *fmt, ...)
{
	struct kp_line line = {.used = 0};
	va_list args;

	if (!l->env->trace)
		return;
	kp_line_add(&line, "%s: ", what);
	kp_line_add_name(&line, f->path);
	kp_line_add(&line, ": ");
	kp_line_add_name(&line, l->key);
	kp_line_add(&line, " ");
	kp_line_add_name(&line, target);
	kp_line_add(&line, ": ");
	va_start(args, fmt);
	kp_line_add_args(&line, fmt, args);
	va_end(args);
	kp_trace_line(&line);
}

/* ---- trying ---- */

bool kp_lookup_declares(const struct kpack_archive *a, struct kp_span target)
{
	size_t n = kp_archive_arch_count(a);

	for (size_t i = 0; i < n; i++)
		if (kp_span_is(target, kp_archive_arch(a, i)))
			return true;
	return false;
}

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

static void trace_tried(const struct kp_lookup *l, const struct kp_lookup_file *f)
{
	struct kp_line line = {.used = 0};
	struct search s = {0};

	if (!f->held) {
		kp_trace_name(true, "passed over", f->path, f->why.text);
		return;
	}
	s.archive = kp_cached_archive(f->held);
	for (size_t i = 0; i < l->n_archs && !s.found; i++)
		if (l->archs[i])
			kp_search_targets(kp_span_str(l->archs[i]), look_for, &s);
	kp_line_add(&line, s.found ? "looked into: " : "passed over: ");
	kp_line_add_name(&line, f->path);
	kp_line_add(&line, s.found ? ": declares" : ": not for these archs: declares");
	add_declared(&line, s.archive, SIZE_MAX);
	kp_trace_line(&line);
}

struct kp_lookup_file *kp_lookup_next(struct kp_lookup *l, struct kp_lookup_file *f)
{
	struct kp_lookup_file **next = f ? &f->next : &l->open;

	while (!*next && l->n_tried < l->n_files) {
		struct kp_lookup_file *candidate = &l->files[l->n_tried++];

		if (!candidate->tried) {
			candidate->tried = true;
			kp_cache_get(l->cache, candidate->path, &candidate->held,
				     &candidate->why);
			if (l->env->trace)
				trace_tried(l, candidate);
		}
		if (candidate->held)
			*next = candidate;
	}
	return *next;
}

/* ---- choosing ---- */

kpack_error_t kp_decode_entry(const struct kpack_archive *archive, size_t entry,
			      void **data, size_t *size, struct kpackx_error *why)
{
	struct kp_entry_info info;
	kpack_error_t err;
	void *buf = NULL;

	KP_TRY(kp_entry_check_size(archive, entry, why));
	kp_archive_entry(archive, entry, &info);
	if (info.size <= KP_OBJECT_MAX) /* larger ones are chunked: to be read in parts */
		buf = kp_large_alloc((size_t)info.size);
	if (!buf)
		return kp_fail_memory(why, info.size, "a code object");
	err = kp_entry_read(archive, entry, buf, why);
	if (err) {
		free(buf);
		return err;
	}
	*data = buf;
	*size = (size_t)info.size;
	return KPACK_SUCCESS;
}

struct choice {
	struct kp_lookup *lookup;
	void **data; /* the results */
	size_t *size;
	bool any_arch; /* an archive declares a target */
	bool found;
	struct kpackx_error damage;  /* the first one; code 0: none */
	struct kpackx_error refusal; /* the first one; code 0: none */
};

/* Ask the archives for TARGET.  true: nothing was found, and the next target may be tried. */
static bool choose_archive(struct kp_span target, void *arg)
{
	struct choice *c = arg;
	struct kp_lookup *l = c->lookup;
	const char *arch = (const char *)target.data;
	char path[KP_SHOWN_MAX], key[KP_SHOWN_MAX], name[KP_SHOWN_MAX];

	for (struct kp_lookup_file *f = NULL; (f = kp_lookup_next(l, f));) {
		const struct kpack_archive *a = kp_cached_archive(f->held);
		struct kpackx_error why = {0};
		kpack_error_t err;
		size_t entry;

		if (!kp_lookup_declares(a, target))
			continue;
		c->any_arch = true;
		if (!kp_archive_find_kernel(a, kp_span_str(l->key), target, &entry)) {
			/* it lacks the entry, or refused it when it was opened */
			const char *refusal =
				kp_archive_refusal(a, kp_span_str(l->key), target);

			trace_entry(l, "passed over", f, arch, "%s%s",
				    refusal ? "refused: "
					    : "declared, but without that key",
				    refusal ? refusal : "");
			if (refusal && !c->refusal.code)
				kp_fail(&c->refusal, KPACK_ERROR_KERNEL_NOT_FOUND,
					"%s: refused: %s", shown(f->path, path), refusal);
			continue;
		}
		err = kp_decode_entry(a, entry, c->data, c->size, &why);
		if (!err) {
			trace_entry(l, "chosen", f, arch, "%zu bytes", *c->size);
			c->found = true;
			return false;
		}
		trace_entry(l,
			    l->env->strict ? "damaged, final by ROCM_KPACK_STRICT"
					   : "passed over",
			    f, arch, "%s: %s", kpackx_error_name(why.code), why.text);
		if (!c->damage.code) {
			c->damage = why;
			kp_fail_prefix(&c->damage, err, "%s: %s %s", shown(f->path, path),
				       shown(l->key, key), shown(arch, name));
		}
		if (l->env->strict)
			return false;
	}
	return true;
}

kpack_error_t kp_lookup_load(struct kp_lookup *l, void **data, size_t *size,
			     struct kpackx_error *why)
{
	struct choice c = {.lookup = l, .data = data, .size = size};
	const struct kpackx_error *fault;
	kpack_error_t code;
	enum { OPEN, FAULTY, MISSING };
	struct kp_line line = {.used = 0};
	char text[KP_SHOWN_MAX];
	const char *between = " ";

	for (size_t i = 0; i < l->n_archs && !c.found; i++)
		if (l->archs[i])
			kp_search_targets(kp_span_str(l->archs[i]), choose_archive, &c);
	if (c.found)
		return KPACK_SUCCESS;
	/* an archive that could not be opened for lack of memory may have the object */
	for (size_t i = 0; i < l->n_files && !c.damage.code; i++)
		if (l->files[i].why.code == KPACK_ERROR_OUT_OF_MEMORY)
			kp_fail(&c.damage, KPACK_ERROR_OUT_OF_MEMORY, "%s: %s",
				shown(l->files[i].path, text), l->files[i].why.text);
	fault = c.damage.code ? &c.damage : &c.refusal;
	if (fault->code) {
		if (why)
			*why = *fault;
		return fault->code;
	}

	/* The message lists the files that were tried, the most relevant first: the open ones with
	 * what they offer, those with the reason why not, the missing ones.  A list that names no
	 * arch at all has not opened anything yet. */
	code = c.any_arch                ? KPACK_ERROR_KERNEL_NOT_FOUND
	       : kp_lookup_next(l, NULL) ? KPACK_ERROR_ARCH_NOT_FOUND
					 : KPACK_ERROR_ARCHIVE_NOT_FOUND;
	if (code == KPACK_ERROR_ARCHIVE_NOT_FOUND)
		kp_line_add(&line, "no archive to look for %s in", shown(l->key, text));
	else if (code == KPACK_ERROR_ARCH_NOT_FOUND)
		kp_line_add(&line, "no archive offers");
	else
		kp_line_add(&line, "no %s for", shown(l->key, text));
	for (size_t i = 0; i < l->n_archs && i < WANTED_MAX; i++) {
		if (code == KPACK_ERROR_ARCHIVE_NOT_FOUND || !l->archs[i])
			continue;
		kp_line_add(&line, "%s%s", between, shown(l->archs[i], text));
		between = ", ";
	}
	for (int kind = OPEN; kind <= MISSING; kind++)
		for (size_t i = 0; i < l->n_files && line.used < KP_LINE_MAX; i++) {
			const struct kp_lookup_file *f = &l->files[i];
			int is = f->held                                     ? OPEN
				 : f->why.code == KPACK_ERROR_FILE_NOT_FOUND ? MISSING
									     : FAULTY;

			if (!f->tried || is != kind)
				continue;
			kp_line_add(&line, "%s%s", kind == MISSING ? "; no file " : "; ",
				    shown(f->path, text));
			if (kind == FAULTY)
				kp_line_add(&line, ": %s", f->why.text);
			if (kind != OPEN)
				continue;
			kp_line_add(&line, " offers");
			add_declared(&line, kp_cached_archive(f->held), DECLARED_MAX);
		}
	return kp_fail(why, code, "%s", line.text);
}
