/* SPDX-License-Identifier: MIT */
#include "host_hash.h"

static const char *const prefixes[] = {
	"__hip_cuid_", "__hip_fatbin_", "__hip_gpubin_handle_", ".static.",
	"__static__",  ".intern.",      "__intern__",
};

static bool is_digit(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool has_prefix(struct kp_span text, size_t at)
{
	struct kp_span before = kp_span_head(text, at);

	for (size_t i = 0; i < KP_COUNT(prefixes); i++)
		if (kp_span_ends(before, prefixes[i]))
			return true;
	return false;
}

bool host_hash_at(struct kp_span text, size_t at)
{
	if (at == 0 || !kp_range_ok(text.size, at, HOST_HASH_SIZE) ||
	    (text.data[at - 1] != '_' && text.data[at - 1] != '.'))
		return false;
	for (size_t i = 0; i < HOST_HASH_SIZE; i++)
		if (!is_digit(text.data[at + i]))
			return false;
	return (at + HOST_HASH_SIZE == text.size ||
		!is_digit(text.data[at + HOST_HASH_SIZE])) &&
	       has_prefix(text, at);
}

bool host_hash_covers(struct kp_span text, size_t at, size_t *begin)
{
	for (size_t back = 0; back < HOST_HASH_SIZE && back <= at; back++) {
		if (!host_hash_at(text, at - back))
			continue;
		*begin = at - back;
		return true;
	}
	return false;
}

static size_t skip_hash(struct kp_span name, size_t at)
{
	return host_hash_at(name, at) ? at + HOST_HASH_SIZE : at;
}

int host_name_cmp(struct kp_span a, struct kp_span b)
{
	size_t i = 0, j = 0;

	for (;; i++, j++) {
		i = skip_hash(a, i);
		j = skip_hash(b, j);
		if (i == a.size || j == b.size)
			return (i < a.size) - (j < b.size);
		if (a.data[i] != b.data[j])
			return KP_ORDER(a.data[i], b.data[j]);
	}
}
