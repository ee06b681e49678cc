/* SPDX-License-Identifier: MIT */
#include "environment.h"
#include <stdlib.h>
#include <string.h>

static bool is_on(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && *value != '0';
}

/* Split at colons; an escaped colon, "\:", is part of a path. */
static void split_paths(struct kp_path_list *list, const char *from)
{
	char *to = list->text;

	for (; *from; from++) {
		bool escaped = from[0] == '\\' && from[1] == ':';

		from += escaped;
		if (escaped || *from != ':')
			*to++ = *from;
		else if (to != list->text && to[-1] != '\0')
			*to++ = '\0';
	}
	if (to != list->text && to[-1] != '\0')
		*to++ = '\0';
	list->size = (size_t)(to - list->text);
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
	split_paths(list, value);
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

const char *kp_path_list_next(const struct kp_path_list *list, const char *path)
{
	size_t at = path ? (size_t)(path - list->text) + strlen(path) + 1 : 0;

	return at < list->size ? list->text + at : NULL;
}
