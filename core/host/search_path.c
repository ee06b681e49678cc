/* SPDX-License-Identifier: MIT */
/*
 * A marker's search path becomes the path of an archive: insert the architecture, put the binary's
 * directory in front, and resolve what exists of it as the kernel does.  And the targets that one
 * agent can run, whose archives are asked for one after the other.
 */
#include "search_path.h"
#include <errno.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/text.h"

#define TRIPLE "amdgcn-amd-amdhsa--"

bool kp_search_has_arch(const char *pattern)
{
	return strstr(pattern, KP_SEARCH_ARCH) != NULL;
}

/* ---- canonical paths ---- */

/*
 * Append the components of REST to PATH, which has room for them, by their spelling: ".." removes
 * the component before it, if that is none itself.
 */
static void append_components(char *path, const char *rest)
{
	size_t size = strlen(path);

	for (rest += strspn(rest, "/"); *rest; rest += strspn(rest, "/")) {
		size_t n = strcspn(rest, "/"), last = size;
		bool here = n == 1 && *rest == '.';
		bool up = n == 2 && memcmp(rest, "..", 2) == 0;

		while (last && path[last - 1] != '/')
			last--;
		if (up && size == 1 && path[0] == '/') {
			/* nothing is above the root */
		} else if (up && size && strncmp(path + last, "..", size - last) != 0) {
			size = last > 1 ? last - 1 : last;
		} else if (!here) {
			if (size && path[size - 1] != '/')
				path[size++] = '/';
			memcpy(path + size, rest, n);
			size += n;
		}
		rest += n;
	}
	if (size == 0)
		path[size++] = '.';
	path[size] = '\0';
}

/*
 * Return the real path of as many leading components of PATH as have one, with the others behind
 * it.  NULL: no memory.
 */
static char *weakly_canonical(const struct kp_search_memo *memo, char *path)
{
	size_t size = strlen(path), used = size;
	char *real = NULL, *out;

	while (used) {
		char saved = path[used];
		size_t tried = used;

		path[used] = '\0';
		errno = 0;
		real = memo->find ? memo->find(path, memo->arg) : realpath(path, NULL);
		path[used] = saved;
		if ((!real && errno == ENOMEM) || (real && used == size))
			return real;
		if (real)
			break;
		/* without its slashes, or else without its last component */
		while (used > 1 && path[used - 1] == '/')
			used--;
		if (used != tried)
			continue;
		while (used && path[used - 1] != '/')
			used--;
		while (used > 1 && path[used - 1] == '/')
			used--;
		used = used == tried ? 0 : used;
	}
	if (!real)
		real = strdup(path[0] == '/' ? "/" : "");
	out = real ? realloc(real, strlen(real) + size - used + 2) : NULL;
	if (!out) {
		free(real);
		return NULL;
	}
	append_components(out, path + used);
	return out;
}

void kp_search_memo_fini(struct kp_search_memo *memo)
{
	free(memo->dir);
	free(memo->real);
	memo->dir = memo->real = NULL;
}

/* Resolve PATH, but not its last component if that is a name. */
static char *resolve_path(struct kp_search_memo *memo, char *path)
{
	char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *out;

	if (!slash || slash == path || !*name || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0)
		return weakly_canonical(memo, path);
	*slash = '\0';
	if (!memo->dir || strcmp(memo->dir, path) != 0) {
		kp_search_memo_fini(memo);
		memo->dir = strdup(path);
		memo->real = memo->dir ? weakly_canonical(memo, memo->dir) : NULL;
		if (!memo->real) {
			kp_search_memo_fini(memo);
			return NULL;
		}
	}
	out = malloc(strlen(memo->real) + strlen(name) + 2);
	if (!out)
		return NULL;
	strcpy(out, strcmp(memo->real, ".") == 0 ? "" : memo->real);
	if (*out && out[strlen(out) - 1] != '/')
		strcat(out, "/");
	return strcat(out, name);
}

kpack_error_t kp_search_resolve(const char *pattern, struct kp_span arch,
				const char *binary, struct kp_search_memo *memo,
				char **out, struct kpackx_error *why)
{
	const char *slash = strrchr(binary, '/');
	const char *place = strstr(pattern, KP_SEARCH_ARCH);
	size_t dir = pattern[0] == '/' || !slash ? 0 : (size_t)(slash - binary) + 1;
	size_t head = place ? (size_t)(place - pattern) : strlen(pattern);
	const char *tail = place ? place + strlen(KP_SEARCH_ARCH) : "";
	struct kp_search_memo none = {0};
	KP_AUTO_FREE char *joined = NULL;
	struct kp_compose c = {0};

	if (!place)
		arch.size = 0;
	if (dir + head + arch.size + strlen(tail) > KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "search path: more than %d bytes", KP_NAME_MAX);
	kp_compose_span(&c, (struct kp_span){(const uint8_t *)binary, dir});
	kp_compose_span(&c, (struct kp_span){(const uint8_t *)pattern, head});
	kp_compose_span(&c, arch);
	kp_compose_str(&c, tail);
	KP_TRY(kp_compose_take(&c, &joined, why));
	if (pattern[0] == '/') {
		*out = joined;
		joined = NULL;
		return KPACK_SUCCESS;
	}
	*out = resolve_path(memo ? memo : &none, joined);
	kp_search_memo_fini(&none);
	return *out ? KPACK_SUCCESS : kp_fail_memory(why, KP_NAME_MAX, "a search path");
}

/* ---- targets ---- */

void kp_search_targets(struct kp_span arch, bool (*fn)(struct kp_span target, void *arg),
		       void *arg)
{
	struct kp_span parts[1 + KP_FEATURES_MAX]; /* the processor, and features */
	char text[KP_NAME_MAX + 1];
	unsigned n = 0;

	if (arch.size == 0 || arch.size > KP_NAME_MAX)
		return;
	if (kp_span_starts(arch, TRIPLE, strlen(TRIPLE)))
		arch = kp_span_tail(arch, strlen(TRIPLE));
	for (;;) {
		const uint8_t *colon =
			arch.size ? memchr(arch.data, ':', arch.size) : NULL;

		parts[n] = kp_span_head(arch,
					colon ? (size_t)(colon - arch.data) : arch.size);
		if (n == 0 && parts[0].size == 0)
			return;
		n += parts[n].size != 0;
		if (!colon || n == KP_COUNT(parts))
			break;
		arch = kp_span_tail(arch, (size_t)(colon - arch.data) + 1);
	}
	/* the highest bit is the first feature */
	for (unsigned subset = 1u << (n - 1); subset-- > 0;) {
		size_t size = 0;

		for (unsigned i = 0; i < n; i++) {
			if (i && !(subset & 1u << (n - 1 - i)))
				continue;
			if (i)
				text[size++] = ':';
			memcpy(text + size, parts[i].data, parts[i].size);
			size += parts[i].size;
		}
		text[size] = '\0';
		if (!fn((struct kp_span){(uint8_t *)text, size}, arg))
			return;
	}
}
