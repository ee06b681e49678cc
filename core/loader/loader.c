/* SPDX-License-Identifier: MIT */
/* The loader's public calls: from a wrapper's marker to a code object. */
#include <stdio.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "core/base/bounds.h"
#include "lookup.h"
#include "process.h"
#include "core/rocm_kpack/kpack.h"
#include "trace.h"
#include "trusted.h"

struct kpack_cache {
	struct kp_environment env;
	struct kp_cache archives;
};

/* ---- caches ---- */

static void trace_settings(const struct kp_environment *e)
{
	kp_trace(e->trace, "cache created%s%s%s%s",
		 e->disabled ? ", ROCM_KPACK_DISABLE" : "",
		 e->strict ? ", ROCM_KPACK_STRICT" : "",
		 e->instead.size ? ", ROCM_KPACK_PATH" : "",
		 e->before.size ? ", ROCM_KPACK_PATH_PREFIX" : "");
}

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
	trace_settings(&c->env);
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

static kpack_error_t look_up_object(struct kpack_cache *c, const struct kp_marker *m,
				    const char *binary, const struct kp_lookup_want *want,
				    void **data, size_t *size, struct kpackx_error *why)
{
	struct kp_lookup l = {
		.cache = &c->archives, .strict = c->env.strict, .trace = c->env.trace};
	kpack_error_t err;
	char *trusted;

	kp_trace_name(l.trace, "key", want->key, NULL);
	err = kp_trusted_binary(binary, &trusted, why);
	if (err && err != KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail_prefix(why, KPACK_ERROR_ARCHIVE_NOT_FOUND,
				      "the binary's directory");
	if (!err)
		err = kp_candidates_add(&c->env, m, trusted, want, &l, why);
	if (!err)
		err = kp_lookup_load(&l, want, data, size, why);
	kp_lookup_fini(&l);
	free(trusted);
	return err;
}

/* A wrapper in a converted binary: it is for the object INDEX of the binary's MARKER. */
struct wrapper {
	const char *binary;
	const void *marker;
	uint32_t index;
};

static kpack_error_t load_object(struct kpack_cache *c, const struct wrapper *w,
				 struct kp_lookup_want *want, void **data, size_t *size,
				 struct kpackx_error *why)
{
	struct kp_marker m;
	kpack_error_t err;
	char *key;

	if (c->env.disabled)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "switched off by ROCM_KPACK_DISABLE");
	KP_TRY(kp_marker_read_at(w->marker, &m, why));
	if (asprintf(&key, "%s#%u", m.kernel_name, w->index) < 0) {
		kp_marker_fini(&m);
		return kp_fail_memory(why, KP_MARKER_MAX, "a key");
	}
	want->key = key;
	err = look_up_object(c, &m, w->binary, want, data, size, why);
	free(key);
	kp_marker_fini(&m);
	return err;
}

static void trace_request(const struct kp_environment *env, const char *binary,
			  const struct kp_lookup_want *want)
{
	struct kp_line line = {.used = 0};

	if (!env->trace)
		return;
	kp_line_add(&line, "load: ");
	kp_line_add_name(&line, binary);
	kp_line_add(&line, ": for");
	for (size_t i = 0; i < want->n_archs; i++) {
		kp_line_add(&line, i ? ", " : " ");
		kp_line_add_name(&line, want->archs[i] ? want->archs[i] : "NULL");
	}
	kp_trace_line(&line);
}

kpack_error_t kpackx_load_code_object(kpack_cache_t cache, const void *hipk_metadata,
				      const char *binary_path, uint32_t co_index,
				      const char *const *arch_list, size_t arch_count,
				      void **code_object_out,
				      size_t *code_object_size_out,
				      struct kpackx_error *why)
{
	const struct wrapper wrapper = {binary_path, hipk_metadata, co_index};
	struct kp_lookup_want want = {.archs = arch_list, .n_archs = arch_count};
	struct kpackx_error reason = {0};
	kpack_error_t err;

	if (!cache || !hipk_metadata || !binary_path || !arch_list || arch_count == 0 ||
	    !code_object_out || !code_object_size_out)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       arch_count ? "an argument is NULL" : "no architectures");
	trace_request(&cache->env, binary_path, &want);
	err = load_object(cache, &wrapper, &want, code_object_out, code_object_size_out,
			  &reason);
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
