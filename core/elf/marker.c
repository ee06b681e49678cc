/* SPDX-License-Identifier: MIT */
#include "marker.h"
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"

bool kp_wrapper_decode(const uint8_t bytes[KP_WRAPPER_SIZE], struct kp_wrapper *out)
{
	struct kp_wrapper w = {
		.magic = kp_le32(bytes),
		.version = kp_le32(bytes + 4),
		.pointer = kp_le64(bytes + 8),
		.index = kp_le64(bytes + 16),
	};

	if (w.magic != KP_WRAPPER_HIPF && w.magic != KP_WRAPPER_HIPK)
		return false;
	if (w.version != KP_WRAPPER_VERSION)
		return false;
	*out = w;
	return true;
}

static kpack_error_t fail_invalid(const char *reason, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_METADATA, "marker: %s", reason);
}

static kpack_error_t fail_broken(const struct kp_mp *c, struct kpackx_error *why)
{
	return kp_mp_fail(c, "marker", why);
}

/* Read the string at the cursor into *OUT. */
static kpack_error_t read_string(struct kp_mp *c, char **out, struct kpackx_error *why)
{
	struct kp_span s;
	char *copy;

	if (!kp_mp_str(c, &s))
		return fail_broken(c, why);
	/* as a C string, the name would be cut */
	if (s.size && memchr(s.data, '\0', s.size))
		return fail_invalid("a NUL inside a string", why);
	copy = calloc(1, s.size + 1);
	if (!copy)
		return kp_fail_memory(why, s.size + 1, "a string of the marker");
	if (s.size)
		memcpy(copy, s.data, s.size);
	*out = copy;
	return KPACK_SUCCESS;
}

static kpack_error_t read_name(struct kp_mp *c, struct kp_marker *m,
			       struct kpackx_error *why)
{
	enum kp_mp_type type = kp_mp_peek(c);

	if (type != KP_MP_STR && type != KP_MP_BAD)
		return fail_invalid("kernel_name: not a string", why);
	return read_string(c, &m->kernel_name, why);
}

static kpack_error_t read_paths(struct kp_mp *c, struct kp_marker *m,
				struct kpackx_error *why)
{
	enum kp_mp_type type = kp_mp_peek(c);
	uint32_t count;

	if (type != KP_MP_ARRAY && type != KP_MP_BAD)
		return fail_invalid("kpack_search_paths: not an array", why);
	if (!kp_mp_array(c, &count))
		return fail_broken(c, why);
	if (count == 0)
		return fail_invalid("kpack_search_paths: no string in it", why);
	m->search_paths = calloc(count, sizeof(*m->search_paths));
	if (!m->search_paths)
		return kp_fail_memory(why, count * sizeof(*m->search_paths),
				      "the marker's search paths");
	for (uint32_t i = 0; i < count; i++) {
		if (kp_mp_peek(c) == KP_MP_STR) {
			KP_TRY(read_string(c, &m->search_paths[m->n_search_paths], why));
			m->n_search_paths++;
		} else if (!kp_mp_skip(c)) {
			return fail_broken(c, why);
		}
	}
	if (m->n_search_paths == 0)
		return fail_invalid("kpack_search_paths: no string in it", why);
	return KPACK_SUCCESS;
}

/* Read one key and its value; skip repeated and unknown keys. */
static kpack_error_t read_pair(struct kp_mp *c, struct kp_marker *m,
			       struct kpackx_error *why)
{
	struct kp_span key = {0};

	if (kp_mp_peek(c) == KP_MP_STR)
		kp_mp_str(c, &key);
	else
		kp_mp_skip(c);
	if (!c->fault && kp_span_is(key, "kernel_name") && !m->kernel_name)
		return read_name(c, m, why);
	if (!c->fault && kp_span_is(key, "kpack_search_paths") && !m->search_paths)
		return read_paths(c, m, why);
	return kp_mp_skip(c) ? KPACK_SUCCESS : fail_broken(c, why);
}

static kpack_error_t read_map(struct kp_mp *c, struct kp_marker *m,
			      struct kpackx_error *why)
{
	enum kp_mp_type type = kp_mp_peek(c);
	uint32_t pairs;

	if (type != KP_MP_MAP && type != KP_MP_BAD)
		return fail_invalid("not a map", why);
	if (!kp_mp_map(c, &pairs))
		return fail_broken(c, why);
	while (pairs--)
		KP_TRY(read_pair(c, m, why));
	if (!m->kernel_name)
		return fail_invalid("kernel_name: missing", why);
	if (!m->search_paths)
		return fail_invalid("kpack_search_paths: missing", why);
	m->size = kp_mp_offset(c);
	return KPACK_SUCCESS;
}

kpack_error_t kp_marker_parse(struct kp_span bytes, struct kp_marker *out,
			      struct kpackx_error *why)
{
	struct kp_marker m = {0};
	struct kp_mp c;
	kpack_error_t err;

	if (bytes.size == 0)
		return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED, "marker: empty");
	if (bytes.size > KP_MARKER_MAX)
		bytes.size = KP_MARKER_MAX;
	c = kp_mp_over(bytes);
	err = read_map(&c, &m, why);
	if (err != KPACK_SUCCESS) {
		kp_marker_fini(&m);
		return err;
	}
	*out = m;
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

/* ---- writing ---- */

static kpack_error_t check_string(const char *s, const char *what,
				  struct kpackx_error *why)
{
	size_t n = strlen(s);

	if (n == 0 || n > KP_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: %s of %zu bytes, not 1 to %d", what, n,
			       KP_NAME_MAX);
	return KPACK_SUCCESS;
}

static kpack_error_t check_marker(const struct kp_marker *m, struct kpackx_error *why)
{
	if (m->n_search_paths == 0)
		return fail_invalid("no search path", why);
	for (size_t i = 0; i < m->n_search_paths; i++)
		KP_TRY(check_string(m->search_paths[i], "a search path", why));
	return check_string(m->kernel_name, "kernel_name", why);
}

static int put_string(msgpack_packer *pk, const char *s)
{
	size_t n = strlen(s);

	return msgpack_pack_str(pk, n) | msgpack_pack_str_body(pk, s, n);
}

static bool put_map(msgpack_sbuffer *buf, const struct kp_marker *m)
{
	msgpack_packer pk;
	int failed;

	msgpack_packer_init(&pk, buf, msgpack_sbuffer_write);
	failed = msgpack_pack_map(&pk, 2);
	failed |= put_string(&pk, "kpack_search_paths");
	failed |= msgpack_pack_array(&pk, m->n_search_paths);
	for (size_t i = 0; i < m->n_search_paths; i++)
		failed |= put_string(&pk, m->search_paths[i]);
	failed |= put_string(&pk, "kernel_name");
	failed |= put_string(&pk, m->kernel_name);
	return !failed;
}

kpack_error_t kp_marker_write(const struct kp_marker *marker, uint8_t **out, size_t *size,
			      struct kpackx_error *why)
{
	msgpack_sbuffer buf;
	kpack_error_t err = KPACK_SUCCESS;

	KP_TRY(check_marker(marker, why));
	msgpack_sbuffer_init(&buf);
	if (!put_map(&buf, marker))
		err = kp_fail_memory(why, buf.size, "a marker");
	else if (buf.size > KP_MARKER_MAX)
		err = kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			      "marker: %zu bytes of at most %d", buf.size, KP_MARKER_MAX);
	if (!err) {
		*size = buf.size;
		*out = (uint8_t *)msgpack_sbuffer_release(&buf);
	}
	msgpack_sbuffer_destroy(&buf);
	return err;
}
