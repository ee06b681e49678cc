/* SPDX-License-Identifier: MIT */
#include "core/convert/convert.h"
#include <stdio.h>
#include "tests/unit/unit.h"
#include "tests/unit/link_builder.h"
#include "core/base/bounds.h"

#define FATBIN ".hip_fatbin"
#define TABLE ".rocm_kpack_phdr"
#define N_WRAPPERS 3
#define SECOND 128 /* offset of the second bundle */
#define WA (SHF_ALLOC | SHF_WRITE)

static struct kpackx_error why;
static const uint8_t marker[] = "a marker, and it is as long as this";
/* The section that holds the wrappers. */
static const char *wrappers = ".hipFatBinSegment";

static const uint8_t layout[] = "a layout that nobody reads";

static struct kp_span span(const void *data, size_t size)
{
	return (struct kp_span){data, size};
}

#define SPAN(a) span(a, sizeof(a))

/* ---- hosts ---- */

/* How wrappers point to their containers. */
enum how { RELATIVE, RELATIVE_STORED, SYMBOL, RELR, REL, REL_SYMBOL, IN_PLACE };

/* Where .hip_fatbin is placed. */
enum where {
	AMID,       /* between other sections of the first segment */
	LAST,       /* of the first segment */
	FIRST,      /* of a segment */
	ALONE,      /* in a segment of its own */
	BEFORE_BSS, /* in a writable segment, before .bss */
	IN_RELRO,   /* among sections that become read-only */
};

/*
 * Where conversion puts the program headers: after the ELF header; at addresses of the
 * section that was cut; behind everything; or they stay, and the marker takes its place.
 */
enum form { IN_PLACE_TABLE, IN_HOLE, SPARSE, WHOLE };

struct shape {
	const char *name;
	enum where where;
	enum how how;
	enum form form;
	uint64_t align; /* alignment of .hip_fatbin; 0: 8 */
	size_t code;    /* size of the device code; 0: some */
	uint64_t base, page;
	uint16_t machine; /* 0: x86-64 */
	bool fixed, interp, own, tls, new_pages;
	bool first_unmapped; /* an unmapped section comes before all others */
	const char *tail;
	size_t spare;
};

static char code[1 << 23];

/* Two bundles of CODE, SIZE bytes together. */
static struct bytes make_code(size_t size)
{
	struct entry e = {"hipv4-amdgcn-amd-amdhsa--gfx90a", NULL};
	struct bytes b = {0};
	char *object = malloc(size);

	assert_non_null(object);
	for (size_t i = 0; i < size; i++)
		object[i] = (char)('A' + (i * 2654435761u >> 7) % 57);
	object[40] = '\0';
	e.object = object;
	put_bundle(&b, &e, 1, 8);
	assert_int_equal(b.size, SECOND);
	object[40] = 'x';
	object[size - SECOND - 88] = '\0';
	put_bundle(&b, &e, 1, 8);
	assert_int_equal(b.size, size);
	free(object);
	return b;
}

static void add(struct link *l, const char *name, uint64_t flags, size_t segment,
		size_t size, uint64_t align)
{
	link_add(l, (struct link_section){.name = name,
					  .type = SHT_PROGBITS,
					  .flags = flags,
					  .segment = segment,
					  .size = size,
					  .align = align});
}

static void add_nobits(struct link *l, const char *name, uint64_t flags, size_t segment,
		       size_t size, uint64_t align)
{
	link_add(l, (struct link_section){.name = name,
					  .type = SHT_NOBITS,
					  .flags = flags,
					  .segment = segment,
					  .size = size,
					  .align = align});
}

static void add_fatbin(struct link *l, const struct shape *s, uint64_t flags,
		       size_t segment)
{
	size_t size = s->code ? s->code : 600;
	struct bytes b = make_code(size);

	assert_true(size <= sizeof(code));
	memcpy(code, b.data, size);
	bytes_free(&b);
	link_add(l, (struct link_section){.name = FATBIN,
					  .type = SHT_PROGBITS,
					  .flags = flags,
					  .segment = segment,
					  .size = size,
					  .content = code,
					  .align = s->align ? s->align : 8});
}

static void add_relocs(struct link *l, enum how how)
{
	static const uint8_t none[5 * sizeof(Elf64_Rela)];
	bool rel = how == REL || how == REL_SYMBOL;
	struct link_section s = {.name = ".rela.dyn",
				 .type = SHT_RELA,
				 .flags = SHF_ALLOC,
				 .size = sizeof(none),
				 .content = none,
				 .align = 8,
				 .entsize = sizeof(Elf64_Rela),
				 .link = ".dynsym"};

	if (rel) {
		s.name = ".rel.dyn";
		s.type = SHT_REL;
		s.entsize = sizeof(Elf64_Rel);
		s.size = 5 * s.entsize;
	}
	link_add(l, s);
	if (!rel)
		link_add(l, (struct link_section){.name = ".rela.plt",
						  .type = SHT_RELA,
						  .flags = SHF_ALLOC | SHF_INFO_LINK,
						  .size = sizeof(Elf64_Rela),
						  .content = none,
						  .align = 8,
						  .entsize = sizeof(Elf64_Rela),
						  .link = ".dynsym",
						  .info_link = ".data"});
	if (how == RELR)
		link_add(l, (struct link_section){.name = ".relr.dyn",
						  .type = SHT_RELR,
						  .flags = SHF_ALLOC,
						  .size = 16,
						  .content = none,
						  .align = 8,
						  .entsize = 8});
}

/* write_symbols() writes the symbols. */
#define N_SYMBOLS 6

static void add_symbols(struct link *l, const char *name, const char *names,
			uint32_t type, uint64_t flags, size_t segment)
{
	static const uint8_t zero[N_SYMBOLS * sizeof(Elf64_Sym)];

	link_add(l, (struct link_section){.name = name,
					  .type = type,
					  .flags = flags,
					  .segment = segment,
					  .size = sizeof(zero),
					  .content = zero,
					  .align = 8,
					  .entsize = sizeof(Elf64_Sym),
					  .link = names,
					  .info = 2});
	link_add(l, (struct link_section){.name = names,
					  .type = SHT_STRTAB,
					  .flags = flags,
					  .segment = segment,
					  .size = 21,
					  .align = 1});
}

static void add_read_only(struct link *l, const struct shape *s)
{
	size_t g = link_add_segment(l, PF_R);

	if (s->interp)
		add(l, ".interp", SHF_ALLOC, g, 11, 1);
	link_add(l, (struct link_section){.name = ".note.gnu.build-id",
					  .type = SHT_NOTE,
					  .flags = SHF_ALLOC,
					  .size = 36,
					  .align = 4});
	add_symbols(l, ".dynsym", ".dynstr", SHT_DYNSYM, SHF_ALLOC, g);
	link_add(l, (struct link_section){.name = ".gnu.version",
					  .type = SHT_GNU_versym,
					  .flags = SHF_ALLOC,
					  .size = 2 * N_SYMBOLS,
					  .align = 2,
					  .entsize = 2,
					  .link = ".dynsym"});
	link_add(l, (struct link_section){.name = ".gnu.version_r",
					  .type = SHT_GNU_verneed,
					  .flags = SHF_ALLOC,
					  .size = 32,
					  .align = 8,
					  .link = ".dynstr",
					  .info = 1});
	add_relocs(l, s->how);
	add(l, ".rodata", SHF_ALLOC, g, 77, 16);
	if (s->where == AMID || s->where == LAST)
		add_fatbin(l, s, SHF_ALLOC, g);
	if (s->where == FIRST || s->where == ALONE)
		add_fatbin(l, s, SHF_ALLOC, g = link_add_segment(l, PF_R));
	if (s->where == ALONE)
		g = link_add_segment(l, PF_R);
	if (s->where != LAST)
		add(l, ".eh_frame", SHF_ALLOC, g, 99, 8);
}

static void add_writable(struct link *l, const struct shape *s)
{
	size_t g = link_add_segment(l, PF_R | PF_W);

	if (s->tls) {
		add(l, ".tdata", WA | SHF_TLS, g, 24, 8);
		add_nobits(l, ".tbss", WA | SHF_TLS, g, 4000, 16);
	}
	add(l, ".data.rel.ro", WA, g, 40, 8);
	if (s->where == IN_RELRO)
		add_fatbin(l, s, WA, g);
	add(l, ".dynamic", WA, g, 48, 8);
	g = link_add_segment(l, PF_R | PF_W);
	add(l, ".data", WA, g, 50, 8);
	add(l, wrappers, WA, g, N_WRAPPERS * KP_WRAPPER_SIZE, 8);
	if (s->where == BEFORE_BSS)
		add_fatbin(l, s, WA, g);
	add_nobits(l, ".bss", WA, g, 5000, 32);
}

/* link_build() adds .shstrtab after these sections. */
static void add_unmapped(struct link *l)
{
	add(l, ".comment", SHF_MERGE | SHF_STRINGS, LINK_UNMAPPED, 33, 1);
	add(l, ".debug_info", 0, LINK_UNMAPPED, 101, 1);
	add(l, ".debug_odd", 0, LINK_UNMAPPED, 7, 64);
	add_symbols(l, ".symtab", ".strtab", SHT_SYMTAB, 0, LINK_UNMAPPED);
	link_add(l, (struct link_section){.name = ".symtab_shndx",
					  .type = SHT_SYMTAB_SHNDX,
					  .segment = LINK_UNMAPPED,
					  .size = 4 * N_SYMBOLS,
					  .align = 4,
					  .entsize = 4,
					  .link = ".symtab"});
}

static void add_headers(struct link *l, const struct shape *s)
{
	if (s->own)
		link_add_header(l, (struct link_header){PT_PHDR, PF_R, 0, 0, 8, false});
	if (s->interp)
		link_add_header(l, (struct link_header){PT_INTERP, PF_R, ".interp",
							".interp", 1, false});
	if (s->tls)
		link_add_header(l, (struct link_header){PT_TLS, PF_R, ".tdata", ".tbss",
							16, false});
	link_add_header(l, (struct link_header){PT_DYNAMIC, PF_R | PF_W, ".dynamic",
						".dynamic", 8, false});
	link_add_header(l, (struct link_header){PT_GNU_RELRO, PF_R, ".data.rel.ro",
						".dynamic", 1, true});
	link_add_header(l, (struct link_header){PT_NOTE, PF_R, ".note.gnu.build-id",
						".note.gnu.build-id", 4, false});
	link_add_header(l,
			(struct link_header){PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, false});
}

/* The last two symbols belong to no section. */
static void write_symbols(struct link *l, const char *name)
{
	Elf64_Sym symbols[N_SYMBOLS] = {{0}};
	const struct link_section *s = link_section(l, name);
	static const char *const sections[] = {NULL, FATBIN, ".data", ".comment"};

	for (size_t i = 1; i < COUNT(sections); i++) {
		symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
		symbols[i].st_shndx = (uint16_t)link_number(l, sections[i]);
		symbols[i].st_value = link_addr(l, sections[i]);
	}
	symbols[4].st_shndx = SHN_ABS;
	symbols[5].st_name = 1;
	memcpy(l->file.data + s->offset, symbols, sizeof(symbols));
}

static struct link make_host(const struct shape *s)
{
	struct link l = {.type = s->fixed ? ET_EXEC : ET_DYN,
			 .machine = s->machine ? s->machine : EM_X86_64,
			 .base = s->base,
			 .page = s->page ? s->page : 4096,
			 .tail = s->tail,
			 .spare = s->spare};

