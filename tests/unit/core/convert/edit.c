/* SPDX-License-Identifier: MIT */
#include "core/convert/edit.h"
#include <fcntl.h>
#include <stdio.h>
#include "tests/unit/unit.h"
#include "tests/unit/link_builder.h"
#include "core/binary/elf_file.h"
#include "core/base/bounds.h"

#define FATBIN KP_FATBIN_SECTION
#define WA (SHF_ALLOC | SHF_WRITE)

static struct kpackx_error why;

/* ---- a test library ---- */

static void add(struct link *l, const char *name, uint32_t type, uint64_t flags,
		size_t segment, size_t size, uint64_t align)
{
	link_add(l, (struct link_section){.name = name,
					  .type = type,
					  .flags = flags,
					  .segment = segment,
					  .size = size,
					  .align = align});
}

/* A library that is not linked yet. */
static struct link library(uint64_t align, size_t size)
{
	struct link l = {.type = ET_DYN, .machine = EM_X86_64, .page = 4096};
	size_t g = link_add_segment(&l, PF_R);

	add(&l, ".rodata", SHT_PROGBITS, SHF_ALLOC, g, 100, 8);
	add(&l, FATBIN, SHT_PROGBITS, SHF_ALLOC, g, size, align);
	add(&l, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, g, 60, 8);
	g = link_add_segment(&l, PF_R | PF_W);
	add(&l, ".data", SHT_PROGBITS, WA, g, 40, 8);
	add(&l, ".bss", SHT_NOBITS, WA, g, 400, 8);
	add(&l, ".comment", SHT_PROGBITS, 0, LINK_UNMAPPED, 11, 1);
	return l;
}

/* A file being edited, and the link it was made from. */
struct edited {
	struct link l;
	int fd;
	struct kp_edit ed;
};

static struct edited open_link(struct link l)
{
	struct edited e = {.l = l};

	if (!l.file.size)
		link_build(&e.l);
	e.fd = bytes_fd(e.l.file.data, e.l.file.size);
	if (kp_edit_open_all(e.fd, e.l.file.size, &e.ed, &why))
		fail_msg("%s", why.text);
	return e;
}

static struct edited open_library(void)
{
	return open_link(library(8, 600));
}

static void edited_free(struct edited *e)
{
	kp_edit_close(&e->ed);
	close(e->fd);
	link_free(&e->l);
}

static struct kp_outfile open_out(void)
{
	struct kp_outfile out = {.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1};

	out.name = strdup("out");
	assert_true(out.fd >= 0 && out.name);
	return out;
}

/* Place and write the edited file; returns its bytes. */
static struct bytes written(struct kp_edit *ed)
{
	struct kp_outfile out = open_out();
	struct bytes b = {0};
	off_t size;

	if (kp_edit_place(ed, &why) || kp_edit_write(ed, &out, &why))
		fail_msg("%s", why.text);
	size = lseek(out.fd, 0, SEEK_END);
	assert_int_equal(size, ed->out_size);
	b.data = malloc((size_t)size);
	assert_non_null(b.data);
	b.size = (size_t)size;
	assert_int_equal(pread(out.fd, b.data, b.size, 0), size);
	kp_outfile_close(&out);
	return b;
}

static void assert_refused(kpack_error_t err, kpack_error_t code, const char *text)
{
	assert_int_equal(err, code);
	assert_has(why.text, text);
}

/* ---- opening ---- */

