/* SPDX-License-Identifier: MIT */
#include "search_path.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/base/bounds.h"

#define TRIPLE "amdgcn-amd-amdhsa--"

/* Each component has a byte and a slash, except the last. */
enum { COMPONENTS_MAX = KP_NAME_MAX / 2 + 1 };

bool kp_search_has_arch(const char *pattern)
{
	return strstr(pattern, KP_SEARCH_ARCH) != NULL;
}

/* ---- canonical paths ---- */

/* The real path of PATH; NULL and errno. */
static char *real_path(const struct kp_search_memo *memo, const char *path)
{
	return memo->find ? memo->find(path, memo->arg) : realpath(path, NULL);
}

/* Whether PATH exists. */
static bool path_exists(const struct kp_search_memo *memo, const char *path)
{
	struct stat st;
	char *real;

	if (!memo->find)
		return stat(path, &st) == 0;
	real = memo->find(path, memo->arg);
	free(real);
	return real != NULL;
}

/* Whether the first END bytes of PATH are the path of an existing file. */
static bool exists_until(const struct kp_search_memo *memo, char *path, size_t end)
{
	char saved = path[end];
	bool there;

	path[end] = '\0';
	there = path_exists(memo, path);
	path[end] = saved;
	return there;
}

/* Find where each component ends; returns the number of components. */
static size_t split_path(const char *path, uint16_t ends[COMPONENTS_MAX])
{
	size_t n = 0;

	for (size_t at = 0; path[at]; n++) {
		at += strspn(path + at, "/");
		at += strcspn(path + at, "/");
		ends[n] = (uint16_t)at;
	}
	return n;
}

/*
 * Bytes of the leading components that exist for the kernel.  A binary search, because
 * every check of a path makes the kernel walk all components of the path.
 */
static size_t existing_size(const struct kp_search_memo *memo, char *path)
{
	uint16_t ends[COMPONENTS_MAX];
	size_t good = 0, bad = split_path(path, ends);

	while (good < bad) {
		size_t middle = (good + bad) / 2;

		if (exists_until(memo, path, ends[middle]))
			good = middle + 1;
		else
			bad = middle;
	}
	return good ? ends[good - 1] : 0;
}

/*
 * Remove the last component from the path of *SIZE bytes; false: ".." must be appended.
 */
static bool step_up(const char *path, size_t *size)
{
	size_t at = *size;

	if (at == 1 && path[0] == '/')
		return true;
	while (at && path[at - 1] != '/')
		at--;
	if (*size == 0 || strncmp(path + at, "..", *size - at) == 0)
		return false;
	*size = at > 1 ? at - 1 : at;
	return true;
}

static void append_component(char *path, size_t *size, const char *name, size_t n)
{
	if (*size && path[*size - 1] != '/')
		path[(*size)++] = '/';
	memcpy(path + *size, name, n);
	*size += n;
}

/* Append the components of REST to PATH, which has room for them. */
static void append_normal(char *path, const char *rest)
{
	size_t size = strlen(path);

	for (rest += strspn(rest, "/"); *rest; rest += strspn(rest, "/")) {
		size_t n = strcspn(rest, "/");
		bool up = n == 2 && memcmp(rest, "..", 2) == 0;

		if (!(n == 1 && *rest == '.') && !(up && step_up(path, &size)))
			append_component(path, &size, rest, n);
		rest += n;
	}
	if (size == 0)
		path[size++] = '.';
	path[size] = '\0';
}

/* Bytes of the path without its last component. */
static size_t parent_size(const char *path, size_t size)
{
	while (size && path[size - 1] == '/')
		size--;
	while (size && path[size - 1] != '/')
		size--;
	return size;
}

static char *real_until(const struct kp_search_memo *memo, char *path, size_t end)
{
	char saved = path[end], *real;

	path[end] = '\0';
	real = real_path(memo, path);
	path[end] = saved;
	return real;
}

/*
 * The real path of the first *SIZE bytes, or of as many components as still exist: files
 * may have been removed since the last check.
 */
static char *real_start(const struct kp_search_memo *memo, char *path, size_t *size)
{
	char *real;

	for (; *size; *size = parent_size(path, *size)) {
		real = real_until(memo, path, *size);
		if (real || errno == ENOMEM)
			return real;
	}
	return strdup(path[0] == '/' ? "/" : "");
}

static char *weakly_canonical(const struct kp_search_memo *memo, char *path)
{
	char *start = real_path(memo, path), *out;
	size_t used;

	if (start || errno == ENOMEM)
		return start;
	used = existing_size(memo, path);
	errno = 0;
	start = real_start(memo, path, &used);
	if (!start)
		return NULL;
	out = realloc(start, strlen(start) + strlen(path + used) + 2);
	if (!out) {
		free(start);
		return NULL;
	}
	append_normal(out, path + used);
	return out;
}

/* ---- one directory for many files ---- */

void kp_search_memo_fini(struct kp_search_memo *memo)
{
	free(memo->dir);
	free(memo->real);
	memo->dir = memo->real = NULL;
}

/* The real path of DIR, borrowed from the memo. */
static const char *real_dir(struct kp_search_memo *memo, const char *dir)
{
	if (memo->dir && strcmp(memo->dir, dir) == 0)
		return memo->real;
	kp_search_memo_fini(memo);
	memo->dir = strdup(dir);
	if (memo->dir)
		memo->real = weakly_canonical(memo, memo->dir);
	if (!memo->real)
		kp_search_memo_fini(memo);
	return memo->real;
}

