/* SPDX-License-Identifier: MIT */
/*
 * Find the code objects at the address that a wrapper leads to, as a HIP runtime does: in
 * a plain bundle, a compressed one (CCOB 2 and 3, zstd), or one bare AMDGPU ELF.
 *
 * This is an independent check of core's reading: it shares no code with it.  Like a
 * runtime it has an address and no size, and trusts the bytes.
 */
#ifndef STUB_FAT_H
#define STUB_FAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAT_ARCH_MAX 64

struct fat_object {
	char arch[FAT_ARCH_MAX]; /* processor and features, features sorted */
	const uint8_t *data;
	size_t size;
};

struct fat {
	struct fat_object *objects; /* for GPUs, in stored order */
	size_t n_objects;
	void *unpacked; /* bytes of a compressed bundle; the objects point into them */
};

/* Read the container at ADDRESS.  False: no runtime knows its format. */
bool fat_read(const void *address, struct fat *out);
void fat_fini(struct fat *fat);

/*
 * The object for an agent ARCH: the first that has all of its features, else one with
 * fewer features, the last ones dropped first.  NULL: none.
 */
const struct fat_object *fat_find(const struct fat *fat, const char *arch);

#endif
