/* SPDX-License-Identifier: MIT */
/* The loader's public calls: from a wrapper's marker to a code object. */
#include <stdio.h>
#include <stdlib.h>
#include "archive.h"
#include "cache.h"
#include "limits.h"
#include "lookup.h"
#include "maps.h"
#include "marker.h"
#include "probe.h"
#include "rocm_kpack/kpack.h"
#include "search.h"
#include "text.h"
#include "trace.h"

/* A list of files from the environment. */
struct path_list {
	char *text;  /* the paths, each with its NUL */
	size_t size; /* 0: no path */
};

struct kpack_cache {
	struct path_list instead; /* ROCM_KPACK_PATH */
	struct path_list before;  /* ROCM_KPACK_PATH_PREFIX */
	bool disabled;
	bool trace;
	struct kp_cache archives;
};

/* ---- the environment ---- */

static bool is_on(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value && *value != '0';
}

/* Split at colons; an escaped one, "\:", is part of a path. */
static void split_paths(struct path_list *list, const char *from)
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

static bool read_paths(struct path_list *list, const char *name)
{
	const char *value = secure_getenv(name);

	if (!value)
		return true;
	list->text = malloc(strlen(value) + 1);
	if (!list->text)
		return false;
	split_paths(list, value);
	return true;
}

static bool read_environment(struct kpack_cache *c)
{
	c->disabled = is_on("ROCM_KPACK_DISABLE");
	c->trace = is_on("ROCM_KPACK_DEBUG");
	return read_paths(&c->instead, "ROCM_KPACK_PATH") &&
	       read_paths(&c->before, "ROCM_KPACK_PATH_PREFIX");
}

/* ---- caches ---- */

static void free_settings(struct kpack_cache *c)
{
	free(c->instead.text);
	free(c->before.text);
	free(c);
}

kpack_error_t kpack_cache_create(kpack_cache_t *cache)
{
	struct kpack_cache *c;

	if (!cache)
		return KPACK_ERROR_INVALID_ARGUMENT;
	c = calloc(1, sizeof(*c));
	if (!c)
		return KPACK_ERROR_OUT_OF_MEMORY;
	if (!read_environment(c) || kp_cache_init(&c->archives, NULL)) {
		free_settings(c);
		return KPACK_ERROR_OUT_OF_MEMORY;
	}
	kp_trace(c->trace, "cache created%s%s%s", c->disabled ? ", disabled" : "",
		 c->instead.size ? ", ROCM_KPACK_PATH" : "",
		 c->before.size ? ", ROCM_KPACK_PATH_PREFIX" : "");
	*cache = c;
	return KPACK_SUCCESS;
}

void kpack_cache_destroy(kpack_cache_t cache)
{
	if (!cache)
		return;
	kp_cache_fini(&cache->archives);
	free_settings(cache);
}

/* ---- which files ---- */

static kpack_error_t add_list(struct kp_lookup *l, const struct path_list *list,
			      struct kpackx_error *why)
{
	for (size_t at = 0; at < list->size; at += strlen(list->text + at) + 1) {
		char *path = strdup(list->text + at);

		if (!path)
			return kp_fail_memory(why, strlen(list->text + at), "a path");
		KP_TRY(kp_lookup_add(l, path, why));
	}
	return KPACK_SUCCESS;
}

/* A search path of a marker, to be resolved for each target. */
struct pattern {
	struct kp_lookup *lookup;
	const char *text;
	const char *binary;
	struct kpackx_error *why;
	kpack_error_t err;
};

static bool add_target(struct kp_span target, void *arg)
{
	struct pattern *p = arg;
	char *path;

	p->err = kp_search_resolve(p->text, target, p->binary, &path, p->why);
	if (p->err == KPACK_SUCCESS)
		p->err = kp_lookup_add(p->lookup, path, p->why);
	else if (p->err == KPACK_ERROR_INVALID_ARGUMENT)
		p->err = KPACK_SUCCESS; /* too long to be any file's */
	return p->err == KPACK_SUCCESS;
}

static kpack_error_t add_pattern(struct pattern *p, const struct kp_lookup_want *want)
{
	p->err = KPACK_SUCCESS;
	if (!kp_search_has_arch(p->text)) {
		add_target((struct kp_span){0}, p);
		return p->err;
	}
	for (size_t i = 0; i < want->n_archs && !p->err; i++)
		if (want->archs[i])
			kp_search_targets(kp_span_str(want->archs[i]), add_target, p);
	return p->err;
}

