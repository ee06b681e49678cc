/* SPDX-License-Identifier: MIT */
#include "elf_object.h"
#include <gelf.h>
#include <stdlib.h>
#include <unistd.h>
#include "files.h"
#include "packer/cli/xalloc.h"

/* An object that libelf changes in a file without a name. */
struct edit {
	int fd;
	Elf *elf;
	size_t n, names; /* sections; the number of the one with their names */
	void **buffers;  /* data of new sections; libelf borrows them */
	size_t n_buffers;
};

static kpack_error_t fail_elf(struct kpackx_error *why, const char *what)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       elf_errmsg(-1));
}

/* Libelf fills the file up to each section, wherever its header says that it is. */
static kpack_error_t check_sections(const struct edit *e, uint64_t size,
				    struct kpackx_error *why)
{
	for (size_t i = 0; i < e->n; i++) {
		GElf_Shdr h;
		bool bytes;

		if (!gelf_getshdr(elf_getscn(e->elf, i), &h))
			return fail_elf(why, "section header");
		bytes = h.sh_type != SHT_NULL && h.sh_type != SHT_NOBITS;
		if (!kp_range_ok(size, h.sh_offset, bytes ? h.sh_size : 0))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "elf: section %zu passes the end of the file", i);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t edit_open(struct edit *e, const struct kp_source *object,
			       struct kpackx_error *why)
{
	struct kp_outfile file = {.dir_fd = -1, .shown = "temporary file"};
	struct kp_sink sink = {.out = &file};

	elf_version(EV_CURRENT);
	*e = (struct edit){.fd = bundler_nameless()};
	if (e->fd < 0)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "cannot make a temporary file");
	file.fd = e->fd;
	KP_TRY(kp_sink_copy(&sink, object, why));
	e->elf = elf_begin(e->fd, ELF_C_RDWR, NULL);
	if (!e->elf || elf_getshdrnum(e->elf, &e->n) ||
	    elf_getshdrstrndx(e->elf, &e->names))
		return fail_elf(why, "headers");
	return check_sections(e, object->size, why);
}

static void edit_fini(struct edit *e)
{
	elf_end(e->elf);
	for (size_t i = 0; i < e->n_buffers; i++)
		free(e->buffers[i]);
	free(e->buffers);
	if (e->fd >= 0)
		close(e->fd);
}

/* Write the changes, and copy the object to SINK. */
static kpack_error_t edit_write(struct edit *e, struct kp_sink *sink,
				struct kpackx_error *why)
{
	int64_t size = elf_update(e->elf, ELF_C_WRITE);
	struct kp_source made = kp_source_fd(e->fd, 0, (uint64_t)size);

	return size < 0 ? fail_elf(why, "writing") : kp_sink_copy(sink, &made, why);
}

/* ---- adding ---- */

/* Room for SIZE bytes, which a file states. */
static kpack_error_t add_buffer(struct edit *e, uint64_t size, uint8_t **out,
				struct kpackx_error *why)
{
	*out = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
	if (!*out)
		return kp_fail_memory(why, size, "a section");
	e->buffers = xrealloc(e->buffers, (e->n_buffers + 1) * sizeof(*e->buffers));
	e->buffers[e->n_buffers++] = *out;
	return KPACK_SUCCESS;
}

static kpack_error_t add_section(struct edit *e, const struct bundler_section *s,
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

/* Add the sections behind all bytes: the existing ones keep their offsets. */
static kpack_error_t add_all(struct edit *e, uint64_t end,
			     const struct bundler_section *sections, size_t n,
			     struct kpackx_error *why)
{
	Elf_Scn *scn = elf_getscn(e->elf, e->names);
	Elf_Data *data = elf_getdata(scn, NULL);
	uint8_t *names;
	size_t size;
	GElf_Ehdr header;
	GElf_Shdr h;

	if (e->names == SHN_UNDEF || !data || !gelf_getshdr(scn, &h) ||
	    !gelf_getehdr(e->elf, &header))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "object without names of sections");
	size = data->d_size;
	for (size_t i = 0; i < n; i++)
		size += strlen(sections[i].name) + 1;
	KP_TRY(add_buffer(e, size, &names, why));
	if (data->d_size)
		memcpy(names, data->d_buf, data->d_size);
	size = data->d_size;
	for (size_t i = 0; i < n; i++) {
		KP_TRY(add_section(e, &sections[i], size, end, why));
		end += sections[i].bytes.size;
		strcpy((char *)names + size, sections[i].name);
		size += strlen(sections[i].name) + 1;
	}
	data->d_buf = names;
	data->d_size = h.sh_size = size;
	h.sh_offset = end;
	header.e_shoff = (end + size + 7) & ~(uint64_t)7;
	elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
	/* DIRTY: write all section headers, although only the table's place changed */
	elf_flagelf(e->elf, ELF_C_SET, ELF_F_LAYOUT | ELF_F_DIRTY);
	if (!gelf_update_shdr(scn, &h) || !gelf_update_ehdr(e->elf, &header))
		return fail_elf(why, "section headers");
	return KPACK_SUCCESS;
}

kpack_error_t bundler_elf_add(const struct kp_source *object,
			      const struct bundler_section *sections, size_t n,
			      struct kp_sink *sink, struct kpackx_error *why)
{
	struct edit e;
	kpack_error_t err = edit_open(&e, object, why);

	if (!err)
		err = add_all(&e, object->size, sections, n, why);
	if (!err)
		err = edit_write(&e, sink, why);
	edit_fini(&e);
	return err;
}

/* ---- removing ---- */

/* Libelf cannot remove a section: it becomes SHT_NULL, without bytes. */
static kpack_error_t clear_section(Elf_Scn *scn, struct kpackx_error *why)
{
	static const GElf_Shdr none;
	Elf_Data *data = elf_getdata(scn, NULL);

	if (!data || !gelf_update_shdr(scn, (GElf_Shdr *)&none))
		return fail_elf(why, "a section to remove");
	data->d_size = 0;
	elf_flagdata(data, ELF_C_SET, ELF_F_DIRTY);
	return KPACK_SUCCESS;
}

static kpack_error_t remove_all(struct edit *e, const char *prefix,
				struct kpackx_error *why)
{
	size_t segments;

	/* addresses tie segments to their offsets in the file */
	if (elf_getphdrnum(e->elf, &segments) || segments)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it has segments: sections can be removed from objects "
			       "only");
	for (size_t i = 1; i < e->n; i++) {
		Elf_Scn *scn = elf_getscn(e->elf, i);
		const char *name;
		GElf_Shdr h;

		if (!gelf_getshdr(scn, &h))
			return fail_elf(why, "section header");
		name = elf_strptr(e->elf, e->names, h.sh_name);
		if (!name)
			return fail_elf(why, "section name");
		/* whatever its own name is, the section with the names stays */
		if (i != e->names && strncmp(name, prefix, strlen(prefix)) == 0)
			KP_TRY(clear_section(scn, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t bundler_elf_remove(const struct kp_source *object, const char *prefix,
				 struct kp_sink *sink, struct kpackx_error *why)
{
	struct edit e;
	kpack_error_t err = edit_open(&e, object, why);

	if (!err)
		err = remove_all(&e, prefix, why);
	if (!err)
		err = edit_write(&e, sink, why);
	edit_fini(&e);
	return err;
}
