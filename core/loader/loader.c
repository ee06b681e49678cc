/* SPDX-License-Identifier: MIT */
/*
 * The loader's public calls: from a wrapper's marker to a code object, in AMD's order.
 *
 *	the marker   at the wrapper's address, without a size: process.c
 *	the key      the marker's name of the binary, '#', and the wrapper's number
 *	the archives that the environment and the marker name: kp_lookup_find
 *	the object   of the best target that an archive has: kp_lookup_load
 *
 * A cache has the environment as it was when the cache was made, so that all objects of a program
 * are looked up in the same way, and the archives that are open.  The text of a failure goes to
 * the caller, and with ROCM_KPACK_DEBUG to stderr: AMD's runtime only passes the code on.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "lookup.h"
#include "process.h"
#include "core/rocm_kpack/kpack.h"
#include "trace.h"

struct kpack_cache {
	struct kp_environment env;
	struct kp_cache archives;
};

/* ---- caches ---- */

kpack_error_t kpack_cache_create(kpack_cache_t *cache)
{
	struct kpack_cache *c;

	if (!cache)
		return KPACK_ERROR_INVALID_ARGUMENT;
	c = calloc(1, sizeof(*c));
	if (!c)
		return KPACK_ERROR_OUT_OF_MEMORY;
	if (kp_environment_read(&c->env, NULL) || kp_cache_init(&c->archives, NULL)) {
		kp_environment_fini(&c->env);
		free(c);
		return KPACK_ERROR_OUT_OF_MEMORY;
	}
	kp_trace(c->env.trace, "cache created%s%s%s%s",
		 c->env.disabled ? ", ROCM_KPACK_DISABLE" : "",
		 c->env.strict ? ", ROCM_KPACK_STRICT" : "",
		 c->env.instead.size ? ", ROCM_KPACK_PATH" : "",
		 c->env.before.size ? ", ROCM_KPACK_PATH_PREFIX" : "");
	*cache = c;
	return KPACK_SUCCESS;
}

void kpack_cache_destroy(kpack_cache_t cache)
{
	if (!cache)
		return;
	kp_cache_fini(&cache->archives);
	kp_environment_fini(&cache->env);
	free(cache);
}

/* ---- loading ---- */

/*
 * The reason of a failure is traced before it is copied to the caller, who may want none: what a
 * program was refused is seen even where AMD's runtime drops the text.
 */
kpack_error_t kpackx_load_code_object(kpack_cache_t cache, const void *hipk_metadata,
				      const char *binary_path, uint32_t co_index,
				      const char *const *arch_list, size_t arch_count,
				      void **code_object_out,
				      size_t *code_object_size_out,
				      struct kpackx_error *why)
{
	struct kp_lookup l = {.archs = arch_list, .n_archs = arch_count};
	struct kpackx_error reason = {0};
	struct kp_line line = {.used = 0};
	KP_AUTO_FREE char *key = NULL;
	struct kp_marker m = {0};
	kpack_error_t err;

	if (!cache || !hipk_metadata || !binary_path || !arch_list || arch_count == 0 ||
	    !code_object_out || !code_object_size_out)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       arch_count ? "an argument is NULL" : "no architectures");
	l.cache = &cache->archives;
	l.env = &cache->env;
	if (cache->env.trace) {
		kp_line_add(&line, "load: ");
		kp_line_add_name(&line, binary_path);
		kp_line_add(&line, ": for");
		for (size_t i = 0; i < arch_count; i++) {
			kp_line_add(&line, i ? ", " : " ");
			kp_line_add_name(&line, arch_list[i] ? arch_list[i] : "NULL");
		}
		kp_trace_line(&line);
	}
	if (cache->env.disabled)
		err = kp_fail(&reason, KPACK_ERROR_NOT_IMPLEMENTED,
			      "switched off by ROCM_KPACK_DISABLE");
	else
		err = kp_marker_read_at(hipk_metadata, &m, &reason);
	if (!err && asprintf(&key, "%s#%u", m.kernel_name, co_index) < 0) {
		key = NULL;
		err = kp_fail_memory(&reason, KP_MARKER_MAX, "a key");
	}
	if (!err) {
		l.key = key;
		kp_trace_name(cache->env.trace, "key", key, NULL);
		err = kp_lookup_find(&l, &m, binary_path, &reason);
		if (!err)
			err = kp_lookup_load(&l, code_object_out, code_object_size_out,
					     &reason);
		kp_lookup_fini(&l);
	}
	kp_marker_fini(&m);
	if (!err)
		return KPACK_SUCCESS;
	kp_trace(cache->env.trace, "%s: %s", kpackx_error_name(err), reason.text);
	if (why)
		*why = reason;
	return err;
}

kpack_error_t kpack_load_code_object(kpack_cache_t cache, const void *hipk_metadata,
				     const char *binary_path, uint32_t co_index,
				     const char *const *arch_list, size_t arch_count,
				     void **code_object_out, size_t *code_object_size_out)
{
	return kpackx_load_code_object(cache, hipk_metadata, binary_path, co_index,
				       arch_list, arch_count, code_object_out,
				       code_object_size_out, NULL);
}

void kpack_free_code_object(void *code_object)
{
	free(code_object);
}

/* ---- queries about files ---- */

kpack_error_t kpack_discover_binary_path(const void *address_in_binary, char *path_out,
					 size_t path_out_size, size_t *offset_out)
{
	uint64_t offset;
	size_t size;
	char *path;

	if (!address_in_binary || !path_out || path_out_size == 0)
		return KPACK_ERROR_INVALID_ARGUMENT;
	KP_TRY(kp_maps_find(address_in_binary, &path, &offset, NULL));
	size = strlen(path) + 1;
	if (size <= path_out_size) {
		memcpy(path_out, path, size);
		if (offset_out)
			*offset_out = (size_t)offset;
	}
	free(path);
	return size <= path_out_size ? KPACK_SUCCESS : KPACK_ERROR_INVALID_ARGUMENT;
}

kpack_error_t kpack_enumerate_architectures(const char *archive_path,
					    kpack_arch_callback_t callback,
					    void *user_data)
{
	struct kpack_archive *archive;
	size_t n;

	if (!archive_path || !callback)
		return KPACK_ERROR_INVALID_ARGUMENT;
	KP_TRY(kp_archive_open(archive_path, &archive, NULL));
	n = kp_archive_arch_count(archive);
	for (size_t i = 0; i < n; i++)
		if (!callback(kp_archive_arch(archive, i), user_data))
			break;
	kp_archive_close(archive);
	return KPACK_SUCCESS;
}
