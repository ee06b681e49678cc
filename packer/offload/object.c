/* SPDX-License-Identifier: MIT */
/*
 * Entries as sections of the host's object, "__CLANG_OFFLOAD_BUNDLE__ID", added and removed
 * with libelf, which changes a copy in a file without a name.
 *
 * New sections go behind all bytes, so that nothing else moves: their bytes, the names of all
 * sections, and the section headers.  A removed section becomes SHT_NULL without bytes, so
 * that the others keep their numbers, which symbols and relocations refer to.
 */
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "offload.h"

struct elf_edit {
	struct offload_spool copy;
	Elf *elf;
	size_t n, names; /* sections; the number of the one with their names */
	uint8_t *added;  /* the new sections' bytes, and all names; libelf borrows them */
};

bool offload_is_object(const struct kp_source *src)
{
	uint8_t buf[sizeof(Elf32_Ehdr)];
	struct kp_span head;

	return !kp_source_head(src, 0, buf, sizeof(buf), &head, NULL) &&
	       head.size == sizeof(buf) && kp_span_starts(head, ELFMAG, SELFMAG);
}

static kpack_error_t fail_elf(struct kpackx_error *why, const char *what)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       elf_errmsg(-1));
}

static void elf_edit_fini(struct elf_edit *e)
{
	elf_end(e->elf);
	free(e->added);
	offload_spool_fini(&e->copy);
}

static kpack_error_t open_edit(struct elf_edit *e, const struct kp_source *object,
			       struct kpackx_error *why)
{
	elf_version(EV_CURRENT);
	KP_TRY(offload_spool_open(&e->copy, why));
	KP_TRY(kp_sink_copy(&e->copy.sink, object, why));
	e->elf = elf_begin(e->copy.file.fd, ELF_C_RDWR, NULL);
	if (!e->elf || elf_getshdrnum(e->elf, &e->n) ||
	    elf_getshdrstrndx(e->elf, &e->names))
		return fail_elf(why, "headers");
	/* libelf fills the file up to each section, wherever its header says that it is */
	for (size_t i = 0; i < e->n; i++) {
		GElf_Shdr h;
		bool bytes;

		if (!gelf_getshdr(elf_getscn(e->elf, i), &h))
			return fail_elf(why, "section header");
		bytes = h.sh_type != SHT_NULL && h.sh_type != SHT_NOBITS;
		if (!kp_range_ok(object->size, h.sh_offset, bytes ? h.sh_size : 0))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: section %zu passes the end of the file", i);
	}
	return KPACK_SUCCESS;
}

/* Write the changes, and copy the object to SINK: the output itself may be a pipe. */
static kpack_error_t finish_edit(struct elf_edit *e, struct kp_sink *sink,
				 struct kpackx_error *why)
{
	int64_t size = elf_update(e->elf, ELF_C_WRITE);
	struct kp_source made = kp_source_fd(e->copy.file.fd, 0, (uint64_t)size);

	return size < 0 ? fail_elf(why, "writing") : kp_sink_copy(sink, &made, why);
}

kpack_error_t offload_object_add(const struct kp_source *object,
				 const struct offload_section *sections, size_t n,
				 struct kp_sink *sink, struct kpackx_error *why)
{
	KP_AUTO(elf_edit) e = {0};
	uint64_t room, end = object->size;
	size_t size;
	Elf_Scn *scn, *names_scn;
	Elf_Data *data, *names;
	GElf_Shdr h, names_h;
	GElf_Ehdr header;
	uint8_t *at;

