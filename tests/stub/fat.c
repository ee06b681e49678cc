/* SPDX-License-Identifier: MIT */
#include "fat.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FEATURES_MAX 8

static uint32_t u32(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return n;
}

static uint64_t u64(const uint8_t *p)
{
	uint64_t n;

	memcpy(&n, p, sizeof(n));
	return n;
}

/* --- names of targets --------------------------------------------------------------- */

struct target {
	char text[FAT_ARCH_MAX]; /* cut at the colons */
	char *features[FEATURES_MAX];
	size_t n_features;
};

static void target_split(struct target *t, const char *text)
{
	snprintf(t->text, sizeof(t->text), "%s", text);
	t->n_features = 0;
	for (char *p = t->text; *p; p++)
		if (*p == ':' && t->n_features < FEATURES_MAX) {
			*p = '\0';
			t->features[t->n_features++] = p + 1;
		}
}

/*
 * The processor with the features whose bits are set; the first feature has the highest
 * bit.
 */
static void target_join(const struct target *t, unsigned mask, char out[FAT_ARCH_MAX])
{
	int at = snprintf(out, FAT_ARCH_MAX, "%s", t->text);

	for (size_t i = 0; i < t->n_features; i++)
		if (mask >> (t->n_features - 1 - i) & 1)
			at += snprintf(out + at, FAT_ARCH_MAX - at, ":%s",
				       t->features[i]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void set_arch(struct fat_object *o, const char *text)
{
	struct target t;

	target_split(&t, text);
	qsort(t.features, t.n_features, sizeof(t.features[0]), by_text);
	target_join(&t, ~0u, o->arch);
}

const struct fat_object *fat_find(const struct fat *fat, const char *arch)
{
	struct target t;
	char wanted[FAT_ARCH_MAX];

	target_split(&t, arch);
	for (unsigned left = 1u << t.n_features; left-- > 0;) {
		target_join(&t, left, wanted);
		for (size_t i = 0; i < fat->n_objects; i++)
			if (strcmp(fat->objects[i].arch, wanted) == 0)
				return &fat->objects[i];
	}
	return NULL;
}

/* --- bundles ------------------------------------------------------------------------ */

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";

/* The target ID of an entry ID, which is at the end in all spellings. */
static bool id_target(const char *id, char out[FAT_ARCH_MAX])
{
	const char *target = strstr(id, "gfx");

	if (strncmp(id, "host", 4) == 0 || !target)
		return false;
	snprintf(out, FAT_ARCH_MAX, "%s", target);
	return true;
}

static bool bundle_read(const uint8_t *b, struct fat *out)
{
	uint64_t count = u64(b + 24);
	const uint8_t *row = b + 32;

	out->objects = calloc(count + 1, sizeof(*out->objects));
	if (!out->objects)
		return false;
	for (; count > 0; count--, row += 24 + u64(row + 16)) {
		struct fat_object *o = &out->objects[out->n_objects];
		char id[128], arch[FAT_ARCH_MAX];

		snprintf(id, sizeof(id), "%.*s", (int)u64(row + 16),
			 (const char *)row + 24);
		if (!id_target(id, arch))
			continue;
		set_arch(o, arch);
		o->data = b + u64(row);
		o->size = u64(row + 8);
		out->n_objects++;
	}
	return true;
}

static bool ccob_read(const uint8_t *c, struct fat *out)
{
	bool wide = (u32(c + 4) & 0xffff) == 3;
	size_t header = wide ? 32 : 24;
	size_t size = wide ? u64(c + 8) : u32(c + 8);
	size_t plain = wide ? u64(c + 16) : u32(c + 12);

	if (u32(c + 4) >> 16 != 1) /* zstd */
		return false;
	out->unpacked = malloc(plain);
	if (!out->unpacked ||
	    ZSTD_decompress(out->unpacked, plain, c + header, size - header) != plain)
		return false;
	return bundle_read(out->unpacked, out);
}

/* --- bare code objects -------------------------------------------------------------- */

static const struct {
	unsigned mach;
	const char *name;
} processors[] = {
	{0x2a, "gfx803"},        {0x2c, "gfx900"},          {0x2d, "gfx902"},
	{0x2e, "gfx904"},        {0x2f, "gfx906"},          {0x30, "gfx908"},
	{0x31, "gfx909"},        {0x32, "gfx90c"},          {0x33, "gfx1010"},
	{0x34, "gfx1011"},       {0x35, "gfx1012"},         {0x36, "gfx1030"},
	{0x37, "gfx1031"},       {0x38, "gfx1032"},         {0x39, "gfx1033"},
	{0x3d, "gfx1035"},       {0x3e, "gfx1034"},         {0x3f, "gfx90a"},
	{0x41, "gfx1100"},       {0x42, "gfx1013"},         {0x43, "gfx1150"},
	{0x44, "gfx1103"},       {0x45, "gfx1036"},         {0x46, "gfx1101"},
	{0x47, "gfx1102"},       {0x48, "gfx1200"},         {0x4a, "gfx1151"},
	{0x4c, "gfx942"},        {0x4e, "gfx1201"},         {0x4f, "gfx950"},
	{0x51, "gfx9-generic"},  {0x52, "gfx10-1-generic"}, {0x53, "gfx10-3-generic"},
	{0x54, "gfx11-generic"}, {0x55, "gfx1152"},         {0x58, "gfx1153"},
	{0x59, "gfx12-generic"}, {0x5f, "gfx9-4-generic"},
};

static const char *sign(unsigned two_bits)
{
	return two_bits == 3 ? "+" : "-";
}

/* Code object version 4 and later: 2 and 3 in the two bits are off and on. */
static void elf_arch(const Elf64_Ehdr *h, struct fat_object *o)
{
	unsigned xnack = h->e_flags >> 8 & 3, sramecc = h->e_flags >> 10 & 3;
	int at = snprintf(o->arch, sizeof(o->arch), "?");

	for (size_t i = 0; i < sizeof(processors) / sizeof(processors[0]); i++)
		if (processors[i].mach == (h->e_flags & 0xff))
			at = snprintf(o->arch, sizeof(o->arch), "%s", processors[i].name);
	if (sramecc > 1)
		at += snprintf(o->arch + at, sizeof(o->arch) - at, ":sramecc%s",
			       sign(sramecc));
	if (xnack > 1)
		snprintf(o->arch + at, sizeof(o->arch) - at, ":xnack%s", sign(xnack));
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t elf_size(const uint8_t *e)
{
	Elf64_Ehdr h;
	Elf64_Shdr s;
	size_t end;

	memcpy(&h, e, sizeof(h));
	end = h.e_shoff + (size_t)h.e_shnum * sizeof(s);
	for (unsigned i = 0; i < h.e_shnum; i++) {
		memcpy(&s, e + h.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_NOBITS)
			end = larger(end, s.sh_offset + s.sh_size);
	}
	return end;
}

static bool elf_read(const uint8_t *e, struct fat *out)
{
	Elf64_Ehdr h;

	memcpy(&h, e, sizeof(h));
	out->objects = calloc(1, sizeof(*out->objects));
	if (h.e_machine != 224 || !out->objects)
		return false;
	elf_arch(&h, out->objects);
	out->objects->data = e;
	out->objects->size = elf_size(e);
	out->n_objects = 1;
	return true;
}

/* --- containers --------------------------------------------------------------------- */

static const struct {
	const char *magic;
	bool (*read)(const uint8_t *address, struct fat *out);
} containers[] = {
	{bundle_magic, bundle_read},
	{"CCOB", ccob_read},
	{ELFMAG, elf_read},
};

bool fat_read(const void *address, struct fat *out)
{
	*out = (struct fat){0};
	for (size_t i = 0; i < sizeof(containers) / sizeof(containers[0]); i++) {
		const char *magic = containers[i].magic;

		if (memcmp(address, magic, strlen(magic)) == 0)
			return containers[i].read(address, out);
	}
	return false;
}

void fat_fini(struct fat *fat)
{
	free(fat->objects);
	free(fat->unpacked);
	*fat = (struct fat){0};
}