	if (s->first_unmapped)
		add(&l, ".gnu_debugdata", 0, LINK_UNMAPPED, 55, 1);
	add_read_only(&l, s);
	add(&l, ".text", SHF_ALLOC | SHF_EXECINSTR, link_add_segment(&l, PF_R | PF_X),
	    333, 16);
	add_writable(&l, s);
	add_unmapped(&l);
	add_headers(&l, s);
	for (size_t i = 0; i < l.n_segments; i++)
		l.segments[i].new_page = s->new_pages;
	link_build(&l);
	write_symbols(&l, ".dynsym");
	write_symbols(&l, ".symtab");
	return l;
}

/* ---- pointers ---- */

/* The offset in the section that wrapper I points to. */
static uint64_t target_of(size_t i)
{
	return i == 1 ? SECOND : 0;
}

static uint32_t reloc_type(const struct link *l, bool symbol)
{
	if (l->machine == EM_AARCH64)
		return symbol ? R_AARCH64_ABS64 : R_AARCH64_RELATIVE;
	if (l->machine == EM_PPC64)
		return symbol ? R_PPC64_ADDR64 : R_PPC64_RELATIVE;
	return symbol ? R_X86_64_64 : R_X86_64_RELATIVE;
}

/* Write row I of the relocations: the word VADDR and its value. */
static void write_reloc(struct link *l, const char *name, size_t i, uint64_t vaddr,
			bool symbol, uint64_t addend)
{
	const struct link_section *s = link_section(l, name);
	uint8_t *row = l->file.data + s->offset + i * s->entsize;

	kp_put_le64(row, vaddr);
	kp_put_le64(row + 8, (uint64_t)symbol << 32 | reloc_type(l, symbol));
	if (s->type == SHT_RELA)
		kp_put_le64(row + 16, addend);
}

static void write_wrapper(struct link *l, uint64_t vaddr, uint32_t magic,
			  uint64_t pointer, uint64_t index)
{
	uint8_t *p = link_at(l, vaddr);

	kp_put_le32(p, magic);
	kp_put_le32(p + 4, KP_WRAPPER_VERSION);
	kp_put_le64(p + 8, pointer);
	kp_put_le64(p + 16, index);
}

static void write_relr(struct link *l, uint64_t first)
{
	uint64_t at = link_addr(l, ".relr.dyn");

	link_write64(l, at, first);
	/* the words 24 and 48 bytes after the first one */
	link_write64(l, at + 8, 1 | 1 << 3 | 1 << 6);
}

/* Make wrapper I, at VADDR, point to TARGET. */
static void point(struct link *l, enum how how, size_t i, uint64_t vaddr, uint64_t target,
		  uint32_t magic)
{
	bool symbol = how == SYMBOL || how == REL_SYMBOL;
	uint64_t addend = symbol ? target - link_addr(l, FATBIN) : target;
	bool is_stored = how != RELATIVE && how != SYMBOL;

	write_wrapper(l, vaddr, magic, is_stored ? addend : 0,
		      magic == KP_WRAPPER_HIPK ? i : 0);
	if (how == REL || how == REL_SYMBOL)
		write_reloc(l, ".rel.dyn", i + 1, vaddr + 8, symbol, 0);
	else if (how != RELR && how != IN_PLACE)
		write_reloc(l, ".rela.dyn", i + 1, vaddr + 8, symbol, addend);
	else if (how == RELR && i == 0)
		write_relr(l, vaddr + 8);
}

static void point_all(struct link *l, enum how how)
{
	for (size_t i = 0; i < N_WRAPPERS; i++)
		point(l, how, i, link_addr(l, wrappers) + i * KP_WRAPPER_SIZE,
		      link_addr(l, FATBIN) + target_of(i), KP_WRAPPER_HIPF);
}

/* A relocation that is not for a wrapper, and data that only looks like a wrapper. */
static void write_others(struct link *l, enum how how)
{
	uint64_t data = link_addr(l, ".data");

	write_wrapper(l, data, KP_WRAPPER_HIPF, link_addr(l, ".text"), 7);
	if (how == REL || how == REL_SYMBOL)
		write_reloc(l, ".rel.dyn", 4, data + 8, false, 0);
	else
		write_reloc(l, ".rela.dyn", 4, link_addr(l, ".data.rel.ro"), false,
			    link_addr(l, ".rodata"));
}

static struct link make(const struct shape *s)
{
	struct link l = make_host(s);

	write_others(&l, s->how);
	point_all(&l, s->how);
	return l;
}

/* ---- files ---- */

struct file {
	int fd;
	uint64_t size;
	uint8_t *data;
	Elf64_Ehdr h;
	Elf64_Phdr *p;
	Elf64_Shdr *s;
};

static struct file read_file(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	struct file f = {.fd = fd, .size = (uint64_t)end};

	assert_true(end >= 0);
	if (!end)
		return f;
	/* mapped, because a sparse file is large but takes little memory */
	f.data = mmap(NULL, f.size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(f.data != MAP_FAILED);
	memcpy(&f.h, f.data, sizeof(f.h));
	assert_true(kp_range_ok(f.size, f.h.e_phoff, f.h.e_phnum * sizeof(Elf64_Phdr)));
	assert_true(kp_range_ok(f.size, f.h.e_shoff, f.h.e_shnum * sizeof(Elf64_Shdr)));
	f.p = malloc(f.h.e_phnum * sizeof(*f.p) + 1);
	f.s = malloc(f.h.e_shnum * sizeof(*f.s) + 1);
	assert_true(f.p && f.s);
	memcpy(f.p, f.data + f.h.e_phoff, f.h.e_phnum * sizeof(*f.p));
	memcpy(f.s, f.data + f.h.e_shoff, f.h.e_shnum * sizeof(*f.s));
	return f;
}

static void file_free(struct file *f)
{
	if (f->data)
		munmap(f->data, f->size);
	free(f->p);
	free(f->s);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct file){.fd = -1};
}

static struct file write_link(const struct link *l)
{
	return read_file(bytes_fd(l->file.data, l->file.size));
}

static struct kp_outfile open_out(void)
{
	struct kp_outfile out = {.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1};

	out.name = strdup("out");
	assert_true(out.fd >= 0 && out.name);
	return out;
}

/* Take over what was written to OUT, and close OUT. */
static struct file take(struct kp_outfile *out)
{
	int fd = dup(out->fd);

	assert_true(fd >= 0);
	kp_outfile_close(out);
	return read_file(fd);
}

static const char *section_name(const struct file *f, size_t i)
{
	return (const char *)f->data + f->s[f->h.e_shstrndx].sh_offset + f->s[i].sh_name;
}

static size_t find_section(const struct file *f, const char *name)
{
	for (size_t i = 1; i < f->h.e_shnum; i++)
		if (strcmp(section_name(f, i), name) == 0)
			return i;
	return 0;
}

static const Elf64_Shdr *section(const struct file *f, const char *name)
{
	size_t i = find_section(f, name);

	if (!i)
		fail_msg("no section %s", name);
	return &f->s[i];
}

static const Elf64_Phdr *header(const struct file *f, uint32_t type)
{
	for (size_t i = 0; i < f->h.e_phnum; i++)
		if (f->p[i].p_type == type)
			return &f->p[i];
	return NULL;
}

/* The PT_LOAD that contains VADDR, or NULL. */
static const Elf64_Phdr *load_of(const struct file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->h.e_phnum; i++)
		if (f->p[i].p_type == PT_LOAD && vaddr >= f->p[i].p_vaddr &&
		    vaddr - f->p[i].p_vaddr < f->p[i].p_memsz)
			return &f->p[i];
	return NULL;
}

static size_t count_loads(const struct file *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->h.e_phnum; i++)
		n += f->p[i].p_type == PT_LOAD;
	return n;
}

/* ---- calls ---- */

typedef kpack_error_t call_fn(const struct file *f, const struct kp_fatbin *fat,
			      struct kp_outfile *out, void *arg);

/* Open F and call FN on it; returns FN's error or the error of opening. */
static kpack_error_t call(const struct file *f, call_fn *fn, void *arg,
			  struct file *result)
{
	struct kp_outfile out = open_out();
	struct kp_fatbin fat;
	kpack_error_t err = kp_fatbin_open(f->fd, f->size, &fat, &why);

	*result = (struct file){.fd = -1};
	if (!err) {
		err = fn(f, &fat, &out, arg);
		kp_fatbin_fini(&fat);
	}
	if (!err)
		*result = take(&out);
	else
		kp_outfile_close(&out);
	return err;
}

static kpack_error_t do_convert(const struct file *f, const struct kp_fatbin *fat,
				struct kp_outfile *out, void *arg)
{
	const struct kp_convert_options *options = arg;
	kpack_error_t err =
		kp_convert_check(f->fd, f->size, fat, options->keep_device_code, &why);

	return err ? err : kp_convert(f->fd, f->size, fat, options, out, &why);
}

static struct file must_convert(const struct file *f, bool keep)
{
	struct kp_convert_options options = {
		.marker = SPAN(marker), .layout = SPAN(layout), .keep_device_code = keep};
	struct file out;

	if (call(f, do_convert, &options, &out))
		fail_msg("%s", why.text);
	return out;
}

static kpack_error_t do_set(const struct file *f, const struct kp_fatbin *fat,
			    struct kp_outfile *out, void *arg)
{
	const struct kp_span *to = arg;

	return kp_convert_set(f->fd, f->size, fat, *to, out, &why);
}

static struct file must_set(const struct file *f, struct kp_span to)
{
	struct file out;

	if (call(f, do_set, &to, &out))
		fail_msg("%s", why.text);
	return out;
}

static kpack_error_t do_normalise(const struct file *f, const struct kp_fatbin *fat,
				  struct kp_outfile *out, void *arg)
{
	return kp_convert_normalise(f->fd, f->size, fat, out, arg, &why);
}

static kpack_error_t write_code(void *arg, struct kp_outfile *out, uint64_t offset,
				struct kpackx_error *w)
{
	return kp_outfile_pwrite(out, offset, code, *(const size_t *)arg, w);
}

static kpack_error_t do_restore(const struct file *f, const struct kp_fatbin *fat,
				struct kp_outfile *out, void *arg)
{
	return kp_restore(f->fd, f->size, fat, arg, out, &why);
}

static kpack_error_t restore(const struct file *f, size_t size, struct file *out)
{
	uint64_t offsets[N_WRAPPERS];
	struct kp_restore_options options = {
		.size = size, .offsets = offsets, .write = write_code, .arg = &size};

	for (size_t i = 0; i < N_WRAPPERS; i++)
		offsets[i] = target_of(i);
	return call(f, do_restore, &options, out);
}

static struct file must_restore(const struct file *f, size_t size)
{
	struct file out;

	if (restore(f, size, &out))
		fail_msg("%s", why.text);
	return out;
}

/* FN on F fails with CODE and with TEXT in the message. */
static void refused(const struct file *f, call_fn *fn, void *arg, kpack_error_t code_,
		    const char *text)
{
	struct file none;

	why = (struct kpackx_error){0};
	if (call(f, fn, arg, &none) != code_ || !strstr(why.text, text))
		fail_msg("not \"%s\" but %d \"%s\"", text, (int)why.code, why.text);
}

/* ---- properties of all converted files ---- */

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* No byte of the file belongs to two segments. */
static void check_disjoint(const struct file *f, size_t i)
{
	const Elf64_Phdr *h = &f->p[i];

	for (size_t k = 0; k < i; k++)
		if (f->p[k].p_type == PT_LOAD && f->p[k].p_filesz)
			assert_true(f->p[k].p_offset >= h->p_offset + h->p_filesz ||
				    h->p_offset >= f->p[k].p_offset + f->p[k].p_filesz);
}