static kpack_error_t add_files(const struct kpack_cache *c, const struct kp_marker *m,
			       const char *binary, const struct kp_lookup_want *want,
			       struct kp_lookup *l, struct kpackx_error *why)
{
	if (c->instead.size)
		return add_list(l, &c->instead, why);
	KP_TRY(add_list(l, &c->before, why));
	for (size_t i = 0; i < m->n_search_paths; i++) {
		struct pattern p = {.lookup = l,
				    .text = m->search_paths[i],
				    .binary = binary,
				    .why = why};

		KP_TRY(add_pattern(&p, want));
	}
	return KPACK_SUCCESS;
}

/* ---- loading ---- */

/* The marker at AT, whose size nobody says. */
static kpack_error_t read_marker(const void *at, struct kp_marker *out,
				 struct kpackx_error *why)
{
	uint8_t *copy = malloc(KP_MARKER_MAX);
	struct kpackx_error reason = {0};
	kpack_error_t err;
	size_t size = 0;

	if (!copy)
		return kp_fail_memory(why, KP_MARKER_MAX, "a marker");
	err = kp_probe(at, copy, KP_MARKER_MAX, &size, &reason);
	if (!err && size == 0)
		err = kp_fail(&reason, KPACK_ERROR_INVALID_METADATA,
			      "marker: no readable memory at %p", at);
	if (!err)
		err = kp_marker_parse((struct kp_span){copy, size}, out, &reason);
	free(copy);
	/* the caller has no table of contents: what no MessagePack is, is no marker */
	if (err == KPACK_ERROR_MSGPACK_PARSE_FAILED)
		err = KPACK_ERROR_INVALID_METADATA;
	return err ? kp_fail(why, err, "%s", reason.text) : KPACK_SUCCESS;
}

static kpack_error_t look_up(struct kpack_cache *c, const struct kp_marker *m,
			     const char *binary, const struct kp_lookup_want *want,
			     void **data, size_t *size, struct kpackx_error *why)
{
	struct kp_lookup l = {.cache = &c->archives, .trace = c->trace};
	kpack_error_t err = add_files(c, m, binary, want, &l, why);

	if (!err)
		err = kp_lookup_load(&l, want, data, size, why);
	kp_lookup_fini(&l);
	return err;
}

static kpack_error_t load(struct kpack_cache *c, const void *marker, const char *binary,
			  uint32_t index, struct kp_lookup_want *want, void **data,
			  size_t *size, struct kpackx_error *why)
{
	struct kp_marker m;
	kpack_error_t err;
	char *key;

	if (c->disabled)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "switched off by ROCM_KPACK_DISABLE");
	KP_TRY(read_marker(marker, &m, why));
	if (asprintf(&key, "%s#%u", m.kernel_name, index) < 0) {
		kp_marker_fini(&m);
		return kp_fail_memory(why, KP_MARKER_MAX, "a key");
	}
	want->key = key;
	err = look_up(c, &m, binary, want, data, size, why);
	free(key);
	kp_marker_fini(&m);
	return err;
}

kpack_error_t kpackx_load_code_object(kpack_cache_t cache, const void *hipk_metadata,
				      const char *binary_path, uint32_t co_index,
				      const char *const *arch_list, size_t arch_count,
				      void **code_object_out,
				      size_t *code_object_size_out,
				      struct kpackx_error *why)
{
	struct kp_lookup_want want = {.archs = arch_list, .n_archs = arch_count};
	struct kpackx_error reason = {0};
	kpack_error_t err;

	if (!cache || !hipk_metadata || !binary_path || !arch_list || arch_count == 0 ||
	    !code_object_out || !code_object_size_out)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       arch_count ? "an argument is NULL" : "no architectures");
	err = load(cache, hipk_metadata, binary_path, co_index, &want, code_object_out,
		   code_object_size_out, &reason);
	if (!err)
		return KPACK_SUCCESS;
	kp_trace(cache->trace, "%s: %s", kpackx_error_name(err), reason.text);
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

/* ---- asking about files ---- */

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
