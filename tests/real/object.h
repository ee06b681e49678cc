/* SPDX-License-Identifier: MIT */
/* Code objects that compute nothing, for stand-ins for compilers. */
#ifndef TESTS_REAL_OBJECT_H
#define TESTS_REAL_OBJECT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define KERNELS_MAX 16
#define ANY_FEATURES 0x500 /* xnack and sramecc may be on or off */

static const struct {
	const char *arch;
	uint32_t flags;
} processors[] = {{"gfx1030", 0x36},
		  {"gfx1100", 0x41},
		  {"gfx906", 0x2f | ANY_FEATURES},
		  {"gfx90a", 0x3f | ANY_FEATURES}};

/* An object's file: sections follow one another in this order. */
struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4]; /* none, symbols, names, hash */
	Elf64_Sym symbols[KERNELS_MAX + 1];
	XXH128_canonical_t hash;
	char names[4096]; /* also those of sections, which are empty */
};

/* Add the kernel's descriptor; false: there are too many. */
static bool add_kernel(struct image *o, const char *name, size_t n)
{
	Elf64_Shdr *symbols = &o->sections[1], *names = &o->sections[2];
	size_t count = symbols->sh_size / sizeof(Elf64_Sym);

	if (count == KERNELS_MAX + 1 || n + 4 > sizeof(o->names) - names->sh_size)
		return false;
	o->symbols[count].st_name = (Elf64_Word)names->sh_size;
	o->symbols[count].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	o->symbols[count].st_shndx = 3;
	symbols->sh_size += sizeof(Elf64_Sym);
	snprintf(o->names + names->sh_size, n + 4, "%.*s.kd", (int)n, name);
	names->sh_size += n + 4;
	return true;
}

static void init_image(struct image *o, uint32_t flags, const char *source,
		       const char *name)
{
	XXH3_state_t *hash = XXH3_createState();
	const struct {
		Elf64_Word type;
		size_t offset, size, entry;
	} rows[] = {
		{SHT_DYNSYM, offsetof(struct image, symbols), sizeof(Elf64_Sym),
		 sizeof(Elf64_Sym)},
		{SHT_STRTAB, offsetof(struct image, names), 1, 0},
		{SHT_PROGBITS, offsetof(struct image, hash), sizeof(o->hash), 0},
	};

	memcpy(o->header.e_ident, ELFMAG, SELFMAG);
	o->header.e_ident[EI_CLASS] = ELFCLASS64;
	o->header.e_ident[EI_DATA] = ELFDATA2LSB;
	o->header.e_ident[EI_VERSION] = EV_CURRENT;
	o->header.e_ident[EI_OSABI] = 64; /* HSA */
	o->header.e_ident[EI_ABIVERSION] = 3;
	o->header.e_type = ET_DYN;
	o->header.e_machine = 224; /* AMDGPU */
	o->header.e_version = EV_CURRENT;
	o->header.e_flags = flags;
	o->header.e_ehsize = sizeof(o->header);
	o->header.e_shoff = offsetof(struct image, sections);
	o->header.e_shentsize = sizeof(o->sections[0]);
	o->header.e_shnum = 4;
	o->header.e_shstrndx = 2;
	for (int i = 0; i < 3; i++) {
		o->sections[i + 1].sh_type = rows[i].type;
		o->sections[i + 1].sh_offset = rows[i].offset;
		o->sections[i + 1].sh_size = rows[i].size;
		o->sections[i + 1].sh_entsize = rows[i].entry;
	}
	o->sections[1].sh_link = 2;
	if (!hash)
		abort();
	XXH3_128bits_reset(hash);
	XXH3_128bits_update(hash, source, strlen(source));
	XXH3_128bits_update(hash, name, strlen(name));
	XXH128_canonicalFromHash(&o->hash, XXH3_128bits_digest(hash));
	XXH3_freeState(hash);
}

/* The processor that TEXT, options or a target of a compiler, names; NULL: none that is known. */
static const char *find_arch(const char *text, uint32_t *flags)
{
	for (size_t k = 0; k < sizeof(processors) / sizeof(processors[0]); k++) {
		const char *at = strstr(text, processors[k].arch);

		if (at && at > text && strchr("=-", at[-1])) {
			*flags = processors[k].flags;
			return processors[k].arch;
		}
	}
	return NULL;
}

/* The options in one text, which the caller frees. */
static char *join_options(size_t n, const char **options)
{
	char *text, *end;
	size_t size = 1;

	for (size_t i = 0; i < n; i++)
		size += strlen(options[i]) + 1;
	text = end = calloc(1, size);
	if (!text)
		abort();
	for (size_t i = 0; i < n; i++)
		end += sprintf(end, "%s ", options[i]);
	return text;
}

#endif
