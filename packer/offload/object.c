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
#include <stdlib.h>
#include "core/base/alloc.h"
#include "offload.h"
#include "packer/cli/xalloc.h"

struct elf_edit {
	struct offload_spool copy;
	Elf *elf;
	size_t n, names; /* sections; the number of the one with their names */
	void **buffers;  /* data of new sections; libelf borrows them */
	size_t n_buffers;
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
	for (size_t i = 0; i < e->n_buffers; i++)
		free(e->buffers[i]);
	free(e->buffers);
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

/* Room for SIZE bytes, which a file states. */
static kpack_error_t add_buffer(struct elf_edit *e, uint64_t size, uint8_t **out,
				struct kpackx_error *why)
{
	*out = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
	if (!*out)
		return kp_fail_memory(why, size, "a section");
	e->buffers = xrealloc(e->buffers, (e->n_buffers + 1) * sizeof(*e->buffers));
	e->buffers[e->n_buffers++] = *out;
	return KPACK_SUCCESS;
}

/* Add section S with its NAME's place at OFFSET. */
static kpack_error_t add_section(struct elf_edit *e, const struct offload_section *s,
				 size_t name, uint64_t offset, struct kpackx_error *why)
{
	Elf_Scn *scn = elf_newscn(e->elf);
	Elf_Data *data = elf_newdata(scn);
	uint8_t *bytes;
	GElf_Shdr h;

	if (!data || !gelf_getshdr(scn, &h))
		return fail_elf(why, "another section");
	KP_TRY(add_buffer(e, s->bytes.size, &bytes, why));
	KP_TRY(kp_source_read(&s->bytes, 0, bytes, (size_t)s->bytes.size, why));
	data->d_buf = bytes;
	data->d_size = h.sh_size = s->bytes.size;
	data->d_align = h.sh_addralign = 1;
	h.sh_name = (GElf_Word)name;
	h.sh_type = SHT_PROGBITS;
	h.sh_flags = SHF_EXCLUDE;
	h.sh_offset = offset;
	return gelf_update_shdr(scn, &h) ? KPACK_SUCCESS
					 : fail_elf(why, "another section");
}

kpack_error_t offload_object_add(const struct kp_source *object,
				 const struct offload_section *sections, size_t n,
				 struct kp_sink *sink, struct kpackx_error *why)
{
	KP_AUTO(elf_edit) e = {0};
	uint64_t end = object->size;
	GElf_Ehdr header;
	Elf_Data *data;
	uint8_t *names;
	GElf_Shdr h;
	size_t size;
	Elf_Scn *scn;

	KP_TRY(open_edit(&e, object, why));
	scn = elf_getscn(e.elf, e.names);
	data = elf_getdata(scn, NULL);
	if (e.names == SHN_UNDEF || !data || !gelf_getshdr(scn, &h) ||
	    !gelf_getehdr(e.elf, &header))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "object without names of sections");
	size = data->d_size;
	for (size_t i = 0; i < n; i++)
		size += strlen(OFFLOAD_SECTION) + strlen(sections[i].id) + 1;
	KP_TRY(add_buffer(&e, size, &names, why));
	if (data->d_size)
		memcpy(names, data->d_buf, data->d_size);
	size = data->d_size;
	for (size_t i = 0; i < n; i++) {
		KP_TRY(add_section(&e, &sections[i], size, end, why));
		end += sections[i].bytes.size;
		size += (size_t)sprintf((char *)names + size, OFFLOAD_SECTION "%s",
					sections[i].id) +
			1;
	}
	data->d_buf = names;
	data->d_size = h.sh_size = size;
	h.sh_offset = end;
	header.e_shoff = (end + size + 7) & ~(uint64_t)7;
	elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
	/* DIRTY: write all section headers, although only the table's place changed */
	elf_flagelf(e.elf, ELF_C_SET, ELF_F_LAYOUT | ELF_F_DIRTY);
	if (!gelf_update_shdr(scn, &h) || !gelf_update_ehdr(e.elf, &header))
		return fail_elf(why, "section headers");
	return finish_edit(&e, sink, why);
}

kpack_error_t offload_object_strip(const struct kp_source *object, struct kp_sink *sink,
				   struct kpackx_error *why)
{
	static const GElf_Shdr none;
	KP_AUTO(elf_edit) e = {0};
	size_t segments;

	KP_TRY(open_edit(&e, object, why));
	/* addresses tie segments to their offsets in the file */
	if (elf_getphdrnum(e.elf, &segments) || segments)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it has segments: sections can be removed from objects "
			       "only");
	for (size_t i = 1; i < e.n; i++) {
		Elf_Scn *scn = elf_getscn(e.elf, i);
		const char *name;
		Elf_Data *data;
		GElf_Shdr h;

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
		if (!data || !gelf_update_shdr(scn, (GElf_Shdr *)&none))
			return fail_elf(why, "a section to remove");
		data->d_size = 0;
		elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
	}
	return finish_edit(&e, sink, why);
}