/* PATH with its directory replaced by the directory's real path. */
static char *in_real_dir(struct kp_search_memo *memo, char *path, char *slash)
{
	const char *dir, *name = slash + 1;
	char *out;
	size_t size;

	*slash = '\0';
	dir = real_dir(memo, path);
	out = dir ? malloc(strlen(dir) + strlen(name) + 2) : NULL;
	if (!out)
		return NULL;
	size = strcmp(dir, ".") == 0 ? 0 : strlen(dir);
	memcpy(out, dir, size);
	append_component(out, &size, name, strlen(name));
	out[size] = '\0';
	return out;
}

static char *resolve_path(struct kp_search_memo *memo, char *path)
{
	struct kp_search_memo none = {0};
	char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *out;

	if (!slash || slash == path || !*name || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return weakly_canonical(memo ? memo : &none, path);
	out = in_real_dir(memo ? memo : &none, path, slash);
	kp_search_memo_fini(&none);
	return out;
}

/* ---- patterns ---- */

/* Bytes of BINARY's directory with its slash; 0: the current directory. */
static size_t directory_size(const char *binary)
{
	const char *slash = strrchr(binary, '/');

	return slash ? (size_t)(slash - binary) + 1 : 0;
}

/* Join BINARY's directory, unless PATTERN is absolute, and PATTERN with ARCH inserted. */
static kpack_error_t join_pattern(const char *pattern, struct kp_span arch,
				  const char *binary, char **out,
				  struct kpackx_error *why)
{
	const char *place = strstr(pattern, KP_SEARCH_ARCH);
	size_t dir = pattern[0] == '/' ? 0 : directory_size(binary);
	size_t head = place ? (size_t)(place - pattern) : strlen(pattern);
	const char *tail = place ? place + strlen(KP_SEARCH_ARCH) : "";
	size_t middle = place ? arch.size : 0;
	size_t rest = strlen(tail);
	char *path;

	if (dir > KP_NAME_MAX || head > KP_NAME_MAX - dir || rest > KP_NAME_MAX ||
	    middle > KP_NAME_MAX || head + dir + middle + rest > KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "search path: more than %d bytes", KP_NAME_MAX);
	path = malloc(dir + head + middle + rest + 1);
	if (!path)
		return kp_fail_memory(why, dir + head + middle + rest, "a search path");
	memcpy(path, binary, dir);
	memcpy(path + dir, pattern, head);
	if (middle)
		memcpy(path + dir + head, arch.data, middle);
	memcpy(path + dir + head + middle, tail, rest + 1);
	*out = path;
	return KPACK_SUCCESS;
}

kpack_error_t kp_search_resolve(const char *pattern, struct kp_span arch,
				const char *binary, struct kp_search_memo *memo,
				char **out, struct kpackx_error *why)
{
	char *joined = NULL, *path;

	KP_TRY(join_pattern(pattern, arch, binary, &joined, why));
	if (pattern[0] == '/') {
		*out = joined;
		return KPACK_SUCCESS;
	}
	path = resolve_path(memo, joined);
	free(joined);
	if (!path)
		return kp_fail_memory(why, KP_NAME_MAX, "a search path");
	*out = path;
	return KPACK_SUCCESS;
}

/* ---- targets ---- */

struct target {
	struct kp_span processor;
	struct kp_span features[KP_FEATURES_MAX];
	unsigned n_features;
};

/* Remove and return the part of REST before the next colon. */
static struct kp_span next_part(struct kp_span *rest)
{
	const uint8_t *colon = rest->size ? memchr(rest->data, ':', rest->size) : NULL;
	size_t n = colon ? (size_t)(colon - rest->data) : rest->size;
	struct kp_span part = {rest->data, n};

	if (colon)
		n++;
	*rest = (struct kp_span){rest->data + n, rest->size - n};
	return part;
}

static struct target split_target(struct kp_span arch)
{
	struct target t = {0};

	if (kp_span_starts(arch, TRIPLE, strlen(TRIPLE)))
		kp_span_sub(arch, strlen(TRIPLE), arch.size - strlen(TRIPLE), &arch);
	t.processor = next_part(&arch);
	while (arch.size && t.n_features < KP_FEATURES_MAX) {
		struct kp_span feature = next_part(&arch);

		if (feature.size)
			t.features[t.n_features++] = feature;
	}
	return t;
}

/* The target with the features in SUBSET, whose highest bit is the first feature. */
static struct kp_span format_target(const struct target *t, unsigned subset,
				    char out[KP_NAME_MAX + 1])
{
	size_t n = t->processor.size;

	memcpy(out, t->processor.data, n);
	for (unsigned i = 0; i < t->n_features; i++) {
		if (!(subset & 1u << (t->n_features - 1 - i)))
			continue;
		out[n++] = ':';
		memcpy(out + n, t->features[i].data, t->features[i].size);
		n += t->features[i].size;
	}
	out[n] = '\0';
	return (struct kp_span){(uint8_t *)out, n};
}

void kp_search_targets(struct kp_span arch, bool (*fn)(struct kp_span target, void *arg),
		       void *arg)
{
	char text[KP_NAME_MAX + 1];
	struct target t;

	if (arch.size == 0 || arch.size > KP_NAME_MAX)
		return;
	t = split_target(arch);
	if (t.processor.size == 0)
		return;
	for (unsigned subset = 1u << t.n_features; subset-- > 0;)
		if (!fn(format_target(&t, subset, text), arg))
			return;
}
