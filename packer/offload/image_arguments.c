/* SPDX-License-Identifier: MIT */
#include "image_arguments.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"

/* The parts in the order of the text; a key may occur in several of them. */
struct fields {
	struct kp_span *keys, *values;
	size_t count;
};

static size_t count_parts(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

static void split_parts(const char *text, struct fields *parts)
{
	for (;;) {
		size_t n = strcspn(text, ","), key = strcspn(text, "=");

		key = key < n ? key : n;
		parts->keys[parts->count] = (struct kp_span){(const uint8_t *)text, key};
		parts->values[parts->count++] = (struct kp_span){
			(const uint8_t *)text + key + (key < n), n - key - (key < n)};
		if (!text[n])
			return;
		text += n + 1;
	}
}

static bool is_first(const struct fields *parts, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (kp_span_eq(parts->keys[i], parts->keys[number]))
			return false;
	return true;
}

/*
 * Add the key of part FIRST, its first occurrence, with the key's values joined by
 * commas.
 */
static kpack_error_t add_joined(const struct fields *parts, size_t first,
				struct kp_pairs *out, struct kpackx_error *why)
{
	kpack_error_t err;
	size_t size = 0;
	char *text = NULL;
	FILE *joined = xmemstream(&text, &size);

	for (size_t i = first; i < parts->count; i++) {
		if (!kp_span_eq(parts->keys[i], parts->keys[first]))
			continue;
		if (i > first)
			putc(',', joined);
		fwrite(parts->values[i].data, 1, parts->values[i].size, joined);
	}
	fclose(joined);
	err = kp_pairs_add(out, parts->keys[first],
			   (struct kp_span){(const uint8_t *)text, size}, why);
	free(text);
	return err;
}

/* Add a pair to OUT for each key, in the order of LLVM's table. */
static kpack_error_t add_all(const struct fields *parts, enum llvm_hash hash,
			     struct kp_pairs *out, struct kpackx_error *why)
{
	struct kp_span *keys = xcalloc(parts->count, sizeof(*keys));
	size_t *numbers = xmalloc(parts->count * sizeof(*numbers)), n = 0;
	size_t *order = xmalloc(parts->count * sizeof(*order));
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < parts->count; i++) {
		if (is_first(parts, i)) {
			numbers[n] = i;
			keys[n++] = parts->keys[i];
		}
	}
	llvm_hash_order(hash, keys, n, order);
	for (size_t i = 0; i < n && !err; i++)
		err = add_joined(parts, numbers[order[i]], out, why);
	free(keys);
	free(numbers);
	free(order);
	return err;
}

kpack_error_t image_arguments_read(const char *text, enum llvm_hash hash,
				   struct kp_pairs *out, struct kpackx_error *why)
{
	size_t n = count_parts(text);
	struct fields parts = {.keys = xcalloc(n, sizeof(*parts.keys)),
			       .values = xcalloc(n, sizeof(*parts.values))};
	kpack_error_t err;

	*out = (struct kp_pairs){0};
	split_parts(text, &parts);
	err = add_all(&parts, hash, out, why);
	free(parts.keys);
	free(parts.values);
	if (err)
		kp_pairs_fini(out);
	return err;
}
