/* SPDX-License-Identifier: MIT */
#include "elf_object.h"
#include <elf.h>
#include <stdlib.h>
#include "packer/base/xalloc.h"
#include "core/format/sections.h"

#define ROW sizeof(Elf64_Shdr)

/* An object being rewritten: its section headers, decoded (SECTIONS) and raw (ROWS). */
struct edit {
	const struct kp_source *object;
	struct kp_sink *sink;
	struct kp_sections sections;
	uint8_t header[sizeof(Elf64_Ehdr)];
	uint8_t *rows; /* with room for the added sections */
	size_t n_rows;
};

static void put_field(uint8_t *row, size_t at, uint64_t value)
{
	kp_put_le64(row + at, value);
}

#define PUT(row, member, value) put_field(row, offsetof(Elf64_Shdr, member), value)

static kpack_error_t edit_open(struct edit *e, const struct kp_source *object,
			       struct kp_sink *sink, size_t more,
			       struct kpackx_error *why)
{
	size_t size;

	*e = (struct edit){.object = object, .sink = sink};
	KP_TRY(kp_sections_read(object, &e->sections, why));
	e->n_rows = e->sections.count;
	if (e->n_rows + more >= SHN_LORESERVE)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "object of %zu sections: that many cannot be rewritten",
			       e->n_rows + more);
	KP_TRY(kp_source_read(object, 0, e->header, sizeof(e->header), why));
	size = (e->n_rows + more) * ROW;
	e->rows = calloc(1, size ? size : 1);
	if (!e->rows)
		return kp_fail_memory(why, size, "section headers");
	return kp_source_read(object, e->sections.header.e_shoff, e->rows,
			      e->n_rows * ROW, why);
}

static void edit_fini(struct edit *e)
{
	kp_sections_fini(&e->sections);
	free(e->rows);
}

static kpack_error_t align_sink(struct kp_sink *sink, uint64_t to,
				struct kpackx_error *why)
{
	uint64_t over = to > 1 ? sink->size % to : 0;

	return kp_sink_fill(sink, 0, over ? to - over : 0, why);
}

/* Write the table of section headers, and its offset into the ELF header. */
static kpack_error_t put_table(struct edit *e, struct kpackx_error *why)
{
	KP_TRY(align_sink(e->sink, 8, why));
	kp_put_le64(e->header + offsetof(Elf64_Ehdr, e_shoff),
		    e->n_rows ? e->sink->size : 0);
	e->header[offsetof(Elf64_Ehdr, e_shnum)] = (uint8_t)e->n_rows;
	e->header[offsetof(Elf64_Ehdr, e_shnum) + 1] = (uint8_t)(e->n_rows >> 8);
	KP_TRY(kp_sink_put(e->sink, e->rows, e->n_rows * ROW, why));
	/* the sink is a file: its beginning can be written last */
	return kp_outfile_pwrite(e->sink->out, 0, e->header, sizeof(e->header), why);
}

/* ---- adding ---- */

/* Write the existing section names, and the names of the new sections behind them. */
static kpack_error_t put_names(struct edit *e, const struct bundler_section *sections,
			       size_t n, struct kpackx_error *why)
{
	size_t index = e->sections.header.e_shstrndx;
	const struct kp_section *names = &e->sections.items[index];
	uint64_t begin = e->sink->size;
	struct kp_source old;

	if (!kp_source_sub(e->object, names->offset, names->size, &old))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the names of sections pass the end");
	KP_TRY(kp_sink_copy(e->sink, &old, why));
	for (size_t i = 0; i < n; i++) {
		kp_put_le32(e->rows + (e->n_rows - n + i) * ROW,
			    (uint32_t)(e->sink->size - begin));
		KP_TRY(kp_sink_put(e->sink, sections[i].name,
				   strlen(sections[i].name) + 1, why));
	}
	PUT(e->rows + index * ROW, sh_offset, begin);
	PUT(e->rows + index * ROW, sh_size, e->sink->size - begin);
	return KPACK_SUCCESS;
}

static kpack_error_t put_section(struct edit *e, const struct bundler_section *s,
				 struct kpackx_error *why)
{
	uint8_t *row = e->rows + e->n_rows++ * ROW;

