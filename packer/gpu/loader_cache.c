/* SPDX-License-Identifier: MIT */
#include "loader_cache.h"
#include <string.h>

/* Followed by u32 number of entries, u32 bytes of strings, and 20 bytes more. */
static const char magic[] = "glibc-ld.so.cache1.1";

enum {
	MAGIC_SIZE = sizeof(magic) - 1,
	HEADER_SIZE = MAGIC_SIZE + 28,
	/* i32 flags, u32 name, u32 path, u32 OS version, u64 capabilities */
	ENTRY_SIZE = 24,
};

/* The machine's byte order: the file is this machine's own. */
static uint32_t number_at(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return n;
}

/* The string at OFFSET; NULL: it does not end in CACHE. */
static const char *string_at(struct kp_span cache, uint32_t offset)
{
	if (offset >= cache.size || !memchr(cache.data + offset, 0, cache.size - offset))
		return NULL;
	return (const char *)cache.data + offset;
}

/* Offsets count from the table's own beginning. */
static bool find_table(struct kp_span *cache)
{
	const uint8_t *at =
		cache->size ? memmem(cache->data, cache->size, magic, MAGIC_SIZE) : NULL;

	if (!at)
		return false;
	cache->size -= (size_t)(at - cache->data);
	cache->data = at;
	return cache->size >= HEADER_SIZE;
}

bool loader_cache_walk(struct kp_span cache,
		       void (*fn)(const char *name, const char *path, void *arg),
		       void *arg)
{
	size_t n;

	if (!find_table(&cache))
		return false;
	n = number_at(cache.data + MAGIC_SIZE);
	if (n > (cache.size - HEADER_SIZE) / ENTRY_SIZE)
		return false;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *entry = cache.data + HEADER_SIZE + i * ENTRY_SIZE;
		const char *name = string_at(cache, number_at(entry + 4));
		const char *path = string_at(cache, number_at(entry + 8));

		if (name && path)
			fn(name, path, arg);
	}
	return true;
}
