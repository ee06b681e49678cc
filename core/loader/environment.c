/* SPDX-License-Identifier: MIT */
#include "environment.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_on(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && *value != '0';
}

/* Split at colons into members, which may be empty; an escaped colon, "\:", is none. */
static void split_members(struct kp_path_list *list, const char *from)
{
	char *to = list->text;
	bool any = false;

	for (; *from; from++) {
		bool escaped = from[0] == '\\' && from[1] == ':';

		from += escaped;
		*to++ = escaped || *from != ':' ? *from : '\0';
		any |= to[-1] != '\0';
	}
	*to++ = '\0';
	list->size = any ? (size_t)(to - list->text) : 0;
}

static kpack_error_t read_paths(struct kp_path_list *list, const char *name,
				struct kpackx_error *why)
{
	const char *value = secure_getenv(name);

	if (!value)
		return KPACK_SUCCESS;
	list->text = malloc(strlen(value) + 1);
	if (!list->text)
		return kp_fail_memory(why, strlen(value), name);
	split_members(list, value);
	return KPACK_SUCCESS;
}

kpack_error_t kp_environment_read(struct kp_environment *out, struct kpackx_error *why)
{
	struct kp_environment e = {
		.disabled = is_on("ROCM_KPACK_DISABLE"),
		.strict = is_on("ROCM_KPACK_STRICT"),
		.trace = is_on("ROCM_KPACK_DEBUG"),
	};
	kpack_error_t err = read_paths(&e.instead, "ROCM_KPACK_PATH", why);

	if (!err)
		err = read_paths(&e.before, "ROCM_KPACK_PATH_PREFIX", why);
	if (err)
		kp_environment_fini(&e);
	else
		*out = e;
	return err;
}

void kp_environment_fini(struct kp_environment *e)
{
	free(e->instead.text);
	free(e->before.text);
	*e = (struct kp_environment){0};
}

/* How many members one path can be: a target ID has two colons, a directory may have more. */
enum { JOINED_MAX = 8 };

kpack_error_t kp_path_list_next(const struct kp_path_list *list, size_t *at, char **out,
				struct kpackx_error *why)
{
	size_t ends[JOINED_MAX]; /* of the members, behind their zeros */
	size_t most = 0, n = 0, end;
	char *path;

	*out = NULL;
	while (*at < list->size && !list->text[*at])
		++*at;
	if (*at >= list->size)
		return KPACK_SUCCESS;
	for (end = *at; most < JOINED_MAX && end < list->size; most++)
		ends[most] = end += strlen(list->text + end) + 1;
	path = malloc(end - *at);
	if (!path)
		return kp_fail_memory(why, end - *at, "a path");
	memcpy(path, list->text + *at, end - *at);
	/* names of archives have colons before features: put back what was split */
	while (access(path, F_OK) < 0 && ++n < most)
		path[ends[n - 1] - *at - 1] = ':';
	if (n == most) { /* no such file, however many are joined */
		n = 0;
		path[ends[0] - *at - 1] = '\0';
	}
	*at = ends[n];
	*out = path;
	return KPACK_SUCCESS;
}
