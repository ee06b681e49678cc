/* SPDX-License-Identifier: MIT */
/*
 * Decoding wrappers, and parsing and writing the marker's MessagePack map.
 *
 *	wrapper   0 u32 magic   4 u32 version   8 u64 pointer   16 u64 index
 *
 * What AMD's runtime reads is read here, too: unknown keys and keys that are no strings are skipped,
 * and bytes behind the map are ignored.
 */
#include "marker.h"
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "core/base/text.h"

bool kp_wrapper_decode(const uint8_t bytes[KP_WRAPPER_SIZE], struct kp_wrapper *out)
{
	struct kp_wrapper w = {
		.magic = kp_le32(bytes),
		.version = kp_le32(bytes + 4),
		.pointer = kp_le64(bytes + 8),
		.index = kp_le64(bytes + 16),
	};

	if ((w.magic != KP_WRAPPER_HIPF && w.magic != KP_WRAPPER_HIPK) ||
	    w.version != KP_WRAPPER_VERSION)
		return false;
	*out = w;
	return true;
}

static kpack_error_t fail_marker(const char *reason, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA, "marker: %s", reason);
}

/* Read the string at the cursor into *OUT. */
static kpack_error_t read_string(struct kp_mp *c, char **out, struct kpackx_error *why)
{
	struct kp_span s;

	if (!kp_mp_str(c, &s))
		return kp_mp_fail(c, "marker", why);
	/* as a C string, the name would be cut */
	if (s.size && memchr(s.data, '\0', s.size))
		return fail_marker("a NUL inside a string", why);
	KP_TRY(kp_new(out, s.size + 1, "a string of the marker", why));
	if (s.size)
		memcpy(*out, s.data, s.size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_marker_parse(struct kp_span bytes, struct kp_marker *out,
			      struct kpackx_error *why)
{
	KP_AUTO(kp_marker) m = {0};
	enum kp_mp_type type;
	uint32_t pairs, count;
	struct kp_mp c;

	if (bytes.size == 0)
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED, "marker: empty");
	if (bytes.size > KP_MARKER_MAX)
		bytes.size = KP_MARKER_MAX;
	c = kp_mp_over(bytes);
	type = kp_mp_peek(&c);
	if (type != KP_MP_MAP && type != KP_MP_BAD)
		return fail_marker("not a map", why);
	if (!kp_mp_map(&c, &pairs))
		return kp_mp_fail(&c, "marker", why);
	while (pairs--) {
		struct kp_span key = {0};

		if (kp_mp_peek(&c) == KP_MP_STR)
			kp_mp_str(&c, &key);
		else
			kp_mp_skip(&c);
		if (!c.fault && kp_span_is(key, "kernel_name") && !m.kernel_name) {
			type = kp_mp_peek(&c);
			if (type != KP_MP_STR && type != KP_MP_BAD)
				return fail_marker("kernel_name: not a string", why);
			KP_TRY(read_string(&c, &m.kernel_name, why));
		} else if (!c.fault && kp_span_is(key, "kpack_search_paths") &&
			   !m.search_paths) {
			type = kp_mp_peek(&c);
			if (type != KP_MP_ARRAY && type != KP_MP_BAD)
				return fail_marker("kpack_search_paths: not an array",
						   why);
			if (!kp_mp_array(&c, &count))
				return kp_mp_fail(&c, "marker", why);
			KP_TRY(kp_new(&m.search_paths, count, "the marker's search paths",
				      why));
			while (count--) {
				if (kp_mp_peek(&c) != KP_MP_STR) {
					if (!kp_mp_skip(&c))
						return kp_mp_fail(&c, "marker", why);
					continue;
				}
				KP_TRY(read_string(&c, &m.search_paths[m.n_search_paths],
						   why));
				m.n_search_paths++;
			}
			if (!m.n_search_paths)
				return fail_marker("kpack_search_paths: no string in it",
						   why);
		} else if (!kp_mp_skip(&c)) {
			return kp_mp_fail(&c, "marker", why);
		}
	}
	if (!m.kernel_name)
		return fail_marker("kernel_name: missing", why);
	if (!m.search_paths)
		return fail_marker("kpack_search_paths: missing", why);
	m.size = kp_mp_offset(&c);
	*out = m;
	/* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): so that it stays allocated */
	m = (struct kp_marker){0};
	return KPACK_SUCCESS;
}

void kp_marker_fini(struct kp_marker *marker)
{
	for (size_t i = 0; i < marker->n_search_paths; i++)
		free(marker->search_paths[i]);
	free(marker->search_paths);
	free(marker->kernel_name);
	*marker = (struct kp_marker){0};
}

bool kp_marker_same(const struct kp_marker *a, const struct kp_marker *b)
{
	if (strcmp(a->kernel_name, b->kernel_name) != 0 ||
	    a->n_search_paths != b->n_search_paths)
		return false;
	for (size_t i = 0; i < a->n_search_paths; i++)
		if (strcmp(a->search_paths[i], b->search_paths[i]) != 0)
			return false;
	return true;
}

static int append_bytes(void *out, const char *bytes, size_t size)
{
	kp_compose_span(out, (struct kp_span){(const uint8_t *)bytes, size});
	return 0;
}

/* Pack S, which is WHAT; NULL: a key. */
static kpack_error_t pack_string(msgpack_packer *pk, const char *s, const char *what,
				 struct kpackx_error *why)
{
	size_t n = strlen(s);

	if (what && (!n || n > KP_NAME_MAX))
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: %s of %zu bytes, not 1 to %d", what, n,
			       KP_NAME_MAX);
	msgpack_pack_str_with_body(pk, s, n);
	return KPACK_SUCCESS;
}

kpack_error_t kp_marker_write(const struct kp_marker *m, uint8_t **out, size_t *size,
			      struct kpackx_error *why)
{
	KP_AUTO(kp_compose) text = {0};
	msgpack_packer pk;

	if (m->n_search_paths == 0)
		return fail_marker("no search path", why);
	msgpack_packer_init(&pk, &text, append_bytes);
	msgpack_pack_map(&pk, 2);
	pack_string(&pk, "kpack_search_paths", NULL, why);
	msgpack_pack_array(&pk, m->n_search_paths);
	for (size_t i = 0; i < m->n_search_paths; i++)
		KP_TRY(pack_string(&pk, m->search_paths[i], "a search path", why));
	pack_string(&pk, "kernel_name", NULL, why);
	KP_TRY(pack_string(&pk, m->kernel_name, "kernel_name", why));
	if (text.size > KP_MARKER_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: %zu bytes of at most %d", text.size,
			       KP_MARKER_MAX);
	*size = text.size;
	return kp_compose_take(&text, (char **)out, why);
}
