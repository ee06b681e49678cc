/* SPDX-License-Identifier: MIT */
#include "pairs.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char *copy_bytes(struct kp_span bytes)
{
	char *out = malloc(bytes.size + 1);

	if (!out)
		return NULL;
	if (bytes.size)
		memcpy(out, bytes.data, bytes.size);
	out[bytes.size] = '\0';
	return out;
}

kpack_error_t kp_pairs_add(struct kp_pairs *pairs, struct kp_span name,
			   struct kp_span value, struct kpackx_error *why)
{
	struct kp_pair *grown =
		realloc(pairs->items, (pairs->count + 1) * sizeof(*grown));
	struct kp_pair pair;

	if (!grown)
		return kp_fail_memory(why, (pairs->count + 1) * sizeof(*grown), "pairs");
	pairs->items = grown;
	pair = (struct kp_pair){copy_bytes(name), copy_bytes(value), value.size};
	if (!pair.name || !pair.value) {
		free(pair.name);
		free(pair.value);
		return kp_fail_memory(why, name.size + value.size, "a pair");
	}
	pairs->items[pairs->count++] = pair;
	return KPACK_SUCCESS;
}

kpack_error_t kp_pairs_print(struct kp_pairs *pairs, struct kpackx_error *why,
			     const char *name, const char *fmt, ...)
{
	kpack_error_t err;
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return kp_fail_memory(why, 0, "a value");
	err = kp_pairs_add(pairs, kp_span_str(name), kp_span_str(text), why);
	free(text);
	return err;
}

const char *kp_pairs_find(const struct kp_pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (strcmp(pairs->items[i].name, name) == 0)
			return pairs->items[i].value;
	return NULL;
}

void kp_pairs_fini(struct kp_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		free(pairs->items[i].name);
		free(pairs->items[i].value);
	}
	free(pairs->items);
	*pairs = (struct kp_pairs){0};
}