static void check_loads(const struct file *f)
{
	const Elf64_Phdr *last = NULL;

	for (size_t i = 0; i < f->h.e_phnum; i++) {
		const Elf64_Phdr *h = &f->p[i];

		if (h->p_type != PT_LOAD)
			continue;
		assert_true(is_power_of_two(h->p_align));
		assert_true(h->p_filesz <= h->p_memsz);
		assert_int_equal((h->p_offset - h->p_vaddr) % h->p_align, 0);
		assert_int_equal(h->p_vaddr, h->p_paddr);
		assert_true(!last || h->p_vaddr >= last->p_vaddr + last->p_memsz);
		if (h->p_filesz) {
			assert_true(kp_range_ok(f->size, h->p_offset, h->p_filesz));
			check_disjoint(f, i);
		}
		last = h;
	}
}

static void check_sections(const struct file *f)
{
	bool seen_unmapped = false;

	for (size_t i = 1; i < f->h.e_shnum; i++) {
		const Elf64_Shdr *s = &f->s[i];
		const Elf64_Phdr *h = load_of(f, s->sh_addr);

		assert_true(s->sh_type == SHT_NOBITS ||
			    kp_range_ok(f->size, s->sh_offset, s->sh_size));
		if (!(s->sh_flags & SHF_ALLOC)) {
			seen_unmapped = true;
			continue;
		}
		assert_false(seen_unmapped);
		if (s->sh_flags & SHF_TLS && s->sh_type == SHT_NOBITS)
			continue;
		assert_non_null(h);
		assert_true(kp_range_ok(h->p_memsz, s->sh_addr - h->p_vaddr, s->sh_size));
		if (s->sh_type == SHT_NOBITS)
			continue;
		assert_int_equal(s->sh_offset - h->p_offset, s->sh_addr - h->p_vaddr);
		assert_true(s->sh_addr + s->sh_size <= h->p_vaddr + h->p_filesz);
	}
}

/* Sections with bytes share no bytes with each other or with the header tables. */
static void check_overlaps(const struct file *f)
{
	for (size_t i = 1; i < f->h.e_shnum; i++) {
		const Elf64_Shdr *a = &f->s[i];
		uint64_t end = a->sh_offset + a->sh_size;

		if (a->sh_type == SHT_NOBITS || !a->sh_size)
			continue;
		for (size_t k = 1; k < i; k++)
			assert_true(f->s[k].sh_type == SHT_NOBITS || !f->s[k].sh_size ||
				    f->s[k].sh_offset >= end ||
				    f->s[k].sh_offset + f->s[k].sh_size <= a->sh_offset);
		assert_true(a->sh_offset >= f->h.e_shoff + f->h.e_shnum * sizeof(*a) ||
			    end <= f->h.e_shoff);
		if (strcmp(section_name(f, i), TABLE) != 0)
			assert_true(a->sh_offset >=
					    f->h.e_phoff +
						    f->h.e_phnum * sizeof(Elf64_Phdr) ||
				    end <= f->h.e_phoff);
	}
}

static void check_table(const struct file *f)
{
	const Elf64_Phdr *own = header(f, PT_PHDR), *load;
	uint64_t size = f->h.e_phnum * sizeof(Elf64_Phdr);

	if (!own)
		return;
	load = load_of(f, own->p_vaddr);
	assert_non_null(load);
	assert_int_equal(own->p_offset, f->h.e_phoff);
	assert_int_equal(own->p_filesz, size);
	assert_int_equal(own->p_memsz, size);
	assert_int_equal(own->p_offset - load->p_offset, own->p_vaddr - load->p_vaddr);
	assert_true(own->p_vaddr + size <= load->p_vaddr + load->p_filesz);
}

/* Programs and Linux before 5.18 look for program headers here. */
static void check_at_phdr(const struct file *f)
{
	const Elf64_Phdr *first = header(f, PT_LOAD), *own = header(f, PT_PHDR), *load;
	uint64_t at = f->h.e_phoff + first->p_vaddr - first->p_offset;

	if (own)
		assert_int_equal(at, own->p_vaddr);
	load = load_of(f, at);
	assert_non_null(load);
	assert_int_equal(load->p_offset + (at - load->p_vaddr), f->h.e_phoff);
	assert_true(f->h.e_phnum * sizeof(Elf64_Phdr) <=
		    load->p_filesz - (at - load->p_vaddr));
}

/* ---- loading into memory ---- */

struct memory {
	uint64_t base, size;
	uint8_t *bytes;
};

static uint64_t down(uint64_t n, uint64_t to)
{
	return n / to * to;
}

static uint64_t up(uint64_t n, uint64_t to)
{
	return down(n + to - 1, to);
}

static struct memory memory_of(const struct file *f)
{
	struct memory m = {.base = UINT64_MAX};
	uint64_t end = 0;

	for (size_t i = 0; i < f->h.e_phnum; i++) {
		const Elf64_Phdr *h = &f->p[i];

		if (h->p_type != PT_LOAD)
			continue;
		if (down(h->p_vaddr, 0x10000) < m.base)
			m.base = down(h->p_vaddr, 0x10000);
		if (up(h->p_vaddr + h->p_memsz, 0x10000) > end)
			end = up(h->p_vaddr + h->p_memsz, 0x10000);
	}
	m.size = end - m.base;
	m.bytes = mmap(NULL, m.size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(m.bytes != MAP_FAILED);
	return m;
}

static void map_bytes(struct memory *m, const struct file *f, const Elf64_Phdr *h,
		      uint64_t from, uint64_t to)
{
	uint64_t offset = h->p_offset - (h->p_vaddr - from), there = 0;

	if (offset < f->size)
		there = f->size - offset < to - from ? f->size - offset : to - from;
	if (there)
		memcpy(m->bytes + (from - m->base), f->data + offset, there);
	memset(m->bytes + (from - m->base) + there, 0, to - from - there);
}

static void clear_memory(struct memory *m, uint64_t from, uint64_t to)
{
	memset(m->bytes + (from - m->base), 0, to - from);
}

/*
 * Map one segment over what is there already.  ld.so clears the bytes after a segment's
 * file data whatever its flags are; the kernel clears them only if the segment is
 * writable.  If a segment without file data begins inside a page, ld.so maps that page of
 * the file, the kernel maps an empty page.
 */
static void map_segment(struct memory *m, const struct file *f, const Elf64_Phdr *h,
			uint64_t page, bool kernel)
{
	uint64_t start = down(h->p_vaddr, page), data_end = h->p_vaddr + h->p_filesz;
	uint64_t file_end = up(data_end, page), end = up(h->p_vaddr + h->p_memsz, page);

	if (kernel && !h->p_filesz)
		file_end = data_end = start;
	if (file_end > start)
		map_bytes(m, f, h, start, file_end);
	if (h->p_memsz > h->p_filesz && (h->p_flags & PF_W || !kernel))
		clear_memory(m, data_end, file_end);
	if (end > file_end)
		clear_memory(m, file_end, end);
}

static struct memory load(const struct file *f, uint64_t page, bool kernel)
{
	struct memory m = memory_of(f);

	for (size_t i = 0; i < f->h.e_phnum; i++)
		if (f->p[i].p_type == PT_LOAD)
			map_segment(&m, f, &f->p[i], page, kernel);
	return m;
}

static bool is_in_memory(const Elf64_Shdr *s)
{
	return s->sh_flags & SHF_ALLOC && s->sh_size &&
	       !(s->sh_type == SHT_NOBITS && s->sh_flags & SHF_TLS);
}

/* Section I of F has the same bytes in memory as in the file. */
static void check_section_in(const struct memory *m, const struct file *f, size_t i)
{
	const Elf64_Shdr *s = &f->s[i];
	const uint8_t *there = m->bytes + (s->sh_addr - m->base);

	for (uint64_t k = 0; k < s->sh_size; k++)
		if (there[k] !=
		    (s->sh_type == SHT_NOBITS ? 0 : f->data[s->sh_offset + k]))
			fail_msg("%s is not loaded as it is: byte %u", section_name(f, i),
				 (unsigned)k);
}

static void check_memory(const struct file *f, uint64_t page, bool kernel)
{
	struct memory m = load(f, page, kernel);

	for (size_t i = 1; i < f->h.e_shnum; i++)
		if (is_in_memory(&f->s[i]) && strcmp(section_name(f, i), FATBIN) != 0)
			check_section_in(&m, f, i);
	munmap(m.bytes, m.size);
}

static void check_loading(const struct file *f)
{
	uint64_t largest =
		f->h.e_machine == EM_X86_64 ? 4096 : header(f, PT_LOAD)->p_align;

	for (int kernel = 0; kernel < 2; kernel++) {
		check_memory(f, 4096, kernel);
		check_memory(f, largest < 0x10000 ? largest : 0x10000, kernel);
	}
}

/* ---- the converted file compared with the fat file ---- */

/*
 * Change L's wrappers to what the converted file must have: pointers to the marker at TO.
 */
static void expect(struct link *l, enum how how, uint64_t to)
{
	for (size_t i = 0; i < N_WRAPPERS; i++)
		point(l, how, i, link_addr(l, wrappers) + i * KP_WRAPPER_SIZE, to,
		      KP_WRAPPER_HIPK);
}

static const char *name_of(const struct file *f, uint32_t number)
{
	return number && number < f->h.e_shnum ? section_name(f, number) : "";
}

static void check_symbols(const struct file *a, const Elf64_Shdr *s, const struct file *b,
			  const Elf64_Shdr *t)
{
	for (uint64_t off = 0; off < s->sh_size; off += sizeof(Elf64_Sym)) {
		Elf64_Sym x, y;

		memcpy(&x, a->data + s->sh_offset + off, sizeof(x));
		memcpy(&y, b->data + t->sh_offset + off, sizeof(y));
		if (x.st_shndx < SHN_LORESERVE) {
			assert_string_equal(name_of(a, x.st_shndx),
					    name_of(b, y.st_shndx));
			x.st_shndx = y.st_shndx;
		}
		assert_memory_equal(&x, &y, sizeof(x));
	}
}

static void check_section_header(const struct file *a, const Elf64_Shdr *s,
				 const struct file *b, const Elf64_Shdr *t)
{
	bool number = s->sh_type == SHT_REL || s->sh_type == SHT_RELA ||
		      s->sh_flags & SHF_INFO_LINK;

	assert_int_equal(s->sh_flags, t->sh_flags);
	assert_int_equal(s->sh_addr, t->sh_addr);
	assert_int_equal(s->sh_addralign, t->sh_addralign);
	assert_int_equal(s->sh_entsize, t->sh_entsize);
	assert_string_equal(name_of(a, s->sh_link), name_of(b, t->sh_link));
	if (number)
		assert_string_equal(name_of(a, s->sh_info), name_of(b, t->sh_info));
	else
		assert_int_equal(s->sh_info, t->sh_info);
}

/* Check section I of A against B, where .hip_fatbin may be empty. */
static void check_section(const struct file *a, size_t i, const struct file *b)
{
	const Elf64_Shdr *s = &a->s[i], *t = section(b, section_name(a, i));

	check_section_header(a, s, b, t);
	if (strcmp(section_name(a, i), ".shstrtab") == 0)
		return;
	if (strcmp(section_name(a, i), FATBIN) == 0 && t->sh_type == SHT_NOBITS) {
		assert_true(t->sh_size <= s->sh_size);
		return;
	}
	assert_int_equal(s->sh_size, t->sh_size);
	assert_int_equal(s->sh_type, t->sh_type);
	if (s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM)
		check_symbols(a, s, b, t);
	else if (s->sh_type != SHT_NOBITS &&
		 memcmp(a->data + s->sh_offset, b->data + t->sh_offset, s->sh_size) != 0)
		fail_msg("%s has other bytes", section_name(a, i));
}

static void check_other_headers(const struct file *a, const struct file *b)
{
	for (size_t i = 0; i < a->h.e_phnum; i++) {
		const Elf64_Phdr *h = &a->p[i], *g = header(b, h->p_type), *home;

		if (h->p_type == PT_LOAD || h->p_type == PT_PHDR)
			continue;
		assert_non_null(g);
		assert_int_equal(h->p_flags, g->p_flags);
		assert_int_equal(h->p_vaddr, g->p_vaddr);
		assert_int_equal(h->p_memsz, g->p_memsz);
		assert_int_equal(h->p_align, g->p_align);
		home = load_of(b, g->p_vaddr);
		if (g->p_filesz) {
			assert_non_null(home);
			assert_int_equal(g->p_offset - home->p_offset,
					 g->p_vaddr - home->p_vaddr);
		}
		if (h->p_type != PT_GNU_RELRO)
			assert_int_equal(h->p_filesz, g->p_filesz);
	}
}

/* Every section of A that is mapped has the same permissions in B. */
static void check_permissions(const struct file *a, const struct file *b)
{
	for (size_t i = 1; i < a->h.e_shnum; i++)
		if (is_in_memory(&a->s[i]))
			assert_int_equal(load_of(a, a->s[i].sh_addr)->p_flags,
					 load_of(b, a->s[i].sh_addr)->p_flags);
}

static void check_tail(const struct link *l, const struct file *f)
{
	uint64_t end = f->h.e_shoff + f->h.e_shnum * sizeof(Elf64_Shdr);
	size_t size = l->tail ? strlen(l->tail) : 0;

	/* both its offset and its distance from the end */
	if (size) {
		assert_int_equal(f->size, l->file.size);
		assert_int_equal(f->size, end + size);
		assert_memory_equal(f->data + end, l->tail, size);
	}
}

static void check_gone(const struct file *f)
{
	const uint8_t *p = f->data;
	const uint8_t *end = p + f->size - 16;

	for (; p < end; p += 1)
		if (*p == (uint8_t)code[200] && memcmp(p, code + 200, 16) == 0)
			fail_msg("device code is left");
}

static void check_marker(const struct file *f, struct kp_span want)
{
	const Elf64_Shdr *s = section(f, KP_MARKER_SECTION);
	const Elf64_Phdr *h = load_of(f, s->sh_addr);

	assert_int_equal(s->sh_type, SHT_PROGBITS);
	assert_int_equal(s->sh_flags, SHF_ALLOC);
	assert_int_equal(s->sh_size, want.size);
	assert_memory_equal(f->data + s->sh_offset, want.data, want.size);
	/* only the table may share the marker's segment, unless it is in the code's place */
	if (s->sh_addr == up(section(f, FATBIN)->sh_addr + 16, 16))
		return;
	assert_int_equal(h->p_flags, PF_R);
	for (size_t i = 1; i < f->h.e_shnum; i++)
		if (is_in_memory(&f->s[i]) && strcmp(section_name(f, i), TABLE) != 0 &&
		    &f->s[i] != s)
			assert_true(f->s[i].sh_addr + f->s[i].sh_size <= h->p_vaddr ||
				    f->s[i].sh_addr >= h->p_vaddr + h->p_memsz);
}

/* The library finds the marker, layout and wrappers in F. */
static void check_found(const struct file *f, struct kp_span want, bool keep)
{
	const Elf64_Shdr *m = section(f, KP_MARKER_SECTION);
	struct kp_converted found;
	struct kp_fatbin fat;

	assert_int_equal(kp_fatbin_open(f->fd, f->size, &fat, &why), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_CONVERTED);
	assert_int_equal(kp_converted_find(f->fd, f->size, &fat, &found, &why),
			 KPACK_SUCCESS);
	assert_int_equal(found.marker_offset, m->sh_offset);
	assert_int_equal(found.marker_size, want.size);
	assert_int_equal(found.layout_size, sizeof(layout));
	assert_memory_equal(f->data + found.layout_offset, layout, sizeof(layout));
	assert_int_equal(found.has_device_code, keep);
	for (size_t i = 0; i < fat.elf.n_wrappers; i++) {
		assert_int_equal(fat.elf.wrappers[i].target, m->sh_addr);
		assert_int_equal(fat.elf.wrappers[i].fields.index, i);
	}
	kp_fatbin_fini(&fat);
}

static void check_form(const struct file *f)
{
	check_loads(f);
	check_sections(f);
	check_overlaps(f);
	check_table(f);
	check_at_phdr(f);
	check_loading(f);
}

/* Check that OUT is L converted; L's wrappers point as HOW says. */
static void check_converted(struct link *l, enum how how, const struct file *out,
			    struct kp_span want, bool keep)
{
	struct file was;

