/* SPDX-License-Identifier: MIT */
#include "kernel_cache.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "cache_summary.h"
#include "kernel_rows.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "row_names.h"
#include "sqlite_copy.h"
#include "sqlite_header.h"

#define NAME "rocfft_kernel_cache"

/* --- paths of caches ------------------------------------------------------------------ */

static bool is_place_name(const char *name, size_t size)
{
	static const char *const places[] = {"rocfft", "lib", "lib64", "bin"};

	for (size_t i = 0; i < KP_COUNT(places); i++)
		if (strlen(places[i]) == size && memcmp(name, places[i], size) == 0)
			return true;
	return false;
}

/* Whether PATH is next to the library, in rocfft/, or one directory below one of these,
 * as lib/x86_64-linux-gnu is. */
static bool is_in_place(const char *path, const char *name)
{
	const char *end = name;

	if (end == path)
		return true;
	for (int depth = 0; depth < 2 && end > path; depth++) {
		const char *begin = --end;

		while (begin > path && begin[-1] != '/')
			begin--;
		if (is_place_name(begin, (size_t)(end - begin)))
			return true;
		end = begin;
	}
	return false;
}

bool kernel_cache_named(const char *path, char arch[KP_TARGET_TEXT_MAX])
{
	const char *name = kp_path_name(path);
	size_t size = strlen(name), n = strlen(NAME);

	if (size < n + 3 || strncmp(name, NAME, n) != 0 ||
	    strcmp(name + size - 3, ".db") != 0 || !is_in_place(path, name))
		return false;
	arch[0] = 0;
	return size == n + 3 ||
	       (name[n] == '_' &&
		cache_arch_ok(
			(struct kp_span){(const uint8_t *)name + n + 1, size - n - 4},
			arch));
}

/* --- parts ---------------------------------------------------------------------------- */

static void fini_part(struct cache_file *part)
{
	kp_outfile_close(&part->file);
	for (size_t i = 0; i < part->n_objects; i++)
		library_object_fini(&part->objects[i]);
	free(part->objects);
	free(part->hip_versions);
	free(part->disk);
	free(part->key);
}

void cache_files_fini(struct cache_files *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		fini_part(&parts->items[i]);
	free(parts->items);
	*parts = (struct cache_files){0};
}

/* Add a part of CACHE with an empty file in the directory TMP; takes over KEY. */
static kpack_error_t new_part(struct cache_files *parts, const char *tmp,
			      const char *cache, char *key, struct cache_file **out,
			      struct kpackx_error *why)
{
	struct cache_file *part;
	kpack_error_t err;

	xgrow(&parts->items, parts->count, &parts->cap, sizeof(*part));
	part = &parts->items[parts->count++];
	*part = (struct cache_file){.key = key, .cache = cache};
	snprintf(parts->called, sizeof(parts->called), "a temporary file in %.400s", tmp);
	err = below_outfile_open_in(&part->file, tmp, "kernels", 0600, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", parts->called);
	/* without a name nobody else can exchange it */
	kp_outfile_unname(&part->file);
	part->disk = xasprintf("/proc/self/fd/%d", part->file.fd);
	*out = part;
	return KPACK_SUCCESS;
}

/* --- the cache, open ------------------------------------------------------------------ */

struct cache {
	const char *path; /* in the tree */
	int fd;
	mode_t mode;
	struct sqlite_file *file;
	bool is_one;
	struct cache_summary summary;
};

static void cache_close(struct cache *c)
{
	if (!c)
		return;
	sqlite_file_close(c->file);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static kpack_error_t read_cache(struct cache *c, uint64_t size, struct kpackx_error *why)
{
	struct kp_source source = kp_source_fd(c->fd, 0, size);
	uint8_t head[512] = {0};
	size_t n = size < sizeof(head) ? (size_t)size : sizeof(head);

	KP_TRY(kp_source_read(&source, 0, head, n, why));
	KP_TRY(sqlite_header_check(&source, head, n, why));
	KP_TRY(sqlite_file_open(&source, &c->file, why));
	KP_TRY(cache_is_there(c->file, &c->is_one, why));
	if (!c->is_one)
		return KPACK_SUCCESS;
	KP_TRY(cache_summary_read(c->file, &c->summary, why));
	if (c->summary.n_strange)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: arch of %llu rows is no target ID: %s",
			       (unsigned long long)c->summary.n_strange,
			       c->summary.strange);
	return KPACK_SUCCESS;
}

static kpack_error_t cache_open(const char *disk, const char *path, struct cache **out,
				struct kpackx_error *why)
{
	struct cache *c = xcalloc(1, sizeof(*c));
	struct stat st;
	kpack_error_t err;

