/* SPDX-License-Identifier: MIT */
/*
 * unpack ARCHIVE...: read tables of contents as AMD's reader does, and print the milliseconds of
 * processor time: msgpack-c unpacks a whole table into objects, and each entry of these is copied
 * into a sorted map, by key, of sorted maps by architecture.
 */
#include <msgpack.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/base/span.h"

struct mapped {
	char *name, *type;
	uint64_t ordinal, size;
	void *below; /* of a key: its architectures */
};

static void die(const char *path)
{
	fprintf(stderr, "unpack: %s\n", path);
	exit(1);
}

static char *text(const msgpack_object *o)
{
	if (o->type != MSGPACK_OBJECT_STR)
		die("not a string");
	return strndup(o->via.str.ptr, o->via.str.size);
}

static const msgpack_object *field(const msgpack_object *o, const char *name)
{
	size_t size = strlen(name);

	for (uint32_t i = 0; o->type == MSGPACK_OBJECT_MAP && i < o->via.map.size; i++) {
		const msgpack_object_kv *kv = &o->via.map.ptr[i];

		if (kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == size &&
		    memcmp(kv->key.via.str.ptr, name, size) == 0)
			return &kv->val;
	}
	die(name);
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct mapped *)a)->name, ((const struct mapped *)b)->name);
}

/* The entry NAME of the map at ROOT, made if it is new. */
static struct mapped *mapped_at(void **root, char *name)
{
	struct mapped *e = calloc(1, sizeof(*e)), **found;

	if (!e)
		die("memory");
	e->name = name;
	found = tsearch(e, root, by_name);
	return *found;
}

static void walk(const msgpack_object *toc)
{
	void *keys = NULL;

	for (uint32_t i = 0; i < toc->via.map.size; i++) {
		const msgpack_object_kv *key = &toc->via.map.ptr[i];
		struct mapped *binary = mapped_at(&keys, text(&key->key));

		for (uint32_t k = 0; k < key->val.via.map.size; k++) {
			const msgpack_object_kv *arch = &key->val.via.map.ptr[k];
			struct mapped *e = mapped_at(&binary->below, text(&arch->key));

			e->ordinal = field(&arch->val, "ordinal")->via.u64;
			e->size = field(&arch->val, "original_size")->via.u64;
			e->type = text(field(&arch->val, "type"));
		}
	}
}

static void unpack(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t head[16];
	msgpack_unpacked table;
	size_t size, at;
	char *bytes;

	if (!f || fread(head, sizeof(head), 1, f) != 1 || fseek(f, 0, SEEK_END))
		die(path);
	at = (size_t)kp_le64(head + 8);
	size = (size_t)ftell(f) - at;
	bytes = malloc(size);
	if (!bytes || fseek(f, (long)at, SEEK_SET) || fread(bytes, size, 1, f) != 1)
		die(path);
	msgpack_unpacked_init(&table);
	if (msgpack_unpack_next(&table, bytes, size, NULL) != MSGPACK_UNPACK_SUCCESS)
		die(path);
	walk(field(&table.data, "toc"));
	fclose(f);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		unpack(argv[i]);
	printf("%.2f\n", (double)clock() * 1e3 / CLOCKS_PER_SEC);
	return 0;
}
