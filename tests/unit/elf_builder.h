/* SPDX-License-Identifier: MIT */
/*
 * Build 64-bit little-endian ELF files for tests; the tests can falsify any field
 * afterwards.
 */
#ifndef ELF_BUILDER_H
#define ELF_BUILDER_H

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bundle_builder.h"

/* Section I+1 of the file; sh_offset is computed, all other fields are given. */
struct section {
	const char *name;
	uint32_t type;
	uint64_t flags, addr;
	struct kp_span content;
	uint32_t link, info;
	uint64_t entsize;
};

struct elf_file {
	struct bytes bytes;
	size_t shoff; /* offset of the section headers */
};

static inline uint8_t *elf_shdr(struct elf_file *f, size_t i)
{
	return f->bytes.data + f->shoff + i * sizeof(Elf64_Shdr);
}

static inline void set_sh(struct elf_file *f, size_t i, size_t field, uint64_t value)
{
	kp_put_le64(elf_shdr(f, i) + field, value);
}

#define SET_SH(f, i, field, value) set_sh(f, i, offsetof(Elf64_Shdr, field), value)

static inline void put_shdr(struct bytes *b, size_t name, const struct section *s,
			    uint64_t offset)
{
	put_number(b, name, 4);
	put_number(b, s->type, 4);
	put_number(b, s->flags, 8);
	put_number(b, s->addr, 8);
	put_number(b, offset, 8);
	put_number(b, s->content.size, 8);
	put_number(b, s->link, 4);
	put_number(b, s->info, 4);
	put_number(b, 8, 8);
	put_number(b, s->entsize, 8);
}

static inline void put_ehdr(struct bytes *b, uint16_t type, uint16_t machine)
{
	put(b,
	    "\x7f"
	    "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
	    16);
	put_number(b, type, 2);
	put_number(b, machine, 2);
	put_number(b, 1, 4);
	put_zeros(b, 28); /* entry, phoff, shoff, flags */
	put_number(b, 64, 2);
	put_number(b, 56, 2);
	put_number(b, 0, 2);
	put_number(b, 64, 2);
	put_zeros(b, 4); /* shnum, shstrndx */
}

static inline struct elf_file elf_build(uint16_t type, uint16_t machine,
					const struct section *sections, size_t n)
{
	struct bytes names = {0}, table = {0};
	struct section strtab = {.name = ".shstrtab", .type = SHT_STRTAB};
	struct elf_file f = {0};

	put_ehdr(&f.bytes, type, machine);
	put_zeros(&names, 1);
	put_zeros(&table, sizeof(Elf64_Shdr));
	for (size_t i = 0; i < n; i++) {
		put_padding(&f.bytes, 8);
		put_shdr(&table, names.size, &sections[i], f.bytes.size);
		put(&names, sections[i].name, strlen(sections[i].name) + 1);
		if (sections[i].type != SHT_NOBITS)
			put(&f.bytes, sections[i].content.data, sections[i].content.size);
	}
	strtab.content.size = names.size + strlen(strtab.name) + 1;
	put_shdr(&table, names.size, &strtab, f.bytes.size);
	put(&names, strtab.name, strlen(strtab.name) + 1);
	put(&f.bytes, names.data, names.size);
	put_padding(&f.bytes, 8);
	f.shoff = f.bytes.size;
	put(&f.bytes, table.data, table.size);
	kp_put_le64(f.bytes.data + offsetof(Elf64_Ehdr, e_shoff), f.shoff);
	f.bytes.data[offsetof(Elf64_Ehdr, e_shnum)] = (uint8_t)(n + 2);
	f.bytes.data[offsetof(Elf64_Ehdr, e_shstrndx)] = (uint8_t)(n + 1);
	bytes_free(&names);
	bytes_free(&table);
	return f;
}

/* A descriptor of a file with these bytes. */
static inline int bytes_fd(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static inline void put_wrapper(struct bytes *b, uint32_t magic, uint64_t pointer)
{
	put_number(b, magic, 4);
	put_number(b, 1, 4);
	put_number(b, pointer, 8);
	put_number(b, 0, 8);
}

static inline void put_rela(struct bytes *b, uint64_t offset, uint32_t symbol,
			    uint32_t type, uint64_t addend)
{
	put_number(b, offset, 8);
	put_number(b, (uint64_t)symbol << 32 | type, 8);
	put_number(b, addend, 8);
}

static inline void put_rel(struct bytes *b, uint64_t offset, uint32_t symbol,
			   uint32_t type)
{
	put_number(b, offset, 8);
	put_number(b, (uint64_t)symbol << 32 | type, 8);
}

static inline void put_symbol(struct bytes *b, uint16_t section, uint64_t value)
{
	put_number(b, 0, 4);
	put_number(b, 0x11, 2); /* global object, default visibility */
	put_number(b, section, 2);
	put_number(b, value, 8);
	put_number(b, 0, 8);
}

#endif