TEST(tables_are_read)
{
	struct edited e = open_library();
	struct kp_edit *ed = &e.ed;

	assert_int_equal(ed->page, 4096);
	assert_int_equal(ed->n_segments, 2);
	assert_int_equal(ed->n_sections, 8);
	assert_int_equal(ed->n_chunks, 2);
	assert_int_equal(ed->names, 7);
	assert_int_equal(ed->n_kept, 0);
	assert_int_equal(ed->end_zeros, 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ed->chunks[i].segment, i);
		assert_int_equal(ed->chunks[i].from, e.l.segments[i].offset);
		assert_int_equal(ed->chunks[i].size, e.l.segments[i].file_size);
		assert_int_equal(ed->chunks[i].vaddr, e.l.segments[i].addr);
	}
	for (size_t i = 1; i < ed->n_sections; i++) {
		assert_string_equal(ed->sections[i].name, e.l.sections[i - 1].name);
		assert_int_equal(ed->sections[i].index, i);
		assert_int_equal(ed->sections[i].from, e.l.sections[i - 1].offset);
	}
	edited_free(&e);
	kp_edit_close(&(struct kp_edit){0});
}

TEST(what_follows_all_is_kept)
{
	struct link l = library(8, 600);
	struct edited e;

	l.tail = "appended";
	e = open_link(l);
	assert_int_equal(e.ed.n_kept, 1);
	assert_int_equal(e.ed.kept[0].from, e.ed.size - 8);
	assert_int_equal(e.ed.kept[0].size, 8);
	assert_int_equal(e.ed.headers_end, e.ed.size - 8);
	edited_free(&e);
}

/* Bytes in front of the section headers stay where they are, whatever moves. */
TEST(what_no_table_names_keeps_its_offset)
{
	struct link l = library(4096, 30000);
	static const char text[40] = "between the sections and their headers";
	struct edited e;
	uint64_t at, headers;
	struct bytes b;

	link_build(&l);
	at = l.file.size;
	headers = link_ehdr(&l)->e_shoff;
	put(&l.file, text, sizeof(text));
	put_zeros(&l.file, -l.file.size & 7);
	link_ehdr(&l)->e_shoff = l.file.size;
	for (size_t i = 0; i < link_ehdr(&l)->e_shnum; i++) {
		Elf64_Shdr h;

		memcpy(&h, l.file.data + headers + i * sizeof(h), sizeof(h));
		put(&l.file, &h, sizeof(h));
	}
	e = open_link(l);
	assert_int_equal(e.ed.n_kept, 1);
	assert_int_equal(kp_edit_kept_end(&e.ed, at, 1), at + sizeof(text));
	assert_int_equal(kp_edit_kept_end(&e.ed, 0, headers), 0);
	assert_int_equal(kp_edit_cut(&e.ed, 2, &why), KPACK_SUCCESS);
	b = written(&e.ed);
	assert_true(b.size <= e.l.file.size && b.size >= at + sizeof(text));
	assert_memory_equal(b.data + at, text, sizeof(text));
	bytes_free(&b);
	edited_free(&e);
}

TEST(failure_leaves_nothing_open)
{
	struct link l = library(8, 600);
	struct kp_edit ed;
	int fd;

	link_build(&l);
	link_shdr(&l, 6)->sh_size = UINT64_MAX;
	fd = bytes_fd(l.file.data, l.file.size);
	assert_refused(kp_edit_open(fd, l.file.size, &ed, &why),
		       KPACK_ERROR_INVALID_FORMAT, "elf: section 6: ");
	kp_edit_close(&ed);
	/* a file that became shorter */
	link_shdr(&l, 6)->sh_size = 11;
	assert_int_equal(ftruncate(fd, 64), 0);
	assert_int_equal(kp_edit_open(fd, 64, &ed, &why), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(kp_edit_open(fd, 0, &ed, &why), KPACK_ERROR_INVALID_FORMAT);
	close(fd);
	link_free(&l);
}

TEST(other_classes_are_refused)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *text;
	} cases[] = {
		{EI_CLASS, ELFCLASS32, "only 64-bit little-endian"},
		{EI_DATA, ELFDATA2MSB, "only 64-bit little-endian"},
		{offsetof(Elf64_Ehdr, e_type), ET_REL, "elf: type 1: "},
		{offsetof(Elf64_Ehdr, e_machine), EM_386, "elf: machine 3: "},
		{offsetof(Elf64_Ehdr, e_ehsize), 65, "headers have an unknown size"},
		{offsetof(Elf64_Ehdr, e_phentsize), 57, "headers have an unknown size"},
		{offsetof(Elf64_Ehdr, e_phnum), 0, "0 program headers"},
		{offsetof(Elf64_Ehdr, e_shstrndx), 0, "8 sections, names in 0"},
		{offsetof(Elf64_Ehdr, e_shstrndx), 8, "8 sections, names in 8"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link l = library(8, 600);
		struct kp_edit ed;
		int fd;

		link_build(&l);
		l.file.data[cases[i].at] = cases[i].value;
		fd = bytes_fd(l.file.data, l.file.size);
		why = (struct kpackx_error){0};
		if (kp_edit_open(fd, l.file.size, &ed, &why) == KPACK_SUCCESS)
			fail_msg("%s", cases[i].text);
		/* the messages of libelf are its own */
		if (why.code == KPACK_ERROR_NOT_IMPLEMENTED)
			assert_has(why.text, cases[i].text);
		close(fd);
		link_free(&l);
	}
}