	expect(l, how, section(out, KP_MARKER_SECTION)->sh_addr);
	was = write_link(l);
	check_form(out);
	check_marker(out, want);
	check_found(out, want, keep);
	for (size_t i = 1; i < was.h.e_shnum; i++)
		check_section(&was, i, out);
	assert_int_equal(section(out, FATBIN)->sh_type, keep ? SHT_PROGBITS : SHT_NOBITS);
	assert_int_equal(out->h.e_entry, was.h.e_entry);
	check_other_headers(&was, out);
	check_permissions(&was, out);
	check_tail(l, out);
	if (!keep)
		check_gone(out);
	file_free(&was);
	point_all(l, how);
}

/* ---- file layouts ---- */

static const struct shape shapes[] = {
	{"library", .form = WHOLE},
	{"with GNU ld", .how = RELATIVE_STORED, .form = WHOLE, .new_pages = true},
	{"aligned", .form = WHOLE, .align = 4096},
	{"whole pages", .form = WHOLE, .align = 4096, .code = 8192},
	{"three pages", .form = WHOLE, .align = 8, .code = 9000},
	{"three pages, aligned", .form = WHOLE, .align = 4096, .code = 9000},
	{"last", .where = LAST, .form = WHOLE},
	{"last, aligned", .where = LAST, .form = WHOLE, .align = 4096},
	{"last, large", .where = LAST, .form = IN_HOLE, .align = 8, .code = 30000},
	{"last, large, with GNU ld", .where = LAST, .form = IN_HOLE, .align = 8,
	 .code = 30000, .new_pages = true},
	{"first", .where = FIRST, .form = WHOLE},
	{"first, aligned", .where = FIRST, .form = WHOLE, .align = 4096},
	{"first, large", .where = FIRST, .form = IN_HOLE, .align = 8, .code = 30000},
	{"alone", .where = ALONE, .form = WHOLE},
	{"alone, aligned", .where = ALONE, .form = WHOLE, .align = 4096},
	{"alone, large", .where = ALONE, .form = IN_HOLE, .align = 4096, .code = 30000},
	{"alone, with GNU ld", .where = ALONE, .form = IN_HOLE, .align = 4096,
	 .code = 30000, .new_pages = true},
	{"before .bss", .where = BEFORE_BSS, .form = WHOLE},
	{"before .bss, aligned", .where = BEFORE_BSS, .form = WHOLE, .align = 4096},
	{"before .bss, large", .where = BEFORE_BSS, .form = WHOLE, .align = 8,
	 .code = 30000},
	{"before .bss, aligned and large", .where = BEFORE_BSS, .form = WHOLE,
	 .align = 4096, .code = 30000},
	{"in RELRO", .where = IN_RELRO, .form = WHOLE},
	{"in RELRO, aligned", .where = IN_RELRO, .form = WHOLE, .align = 4096},
	{"in RELRO, large", .where = IN_RELRO, .form = WHOLE, .align = 8, .code = 30000},
	{"in RELRO, aligned and large", .where = IN_RELRO, .form = WHOLE, .align = 4096,
	 .code = 30000},
	{"with TLS", .form = IN_HOLE, .align = 4096, .code = 30000, .tls = true},
	{"with a tail", .form = IN_HOLE, .align = 4096, .code = 30000,
	 .tail = "appended to it"},
	{"through symbols", .how = SYMBOL, .form = WHOLE},
	{"RELR", .how = RELR, .form = WHOLE},
	{"REL", .how = REL, .form = WHOLE},
	{"REL through symbols", .how = REL_SYMBOL, .form = WHOLE},
	{"position-independent", .form = WHOLE, .interp = true, .own = true},
	{"position-independent, large", .form = IN_HOLE, .align = 4096, .code = 30000,
	 .interp = true, .own = true},
	{"position-independent with a base", .form = WHOLE, .base = 0x10000,
	 .interp = true, .own = true},
	{"position-independent, large .bss in front", .where = BEFORE_BSS, .form = WHOLE,
	 .align = 4096, .code = 30000, .interp = true, .own = true, .tls = true,
	 .tail = "tail"},
	{"without PT_PHDR", .form = WHOLE, .interp = true},
	{"fixed", .how = IN_PLACE, .form = WHOLE, .base = 0x400000, .fixed = true,
	 .interp = true, .own = true},
	{"fixed, static", .how = IN_PLACE, .form = WHOLE, .base = 0x400000,
	 .fixed = true},
	{"fixed, large", .how = IN_PLACE, .form = IN_HOLE, .align = 4096, .code = 30000,
	 .base = 0x400000, .fixed = true, .interp = true, .own = true},
	{"fixed, in RELRO", .where = IN_RELRO, .how = IN_PLACE, .form = WHOLE,
	 .align = 4096, .code = 30000, .base = 0x400000, .fixed = true, .interp = true,
	 .own = true, .tls = true, .tail = "tail"},
	{"fixed, before .bss", .where = BEFORE_BSS, .how = IN_PLACE, .form = WHOLE,
	 .align = 8, .code = 30000, .base = 0x200000, .fixed = true, .interp = true,
	 .own = true, .new_pages = true},
	{"fixed, at 0x10000", .how = IN_PLACE, .form = WHOLE, .base = 0x10000,
	 .fixed = true, .interp = true, .own = true},
	{"room for one", .form = WHOLE, .spare = 56},
	{"room for three", .form = IN_PLACE_TABLE, .align = 4096, .code = 30000,
	 .spare = 168},
	{"program with room", .form = IN_PLACE_TABLE, .align = 4096, .code = 30000,
	 .interp = true, .own = true, .spare = 168},
	{"fixed, with room", .how = IN_PLACE, .form = IN_PLACE_TABLE, .align = 4096,
	 .code = 30000, .base = 0x400000, .fixed = true, .interp = true, .own = true,
	 .spare = 168},
	{"room for less", .form = IN_HOLE, .align = 4096, .code = 30000, .spare = 160},
	{"PowerPC64", .form = IN_HOLE, .align = 4096, .code = 0x51000, .page = 0x10000,
	 .machine = EM_PPC64},
	{"PowerPC64, through symbols", .how = SYMBOL, .form = IN_HOLE, .align = 4096,
	 .code = 0x51000, .page = 0x10000, .machine = EM_PPC64},
	{"PowerPC64, program", .form = IN_HOLE, .align = 4096, .code = 0x51000,
	 .page = 0x10000, .machine = EM_PPC64, .interp = true, .own = true},
	{"AArch64", .form = WHOLE, .align = 4096, .code = 30000, .page = 0x10000,
	 .machine = EM_AARCH64},
	{"AArch64, aligned", .form = WHOLE, .align = 0x10000, .code = 30000,
	 .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, whole pages", .form = WHOLE, .align = 0x10000, .code = 0x10000,
	 .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, through symbols", .how = SYMBOL, .form = IN_HOLE, .align = 4096,
	 .code = 0x51000, .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, pages of 4 KiB", .form = WHOLE, .align = 4096, .code = 30000,
	 .machine = EM_AARCH64},
	{"AArch64, first", .where = FIRST, .form = IN_HOLE, .align = 4096,
	 .code = 0x51000, .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, alone", .where = ALONE, .form = IN_HOLE, .align = 0x10000,
	 .code = 0x51000, .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, before .bss", .where = BEFORE_BSS, .form = WHOLE, .align = 4096,
	 .code = 0x51000, .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, in RELRO", .where = IN_RELRO, .form = WHOLE, .align = 0x10000,
	 .code = 0x51000, .page = 0x10000, .machine = EM_AARCH64},
	{"AArch64, program", .form = IN_HOLE, .align = 4096, .code = 0x51000,
	 .page = 0x10000, .machine = EM_AARCH64, .interp = true, .own = true},
	{"AArch64, fixed", .how = IN_PLACE, .form = IN_HOLE, .align = 4096,
	 .code = 0x51000, .base = 0x400000, .page = 0x10000, .machine = EM_AARCH64,
	 .fixed = true, .interp = true, .own = true},
	{"library with PT_PHDR", .form = WHOLE, .own = true},
	{"fixed, at 0", .how = IN_PLACE, .form = WHOLE, .fixed = true, .interp = true,
	 .own = true},
	{"fixed, at 0, large", .how = IN_PLACE, .form = IN_HOLE, .align = 4096,
	 .code = 4 << 20, .fixed = true, .interp = true, .own = true},
	{"position-independent, very large", .form = IN_HOLE, .align = 4096,
	 .code = 5 << 20, .interp = true, .own = true, .tail = "tail"},
	{"AArch64, program, very large", .form = IN_HOLE, .align = 0x10000,
	 .code = 5 << 20, .page = 0x10000, .machine = EM_AARCH64, .interp = true,
	 .own = true},
	{"position-independent, very large, not aligned", .form = IN_HOLE, .align = 8,
	 .code = 4 << 20, .interp = true, .own = true},
	{"AArch64, program, very large, not aligned", .form = IN_HOLE, .align = 4096,
	 .code = 5 << 20, .page = 0x10000, .machine = EM_AARCH64, .interp = true,
	 .own = true},
	{"position-independent, very large, last", .where = LAST, .form = IN_HOLE,
	 .align = 8, .code = 4 << 20, .interp = true, .own = true},
	{"position-independent, very large, in RELRO", .where = IN_RELRO, .form = WHOLE,
	 .align = 8, .code = 4 << 20, .interp = true, .own = true},
	{"segments of 64 KiB", .form = WHOLE, .align = 4096, .code = 30000,
	 .page = 0x10000},
};

/*
 * Layouts that are not restored bit for bit, because nothing records the information they
 * lose.
 */
static const struct shape lossy[] = {
	{"fixed, page of 64 KiB", .how = IN_PLACE, .form = WHOLE, .align = 4096,
	 .code = 30000, .base = 0x400000, .page = 0x10000, .fixed = true, .interp = true,
	 .own = true},
	{"an unmapped section in front", .form = IN_HOLE, .align = 4096, .code = 30000,
	 .first_unmapped = true},
	{"segments of 2 MiB", .form = IN_HOLE, .align = 4096, .code = 30000,
	 .page = 0x200000},
	{"fixed, segments of 2 MiB", .how = IN_PLACE, .form = IN_HOLE, .align = 4096,
	 .code = 30000, .base = 0x400000, .page = 0x200000, .fixed = true, .interp = true,
	 .own = true},
};

/* The table is in our segment, after as much free space as it needs, and before the marker. */
static void check_table_segment(const struct file *f)
{
	const Elf64_Shdr *t = section(f, TABLE), *m = section(f, KP_MARKER_SECTION);
	const Elf64_Phdr *load = load_of(f, t->sh_addr);
	uint64_t size = f->h.e_phnum * sizeof(Elf64_Phdr);

	assert_int_equal(t->sh_offset, f->h.e_phoff);
	assert_int_equal(t->sh_size, size);
	assert_int_equal(t->sh_addr - load->p_vaddr, size);
	assert_int_equal(m->sh_addr, t->sh_addr + size);
	assert_int_equal(load->p_filesz, 2 * size + m->sh_size);
	assert_int_equal(load->p_memsz, load->p_filesz);
	assert_int_equal(load->p_flags, PF_R);
	/* its page of the file is not shared with the data */
	assert_int_equal(load->p_offset % 4096, 0);
}

static void check_where_table_is(const struct shape *s, const struct file *fat,
				 const struct file *f)
{
	const Elf64_Shdr *was = section(fat, FATBIN), *m = section(f, KP_MARKER_SECTION);
	const Elf64_Phdr *own = header(f, PT_PHDR);
	bool inside =
		m->sh_addr > was->sh_addr && m->sh_addr < was->sh_addr + was->sh_size;

	assert_true(f->size <= fat->size);
	if (s->form == IN_HOLE || s->form == SPARSE) {
		check_table_segment(f);
	} else {
		assert_int_equal(f->h.e_phoff, sizeof(Elf64_Ehdr));
		assert_int_equal(find_section(f, TABLE), 0);
	}
	assert_int_equal(inside, s->form == IN_HOLE || s->form == WHOLE);
	if (s->form == WHOLE)
		assert_int_equal(f->h.e_phnum, fat->h.e_phnum);
	assert_int_equal(!own, !s->own);
}

static void assert_same(const struct file *a, const struct file *b)
{
	uint64_t size = a->size < b->size ? a->size : b->size;

	for (uint64_t i = 0; i < size; i++)
		if (a->data[i] != b->data[i])
			fail_msg("differs at 0x%llx", (unsigned long long)i);
	assert_int_equal(a->size, b->size);
}

/* Set other markers in turn; the last one restores the file that the first one gave. */
static struct file check_sets(struct link *l, enum how how, const struct file *f,
			      bool keep)
{
	static const uint8_t longer[5000] = "longer";
	static const struct kp_span markers[] = {{longer, sizeof(longer)},
						 {(const uint8_t *)"x", 1},
						 {marker, sizeof(marker)}};
	struct file first = must_set(f, SPAN(marker)), last = {.fd = -1};

	for (size_t i = 0; i < COUNT(markers); i++) {
		struct file next = must_set(i ? &last : &first, markers[i]);

		check_converted(l, how, &next, markers[i], keep);
		file_free(&last);
		last = next;
	}
	assert_same(&first, &last);
	file_free(&first);
	return last;
}

/* Normalising changes nothing. */
static void check_normal(const struct file *f)
{
	struct file none;
	bool changed = true;

	assert_int_equal(call(f, do_normalise, &changed, &none), KPACK_SUCCESS);
	assert_false(changed);
	assert_int_equal(none.size, 0);
	file_free(&none);
}

/* A and B restore to the same file, which is returned. */
static struct file check_restored(const struct link *l, const struct file *a,
				  const struct file *b)
{
	struct file x = must_restore(a, link_section(l, FATBIN)->size);
	struct file y = must_restore(b, link_section(l, FATBIN)->size);

	assert_same(&x, &y);
	check_form(&x);
	file_free(&y);
	return x;
}

static void try_link(struct link *l, const struct shape *s, bool keep, bool exact)
{
	struct file fat = write_link(l), out = must_convert(&fat, keep), other, back;

	if (!keep)
		check_where_table_is(s, &fat, &out);
	check_converted(l, s->how, &out, SPAN(marker), keep);
	check_normal(&out);
	other = check_sets(l, s->how, &out, keep);
	back = check_restored(l, &out, &other);
	if (exact)
		assert_same(&fat, &back);
	file_free(&back);
	file_free(&other);
	file_free(&out);
	file_free(&fat);
}

static void try_shape(const struct shape *s, bool keep, bool exact)
{
	struct link l = make(s);

	print_message("# %s\n", s->name);
	try_link(&l, s, keep, exact);
	link_free(&l);
}

TEST(all_layouts_are_converted_and_restored)
{
	for (size_t i = 0; i < COUNT(shapes); i++)
		try_shape(&shapes[i], false, true);
}

TEST(some_layouts_come_back_otherwise)
{
	for (size_t i = 0; i < COUNT(lossy); i++)
		try_shape(&lossy[i], false, false);
}

/* Unless there is no room in front of bytes that a program finds from its file's end. */
TEST(device_code_can_stay)
{
	struct kp_convert_options options = {
		.marker = SPAN(marker), .layout = SPAN(layout), .keep_device_code = true};

	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct link l;
		struct file fat;

		if (!shapes[i].tail) {
			try_shape(&shapes[i], true, true);
			continue;
		}
		l = make(&shapes[i]);
		fat = write_link(&l);
		refused(&fat, do_convert, &options, KPACK_ERROR_NOT_IMPLEMENTED,
			"elf: bytes are appended to it, in front of which is no room");
		file_free(&fat);
		link_free(&l);
	}
}