	KP_TRY(open_edit(&e, object, why));
	names_scn = elf_getscn(e.elf, e.names);
	names = elf_getdata(names_scn, NULL);
	if (e.names == SHN_UNDEF || !names || !gelf_getshdr(names_scn, &names_h) ||
	    !gelf_getehdr(e.elf, &header))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "object without names of sections");
	size = names->d_size;
	room = size;
	for (size_t i = 0; i < n; i++) {
		uint64_t more = sections[i].bytes.size;

		room += strlen(OFFLOAD_SECTION) + strlen(sections[i].id) + 1;
		if (room > INT64_MAX || more > INT64_MAX - room)
			return kp_fail_memory(why, more, "a section");
		room += more;
	}
	/* inputs can have any size: this is no failure of the program */
	e.added = malloc((size_t)room + 1);
	if (!e.added)
		return kp_fail_memory(why, room, "sections");
	at = e.added;
	for (size_t i = 0; i < n; i++) {
		const struct kp_source *bytes = &sections[i].bytes;

		scn = elf_newscn(e.elf);
		data = elf_newdata(scn);
		if (!data || !gelf_getshdr(scn, &h))
			return fail_elf(why, "another section");
		KP_TRY(kp_source_read(bytes, 0, at, (size_t)bytes->size, why));
		data->d_buf = at;
		data->d_size = h.sh_size = bytes->size;
		data->d_align = h.sh_addralign = 1;
		h.sh_name = (GElf_Word)size;
		h.sh_type = SHT_PROGBITS;
		h.sh_flags = SHF_EXCLUDE;
		h.sh_offset = end;
		if (!gelf_update_shdr(scn, &h))
			return fail_elf(why, "another section");
		at += bytes->size;
		end += bytes->size;
		size += strlen(OFFLOAD_SECTION) + strlen(sections[i].id) + 1;
	}
	/* the names, at AT, are the old ones and those of the new sections */
	if (names->d_size)
		memcpy(at, names->d_buf, names->d_size);
	size = names->d_size;
	for (size_t i = 0; i < n; i++)
		size += 1 + (size_t)sprintf((char *)at + size, OFFLOAD_SECTION "%s",
					    sections[i].id);
	names->d_buf = at;
	names->d_size = names_h.sh_size = size;
	names_h.sh_offset = end;
	header.e_shoff = (end + size + 7) & ~(uint64_t)7;
	elf_flagdata(names, ELF_C_SET, ELF_F_DIRTY);
	/* DIRTY: write all section headers, although only the table's place changed */
	elf_flagelf(e.elf, ELF_C_SET, ELF_F_LAYOUT | ELF_F_DIRTY);
	if (!gelf_update_shdr(names_scn, &names_h) || !gelf_update_ehdr(e.elf, &header))
		return fail_elf(why, "section headers");
	return finish_edit(&e, sink, why);
}

kpack_error_t offload_object_strip(const struct kp_source *object, struct kp_sink *sink,
				   struct kpackx_error *why)
{
	KP_AUTO(elf_edit) e = {0};
	size_t segments, removed = 0;

	KP_TRY(open_edit(&e, object, why));
	/* addresses tie segments to their offsets in the file: then nothing moves */
	if (elf_getphdrnum(e.elf, &segments))
		return fail_elf(why, "segments");
	if (segments)
		elf_flagelf(e.elf, ELF_C_SET, ELF_F_LAYOUT);
	for (size_t i = 1; i < e.n && e.names != SHN_UNDEF; i++) {
		Elf_Scn *scn = elf_getscn(e.elf, i);
		const char *name;
		Elf_Data *data;
		GElf_Shdr h, gone;

		if (!gelf_getshdr(scn, &h))
			return fail_elf(why, "section header");
		name = elf_strptr(e.elf, e.names, h.sh_name);
		if (!name)
			return fail_elf(why, "section name");
		/* whatever its own name is, the section with the names stays */
		if (i == e.names ||
		    strncmp(name, OFFLOAD_SECTION, strlen(OFFLOAD_SECTION)) != 0)
			continue;
		data = elf_getdata(scn, NULL);
		gone = (GElf_Shdr){.sh_offset = segments ? h.sh_offset : 0};
		if (!data || !gelf_update_shdr(scn, &gone))
			return fail_elf(why, "a section to remove");
		data->d_size = 0;
		elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
		removed++;
	}
	/* libelf would lay out anew what it does not change, too */
	if (!removed)
		return kp_sink_copy(sink, object, why);
	return finish_edit(&e, sink, why);
}
