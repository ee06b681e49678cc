/* SPDX-License-Identifier: MIT */
/*
 * Sorting and searching arrays of structs by what their fields hold, in one line at the place
 * of use:
 *
 *	kp_sort(files, n_files, KP_BY_TEXT(struct file, path));
 *	struct file probe = {.path = path};
 *	struct file *f = kp_find(files, n_files, &probe, KP_BY_TEXT(struct file, path));
 *
 * Several keys decide one after the other.  A table that is sorted so often that this shows in a
 * profile has a comparator of its own.
 */
#ifndef KP_CORE_BASE_ORDER_H
#define KP_CORE_BASE_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* What to compare of an item; made by the macros below. */
struct kp_sort_key {
	uint16_t offset;
	uint8_t kind; /* 't' a char pointer, 's' a struct kp_span, 'n' an unsigned number, 'm' memory */
	uint8_t size;
};

#define KP_KEY_(offset, kind, size)                                                      \
	{                                                                                \
		offset, kind, size                                                       \
	}
/* A string, byte by byte; NULL comes first. */
#define KP_BY_TEXT(type, field) KP_KEY_(offsetof(type, field), 't', sizeof(char *))
/* A struct kp_span, byte by byte. */
#define KP_BY_SPAN(type, field) KP_KEY_(offsetof(type, field), 's', 0)
/* A bool, an enum or an unsigned integer of any size. */
#define KP_BY_NUMBER(type, field)                                                        \
	KP_KEY_(offsetof(type, field), 'n', sizeof(((type *)0)->field))
/* An array of bytes, as memcmp. */
#define KP_BY_BYTES(type, field)                                                         \
	KP_KEY_(offsetof(type, field), 'm', sizeof(((type *)0)->field))
/* The items are strings themselves, or unsigned integers of TYPE. */
#define KP_AS_TEXT KP_KEY_(0, 't', sizeof(char *))
#define KP_AS_NUMBER(type) KP_KEY_(0, 'n', sizeof(type))

#define KP_KEYS_(...)                                                                    \
	(const struct kp_sort_key[]){__VA_ARGS__},                                       \
		sizeof((const struct kp_sort_key[]){__VA_ARGS__}) /                      \
			sizeof(struct kp_sort_key)

/* Sort COUNT items of ARRAY by keys; items with equal keys keep no order. */
#define kp_sort(array, count, ...)                                                       \
	kp_sort_by(array, count, sizeof *(array), KP_KEYS_(__VA_ARGS__))

/* The index of the first item of the sorted ARRAY that is not below PROBE, an item of its type. */
#define kp_lower_bound(array, count, probe, ...)                                         \
	kp_lower_bound_by(array, count, sizeof *(array), probe, KP_KEYS_(__VA_ARGS__))

/* The first item of the sorted ARRAY with PROBE's keys, or NULL. */
#define kp_find(array, count, probe, ...)                                                \
	kp_find_by(array, count, sizeof *(array), probe, KP_KEYS_(__VA_ARGS__))

/* The bool, enum or unsigned integer of SIZE bytes at AT. */
uint64_t kp_number_at(const void *at, size_t size);

void kp_sort_by(void *array, size_t count, size_t item, const struct kp_sort_key *keys,
		size_t n_keys);
size_t kp_lower_bound_by(const void *array, size_t count, size_t item, const void *probe,
			 const struct kp_sort_key *keys, size_t n_keys);
void *kp_find_by(const void *array, size_t count, size_t item, const void *probe,
		 const struct kp_sort_key *keys, size_t n_keys);
/* Below 0, 0, or above 0, as A stands before, with or behind B. */
int kp_compare_by(const void *a, const void *b, const struct kp_sort_key *keys,
		  size_t n_keys);

#endif