	c->fd = -1;
	c->path = path;
	err = below_file_open(disk, &c->fd, &st, why);
	if (!err) {
		c->mode = st.st_mode;
		err = read_cache(c, (uint64_t)st.st_size, why);
	}
	if (err) {
		cache_close(c);
		return err;
	}
	*out = c;
	return KPACK_SUCCESS;
}

/* --- a database for each arch --------------------------------------------------------- */

static char *path_beside(const char *path, const char *arch)
{
	int dir = (int)(kp_path_name(path) - path);

	return xasprintf("%.*s" NAME "_%s.db", dir, path, arch);
}

static kpack_error_t describe_part(const struct cache *c, const struct cache_arch *arch,
				   struct cache_file *part, struct kpackx_error *why)
{
	struct cache_summary own = c->summary;
	struct library_object *o = xcalloc(1, sizeof(*o));
	struct stat st;

	part->objects = o;
	part->n_objects = 1;
	if (fstat(part->file.fd, &st) < 0)
		return kp_fail_errno(why, errno, "fstat");
	*o = (struct library_object){
		.library = library_rocfft.name,
		.role = "cache",
		.size = (uint64_t)st.st_size,
		.path = xstrdup(part->key),
		.mode = c->mode,
		.at_random = true,
	};
	own.arches[0] = *arch;
	own.n_arches = 1;
	own.rows = arch->rows;
	/* the summary does not say which of the versions are this arch's */
	own.more_hip_versions |= own.n_hip_versions > 1;
	facts_string(&o->facts, "container", "sqlite");
	cache_summary_facts(&own, &o->facts);
	library_add_arch(o, arch->canonical);
	return KPACK_SUCCESS;
}

static kpack_error_t split_off(const struct cache *c, const struct cache_arch *arch,
			       const char *tmp, struct cache_files *parts,
			       struct kpackx_error *why)
{
	struct cache_file *part;

	KP_TRY(new_part(parts, tmp, c->path, path_beside(c->path, arch->text), &part,
			why));
	KP_TRY(sqlite_copy(c->file, &part->file, parts->called, "cache_v1", "arch",
			   arch->text, why));
	return describe_part(c, arch, part, why);
}

kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_files *parts, struct kpackx_error *why)
{
	struct cache *c = NULL;
	kpack_error_t err = cache_open(disk, path, &c, why);

	for (size_t i = 0; !err && i < c->summary.n_arches; i++)
		err = split_off(c, &c->summary.arches[i], tmp, parts, why);
	cache_close(c);
	return err;
}

/* --- an object for each row ----------------------------------------------------------- */

static kpack_error_t add_rows(struct cache *c, const char *tmp, struct cache_files *parts,
			      struct kpackx_error *why)
{
	struct cache_file *part;

	KP_TRY(new_part(parts, tmp, c->path, xasprintf("%s@rows", c->path), &part, why));
	KP_TRY(kernel_rows_write(c->file, parts->called, part, why));
	KP_TRY(row_names_make_unique(parts, why));
	if (part->n_objects == 0)
		fini_part(&parts->items[--parts->count]);
	return KPACK_SUCCESS;
}

kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_files *parts, struct kpackx_error *why)
{
	struct cache *c = NULL;
	kpack_error_t err = cache_open(disk, path, &c, why);

	if (!err && c->summary.rows)
		err = add_rows(c, tmp, parts, why);
	cache_close(c);
	return err;
}