	kp_put_le32(row + offsetof(Elf64_Shdr, sh_type), SHT_PROGBITS);
	PUT(row, sh_flags, SHF_EXCLUDE);
	PUT(row, sh_offset, e->sink->size);
	PUT(row, sh_size, s->bytes.size);
	PUT(row, sh_addralign, 1);
	return kp_sink_copy(e->sink, &s->bytes, why);
}

static kpack_error_t add_all(struct edit *e, const struct bundler_section *sections,
			     size_t n, struct kpackx_error *why)
{
	if (e->n_rows == 0 || e->sections.header.e_shstrndx >= e->n_rows)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "object without names of sections");
	KP_TRY(kp_sink_copy(e->sink, e->object, why));
	for (size_t i = 0; i < n; i++)
		KP_TRY(put_section(e, &sections[i], why));
	KP_TRY(put_names(e, sections, n, why));
	return put_table(e, why);
}

kpack_error_t bundler_elf_add(const struct kp_source *object,
			      const struct bundler_section *sections, size_t n,
			      struct kp_sink *sink, struct kpackx_error *why)
{
	struct edit e;
	kpack_error_t err = edit_open(&e, object, sink, n, why);

	if (!err)
		err = add_all(&e, sections, n, why);
	edit_fini(&e);
	return err;
}

/* ---- removing ---- */

/*
 * Whether section I is removed.  The section with the names stays, whatever its own name
 * is.
 */
static bool is_removed(const struct edit *e, size_t i, const char *prefix)
{
	return strncmp(e->sections.items[i].name, prefix, strlen(prefix)) == 0 &&
	       i != e->sections.header.e_shstrndx;
}

static bool has_bytes(const struct kp_section *s)
{
	return s->type != SHT_NULL && s->type != SHT_NOBITS && s->size != 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct kp_section *x = *(const struct kp_section *const *)a,
				*y = *(const struct kp_section *const *)b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Copy S to the next place in the sink, and put its new offset into its row. */
static kpack_error_t keep_section(struct edit *e, const struct kp_section *s,
				  struct kpackx_error *why)
{
	size_t index = (size_t)(s - e->sections.items);
	uint64_t align_to =
		kp_le64(e->rows + index * ROW + offsetof(Elf64_Shdr, sh_addralign));
	struct kp_source bytes;

	if (!kp_source_sub(e->object, s->offset, s->size, &bytes))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "section %s passes the end", s->name);
	/* no object needs more than 4096, and a damaged object may state any alignment */
	KP_TRY(align_sink(e->sink, align_to > 4096 ? 4096 : align_to, why));
	PUT(e->rows + index * ROW, sh_offset, e->sink->size);
	return kp_sink_copy(e->sink, &bytes, why);
}

static kpack_error_t keep_sections(struct edit *e, const char *prefix,
				   const struct kp_section **order,
				   struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 0; i < e->sections.count; i++) {
		const struct kp_section *s = &e->sections.items[i];

		if (has_bytes(s) && !is_removed(e, i, prefix))
			order[n++] = s;
	}
	qsort(order, n, sizeof(*order), by_offset);
	KP_TRY(kp_sink_put(e->sink, e->header, sizeof(e->header), why));
	for (size_t i = 0; i < n; i++)
		KP_TRY(keep_section(e, order[i], why));
	return KPACK_SUCCESS;
}

static void drop_rows(struct edit *e, const char *prefix)
{
	for (size_t i = 0; i < e->sections.count; i++)
		if (is_removed(e, i, prefix))
			memset(e->rows + i * ROW, 0, ROW);
	while (e->n_rows && is_removed(e, e->n_rows - 1, prefix))
		e->n_rows--;
}

static kpack_error_t remove_all(struct edit *e, const char *prefix,
				struct kpackx_error *why)
{
	const struct kp_section **order;
	kpack_error_t err;

	/* addresses tie segments to their offsets in the file */
	if (e->sections.header.e_phnum)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it has segments: sections can be removed from objects "
			       "only");
	order = xcalloc(e->sections.count, sizeof(const struct kp_section *));
	err = keep_sections(e, prefix, order, why);
	free(order);
	drop_rows(e, prefix);
	return err ? err : put_table(e, why);
}

kpack_error_t bundler_elf_remove(const struct kp_source *object, const char *prefix,
				 struct kp_sink *sink, struct kpackx_error *why)
{
	struct edit e;
	kpack_error_t err = edit_open(&e, object, sink, 0, why);

	if (!err)
		err = remove_all(&e, prefix, why);
	edit_fini(&e);
	return err;
}
