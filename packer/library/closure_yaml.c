/* SPDX-License-Identifier: MIT */
/*
 * Check that the files exist that TensileLibrary.yaml names: next to it, or in a GPU's
 * directory there.  If the file's GPU is stated, it must be in that GPU's directory; if
 * the YAML file only mentions GPUs, in the directory of each of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include "closure_internal.h"
#include "core/base/path.h"
#include "packer/files/read_file.h"
#include "packer/cli/xalloc.h"
#include "yaml_names.h"

/* Resolve "a/./b/../c" and the like, in place; false: the path leaves the root. */
static bool normalise_path(char *path)
{
	size_t size = 0;

	for (char *from = path, *next; from; from = next) {
		size_t n = strcspn(from, "/");

		next = from[n] ? from + n + 1 : NULL;
		if (n == 0 || (n == 1 && from[0] == '.'))
			continue;
		if (n == 2 && from[0] == '.' && from[1] == '.') {
			if (size == 0)
				return false;
			while (size && path[--size] != '/')
				;
			continue;
		}
		if (size)
			path[size++] = '/';
		memmove(path + size, from, n);
		size += n;
	}
	path[size] = '\0';
	return true;
}

/* Whether NAME exists in DIR/SUB, or in DIR if SUB is "". */
static bool find_in(const struct closure *c, struct kp_span dir, struct kp_span sub,
		    const char *name)
{
	char *path = xasprintf("%.*s/%.*s/%s", (int)dir.size, (const char *)dir.data,
			       (int)sub.size, (const char *)sub.data, name);
	size_t file;
	bool found =
		normalise_path(path) && file_tree_find(c->tree, kp_span_str(path), &file);

	free(path);
	return found;
}

/* The GPUs' directories in the YAML file's directory. */
struct gpu_dirs {
	struct kp_span *items;
	size_t count, cap;
};

static void list_gpu_dirs(const struct closure *c, struct kp_span dir,
			  struct gpu_dirs *out)
{
	size_t skip = dir.size ? dir.size + 1 : 0, i;

	if (!file_tree_has_dir(c->tree, dir, &i))
		return;
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
		xgrow(&out->items, out->count, &out->cap, sizeof(name));
		out->items[out->count++] = name;
	}
}

/* A YAML file that is being checked. */
struct yaml_check {
	struct closure *c;
	size_t file;
	struct kp_span dir;
	struct gpu_dirs dirs;
	struct yaml_names names;
};

/* Add the fault that NAME is missing in the directory of GPU; "": in all directories. */
static void add_missing(const struct yaml_check *y, struct kp_span gpu, const char *name)
{
	const char *path = y->c->tree->items[y->file].path;
	char *where = closure_beside(path, gpu, gpu.size ? "/" : "");
	char *shown_where = closure_escape(kp_span_str(where));
	char *shown = closure_escape(kp_span_str(name));

	closure_add(y->c, path, "needs %s%s, which is missing%s", shown_where, shown,
		    gpu.size ? "" : ", there and in directories of GPUs");
	free(where);
	free(shown_where);
	free(shown);
}

static bool mentions_gpu(const struct yaml_names *names, struct kp_span gpu)
{
	for (size_t i = 0; i < names->n_gpus; i++)
		if (kp_span_is(gpu, names->gpus[i]))
			return true;
	return false;
}

/* Check each directory of a GPU that the file mentions; false: there is none. */
static bool check_mentioned(const struct yaml_check *y, const char *name)
{
	bool any = false;

	for (size_t i = 0; i < y->dirs.count; i++) {
		if (!mentions_gpu(&y->names, y->dirs.items[i]) ||
		    !closure_wants_name(y->c, y->dirs.items[i]))
			continue;
		any = true;
		if (!find_in(y->c, y->dir, y->dirs.items[i], name))
			add_missing(y, y->dirs.items[i], name);
	}
	return any;
}

static void check_any(const struct yaml_check *y, const char *name)
{
	for (size_t i = 0; i < y->dirs.count; i++)
		if (find_in(y->c, y->dir, y->dirs.items[i], name))
			return;
	add_missing(y, (struct kp_span){0}, name);
}

/* Whether NAME, or every GPU that the file mentions, is none of the GPUs to check for. */
static bool is_for_others(const struct yaml_check *y, const struct yaml_name *name)
{
	if (!closure_wants_name(y->c, kp_span_str(name->text)))
		return true;
	if (name->gpu)
		return !closure_wants_name(y->c, kp_span_str(name->gpu));
	for (size_t i = 0; i < y->names.n_gpus; i++)
		if (closure_wants_name(y->c, kp_span_str(y->names.gpus[i])))
			return false;
	return y->names.n_gpus > 0;
}

/* An absolute path is that of the machine that built it: only its last part is used. */
static void check_name(const struct yaml_check *y, const struct yaml_name *name)
{
	const char *text = name->text;

	if (text[0] == '/')
		text = strrchr(text, '/') + 1;
	if (is_for_others(y, name) || find_in(y->c, y->dir, (struct kp_span){0}, text))
		return;
	if (name->gpu) {
		struct kp_span gpu = kp_span_str(name->gpu);

		if (!find_in(y->c, y->dir, gpu, text))
			add_missing(y, gpu, text);
	} else if (strchr(text, '/') || !check_mentioned(y, text)) {
		check_any(y, text);
	}
}

kpack_error_t closure_yaml(struct closure *c, size_t file, struct kpackx_error *why)
{
	struct yaml_check y = {.c = c,
			       .file = file,
			       .dir = kp_path_directory(c->tree->items[file].path)};
	struct read_file bytes = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err = read_file_read(c->tree, file, &bytes, &fault);

	if (!err)
		err = yaml_names_read(read_file_span(&bytes), &y.names, &fault);
	if (err)
		err = closure_add_error(c, file, err, &fault, why);
	else
		list_gpu_dirs(c, y.dir, &y.dirs);
	for (size_t i = 0; i < y.names.count && !err; i++)
		check_name(&y, &y.names.items[i]);
	free(y.dirs.items);
	yaml_names_fini(&y.names);
	read_file_fini(&bytes);
	return err;
}
