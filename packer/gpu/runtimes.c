/* SPDX-License-Identifier: MIT */
#include "runtimes.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/file.h"
#include "loader_cache.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

#define LIBRARY "libamdhip64.so"
#define COMGR "libamd_comgr.so"
#define CACHE "/etc/ld.so.cache"

bool runtime_is_name(const char *name)
{
	size_t n = strlen(LIBRARY);

	return strncmp(name, LIBRARY, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

/* ---- what a runtime contains ---- */

/* The call that every runtime has. */
#define CALL "__hipRegisterFatBinary"

/*
 * What a runtime's file may have: the call; names that a runtime with kpack needs, imports,
 * or has in it; the magic of compressed bundles, in a constant or in an instruction's
 * operand; the name that HIP 6 has.
 */
enum { HAS_CALL, HAS_KPACK, HAS_LOADING, HAS_MAGIC, HAS_NAME_6, RUNTIME_SIGNS };
static const char *const runtime_signs[] = {
	CALL, "librocm_kpack.so", "kpack_load_code_object", "CCOB", LIBRARY ".6"};

/*
 * The libamd_comgr that Debian patched to fit to LLVM 21 (7.0.2) hashes a compressed
 * bundle's header as a string, up to the first zero byte, to find its code in the cache: all
 * bundles of one version are the same to it.  It reads that header by a call of LLVM's
 * library, which other libamd_comgr with a cache either do not call (7.2.4) or contain.
 */
enum { HAS_CACHE, HAS_LLVM, HAS_SLICE, COMGR_SIGNS };
static const char *const comgr_signs[] = {"AMD_COMGR_CACHE", "libLLVM.so.",
					  "_ZN4llvm12MemoryBuffer12getFileSlice"};

enum { SIGN_MAX = 40, BLOCK = 1 << 20 };

/* Which of N SIGNS are in the file PATH.  Blocks overlap: a sign may be on a border. */
static kpack_error_t find_signs(const char *path, const char *const *signs, size_t n,
				bool *found, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_source file;
	struct stat st;
	uint8_t *block;
	int fd;

	KP_TRY(below_file_open(path, &fd, &st, why));
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	block = xmalloc(BLOCK + SIGN_MAX);
	for (uint64_t at = 0; at < file.size && !err; at += BLOCK) {
		struct kp_span got;

		err = kp_source_head(&file, at, block, BLOCK + SIGN_MAX, &got, why);
		for (size_t i = 0; i < n && !err; i++)
			found[i] |= memmem(got.data, got.size, signs[i],
					   strlen(signs[i])) != NULL;
	}
	free(block);
	close(fd);
	return err;
}

/*
 * A libamd_comgr in the runtime's directory tells.  If there is none, it may be any, as Debian's
 * packages let it be for HIP 6.
 */
enum runtime_bundles runtime_bundles(const struct hip_runtime *r)
{
	struct kp_span parent = kp_path_directory(r->path);
	char *dir = xasprintf("%.*s", (int)parent.size, (const char *)parent.data);
	bool known = false, confuses = false;
	struct dirent **names;
	int n = r->decompresses ? below_scandir(dir, &names, NULL) : -1;

	for (int i = 0; i < n; i++) {
		if (strncmp(names[i]->d_name, COMGR, strlen(COMGR)) == 0) {
			char *path = xasprintf("%s/%s", dir, names[i]->d_name);
			bool has[COMGR_SIGNS] = {false};

			known |= !find_signs(path, comgr_signs, COMGR_SIGNS, has, NULL);
			confuses |= has[HAS_CACHE] && has[HAS_LLVM] && has[HAS_SLICE];
			free(path);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	free(dir);
	if (!r->decompresses)
		return BUNDLES_REFUSED;
	return confuses || (!known && r->is_6) ? BUNDLES_CONFUSED : BUNDLES_READ;
}

/* false: it is no runtime. */
static bool inspect_runtime(struct hip_runtime *r)
{
	bool has[RUNTIME_SIGNS] = {false};
	kpack_error_t err =
		find_signs(r->path, runtime_signs, RUNTIME_SIGNS, has, &r->why);

	r->contains = err                                  ? RUNTIME_UNKNOWN
		      : has[HAS_KPACK] || has[HAS_LOADING] ? RUNTIME_TAKES
							   : RUNTIME_REFUSES;
	r->decompresses = err || has[HAS_MAGIC];
	r->is_6 = has[HAS_NAME_6] || strtoul(r->version, NULL, 10) == 6;
	return err || has[HAS_CALL];
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
	struct kpackx_error unresolved = {0};
	struct hip_runtime *r;
	const char *version;

	if (!real) {
		below_fail(&unresolved, "cannot resolve its path");
		real = xstrdup(path);
	}
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
	} else if (unresolved.code && !r->why.code) {
		r->contains = RUNTIME_UNKNOWN;
		r->why = unresolved;
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

/* ---- where they are ---- */

bool runtimes_add_tree(struct hip_runtimes *list, const char *tree)
{
	struct tree_list *walk = tree_list_open(tree);
	struct tree_item item;
	bool whole = true;

	while (tree_list_next(walk, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
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