/* ---- look-ups ---- */

TEST(segments_are_found_by_address)
{
	struct edited e = open_library();
	uint64_t data = link_addr(&e.l, ".data");

	assert_int_equal(kp_edit_find(&e.ed, ".data"), 4);
	assert_int_equal(kp_edit_find(&e.ed, ".dat"), 0);
	assert_int_equal(kp_edit_load_of(&e.ed, 0, 1), 0);
	assert_int_equal(kp_edit_load_of(&e.ed, data, 440), 1);
	assert_int_equal(kp_edit_load_of(&e.ed, data, 441), -1);
	assert_int_equal(kp_edit_load_of(&e.ed, data + 440, 0), 1);
	assert_int_equal(kp_edit_load_of(&e.ed, data + 441, 0), -1);
	assert_int_equal(kp_edit_load_of(&e.ed, data, UINT64_MAX), -1);
	assert_int_equal(kp_edit_load_of(&e.ed, UINT64_MAX, 1), -1);
	assert_int_equal(kp_edit_free_until(&e.ed, 0), data);
	assert_int_equal(kp_edit_free_until(&e.ed, 1), KP_ADDRESS_MAX);
	edited_free(&e);
}

TEST(pages_are_no_larger_than_the_machines)
{
	static const struct {
		uint16_t machine;
		uint64_t align, page;
	} cases[] = {
		{EM_X86_64, 4096, 4096},         {EM_X86_64, 0x200000, 4096},
		{EM_AARCH64, 4096, 4096},        {EM_AARCH64, 0x10000, 0x10000},
		{EM_AARCH64, 0x200000, 0x10000}, {EM_PPC64, 0x10000, 0x10000},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct link l = library(8, 600);
		struct edited e;

		l.machine = cases[i].machine;
		l.page = cases[i].align;
		e = open_link(l);
		assert_int_equal(kp_edit_page(&e.ed, 0), cases[i].page);
		edited_free(&e);
	}
}

TEST(programs_have_an_interpreter)
{
	struct link l = library(8, 600);
	struct edited e = open_link(l);

	assert_false(kp_edit_is_program(&e.ed));
	edited_free(&e);
	l = library(8, 600);
	link_add_header(&l, (struct link_header){PT_INTERP, PF_R, ".rodata", ".rodata", 1,
						 false});
	e = open_link(l);
	assert_true(kp_edit_is_program(&e.ed));
	edited_free(&e);
}

/* The table must be where the first segment and e_phoff say. */
TEST(the_tables_place_can_be_wrong)
{
	struct link l = library(8, 600);
	struct edited e;
	Elf64_Phdr *own;

	link_add_header(&l, (struct link_header){PT_PHDR, PF_R, NULL, NULL, 8, false});
	e = open_link(l);
	own = &e.ed.segments[0].h;
	assert_true(kp_edit_table_is_right(&e.ed));
	own->p_vaddr += 8;
	assert_false(kp_edit_table_is_right(&e.ed));
	own->p_vaddr -= 8;
	e.ed.h.e_phoff += 8;
	assert_false(kp_edit_table_is_right(&e.ed));
	own->p_type = PT_NULL;
	assert_true(kp_edit_table_is_right(&e.ed));
	/* e_phoff in another segment's memory range, whose file offset differs */
	e.ed.h.e_phoff = link_addr(&e.l, ".data");
	assert_false(kp_edit_table_is_right(&e.ed));
	e.ed.h.e_phoff = UINT64_MAX;
	assert_false(kp_edit_table_is_right(&e.ed));
	edited_free(&e);
}