TEST(wrappers_are_found_without_their_section)
{
	wrappers = ".merged";
	for (size_t i = 0; i < COUNT(shapes); i++)
		try_shape(&shapes[i], false, true);
	wrappers = ".hipFatBinSegment";
}

/* ---- the addresses of .hip_fatbin after conversion ---- */

/* What occupies the addresses of .hip_fatbin. */
enum gap {
	OWN,    /* a segment without bytes */
	AT_END, /* the end of a segment that begins with bytes */
	ZEROS,  /* bytes of 0, because its neighbours share a page */
};

static void check_gap(const struct shape *s, enum gap gap, size_t more)
{
	struct link l = make(s);
	struct file fat = write_link(&l), out = must_convert(&fat, false);
	const Elf64_Shdr *h = section(&out, FATBIN);
	const Elf64_Phdr *load = load_of(&out, h->sh_addr);
	uint64_t skip = h->sh_addr - load->p_vaddr;

	print_message("# %s, %d\n", s->name, (int)gap);
	assert_int_equal(count_loads(&out), count_loads(&fat) + more);
	if (gap == OWN) {
		assert_int_equal(skip, 0);
		assert_int_equal(load->p_filesz, 0);
	} else if (gap == AT_END) {
		assert_true(skip > 0);
		assert_int_equal(load->p_filesz, skip);
	} else {
		assert_true(load->p_filesz > skip + h->sh_size);
		for (uint64_t i = 0; i < h->sh_size; i++)
			assert_int_equal(out.data[load->p_offset + skip + i], 0);
	}
	assert_true(load->p_memsz >= skip + h->sh_size);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

TEST(the_gap_depends_on_pages)
{
	static const struct {
		struct shape shape;
		enum gap gap;
		size_t more; /* PT_LOADs; one is for marker and table */
	} cases[] = {
		{{"between", .align = 8}, ZEROS, 0},
		{{"from a page on", .align = 4096, .code = 30000}, OWN, 3},
		{{"page by page", .align = 4096, .code = 32768}, OWN, 3},
		{{"over a page", .align = 8, .code = 30000}, AT_END, 2},
		{{"last", .where = LAST, .code = 30000}, AT_END, 1},
		{{"last, from a page on", .where = LAST, .align = 4096, .code = 30000},
		 OWN,
		 2},
		{{"first", .where = FIRST, .code = 30000}, OWN, 2},
		{{"first, from a page on", .where = FIRST, .align = 4096, .code = 30000},
		 OWN,
		 2},
		{{"alone", .where = ALONE, .align = 4096, .code = 30000}, OWN, 1},
		{{"before .bss", .where = BEFORE_BSS, .code = 30000}, ZEROS, 0},
		{{"in RELRO", .where = IN_RELRO, .align = 4096, .code = 30000}, ZEROS, 0},
		{{"AArch64, from 4 KiB on", .align = 4096, .code = 0x8000,
		  .page = 0x10000, .machine = EM_AARCH64},
		 ZEROS,
		 0},
		{{"AArch64, over 64 KiB", .align = 4096, .code = 0x51000, .page = 0x10000,
		  .machine = EM_AARCH64},
		 AT_END,
		 2},
		{{"AArch64, from 64 KiB on", .align = 0x10000, .code = 0x51000,
		  .page = 0x10000, .machine = EM_AARCH64},
		 OWN,
		 3},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		check_gap(&cases[i].shape, cases[i].gap, cases[i].more);
}

/* A library whose segment with .hip_fatbin is executable because code follows in it. */
TEST(what_has_no_code_is_no_longer_executable)
{
	static const struct shape s = {"", .where = FIRST, .align = 4096, .code = 30000};
	struct link l = make(&s);
	struct file fat, out, back;
	uint64_t fatbin = link_addr(&l, FATBIN), behind = link_addr(&l, ".eh_frame");

	for (size_t i = 0; i < link_phnum(&l); i++)
		if (link_phdr(&l, i)->p_vaddr == fatbin)
			link_phdr(&l, i)->p_flags = PF_R | PF_X;
	link_shdr(&l, link_number(&l, ".eh_frame"))->sh_flags |= SHF_EXECINSTR;
	fat = write_link(&l);
	out = must_convert(&fat, false);
	assert_int_equal(load_of(&out, fatbin)->p_flags, PF_R);
	assert_int_equal(load_of(&out, behind)->p_flags, PF_R | PF_X);
	back = must_restore(&out, link_section(&l, FATBIN)->size);
	assert_same(&fat, &back);
	file_free(&back);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

/* ---- sections and symbols ---- */

TEST(thousands_of_sections_are_fine)
{
	static const struct shape s = {"", .form = IN_HOLE, .align = 4096, .code = 30000};
	static char names[2000][8];
	struct link l = make_host(&s), many = l;

	many.n_sections--; /* link_build adds the section of names */
	many.file = (struct bytes){0};
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(names[i], sizeof(names[i]), ".s%04u", (unsigned)i);
		add(&many, names[i], 0, LINK_UNMAPPED, 3 + i % 5, (uint64_t)1 << i % 4);
	}
	link_build(&many);
	write_symbols(&many, ".dynsym");
	write_symbols(&many, ".symtab");
	point_all(&many, s.how);
	try_link(&many, &s, false, true);
	bytes_free(&l.file);
	link_free(&many);
}

/* A symbol of a dropped section becomes absolute. */
TEST(symbols_of_dropped_sections_are_absolute)
{
	struct link l = make(&shapes[0]);
	struct file fat = write_link(&l), out = must_convert(&fat, false), back;
	const Elf64_Shdr *s = section(&out, ".symtab");
	uint16_t number = (uint16_t)find_section(&out, KP_MARKER_SECTION);
	Elf64_Sym symbol;

	assert_int_equal(pwrite(out.fd, &number, 2,
				(off_t)(s->sh_offset + 5 * sizeof(symbol) +
					offsetof(Elf64_Sym, st_shndx))),
			 2);
	back = must_restore(&out, link_section(&l, FATBIN)->size);
	memcpy(&symbol,
	       back.data + section(&back, ".symtab")->sh_offset + 5 * sizeof(symbol),
	       sizeof(symbol));
	assert_int_equal(symbol.st_shndx, SHN_ABS);
	file_free(&back);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

TEST(without_a_layout_there_is_no_section_for_it)
{
	struct kp_convert_options options = {.marker = SPAN(marker)};
	struct link l = make(&shapes[0]);
	struct file fat = write_link(&l), out, back;
	struct kp_converted found;
	struct kp_fatbin fb;

	assert_int_equal(call(&fat, do_convert, &options, &out), KPACK_SUCCESS);
	assert_int_equal(find_section(&out, KP_LAYOUT_SECTION), 0);
	assert_int_equal(kp_fatbin_open(out.fd, out.size, &fb, &why), KPACK_SUCCESS);
	assert_int_equal(kp_converted_find(out.fd, out.size, &fb, &found, &why),
			 KPACK_SUCCESS);
	assert_int_equal(found.layout_size, 0);
	kp_fatbin_fini(&fb);
	back = must_restore(&out, link_section(&l, FATBIN)->size);
	assert_same(&fat, &back);
	file_free(&back);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

/* ---- normalising program headers ---- */

static void shift64(uint8_t *p, uint64_t by)
{
	kp_put_le64(p, kp_le64(p) - by);
}

/*
 * Close the hole in front of the marker's block as strip does; addresses do not change.
 */
static struct file close_hole(const struct file *f)
{
	const Elf64_Phdr *block = load_of(f, section(f, KP_MARKER_SECTION)->sh_addr);
	uint64_t end = 0, gone;
	struct bytes b = {0};
	struct file out;

	for (size_t i = 0; i < f->h.e_phnum; i++)
		if (f->p[i].p_type == PT_LOAD && f->p[i].p_offset < block->p_offset &&
		    f->p[i].p_filesz)
			end = f->p[i].p_offset + f->p[i].p_filesz;
	gone = down(block->p_offset - end, block->p_align);
	assert_true(gone > 0);
	put(&b, f->data, end);
	put_zeros(&b, block->p_offset - gone - end);
	put(&b, f->data + block->p_offset, f->size - block->p_offset);
	shift64(b.data + offsetof(Elf64_Ehdr, e_phoff), gone);
	shift64(b.data + offsetof(Elf64_Ehdr, e_shoff), gone);
	for (size_t i = 0; i < f->h.e_phnum; i++)
		if (f->p[i].p_offset >= block->p_offset)
			shift64(b.data + f->h.e_phoff - gone + i * sizeof(Elf64_Phdr) +
					offsetof(Elf64_Phdr, p_offset),
				gone);
	for (size_t i = 0; i < f->h.e_shnum; i++)
		if (f->s[i].sh_offset >= block->p_offset)
			shift64(b.data + f->h.e_shoff - gone + i * sizeof(Elf64_Shdr) +
					offsetof(Elf64_Shdr, sh_offset),
				gone);
	out = read_file(bytes_fd(b.data, b.size));
	bytes_free(&b);
	return out;
}

TEST(program_headers_become_right_again)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct link l = make(&shapes[i]);
		struct file fat, out, stripped, right, set;
		bool changed = false;

		if (shapes[i].form != SPARSE || !shapes[i].interp) {
			link_free(&l);
			continue;
		}
		print_message("# %s\n", shapes[i].name);
		fat = write_link(&l);
		out = must_convert(&fat, false);
		stripped = close_hole(&out);
		assert_int_equal(call(&stripped, do_normalise, &changed, &right),
				 KPACK_SUCCESS);
		assert_true(changed);
		check_where_table_is(&shapes[i], &fat, &right);
		check_converted(&l, shapes[i].how, &right, SPAN(marker), false);
		check_normal(&right);
		set = must_set(&out, SPAN(marker));
		assert_same(&set, &right);
		file_free(&set);
		file_free(&right);
		file_free(&stripped);
		file_free(&out);
		file_free(&fat);
		link_free(&l);
	}
}

/* ---- restoring with other contents ---- */

/* BACK is L with SIZE bytes of device code, which its wrappers point to. */
static void check_fat(struct link *l, const struct file *back, size_t size)
{
	const Elf64_Shdr *s = section(back, FATBIN);
	struct kp_fatbin fat;

	check_form(back);
	assert_int_equal(s->sh_type, SHT_PROGBITS);
	assert_int_equal(s->sh_size, size);
	assert_memory_equal(back->data + s->sh_offset, code, size);
	assert_int_equal(kp_fatbin_open(back->fd, back->size, &fat, &why), KPACK_SUCCESS);
	assert_int_equal(fat.kind, KP_FATBIN_ELF);
	assert_int_equal(fat.elf.n_wrappers, N_WRAPPERS);
	for (size_t i = 0; i < N_WRAPPERS; i++) {
		assert_int_equal(fat.elf.wrappers[i].target, s->sh_addr + target_of(i));
		assert_int_equal(fat.elf.wrappers[i].fields.index, 0);
	}
	kp_fatbin_fini(&fat);
	check_tail(l, back);
	assert_int_equal(find_section(back, KP_MARKER_SECTION), 0);
	assert_int_equal(find_section(back, KP_LAYOUT_SECTION), 0);
}

static void try_larger(const struct shape *s, size_t more)
{
	struct link l = make(s);
	size_t size = link_section(&l, FATBIN)->size + more;
	struct file fat = write_link(&l), out = must_convert(&fat, false), back, again;

	print_message("# %s\n", s->name);
	memset(code + size - more, 0, more);
	back = must_restore(&out, size);
	check_fat(&l, &back, size);
	for (size_t i = 1; i < fat.h.e_shnum; i++)
		if (is_in_memory(&fat.s[i]) && strcmp(section_name(&fat, i), FATBIN) != 0)
			assert_int_equal(section(&back, section_name(&fat, i))->sh_addr,
					 fat.s[i].sh_addr);
	again = must_convert(&back, false);
	check_form(&again);
	check_found(&again, SPAN(marker), false);
	file_free(&again);
	file_free(&back);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

TEST(more_device_code_goes_behind_everything)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		if (shapes[i].tail)
			continue;
		try_larger(&shapes[i], 8);
		try_larger(&shapes[i], 100000);
	}
}

TEST(less_device_code_is_a_smaller_section)
{
	struct link l = make(&shapes[0]);
	size_t size = link_section(&l, FATBIN)->size;
	struct file fat = write_link(&l), out = must_convert(&fat, false), back;

	back = must_restore(&out, size - 9);
	check_form(&back);
	assert_int_equal(section(&back, FATBIN)->sh_size, size - 9);
	assert_memory_equal(back.data + section(&back, FATBIN)->sh_offset, code,
			    size - 9);
	file_free(&back);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

/* ---- fewer bytes in a file that stays fat ---- */

static kpack_error_t do_refill(const struct file *f, const struct kp_fatbin *fat,
			       struct kp_outfile *out, void *arg)
{
	return kp_refill(f->fd, f->size, fat, arg, out, &why);
}

static kpack_error_t refill(const struct file *f, size_t size, struct file *out)
{
	uint64_t offsets[N_WRAPPERS];
	struct kp_restore_options options = {
		.size = size, .offsets = offsets, .write = write_code, .arg = &size};

	for (size_t i = 0; i < N_WRAPPERS; i++)
		offsets[i] = target_of(i);
	return call(f, do_refill, &options, out);
}

/* Sections other than the device code keep addresses and bytes, but for the wrappers. */
static void check_others(const struct file *a, const struct file *b)
{
	for (size_t i = 1; i < a->h.e_shnum; i++) {
		const char *name = section_name(a, i);
		const Elf64_Shdr *s = &a->s[i], *t = section(b, name);

		if (strcmp(name, FATBIN) == 0 || strcmp(name, ".shstrtab") == 0)
			continue;
		assert_int_equal(s->sh_addr, t->sh_addr);
		assert_int_equal(s->sh_size, t->sh_size);
		assert_int_equal(s->sh_type, t->sh_type);
		if (s->sh_type != SHT_NOBITS && strcmp(name, ".text") == 0)
			assert_memory_equal(a->data + s->sh_offset,
					    b->data + t->sh_offset, s->sh_size);
	}
}

static void try_refill(const struct shape *of, size_t code_size, size_t size)
{
	struct shape s = *of;
	struct link l;
	struct file fat, out, again;
	struct bytes less;

	print_message("# %s: %zu of %zu bytes\n", s.name, size, code_size);
	s.code = code_size;
	l = make(&s);
	fat = write_link(&l);
	less = make_code(size);
	memcpy(code, less.data, size);
	bytes_free(&less);
	if (refill(&fat, size, &out))
		fail_msg("%s", why.text);
	check_fat(&l, &out, size);
	check_others(&fat, &out);
	check_loading(&out);
	/* unless the program headers need the addresses, and RELRO keeps them */
	assert_true(out.size <= fat.size);
	if (s.where != IN_RELRO && !s.tail) {
		assert_true(out.size < fat.size);
		assert_true(fat.size - out.size >= code_size - size - 8 * 65536);
	}
	again = must_convert(&out, false);
	check_form(&again);
	check_found(&again, SPAN(marker), false);
	file_free(&again);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

TEST(less_device_code_makes_the_file_smaller)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		try_refill(&shapes[i], 900000, 80000);
		try_refill(&shapes[i], 3 << 20, 600);
		try_refill(&shapes[i], 3 << 20, 1 << 20);
		try_refill(&shapes[i], (3 << 20) + 4000, (1 << 20) + 8);
	}
}

TEST(refilling_never_enlarges)
{
	struct link l = make(&shapes[0]);
	size_t size = link_section(&l, FATBIN)->size;
	struct file fat = write_link(&l), out;

	assert_int_equal(refill(&fat, size + 8, &out), KPACK_ERROR_NOT_IMPLEMENTED);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

TEST(containers_must_begin_inside)
{
	struct link l = make(&shapes[0]);
	size_t size = link_section(&l, FATBIN)->size;
	uint64_t offsets[N_WRAPPERS] = {0, SECOND, size};
	struct kp_restore_options options = {
		.size = size, .offsets = offsets, .write = write_code, .arg = &size};
	struct file fat = write_link(&l), out = must_convert(&fat, false), none;

	assert_int_equal(call(&out, do_restore, &options, &none),
			 KPACK_ERROR_INVALID_METADATA);
	assert_string_equal(why.text, "wrapper 2: its container would begin at 600 of "
				      "600 bytes");
	offsets[2] = UINT64_MAX;
	assert_int_equal(call(&out, do_restore, &options, &none),
			 KPACK_ERROR_INVALID_METADATA);
	offsets[2] = size - 1;
	assert_int_equal(call(&out, do_restore, &options, &none), KPACK_SUCCESS);
	file_free(&none);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

static kpack_error_t fail_to_write(void *arg, struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *w)
{
	return kp_fail(w, KPACK_ERROR_DECOMPRESSION_FAILED, "no code today");
}

TEST(errors_of_the_writer_are_passed_on)
{
	struct link l = make(&shapes[0]);
	uint64_t offsets[N_WRAPPERS] = {0};
	struct kp_restore_options options = {.size = link_section(&l, FATBIN)->size,
					     .offsets = offsets,
					     .write = fail_to_write};
	struct file fat = write_link(&l), out = must_convert(&fat, false), none;

	assert_int_equal(call(&out, do_restore, &options, &none),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_string_equal(why.text, "no code today");
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

/* ---- refusals ---- */

static void refuse_file(const struct file *f, kpack_error_t code_, const char *text)
{
	struct kp_convert_options options = {.marker = SPAN(marker),
					     .layout = SPAN(layout)};

	refused(f, do_convert, &options, code_, text);
}

/* Converting L, which was changed after linking, fails with TEXT in the message. */
static void refuse(struct link *l, const char *text)
{
	struct file f = {.fd = bytes_fd(l->file.data, l->file.size),
			 .size = l->file.size};

	refuse_file(&f, KPACK_ERROR_NOT_IMPLEMENTED, text);
	file_free(&f);
	link_free(l);
}

static struct link library(void)
{
	return make(&shapes[0]);
}

static Elf64_Shdr *shdr_of(struct link *l, const char *name)
{
	return link_shdr(l, link_number(l, name));
}

/* The Nth program header of type TYPE, counted from 0. */
static Elf64_Phdr *phdr_of(struct link *l, uint32_t type, size_t n)
{
	for (size_t i = 0; i < link_phnum(l); i++)
		if (link_phdr(l, i)->p_type == type && n-- == 0)
			return link_phdr(l, i);
	fail_msg("no program header of type %u", type);
	return NULL;
}

TEST(other_files_are_not_changed)
{
	struct link l;

	l = library();
	link_ehdr(&l)->e_machine = EM_RISCV;
	for (size_t i = 0; i < N_WRAPPERS; i++) /* else the pointers are unknown */
		write_wrapper(&l, link_addr(&l, wrappers) + i * KP_WRAPPER_SIZE,
			      KP_WRAPPER_HIPF, link_addr(&l, FATBIN) + target_of(i), 0);
	memset(l.file.data + link_section(&l, ".rela.dyn")->offset, 0, 120);
	refuse(&l, "elf: machine 243: only x86-64, AArch64 and PowerPC64 are changed");
	l = library();
	link_ehdr(&l)->e_type = ET_CORE;
	refuse(&l, "elf: type 4: only programs and shared libraries are changed");
	l = library();
	l.file.data[EI_DATA] = ELFDATA2MSB;
	refuse(&l, "has no .hip_fatbin");
	l = library();
	link_ehdr(&l)->e_phnum = 0;
	refuse(&l, "elf: 0 program headers");
	l = library();
	link_ehdr(&l)->e_shnum = 0;
	link_ehdr(&l)->e_shoff = 0;
	link_ehdr(&l)->e_shstrndx = 0;
	refuse(&l, "has no .hip_fatbin");
	l = library();
	shdr_of(&l, ".comment")->sh_type = SHT_GROUP;
	refuse(&l, "elf: section groups in a linked file");
	l = library();
	shdr_of(&l, ".shstrtab")->sh_flags = SHF_ALLOC;
	refuse(&l, "elf: the section names are mapped");
	l = library();
	shdr_of(&l, ".bss")->sh_size = UINT64_C(1) << 48;
	refuse(&l, "elf: section 16: 281474976710656 bytes at address 0x");
}

TEST(wrappers_must_be_fat)
{
	struct link l;

	l = library();
	point(&l, RELATIVE, 1, link_addr(&l, wrappers) + KP_WRAPPER_SIZE,
	      link_addr(&l, FATBIN), KP_WRAPPER_HIPK);
	refuse(&l, "wrapper 1 is already converted, other wrappers are not");
	l = library();
	memset(link_at(&l, link_addr(&l, wrappers)), 0, N_WRAPPERS * KP_WRAPPER_SIZE);
	refuse(&l, "no wrapper leads to its .hip_fatbin");
	l = library();
	shdr_of(&l, FATBIN)->sh_type = SHT_NOBITS;
	refuse(&l, "has no .hip_fatbin");
	l = library();
	shdr_of(&l, wrappers)->sh_flags = 0;
	shdr_of(&l, wrappers)->sh_offset = link_section(&l, ".debug_info")->offset;
	memcpy(l.file.data + link_section(&l, ".debug_info")->offset,
	       link_at(&l, link_addr(&l, wrappers)), N_WRAPPERS * KP_WRAPPER_SIZE);
	refuse(&l, "a wrapper or its relocation, at offset ");
}

TEST(pointers_set_from_outside_are_not_changed)
{
	struct link l = library();
	struct file f;

	/* a symbol of another file */
	write_reloc(&l, ".rela.dyn", 1, link_addr(&l, wrappers) + 8, true, 0);
	memset(link_at(&l, link_addr(&l, ".dynsym") + sizeof(Elf64_Sym)), 0,
	       sizeof(Elf64_Sym));
	f = write_link(&l);
	refuse_file(&f, KPACK_ERROR_INVALID_FORMAT,
		    "wrapper 0: its pointer is set from outside this file");
	file_free(&f);
	link_free(&l);
}

TEST(segments_must_be_in_order)
{
	struct link l;
	Elf64_Phdr swap;

	l = library();
	swap = *phdr_of(&l, PT_LOAD, 0);
	*phdr_of(&l, PT_LOAD, 0) = *phdr_of(&l, PT_LOAD, 1);
	*phdr_of(&l, PT_LOAD, 1) = swap;
	refuse(&l, "overlaps the one before it, or they are out of order");
	l = library();
	phdr_of(&l, PT_LOAD, 0)->p_memsz = 0x2000;
	refuse(&l, "elf: segment at 0x16a0 overlaps the one before it");
	l = library();
	phdr_of(&l, PT_LOAD, 1)->p_align = 0x800;
	refuse(&l, " is not aligned to pages (0x800)");
	l = library();
	phdr_of(&l, PT_LOAD, 1)->p_align = 0x1001;
	refuse(&l, " is not aligned to pages (0x1001)");
	l = library();
	phdr_of(&l, PT_LOAD, 1)->p_align = 0x2000;
	refuse(&l, " is not aligned to pages (0x2000)");
	l = library();
	phdr_of(&l, PT_LOAD, 2)->p_offset += 8;
	refuse(&l, " is not aligned to pages (0x1000)");
}

TEST(headers_that_lie_are_refused)
{
	struct link l;
	struct file f;

	l = library();
	phdr_of(&l, PT_LOAD, 1)->p_filesz++;
	f = write_link(&l);
	refuse_file(&f, KPACK_ERROR_INVALID_FORMAT, "334 bytes at offset ");
	file_free(&f);
	link_free(&l);
	l = library();
	phdr_of(&l, PT_LOAD, 3)->p_vaddr = UINT64_C(1) << 48;
	f = write_link(&l);
	refuse_file(&f, KPACK_ERROR_INVALID_FORMAT, "elf: segment at 0x1000000000000: ");
	file_free(&f);
	link_free(&l);
	l = library();
	shdr_of(&l, ".comment")->sh_offset = l.file.size;
	f = write_link(&l);
	refuse_file(&f, KPACK_ERROR_INVALID_FORMAT, "33 bytes at offset ");
	file_free(&f);
	link_free(&l);
	l = library();
	shdr_of(&l, ".symtab")->sh_entsize = 23;
	f = write_link(&l);
	refuse_file(&f, KPACK_ERROR_INVALID_FORMAT, "symbols of 23 bytes");
	file_free(&f);
	link_free(&l);
}

TEST(the_section_must_be_by_itself)
{
	struct link l;
	uint64_t offset;

	l = library();
	offset = link_section(&l, FATBIN)->offset;
	shdr_of(&l, ".debug_info")->sh_offset = offset + 599;
	refuse(&l, "has bytes in common with .hip_fatbin");
	l = library();
	shdr_of(&l, ".debug_info")->sh_offset = offset - 100;
	refuse(&l, "has bytes in common with .hip_fatbin");
	l = library();
	phdr_of(&l, PT_NOTE, 0)->p_offset = offset + 8;
	refuse(&l, "elf: program header 6 has bytes in common with .hip_fatbin");
	l = library();
	shdr_of(&l, FATBIN)->sh_flags = 0;
	refuse(&l, "elf: .hip_fatbin is not mapped by one segment");
	l = library();
	phdr_of(&l, PT_LOAD, 0)->p_filesz = offset + 100;
	phdr_of(&l, PT_LOAD, 0)->p_memsz = offset + 100;
	refuse(&l, "elf: .hip_fatbin is not mapped by one segment");
	/* the program headers lie inside the device code */
	l = library();
	put(&l.file, "", 1);
	memcpy(l.file.data + offset + 304, link_phdr(&l, 0),
	       8 * sizeof(Elf64_Phdr) - 160);
	link_ehdr(&l)->e_phoff = offset + 304;
	link_ehdr(&l)->e_phnum = 5;
	refuse(&l, "elf: headers lie inside the section");
}

TEST(parts_of_other_sections_are_not_split)
{
	struct link l = library();
	const struct link_section *s = link_section(&l, ".rodata");

	/* begins past the last segment, ends inside it */
	shdr_of(&l, ".debug_info")->sh_offset = link_section(&l, ".comment")->offset - 3;
	refuse(&l, "is partly mapped");
	l = library();
	s = link_section(&l, ".comment");
	phdr_of(&l, PT_NOTE, 0)->p_offset = s->offset;
	refuse(&l, "is for bytes that are not mapped");
}

TEST(our_sections_must_not_be_there)
{
	static const char *const names[] = {KP_MARKER_SECTION, KP_LAYOUT_SECTION};
	char text[80];

	for (size_t i = 0; i < COUNT(names); i++) {
		struct link l = make_host(&shapes[0]), more = l;

		more.n_sections--;
		more.file = (struct bytes){0};
		add(&more, names[i], 0, LINK_UNMAPPED, 3, 1);
		link_build(&more);
		point_all(&more, RELATIVE);
		bytes_free(&l.file);
		snprintf(text, sizeof(text), "elf: a section %s already exists",
			 names[i]);
		refuse(&more, text);
	}
}

TEST(what_reads_its_device_code_keeps_it)
{
	struct link l;
	uint64_t word, fatbin;

	l = library();
	word = link_addr(&l, ".data.rel.ro");
	fatbin = link_addr(&l, FATBIN);
	write_reloc(&l, ".rela.dyn", 0, word, false, fatbin + 599);
	refuse(&l, "which is not part of a wrapper, leads into .hip_fatbin");
	l = library();
	write_reloc(&l, ".rela.dyn", 0, word, true, 599);
	refuse(&l, "which is not part of a wrapper, leads into .hip_fatbin");
	l = library();
	write_reloc(&l, ".rela.dyn", 0, fatbin + 8, false, word);
	refuse(&l, "which is not part of a wrapper, is relocated inside .hip_fatbin");
	l = make(&(struct shape){"", .how = REL});
	write_reloc(&l, ".rel.dyn", 0, link_addr(&l, ".data.rel.ro"), false, 0);
	link_write64(&l, link_addr(&l, ".data.rel.ro"), link_addr(&l, FATBIN));
	refuse(&l, "which is not part of a wrapper, leads into .hip_fatbin");
	l = make(&(struct shape){"", .how = RELR});
	word = link_addr(&l, ".relr.dyn");
	/* the word after the second wrapper's pointer is relocated too */
	link_write64(&l, word + 8, 1 | 1 << 3 | 1 << 4 | 1 << 6);
	link_write64(&l, link_addr(&l, wrappers) + 40, link_addr(&l, FATBIN));
	refuse(&l, "which is not part of a wrapper, leads into .hip_fatbin");
	l = make(&(struct shape){"", .how = RELR});
	link_write64(&l, link_addr(&l, ".relr.dyn") + 8, link_addr(&l, ".data.rel.ro"));
	refuse(&l, "elf: .relr.dyn is not in order at 0x");
}

/* Pointers to addresses next to the device code are allowed. */
TEST(pointers_beside_the_device_code_do_not_matter)
{
	struct link l = library();
	uint64_t word = link_addr(&l, ".data.rel.ro"), fatbin = link_addr(&l, FATBIN);
	struct file f, out;

	write_reloc(&l, ".rela.dyn", 0, word, false, fatbin + 600);
	write_reloc(&l, ".rela.dyn", 4, word + 8, true, (uint64_t)-1);
	f = write_link(&l);
	out = must_convert(&f, false);
	check_converted(&l, RELATIVE, &out, SPAN(marker), false);
	file_free(&out);
	file_free(&f);
	link_free(&l);
}

/* Other pointers to device code are allowed if the code is kept. */
TEST(kept_device_code_can_be_read)
{
	struct link l = library();
	struct file f, out;

	write_reloc(&l, ".rela.dyn", 0, link_addr(&l, ".data.rel.ro"), false,
		    link_addr(&l, FATBIN));
	f = write_link(&l);
	out = must_convert(&f, true);
	check_converted(&l, RELATIVE, &out, SPAN(marker), true);
	file_free(&out);
	file_free(&f);
	link_free(&l);
}

TEST(some_programs_cannot_be_helped)
{
	struct kp_convert_options options = {
		.marker = SPAN(marker), .layout = SPAN(layout), .keep_device_code = true};
	struct link l;
	struct file f;
	Elf64_Phdr *last;

	/* a hole in the file would exceed this limit */
	l = make(&(struct shape){"", .interp = true, .own = true});
	last = phdr_of(&l, PT_LOAD, 3);
	last->p_memsz = KP_SPARSE_MAX + 0x10000;
	f = write_link(&l);
	refused(&f, do_convert, &options, KPACK_ERROR_NOT_IMPLEMENTED,
		"elf: no room for the marker and program headers: address 0x");
	file_free(&f);
	link_free(&l);
	l = library();
	last = phdr_of(&l, PT_LOAD, 3);
	last->p_memsz = KP_ADDRESS_MAX - last->p_vaddr;
	f = write_link(&l);
	refused(&f, do_convert, &options, KPACK_ERROR_NOT_IMPLEMENTED,
		"elf: no room for the marker and program headers: address 0x");
	file_free(&f);
	link_free(&l);
}

/* The marker, and what describes it, need some bytes. */
TEST(tiny_device_code_is_left_alone)
{
	static const uint8_t large[600];
	struct kp_convert_options options = {.marker = SPAN(large),
					     .layout = SPAN(layout)};
	struct link l = library();
	struct file f = write_link(&l);

	refused(&f, do_convert, &options, KPACK_ERROR_NOT_IMPLEMENTED,
		"it would become longer: its device code has 600 bytes, which is less "
		"than what takes its place");
	file_free(&f);
	link_free(&l);
}

TEST(what_is_converted_is_not_converted_again)
{
	struct kp_span to = SPAN(marker);
	struct link l = library();
	struct file fat = write_link(&l), out = must_convert(&fat, false);
	bool changed;

	refuse_file(&out, KPACK_ERROR_NOT_IMPLEMENTED, "is converted already");
	refused(&fat, do_set, &to, KPACK_ERROR_NOT_IMPLEMENTED, "is not converted");
	refused(&fat, do_normalise, &changed, KPACK_ERROR_NOT_IMPLEMENTED,
		"is not converted");
	refused(&fat, do_restore, NULL, KPACK_ERROR_NOT_IMPLEMENTED, "is not converted");
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

/* ---- inconsistent converted files ---- */

static uint64_t shdr_at(const struct file *f, const char *name, size_t field)
{
	return f->h.e_shoff + find_section(f, name) * sizeof(Elf64_Shdr) + field;
}

static void overwrite(const struct file *f, uint64_t at, const void *bytes, size_t size)
{
	assert_int_equal(pwrite(f->fd, bytes, size, (off_t)at), size);
}

/*
 * Replace FIELD of section NAME in a converted library by BYTES; set and restore must
 * fail.
 */
static void lie(const char *name, size_t field, const void *bytes, size_t size,
		kpack_error_t code_, const char *text)
{
	struct kp_span to = SPAN(marker);
	struct link l = library();
	struct file fat = write_link(&l), out = must_convert(&fat, false);
	uint64_t offsets[N_WRAPPERS] = {0};
	size_t code_size = 600;
	struct kp_restore_options options = {
		.size = 600, .offsets = offsets, .write = write_code, .arg = &code_size};

	overwrite(&out, shdr_at(&out, name, field), bytes, size);
	refused(&out, do_set, &to, code_, text);
	refused(&out, do_restore, &options, code_, text);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

#define LIE(name, field, value, code_, text)                                             \
	lie(name, offsetof(Elf64_Shdr, field), &(uint64_t){value},                       \
	    sizeof(((Elf64_Shdr *)0)->field), code_, text)

TEST(markers_must_be_there)
{
	LIE(KP_MARKER_SECTION, sh_name, 0, KPACK_ERROR_INVALID_FORMAT,
	    "wrappers are converted, but there is no .rocm_kpack_ref");
	LIE(KP_MARKER_SECTION, sh_type, SHT_NOBITS, KPACK_ERROR_INVALID_FORMAT,
	    "wrappers are converted, but there is no .rocm_kpack_ref");
	LIE(KP_MARKER_SECTION, sh_size, 0, KPACK_ERROR_INVALID_FORMAT,
	    "wrappers are converted, but there is no .rocm_kpack_ref");
	LIE(KP_MARKER_SECTION, sh_addr, 0x1000, KPACK_ERROR_INVALID_FORMAT,
	    "wrapper 0 leads to 0x");
	LIE(KP_MARKER_SECTION, sh_offset, UINT64_MAX, KPACK_ERROR_INVALID_FORMAT,
	    " pass the end of the file at ");
}

/* A section of the host is in the marker's segment. */
TEST(the_markers_segment_must_be_ours)
{
	struct kp_span to = SPAN(marker);
	struct link l = library();
	struct file fat = write_link(&l), out = must_convert(&fat, false);
	uint64_t flags = SHF_ALLOC, addr = section(&out, KP_MARKER_SECTION)->sh_addr;

	overwrite(&out, shdr_at(&out, ".debug_odd", offsetof(Elf64_Shdr, sh_flags)),
		  &flags, 8);
	overwrite(&out, shdr_at(&out, ".debug_odd", offsetof(Elf64_Shdr, sh_addr)), &addr,
		  8);
	refused(&out, do_set, &to, KPACK_ERROR_NOT_IMPLEMENTED,
		"elf: .rocm_kpack_ref has no segment of its own");
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

TEST(a_section_that_is_gone_cannot_be_restored)
{
	uint64_t offsets[N_WRAPPERS] = {0};
	struct kp_restore_options options = {.size = 600, .offsets = offsets};
	struct link l = make(&(struct shape){"", .code = 30000});
	struct file fat = write_link(&l), out = must_convert(&fat, false);

	overwrite(&out, shdr_at(&out, FATBIN, 0), &(uint32_t){0}, 4);
	refused(&out, do_restore, &options, KPACK_ERROR_INVALID_FORMAT,
		"the section .hip_fatbin is gone");
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}

/* The only mapped section is the marker; the wrappers are not mapped. */
TEST(only_the_marker_is_mapped)
{
	struct kp_span to = SPAN(marker);
	struct link l = {.type = ET_DYN, .machine = EM_X86_64, .page = 4096};
	size_t g = link_add_segment(&l, PF_R);
	struct file f;

	add(&l, KP_MARKER_SECTION, SHF_ALLOC, g, 16, 8);
	add(&l, wrappers, 0, LINK_UNMAPPED, KP_WRAPPER_SIZE, 8);
	link_build(&l);
	kp_put_le32(l.file.data + link_section(&l, wrappers)->offset, KP_WRAPPER_HIPK);
	kp_put_le32(l.file.data + link_section(&l, wrappers)->offset + 4, 1);
	kp_put_le64(l.file.data + link_section(&l, wrappers)->offset + 8,
		    link_addr(&l, KP_MARKER_SECTION));
	f = write_link(&l);
	refused(&f, do_set, &to, KPACK_ERROR_NOT_IMPLEMENTED,
		"elf: no other segment has bytes in the file");
	file_free(&f);
	link_free(&l);
}

/* The marker is larger than any that we write, so normalising refuses it. */
TEST(large_markers_are_not_made_right)
{
	static const uint8_t large[KP_MARKER_MAX + 1] = "large";
	struct link l = make(&(struct shape){"", .interp = true, .own = true});
	struct file fat = write_link(&l), out = must_convert(&fat, false), big, stripped;
	bool changed;

	big = must_set(&out, SPAN(large));
	stripped = close_hole(&big);
	refused(&stripped, do_normalise, &changed, KPACK_ERROR_INVALID_METADATA,
		"marker: 65537 bytes of at most 65536");
	file_free(&stripped);
	file_free(&big);
	file_free(&out);
	file_free(&fat);
	link_free(&l);
}
