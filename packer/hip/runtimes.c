/* SPDX-License-Identifier: MIT */
#include "runtimes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/file.h"
#include "loader_cache.h"
#include "core/base/path.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

#define LIBRARY "libamdhip64.so"
#define CACHE "/etc/ld.so.cache"

bool runtime_is_name(const char *name)
{
	size_t n = strlen(LIBRARY);

	return strncmp(name, LIBRARY, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

/* ---- what a runtime contains ---- */

/* The call that every runtime has. */
#define CALL "__hipRegisterFatBinary"

/* Names that a runtime with kpack needs, imports, or has in it. */
static const char *const signs[] = {"librocm_kpack.so", "kpack_load_code_object"};

enum { SIGN_MAX = 32, BLOCK = 1 << 20 };

static bool has_sign(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < KP_COUNT(signs); i++)
		if (memmem(data, size, signs[i], strlen(signs[i])))
			return true;
	return false;
}

/*
 * A runtime that reads compressed bundles compares their magic, in a constant or in an
 * instruction's operand.
 */
static bool has_compressed_magic(const uint8_t *data, size_t size)
{
	return memmem(data, size, "CCOB", 4) != NULL;
}

/* Blocks overlap, so that a sign on the border of two is found.  *HAS_CALL: it has CALL. */
static kpack_error_t search_signs(int fd, uint64_t size, struct hip_runtime *r,
				  bool *has_call, struct kpackx_error *why)
{
	struct kp_source file = kp_source_fd(fd, 0, size);
	uint8_t *block = xmalloc(BLOCK + SIGN_MAX);
	kpack_error_t err = KPACK_SUCCESS;

	*has_call = false;
	r->contains = RUNTIME_REFUSES;
	for (uint64_t at = 0; at < size && !err; at += BLOCK) {
		struct kp_span got;

		err = kp_source_head(&file, at, block, BLOCK + SIGN_MAX, &got, why);
		if (!err && has_sign(got.data, got.size))
			r->contains = RUNTIME_TAKES;
		*has_call |= !err && memmem(got.data, got.size, CALL, strlen(CALL));
		r->decompresses |= !err && has_compressed_magic(got.data, got.size);
	}
	free(block);
	return err;
}

/* false: it is no runtime. */
static bool inspect_runtime(struct hip_runtime *r)
{
	bool has_call = true;
	struct stat st;
	int fd;

	kpack_error_t err = below_file_open(r->path, &fd, &st, &r->why);

	if (!err) {
		err = search_signs(fd, (uint64_t)st.st_size, r, &has_call, &r->why);
		close(fd);
	}
	if (err) {
		r->contains = RUNTIME_UNKNOWN;
		r->decompresses = true;
	}
	return err || has_call;
}

/* ---- the list ---- */

static bool has_runtime(const struct hip_runtimes *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return true;
	return false;
}

static void runtime_fini(struct hip_runtime *r)
{
	free(r->path);
	free(r->version);
}

void runtimes_add(struct hip_runtimes *list, const char *path)
{
	char *real = below_real(path);
	struct hip_runtime *r;
	const char *version;

	if (!real)
		real = xstrdup(path);
	if (has_runtime(list, real)) {
		free(real);
		return;
	}
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	r = &list->items[list->count++];
	version = kp_path_name(real) + strlen(LIBRARY);
	*r = (struct hip_runtime){
		.path = real,
		.version = xstrdup(runtime_is_name(kp_path_name(real)) && *version
					   ? version + 1
					   : "")};
	if (!inspect_runtime(r)) {
		runtime_fini(r);
		list->count--;
	}
}

void runtimes_fini(struct hip_runtimes *list)
{
	for (size_t i = 0; i < list->count; i++)
		runtime_fini(&list->items[i]);
	free(list->items);
	*list = (struct hip_runtimes){0};
}

bool runtimes_one_takes(const struct hip_runtimes *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].contains != RUNTIME_REFUSES)
			return true;
	return false;
}

const struct hip_runtime *runtimes_find_uncompressed(const struct hip_runtimes *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!list->items[i].decompresses)
			return &list->items[i];
	return NULL;
}

/* ---- where they are ---- */

bool runtimes_add_tree(struct hip_runtimes *list, const char *tree)
{
	struct tree_list *walk = tree_list_open(tree);
	struct tree_item item;
	bool whole = true;

	while (tree_list_next(walk, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", below_strerror(item.error));
			whole = false;
		} else if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode) &&
			   runtime_is_name(item.name)) {
			runtimes_add(list, item.path);
		}
	}
	tree_list_close(walk);
	return whole;
}

/* Add the runtimes in DIR itself; it is no fault if there is no such directory. */
static void add_directory(struct hip_runtimes *list, const char *dir)
{
	struct dirent **names;
	int n = below_scandir(dir, &names, NULL);

	for (int i = 0; i < n; i++) {
		if (runtime_is_name(names[i]->d_name)) {
			char *path = xasprintf("%s/%s", dir, names[i]->d_name);

			runtimes_add(list, path);
			free(path);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static void add_installation(struct hip_runtimes *list, const char *root)
{
	static const char *const dirs[] = {"lib", "lib64"};

	for (size_t i = 0; i < KP_COUNT(dirs); i++) {
		char *dir = xasprintf("%s/%s", root, dirs[i]);

		add_directory(list, dir);
		free(dir);
	}
}

static void add_opt(struct hip_runtimes *list)
{
	struct dirent **names;
	int n = below_scandir("/opt", &names, NULL);

	for (int i = 0; i < n; i++) {
		if (strncmp(names[i]->d_name, "rocm", 4) == 0) {
			char *root = xasprintf("/opt/%s", names[i]->d_name);

			add_installation(list, root);
			free(root);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

static void add_cached(const char *name, const char *path, void *arg)
{
	if (runtime_is_name(name))
		runtimes_add(arg, path);
}

static void add_cache(struct hip_runtimes *list)
{
	struct kpackx_error why;
	uint8_t *data;
	size_t size;

	if (below_file_load(CACHE, SIZE_MAX, "the loader's cache", &data, &size, &why))
		return; /* musl has none */
	(void)loader_cache_walk((struct kp_span){data, size}, add_cached, list);
	free(data);
}

void runtimes_add_system(struct hip_runtimes *list)
{
	const char *root = secure_getenv("ROCM_PATH");

	if (root && *root)
		add_installation(list, root);
	add_opt(list);
	add_cache(list);
}