/* ---- the tables ---- */

TEST(chunks_go_with_their_segments)
{
	struct edited e = open_library();
	struct kp_edit_segment s = {.h = {.p_type = PT_NOTE}};
	struct kp_edit *ed = &e.ed;

	kp_edit_insert_segment(ed, 1, s);
	assert_int_equal(ed->n_segments, 3);
	assert_int_equal(ed->segments[1].h.p_type, PT_NOTE);
	assert_int_equal(ed->chunks[0].segment, 0);
	assert_int_equal(ed->chunks[1].segment, 2);
	kp_edit_insert_segment(ed, 0, s);
	assert_int_equal(ed->chunks[0].segment, 1);
	assert_int_equal(ed->chunks[1].segment, 3);
	kp_edit_remove_segment(ed, 2);
	assert_int_equal(ed->chunks[0].segment, 1);
	assert_int_equal(ed->chunks[1].segment, 2);
	kp_edit_remove_segment(ed, 0);
	assert_int_equal(ed->chunks[0].segment, 0);
	assert_int_equal(ed->chunks[1].segment, 1);
	/* a segment without a chunk moves to the front */
	kp_edit_insert_segment(ed, 2, s);
	kp_edit_move_segment(ed, 2, 0);
	assert_int_equal(ed->segments[0].h.p_type, PT_NOTE);
	assert_int_equal(ed->chunks[0].segment, 1);
	assert_int_equal(ed->chunks[1].segment, 2);
	edited_free(&e);
}

