/* SPDX-License-Identifier: MIT */
/* The files that TensileLibrary.yaml names: beside it, or in a GPU's directory there. */
#include <stdio.h>
#include <stdlib.h>
#include "closure_run.h"
#include "dat_file.h"
#include "memory.h"
#include "text.h"
#include "yaml_names.h"

/* "a/./b/../c" and the like, in place; false: it leaves the root. */
static bool normalise(char *path)
{
	char *to = path, *from = path;

	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && memcmp(from, "..", 2) == 0) {
			if (to == path)
				return false;
			to--;
			while (to > path && to[-1] != '/')
				to--;
		} else if (n && !(n == 1 && *from == '.')) {
			memmove(to, from, n);
			to += n;
			*to++ = '/';
		}
		from += n + (from[n] == '/');
	}
	*(to > path ? to - 1 : to) = '\0';
	return true;
}

/* Is NAME in DIR/SUB, which is DIR when SUB is ""? */
static kpack_error_t find_in(const struct closure *c, struct kp_span dir,
			     struct kp_span sub, const char *name, bool *found,
			     struct kpackx_error *why)
{
	char *path;
	size_t file;

	if (asprintf(&path, "%.*s/%.*s/%s", (int)dir.size, (const char *)dir.data,
		     (int)sub.size, (const char *)sub.data, name) < 0)
		return kp_fail_memory(why, strlen(name), "a path");
	*found = normalise(path) && file_tree_find(c->tree, kp_span_str(path), &file);
	free(path);
	return KPACK_SUCCESS;
}

/* The directories of GPUs in that of the YAML file. */
struct gpu_dirs {
	struct kp_span *items;
	size_t count, cap;
};

static kpack_error_t list_gpu_dirs(const struct closure *c, struct kp_span dir,
				   struct gpu_dirs *out, struct kpackx_error *why)
{
	size_t skip = dir.size ? dir.size + 1 : 0, i;

	if (!file_tree_has_dir(c->tree, dir, &i))
		return KPACK_SUCCESS;
	for (; i < c->tree->count; i++) {
		const char *path = c->tree->items[i].path, *sub = path + skip;
		struct kp_span name;

		if (strncmp(path, (const char *)dir.data, dir.size) != 0 ||
		    (skip && path[skip - 1] != '/'))
			break;
		name = (struct kp_span){(const uint8_t *)sub, strcspn(sub, "/")};
		if (!sub[name.size] || !kp_span_starts(name, "gfx", 3) ||
		    (out->count && kp_span_eq(out->items[out->count - 1], name)))
			continue;
		if (!kp_grow(&out->items, out->count, &out->cap, sizeof(name)))
			return kp_fail_memory(why, out->count, "directories");
		out->items[out->count++] = name;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t find_named(const struct closure *c, struct kp_span dir,
				const struct gpu_dirs *dirs, const struct yaml_name *name,
				bool *found, struct kpackx_error *why)
{
	const char *text = name->text;

	if (text[0] == '/')
		text = strrchr(text, '/') + 1;
	KP_TRY(find_in(c, dir, (struct kp_span){0}, text, found, why));
	if (!*found && name->gpu)
		return find_in(c, dir, kp_span_str(name->gpu), text, found, why);
	for (size_t i = 0; i < dirs->count && !*found; i++)
		KP_TRY(find_in(c, dir, dirs->items[i], text, found, why));
	return KPACK_SUCCESS;
}

static kpack_error_t check_name(struct closure *c, size_t file,
				const struct gpu_dirs *dirs, const struct yaml_name *name,
				struct kpackx_error *why)
{
	const char *path = c->tree->items[file].path;
	struct kp_span dir = path_directory(path);
	char *where, *shown_where, *shown;
	bool found = false;
	kpack_error_t err;

	KP_TRY(find_named(c, dir, dirs, name, &found, why));
	if (found)
		return KPACK_SUCCESS;
	where = closure_beside(path, kp_span_str(name->gpu ? name->gpu : ""),
			       name->gpu ? "/" : "");
	shown_where = where ? kp_text_escape_new(kp_span_str(where)) : NULL;
	shown = kp_text_escape_new(kp_span_str(name->text));
	if (!shown_where || !shown)
		err = kp_fail_memory(why, strlen(name->text), "a path");
	else
		err = closure_add(c, why, path, "needs %s%s, which is missing%s",
				  shown_where, shown,
				  name->gpu ? "" : ", there and in directories of GPUs");
	free(where);
	free(shown_where);
	free(shown);
	return err;
}

kpack_error_t closure_yaml(struct closure *c, size_t file, struct kpackx_error *why)
{
	struct kp_span dir = path_directory(c->tree->items[file].path);
	struct gpu_dirs dirs = {0};
	struct dat_file bytes = {0};
	struct yaml_names names = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err = dat_file_read(c->tree, file, &bytes, &fault);

	if (!err)
		err = yaml_names_read(dat_file_span(&bytes), &names, &fault);
	err = err ? closure_add_error(c, file, err, &fault, why)
		  : list_gpu_dirs(c, dir, &dirs, why);
	for (size_t i = 0; i < names.count && !err; i++)
		err = check_name(c, file, &dirs, &names.items[i], why);
	free(dirs.items);
	yaml_names_fini(&names);
	dat_file_fini(&bytes);
	return err;
}
