/* SPDX-License-Identifier: MIT */
/* Code objects as a runtime reads them: whether a GPU runs one, and where a kernel is. */
#ifndef CODE_OBJECT_H
#define CODE_OBJECT_H

#include <elf.h>
#include "loader.h"

static inline bool is_elf(const struct bytes *b)
{
	return b->size >= sizeof(Elf64_Ehdr) && memcmp(b->data, ELFMAG, SELFMAG) == 0;
}

static inline const char *container_of(const struct bytes *b)
{
	if (is_elf(b))
		return "elf";
	if (b->size > 4 && memcmp(b->data, "CCOB", 4) == 0)
		return "ccob";
	if (b->size > 24 && memcmp(b->data, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0)
		return "bundle";
	return "unknown";
}

/*
 * Whether a GPU with xnack on ('+') or off ('-') accepts the code; true if it is
 * compressed.
 */
static inline bool takes_xnack(const struct bytes *b, char mode)
{
	Elf64_Ehdr ehdr;
	unsigned stated;

	if (!is_elf(b))
		return true;
	memcpy(&ehdr, b->data, sizeof(ehdr));
	stated = ehdr.e_flags >> 8 & 3;
	return stated != (mode == '+' ? 2 : 3);
}

/* The value of NAME in the symbol table; 0: not found. */
static inline uint64_t find_in_table(const struct bytes *b, const Elf64_Shdr *symbols,
				     const Elf64_Shdr *strings, const char *name)
{
	size_t length = strlen(name) + 1;

	if (symbols->sh_offset > b->size || strings->sh_offset > b->size ||
	    symbols->sh_size > b->size - symbols->sh_offset ||
	    strings->sh_size > b->size - strings->sh_offset)
		die("a symbol table that is not in the file");
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size;
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym s;

		memcpy(&s, b->data + symbols->sh_offset + at, sizeof(s));
		if (s.st_name < strings->sh_size &&
		    strings->sh_size - s.st_name >= length &&
		    memcmp(b->data + strings->sh_offset + s.st_name, name, length) == 0)
			return s.st_value;
	}
	return 0;
}

static inline uint64_t find_symbol(const struct bytes *b, const char *name)
{
	Elf64_Ehdr ehdr;
	Elf64_Shdr symbols, strings;

	memcpy(&ehdr, b->data, sizeof(ehdr));
	if (ehdr.e_shoff > b->size ||
	    (b->size - ehdr.e_shoff) / sizeof(symbols) < ehdr.e_shnum)
		die("section headers that are not in the file");
	for (unsigned i = 0; i < ehdr.e_shnum; i++) {
		memcpy(&symbols, b->data + ehdr.e_shoff + i * sizeof(symbols),
		       sizeof(symbols));
		if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= ehdr.e_shnum)
			continue;
		memcpy(&strings,
		       b->data + ehdr.e_shoff + symbols.sh_link * sizeof(strings),
		       sizeof(strings));
		return find_in_table(b, &symbols, &strings, name);
	}
	return 0;
}

/* Print the kernel and its descriptor, as hipModuleGetFunction looks them up. */
static inline void print_kernel(const struct bytes *b, const char *name)
{
	char *descriptor = text("%s.kd", name);

	if (!is_elf(b))
		printf("kernel %s: in %s\n", name, container_of(b));
	else
		printf("kernel %s: %#jx, descriptor %#jx\n", name,
		       (uintmax_t)find_symbol(b, name),
		       (uintmax_t)find_symbol(b, descriptor));
	free(descriptor);
}

#endif