TEST(sections_are_added_and_dropped)
{
	struct edited e = open_library();
	struct kp_edit *ed = &e.ed;
	struct kp_span bytes = {(const uint8_t *)"new", 3};

	assert_int_equal(kp_edit_add_section(ed, ".new", false, bytes, &why),
			 KPACK_SUCCESS);
	assert_int_equal(kp_edit_find(ed, ".new"), 8);
	assert_refused(kp_edit_add_section(ed, ".new", false, bytes, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED, "a section .new already exists");
	assert_refused(kp_edit_add_section(ed, ".data", true, bytes, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED, "a section .data already exists");
	kp_edit_drop_section(ed, kp_edit_find(ed, ".comment"));
	assert_int_equal(ed->names, 6);
	assert_int_equal(kp_edit_find(ed, ".shstrtab"), 6);
	assert_int_equal(kp_edit_find(ed, ".new"), 7);
	kp_edit_drop_section(ed, 7);
	assert_int_equal(ed->names, 6);
	assert_int_equal(ed->n_sections, 7);
	edited_free(&e);
}

/* ---- cutting and filling ---- */

TEST(a_cut_section_has_a_segment_of_its_own)
{
	struct edited e = open_link(library(4096, 5000));
	struct kp_edit *ed = &e.ed;
	uint64_t vaddr = link_addr(&e.l, FATBIN);

	assert_int_equal(kp_edit_cut(ed, 2, &why), KPACK_SUCCESS);
	assert_int_equal(ed->sections[2].h.sh_type, SHT_NOBITS);
	assert_int_equal(ed->n_segments, 4);
	assert_int_equal(ed->segments[0].h.p_memsz, vaddr);
	assert_int_equal(ed->segments[0].h.p_filesz, vaddr);
	assert_int_equal(ed->segments[1].h.p_vaddr, vaddr);
	assert_int_equal(ed->segments[1].h.p_filesz, 0);
	assert_int_equal(ed->segments[1].h.p_memsz, 5000);
	assert_int_equal(ed->segments[2].h.p_vaddr, vaddr + 5000);
	assert_int_equal(ed->n_chunks, 3);
	assert_int_equal(ed->chunks[0].size, vaddr);
	assert_true(ed->chunks[0].page_after);
	assert_int_equal(ed->chunks[1].vaddr, vaddr + 5000);
	assert_int_equal(ed->chunks[1].segment, 2);
	assert_true(ed->chunks[1].page_before);
	assert_true(ed->chunks[1].moves);
	assert_true(ed->chunks[2].moves);
	assert_int_equal(ed->chunks[2].segment, 3);
	edited_free(&e);
}

TEST(zeros_stay_where_neighbours_share_a_page)
{
	struct edited e = open_library();
	struct kp_edit *ed = &e.ed;
	struct bytes b;

	assert_int_equal(kp_edit_cut(ed, 2, &why), KPACK_SUCCESS);
	assert_int_equal(ed->n_segments, 2);
	assert_int_equal(ed->n_chunks, 3);
	assert_false(ed->chunks[1].moves || ed->chunks[2].moves);
	assert_int_equal(ed->chunks[1].segment, 0);
	b = written(ed);
	assert_int_equal(b.size, e.l.file.size);
	for (size_t i = 0; i < 600; i++)
		assert_int_equal(b.data[link_section(&e.l, FATBIN)->offset + i], 0);
	bytes_free(&b);
	edited_free(&e);
}

TEST(only_whole_mapped_sections_are_cut)
{
	struct edited e = open_library();

	assert_refused(kp_edit_cut(&e.ed, kp_edit_find(&e.ed, ".comment"), &why),
		       KPACK_ERROR_NOT_IMPLEMENTED,
		       ".comment is not mapped by one segment");
	e.ed.sections[2].h.sh_addr += 8;
	assert_refused(kp_edit_cut(&e.ed, 2, &why), KPACK_ERROR_NOT_IMPLEMENTED,
		       ".hip_fatbin is not mapped by one segment");
	e.ed.sections[2].h.sh_addr -= 8;
	e.ed.sections[2].h.sh_size = UINT64_MAX;
	assert_refused(kp_edit_cut(&e.ed, 2, &why), KPACK_ERROR_NOT_IMPLEMENTED,
		       ".hip_fatbin is not mapped by one segment");
	edited_free(&e);
}

struct filling {
	size_t calls;
	uint64_t offset, size;
};

static kpack_error_t fill(void *arg, struct kp_outfile *out, uint64_t offset,
			  struct kpackx_error *w)
{
	static const uint8_t zero[8192];
	struct filling *f = arg;

	f->calls++;
	f->offset = offset;
	return kp_outfile_pwrite(out, offset, zero, f->size, w);
}

/* Write ED and reopen the result in its place. */
static void reopen(struct edited *e)
{
	struct bytes b = written(&e->ed);

	kp_edit_close(&e->ed);
	close(e->fd);
	e->fd = bytes_fd(b.data, b.size);
	if (kp_edit_open_all(e->fd, b.size, &e->ed, &why))
		fail_msg("%s", why.text);
	bytes_free(&b);
}

TEST(what_was_cut_is_filled_where_it_was)
{
	static const uint64_t aligns[] = {8, 4096};

	for (size_t i = 0; i < COUNT(aligns); i++) {
		struct edited e = open_link(library(aligns[i], 5000));
		const struct link_section *s = link_section(&e.l, FATBIN);
		struct filling f = {.size = 5000};
		struct bytes b;

		assert_int_equal(kp_edit_cut(&e.ed, 2, &why), KPACK_SUCCESS);
		reopen(&e);
		kp_edit_drop_table(&e.ed);
		assert_int_equal(kp_edit_fill(&e.ed, 2, fill, &f, &why), KPACK_SUCCESS);
		assert_int_equal(e.ed.n_segments, 2);
		assert_int_equal(e.ed.sections[2].h.sh_type, SHT_PROGBITS);
		b = written(&e.ed);
		assert_int_equal(f.calls, 1);
		assert_int_equal(f.offset, s->offset);
		assert_int_equal(b.size, e.l.file.size);
		memset(e.l.file.data + s->offset, 0, 5000);
		assert_memory_equal(b.data, e.l.file.data, b.size);
		bytes_free(&b);
		edited_free(&e);
	}
}

TEST(dropping_what_is_not_there_does_nothing)
{
	struct edited e = open_library();

	kp_edit_drop_table(&e.ed);
	assert_int_equal(e.ed.n_segments, 2);
	assert_int_equal(e.ed.n_sections, 8);
	assert_refused(kp_edit_drop_block(&e.ed, 1, &why), KPACK_ERROR_NOT_IMPLEMENTED,
		       "elf: .rodata has no segment of its own");
	assert_refused(kp_edit_drop_block(&e.ed, 6, &why), KPACK_ERROR_NOT_IMPLEMENTED,
		       "elf: .comment has no segment of its own");
	edited_free(&e);
}

TEST(some_sections_cannot_be_filled)
{
	struct edited e = open_library();
	struct filling f = {0};
	Elf64_Shdr *h = &e.ed.sections[2].h;
	static const char text[] = "elf: .hip_fatbin cannot be filled where it is";

	/* the section has bytes */
	assert_refused(kp_edit_fill(&e.ed, 2, fill, &f, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED, text);
	h->sh_type = SHT_NOBITS;
	h->sh_size = 0;
	assert_refused(kp_edit_fill(&e.ed, 2, fill, &f, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED, text);
	h->sh_size = 600;
	h->sh_addr = 0x100000;
	assert_refused(kp_edit_fill(&e.ed, 2, fill, &f, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED, text);
	/* it begins among mapped bytes and ends after them */
	h->sh_addr = link_addr(&e.l, ".data") + 8;
	h->sh_size = 100;
	assert_refused(kp_edit_fill(&e.ed, 2, fill, &f, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED, text);
	assert_int_equal(f.calls, 0);
	edited_free(&e);
}

TEST(a_section_by_itself_can_be_widened)
{
	struct edited e = open_link(library(4096, 8192));
	struct kp_edit *ed = &e.ed;

	/* the section has bytes, and its segment has other sections */
	assert_false(kp_edit_widen(ed, 2, 8193));
	assert_int_equal(kp_edit_cut(ed, 2, &why), KPACK_SUCCESS);
	assert_true(kp_edit_widen(ed, 2, 8192));
	assert_false(kp_edit_widen(ed, 2, 8193));
	assert_false(kp_edit_widen(ed, 2, UINT64_MAX));
	ed->segments[1].h.p_memsz = ed->sections[2].h.sh_size = 100;
	assert_true(kp_edit_widen(ed, 2, 8192));
	assert_int_equal(ed->segments[1].h.p_memsz, 8192);
	assert_int_equal(ed->sections[2].h.sh_size, 8192);
	ed->sections[2].h.sh_addr += 8;
	assert_false(kp_edit_widen(ed, 2, 100));
	ed->sections[2].h.sh_addr = UINT64_C(1) << 47;
	assert_false(kp_edit_widen(ed, 2, 100));
	edited_free(&e);
}

TEST(sections_move_behind_all_segments)
{
	struct edited e = open_library();
	struct kp_edit *ed = &e.ed;
	uint64_t end = ed->segments[1].h.p_vaddr + ed->segments[1].h.p_memsz;
	struct filling f = {.size = 7000};
	struct bytes b;

	assert_int_equal(kp_edit_cut(ed, 2, &why), KPACK_SUCCESS);
	assert_int_equal(kp_edit_move_behind(ed, 2, 7000, &why), KPACK_SUCCESS);
	assert_int_equal(ed->sections[2].h.sh_addr % 4096, 0);
	assert_true(ed->sections[2].h.sh_addr >= end);
	assert_true(ed->sections[2].h.sh_addr < end + 4096);
	assert_int_equal(ed->sections[2].h.sh_size, 7000);
	assert_int_equal(kp_edit_fill(ed, 2, fill, &f, &why), KPACK_SUCCESS);
	b = written(ed);
	assert_int_equal(f.calls, 1);
	assert_int_equal(f.offset, ed->sections[2].h.sh_offset);
	assert_int_equal(f.offset % 4096, 0);
	bytes_free(&b);
	edited_free(&e);
}

TEST(addresses_end_somewhere)
{
	struct edited e = open_library();
	struct kp_edit *ed = &e.ed;

	ed->segments[1].h.p_memsz = KP_ADDRESS_MAX - ed->segments[1].h.p_vaddr - 8192;
	assert_int_equal(kp_edit_cut(ed, 2, &why), KPACK_SUCCESS);
	assert_refused(kp_edit_move_behind(ed, 2, 8193, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED,
		       "no address is free after the last segment");
	assert_refused(kp_edit_move_behind(ed, 2, UINT64_MAX, &why),
		       KPACK_ERROR_NOT_IMPLEMENTED,
		       "no address is free after the last segment");
	assert_int_equal(kp_edit_move_behind(ed, 2, 8192, &why), KPACK_SUCCESS);
	edited_free(&e);
}

/* ---- placing and writing ---- */

TEST(without_changes_the_file_is_the_same)
{
	for (size_t i = 0; i < 4; i++) {
		struct link l = library(i % 2 ? 4096 : 8, 5000);
		struct edited e;
		struct bytes b;

		l.tail = i > 1 ? "tail" : NULL;
		l.segments[1].new_page = i > 1;
		e = open_link(l);
		b = written(&e.ed);
		assert_int_equal(b.size, e.l.file.size);
		assert_memory_equal(b.data, e.l.file.data, b.size);
		bytes_free(&b);
		edited_free(&e);
	}
}

TEST(patches_are_written_where_their_bytes_are)
{
	struct edited e = open_link(library(4096, 9000));
	uint64_t from = link_section(&e.l, ".data")->offset;
	struct kp_edit *ed = &e.ed;
	struct bytes b;

	assert_int_equal(kp_edit_cut(ed, 2, &why), KPACK_SUCCESS);
	for (size_t i = 0; i < 24; i++)
		assert_int_equal(
			kp_edit_patch(ed, from + i, &(uint8_t){(uint8_t)i}, 1, &why),
			KPACK_SUCCESS);
	assert_int_equal(kp_edit_patch(ed, from + 24, "sixteen bytes ok", 16, &why),
			 KPACK_SUCCESS);
	b = written(ed);
	from = ed->sections[kp_edit_find(ed, ".data")].h.sh_offset;
	for (size_t i = 0; i < 24; i++)
		assert_int_equal(b.data[from + i], i);
	assert_memory_equal(b.data + from + 24, "sixteen bytes ok", 16);
	bytes_free(&b);
	edited_free(&e);
}

TEST(only_mapped_bytes_are_patched)
{
	struct edited e = open_library();
	struct kp_outfile out = open_out();
	uint64_t end = link_section(&e.l, ".data")->offset + 40;

	assert_int_equal(kp_edit_patch(&e.ed, end - 7, "12345678", 8, &why),
			 KPACK_SUCCESS);
	assert_int_equal(kp_edit_place(&e.ed, &why), KPACK_SUCCESS);
	assert_refused(kp_edit_write(&e.ed, &out, &why), KPACK_ERROR_NOT_IMPLEMENTED,
		       "a wrapper or its relocation, at offset ");
	kp_outfile_close(&out);
	edited_free(&e);
}

/* Invalid alignments count as 1; no two sections share bytes. */
TEST(unmapped_sections_keep_their_order)
{
	static const uint64_t aligns[] = {0, 1, 2, 3, 64, 4096, 8192, UINT64_C(1) << 63};
	struct link l = library(8, 600);
	struct edited e;
	uint64_t end = 0;
	char names[COUNT(aligns)][8];
	struct bytes b;

	for (size_t i = 0; i < COUNT(aligns); i++) {
		snprintf(names[i], sizeof(names[i]), ".u%u", (unsigned)i);
		add(&l, names[i], SHT_PROGBITS, 0, LINK_UNMAPPED, 5, 1);
	}
	link_build(&l);
	for (size_t i = 0; i < COUNT(aligns); i++)
		link_shdr(&l, link_number(&l, names[i]))->sh_addralign = aligns[i];
	e = open_link(l);
	b = written(&e.ed);
	for (size_t i = 0; i < COUNT(aligns); i++) {
		const Elf64_Shdr *h = &e.ed.sections[kp_edit_find(&e.ed, names[i])].h;
		const struct link_section *s = link_section(&l, names[i]);

		assert_true(h->sh_offset >= end);
		assert_int_equal(h->sh_addralign, aligns[i]);
		if (aligns[i] == 64 || aligns[i] == 4096)
			assert_int_equal(h->sh_offset % aligns[i], 0);
		else
			assert_true(h->sh_offset <= end + 1 || i == 0);
		assert_memory_equal(b.data + h->sh_offset, l.file.data + s->offset, 5);
		end = h->sh_offset + h->sh_size;
	}
	assert_true(b.size < 16384);
	bytes_free(&b);
	edited_free(&e);
}

/* A table of names that symbols share is kept whole. */
TEST(shared_names_are_kept)
{
	for (size_t shared = 0; shared < 2; shared++) {
		struct link l = library(8, 600);
		struct edited e;
		struct bytes b;

		(void)state;
		add(&l, ".symtab", SHT_SYMTAB, 0, LINK_UNMAPPED, 0, 8);
		link_build(&l);
		link_shdr(&l, 7)->sh_entsize = sizeof(Elf64_Sym);
		if (shared)
			link_shdr(&l, 7)->sh_link = (uint32_t)l.n_sections;
		/*
		 * ".shstrtab" is named by its tail: "strtab" is now the last name in use
		 */
		link_shdr(&l, 7)->sh_name = 1;
		e = open_link(l);
		kp_edit_drop_section(&e.ed, kp_edit_find(&e.ed, ".comment"));
		b = written(&e.ed);
		assert_int_equal(e.ed.sections[e.ed.names].h.sh_size,
				 link_section(&e.l, ".shstrtab")->size);
		bytes_free(&b);
		edited_free(&e);
	}
}

TEST(names_nobody_uses_go_from_the_end)
{
	struct link l = library(8, 600);
	struct edited e;
	struct bytes b;

	link_build(&l);
	/* the last section, ".shstrtab", is named ".comment" too */
	link_shdr(&l, 7)->sh_name = link_shdr(&l, 6)->sh_name;
	e = open_link(l);
	b = written(&e.ed);
	assert_int_equal(e.ed.sections[7].h.sh_size,
			 link_section(&e.l, ".shstrtab")->size - sizeof(".shstrtab"));
	bytes_free(&b);
	edited_free(&e);
}

TEST(what_cannot_be_written_is_an_error)
{
	struct edited e = open_library();
	struct kp_outfile out = open_out();

	close(out.fd);
	out.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(kp_edit_place(&e.ed, &why), KPACK_SUCCESS);
	assert_int_equal(kp_edit_write(&e.ed, &out, &why), KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "out: ");
	kp_outfile_close(&out);
	edited_free(&e);
}

/* The input file was truncated after opening. */
TEST(a_truncated_input_is_an_error)
{
	struct edited e = open_library();
	struct kp_outfile out = open_out();

	assert_int_equal(kp_edit_place(&e.ed, &why), KPACK_SUCCESS);
	assert_int_equal(ftruncate(e.fd, 500), 0);
	assert_int_equal(kp_edit_write(&e.ed, &out, &why), KPACK_ERROR_IO_ERROR);
	kp_outfile_close(&out);
	edited_free(&e);
}
