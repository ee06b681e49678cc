/* SPDX-License-Identifier: MIT */
/*
 * Conversions: a fat binary becomes one whose wrappers lead to a marker; such a one gets another marker,
 * or its device code again; and a fat binary gets less device code.  Each is a few steps of the editor
 * (edit.h), a plan, which is made before anything is written, and a look at what was written.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "convert.h"
#include "edit.h"

/* ==== wrappers ==== */

/*
 * Return the pointer's word in the file.  A word that a RELA relocation overwrites is
 * zero with lld and the address with GNU ld; this is kept.
 */
static uint64_t stored_pointer(const struct kp_elf_wrapper *w, uint64_t target)
{
	if (w->reloc_size == sizeof(Elf64_Rela))
		return w->fields.pointer ? target : 0;
	return w->source == KP_POINTER_SYMBOL ? target - w->symbol : target;
}

static kpack_error_t patch_addend(struct kp_edit *ed, const struct kp_elf_wrapper *w,
				  uint64_t target, struct kpackx_error *why)
{
	uint8_t addend[8];

	/* the relocation keeps its symbol, so that tables sorted by kind stay sorted */
	kp_put_le64(addend, w->source == KP_POINTER_SYMBOL ? target - w->symbol : target);
	return kp_edit_patch(ed, w->reloc_offset + offsetof(Elf64_Rela, r_addend), addend,
			     sizeof(addend), why);
}

/*
 * Patch W and its relocation: at run time W has MAGIC and INDEX and points to the address
 * TARGET.  The relocation keeps its type.
 */
static kpack_error_t point_wrapper(struct kp_edit *ed, const struct kp_elf_wrapper *w,
				   uint32_t magic, uint64_t index, uint64_t target,
				   struct kpackx_error *why)
{
	uint8_t bytes[KP_WRAPPER_SIZE];

	if (w->source == KP_POINTER_UNRESOLVED)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: a wrapper's pointer is set from outside this file");
	kp_put_le32(bytes, magic);
	kp_put_le32(bytes + 4, KP_WRAPPER_VERSION);
	kp_put_le64(bytes + 8, stored_pointer(w, target));
	kp_put_le64(bytes + 16, index);
	if (w->reloc_size == sizeof(Elf64_Rela))
		KP_TRY(patch_addend(ed, w, target, why));
	return kp_edit_patch(ed, w->offset, bytes, sizeof(bytes), why);
}

/* ==== converting ==== */

static kpack_error_t refuse_file(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", text);
}

/* ---- converting ---- */

/* NOT_IMPLEMENTED, with the reason: FAT is not a fat binary whose wrappers are all HIPF. */
static kpack_error_t check_kind(const struct kp_fatbin *fat, struct kpackx_error *why)
{
	if (fat->kind == KP_FATBIN_CONVERTED)
		return refuse_file(why, "is converted already");
	if (fat->kind != KP_FATBIN_ELF)
		return refuse_file(why, "has no .hip_fatbin");
	if (fat->elf.n_wrappers == 0)
		return refuse_file(why, "no wrapper leads to its .hip_fatbin");
	for (size_t i = 0; i < fat->elf.n_wrappers; i++)
		if (fat->elf.wrappers[i].fields.magic != KP_WRAPPER_HIPF)
			return kp_fail(
				why, KPACK_ERROR_NOT_IMPLEMENTED,
				"wrapper %zu is already converted, other wrappers are "
				"not",
				i);
	return KPACK_SUCCESS;
}

static kpack_error_t add_sections(struct kp_edit *ed, const struct kp_convert_options *o,
				  struct kp_span recipe, struct kpackx_error *why)
{
	KP_TRY(kp_edit_add_section(ed, KP_MARKER_SECTION, true, o->marker, why));
	if (recipe.size)
		KP_TRY(kp_edit_add_section(ed, KP_LAYOUT_SECTION, false, recipe, why));
	return KPACK_SUCCESS;
}

static kpack_error_t point_to_marker(struct kp_edit *ed, const struct kp_elf *elf,
				     struct kpackx_error *why)
{
	uint64_t marker = ed->sections[kp_edit_find(ed, KP_MARKER_SECTION)].h.sh_addr;

	for (size_t i = 0; i < elf->n_wrappers; i++)
		KP_TRY(point_wrapper(ed, &elf->wrappers[i], KP_WRAPPER_HIPK, i, marker,
				     why));
	return KPACK_SUCCESS;
}

/* All steps of a conversion except writing. */
static kpack_error_t edit_file(struct kp_edit *ed, const struct kp_fatbin *fat,
			       const struct kp_convert_options *o, struct kp_span recipe,
			       struct kpackx_error *why)
{
	size_t section = kp_edit_find(ed, KP_FATBIN_SECTION);

	if (!section)
		return refuse_file(why, "has no .hip_fatbin");
	if (!o->keep_device_code) {
		KP_TRY(kp_dangling_check(ed, section, &fat->elf, why));
		KP_TRY(kp_edit_cut(ed, section, why));
	}
	/* restoring a file can have added a table of program headers */
	if (!ed->whole)
		kp_edit_drop_table(ed);
	KP_TRY(add_sections(ed, o, recipe, why));
	KP_TRY(kp_edit_place(ed, why));
	return point_to_marker(ed, &fat->elf, why);
}

/*
 * Never lengthen a file: if it would be longer without the section's place, because the
 * program headers have to move, the place stays, for what is added.
 */
static kpack_error_t open_edited(int fd, uint64_t size, const struct kp_fatbin *fat,
				 const struct kp_convert_options *o,
				 struct kp_span recipe, struct kp_edit *ed,
				 struct kpackx_error *why)
{
	kpack_error_t err = KPACK_ERROR_NOT_IMPLEMENTED;

	KP_TRY(check_kind(fat, why));
	for (int whole = 0; whole < 2 && err == KPACK_ERROR_NOT_IMPLEMENTED; whole++) {
		KP_TRY(kp_edit_open_all(fd, size, ed, why));
		ed->whole = whole;
		err = edit_file(ed, fat, o, recipe, why);
		if (!err && ed->out_size > size && !o->keep_device_code)
			err = kp_fail(
				why, KPACK_ERROR_NOT_IMPLEMENTED,
				"it would become longer: its device code has %" PRIu64
				" bytes, which is less than what takes its place",
				fat->elf.fatbin_size);
		if (err)
			kp_edit_close(ed);
	}
	return err;
}

kpack_error_t kp_convert_check(int fd, uint64_t size, const struct kp_fatbin *fat,
			       bool keep_device_code, struct kpackx_error *why)
{
	static const uint8_t some[1];
	struct kp_convert_options o = {.marker = {some, 1},
				       .keep_device_code = keep_device_code};
	struct kp_edit ed;

	KP_TRY(open_edited(fd, size, fat, &o, (struct kp_span){some, 1}, &ed, why));
	kp_edit_close(&ed);
	return KPACK_SUCCESS;
}

/* ---- checking the written file ---- */

/* Read OUT like any reader, so that no file with a fault of ours is published. */
static kpack_error_t check_written(const struct kp_edit *ed, struct kp_outfile *out,
				   struct kpackx_error *why)
{
	struct kp_converted found;
	struct kp_fatbin fat;
	kpack_error_t err;

	KP_TRY(kp_fatbin_open(out->fd, ed->out_size, &fat, why));
	err = kp_converted_find(out->fd, ed->out_size, &fat, &found, why);
	kp_fatbin_fini(&fat);
	return err;
}

static kpack_error_t write_checked(const struct kp_edit *ed, struct kp_outfile *out,
				   struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(kp_edit_write(ed, out, why));
	err = check_written(ed, out, why);
	return err ? kp_fail_prefix(why, err, "the converted file is wrong") : err;
}

/* ---- the recipe ---- */

/* Plan a file whose recipe has the bytes RECIPE; ARG is that of plan_with_recipe. */
typedef kpack_error_t plan_fn(void *arg, struct kp_span recipe, struct kp_edit *ed,
			      struct kpackx_error *why);

/*
 * Plan a file with a recipe, which says where that file has what of its input: its size can
 * change the plan, and the plan the size.  So plan until it fits in what was planned; zeros
 * follow it.  The caller frees *BYTES, the recipe in ED, after it.
 */
static kpack_error_t plan_with_recipe(const struct kp_convert_options *o, plan_fn *plan,
				      void *arg, struct kp_edit *ed, uint8_t **bytes,
				      struct kpackx_error *why)
{
	static const uint8_t some[1];
	struct kp_span planned = {some, o->recipe ? 1 : 0}, recipe = {0};
	struct kp_move *moves;
	size_t n;
	kpack_error_t err;

	*bytes = NULL;
	for (unsigned tries = 0; tries < 8; tries++) {
		err = plan(arg, planned, ed, why);
		if (err || !o->recipe)
			goto out;
		err = kp_edit_moves(ed, &moves, &n, why);
		if (!err) {
			err = o->recipe(o->recipe_arg, moves, n, &recipe, why);
			free(moves);
		}
		if (!err && *bytes && recipe.size <= planned.size) {
			memset(*bytes, 0, planned.size);
			memcpy(*bytes, recipe.data, recipe.size);
			return KPACK_SUCCESS;
		}
		kp_edit_close(ed);
		if (err)
			goto out;
		free(*bytes);
		planned.size = recipe.size + 16 * tries;
		planned.data = *bytes = malloc(planned.size);
		if (!*bytes)
			return kp_fail_memory(why, planned.size, "a recipe");
	}
	err = refuse_file(why, "its recipe has another size for each plan");
out:
	if (err) {
		free(*bytes);
		*bytes = NULL;
	}
	return err;
}

struct conversion {
	int fd;
	uint64_t size;
	const struct kp_fatbin *fat;
	const struct kp_convert_options *options;
};

static kpack_error_t plan_conversion(void *arg, struct kp_span recipe, struct kp_edit *ed,
				     struct kpackx_error *why)
{
	const struct conversion *c = arg;

	return open_edited(c->fd, c->size, c->fat, c->options, recipe, ed, why);
}

kpack_error_t kp_convert(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_convert_options *options, struct kp_outfile *out,
			 struct kpackx_error *why)
{
	struct conversion c = {fd, size, fat, options};
	struct kp_edit ed;
	uint8_t *recipe;
	kpack_error_t err;

	KP_TRY(plan_with_recipe(options, plan_conversion, &c, &ed, &recipe, why));
	err = write_checked(&ed, out, why);
	kp_edit_close(&ed);
	free(recipe);
	return err;
}

/* ---- changing a converted file ---- */

/* At the addresses of .hip_fatbin, other additions may need more or less of the file. */
static void free_bytes_behind(struct kp_edit *ed)
{
	const Elf64_Shdr *s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;

	for (size_t i = 0; !ed->whole && s->sh_type == SHT_NOBITS && i < ed->n_chunks;
	     i++)
		if (ed->chunks[i].vaddr > s->sh_addr) {
			ed->chunks[i].page_before = true;
			kp_edit_mark_moves(ed, i);
			return;
		}
}

/* Open a converted file and drop its marker, whose place is free then. */
static kpack_error_t open_bare(int fd, uint64_t size, const struct kp_fatbin *fat,
			       struct kp_edit *ed, struct kpackx_error *why)
{
	struct kp_converted found;
	kpack_error_t err;
	size_t marker;

	KP_TRY(kp_converted_find(fd, size, fat, &found, why));
	KP_TRY(kp_edit_open_all(fd, size, ed, why));
	marker = kp_edit_find(ed, KP_MARKER_SECTION);
	err = kp_edit_drop_block(ed, marker, why);
	if (err) {
		kp_edit_close(ed);
		return err;
	}
	/* its index may have changed */
	kp_edit_drop_section(ed, kp_edit_find(ed, KP_MARKER_SECTION));
	free_bytes_behind(ed);
	return KPACK_SUCCESS;
}

static kpack_error_t plan_marker(void *arg, struct kp_span recipe, struct kp_edit *ed,
				 struct kpackx_error *why)
{
	const struct conversion *c = arg;
	kpack_error_t err;

	KP_TRY(open_bare(c->fd, c->size, c->fat, ed, why));
	if (recipe.size && kp_edit_find(ed, KP_LAYOUT_SECTION))
		kp_edit_drop_section(ed, kp_edit_find(ed, KP_LAYOUT_SECTION));
	err = add_sections(ed, c->options, recipe, why);
	if (!err)
		err = kp_edit_place(ed, why);
	if (!err)
		err = point_to_marker(ed, &c->fat->elf, why);
	if (err)
		kp_edit_close(ed);
	return err;
}

kpack_error_t kp_convert_set(int fd, uint64_t size, const struct kp_fatbin *fat,
			     const struct kp_convert_options *options,
			     struct kp_outfile *out, struct kpackx_error *why)
{
	struct conversion c = {fd, size, fat, options};
	struct kp_edit ed;
	uint8_t *recipe;
	kpack_error_t err;

	KP_TRY(plan_with_recipe(options, plan_marker, &c, &ed, &recipe, why));
	err = write_checked(&ed, out, why);
	kp_edit_close(&ed);
	free(recipe);
	return err;
}

kpack_error_t kp_convert_headers(int fd, uint64_t size, bool *program, bool *right,
				 struct kpackx_error *why)
{
	struct kp_edit ed;

	KP_TRY(kp_edit_open(fd, size, &ed, why));
	*program = kp_edit_is_program(&ed);
	*right = kp_edit_table_is_right(&ed);
	kp_edit_close(&ed);
	return KPACK_SUCCESS;
}

kpack_error_t kp_convert_normalise(int fd, uint64_t size, const struct kp_fatbin *fat,
				   struct kp_outfile *out, bool *changed,
				   struct kpackx_error *why)
{
	struct kp_converted found;
	kpack_error_t err;
	uint8_t *marker;
	bool program, right;

	KP_TRY(kp_converted_find(fd, size, fat, &found, why));
	KP_TRY(kp_convert_headers(fd, size, &program, &right, why));
	*changed = !right;
	if (right)
		return KPACK_SUCCESS;
	if (found.marker_size > KP_MARKER_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: %" PRIu64 " bytes of at most %d",
			       found.marker_size, KP_MARKER_MAX);
	marker = malloc(found.marker_size);
	if (!marker)
		return kp_fail_memory(why, found.marker_size, "a marker");
	err = kp_file_pread(fd, found.marker_offset, marker, found.marker_size, why);
	if (!err)
		err = kp_convert_set(
			fd, size, fat,
			&(struct kp_convert_options){
				.marker = {marker, (size_t)found.marker_size}},
			out, why);
	free(marker);
	return err;
}

/* ==== device code ==== */

struct restorer {
	struct kp_edit ed;
	const struct kp_fatbin *fat;
	const struct kp_restore_options *options;
	bool reserved; /* the wrappers' last word stays */
};

static kpack_error_t write_section(void *arg, struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *why)
{
	const struct restorer *r = arg;

	return r->options->write(r->options->arg, out, offset, why);
}

static kpack_error_t drop_added_sections(struct kp_edit *ed, struct kpackx_error *why)
{
	size_t layout = kp_edit_find(ed, KP_LAYOUT_SECTION), marker;

	if (layout)
		kp_edit_drop_section(ed, layout);
	marker = kp_edit_find(ed, KP_MARKER_SECTION);
	KP_TRY(kp_edit_drop_block(ed, marker, why));
	/* its index may have changed */
	kp_edit_drop_section(ed, kp_edit_find(ed, KP_MARKER_SECTION));
	return KPACK_SUCCESS;
}

/* Enlarge a NOBITS section that ends its segment to SIZE bytes; false: no room. */
static bool widen(struct kp_edit *ed, size_t section, uint64_t size)
{
	Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	Elf64_Phdr *h;

	if (at < 0)
		return false;
	h = &ed->segments[at].h;
	if (s->sh_addr - h->p_vaddr < h->p_filesz) {
		if (kp_edit_gap_end(ed, (size_t)at, s->sh_addr) - s->sh_addr < size)
			return false;
		s->sh_size = size;
		return true;
	}
	if ((h->p_filesz == 0 && h->p_vaddr != s->sh_addr) ||
	    s->sh_addr + s->sh_size != h->p_vaddr + h->p_memsz ||
	    !kp_range_ok(kp_edit_free_until(ed, (size_t)at), s->sh_addr, size))
		return false;
	s->sh_size = size;
	h->p_memsz = s->sh_addr + size - h->p_vaddr;
	return true;
}

/* Fill .hip_fatbin in its place. */
static kpack_error_t fill_section(struct restorer *r, struct kpackx_error *why)
{
	struct kp_edit *ed = &r->ed;
	size_t section = kp_edit_find(ed, KP_FATBIN_SECTION);
	Elf64_Shdr *h = &ed->sections[section].h;

	if (!section)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the section " KP_FATBIN_SECTION " is gone");
	if (h->sh_type != SHT_NOBITS) /* the device code was kept */
		return KPACK_SUCCESS;
	/* our additions may have taken the addresses that the section had */
	if (r->options->size > h->sh_size && !widen(ed, section, r->options->size))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: " KP_FATBIN_SECTION " has no room for the %" PRIu64
			       " bytes that it had",
			       r->options->size);
	return kp_edit_fill(ed, section, write_section, r, why);
}

static kpack_error_t point_wrappers(struct restorer *r, struct kpackx_error *why)
{
	const struct kp_elf *elf = &r->fat->elf;
	const Elf64_Shdr *h = &r->ed.sections[kp_edit_find(&r->ed, KP_FATBIN_SECTION)].h;

	for (size_t i = 0; i < elf->n_wrappers; i++) {
		uint64_t offset = r->options->offsets[i];

		if (offset >= h->sh_size)
			return kp_fail(
				why, KPACK_ERROR_INVALID_METADATA,
				"wrapper %zu: its container would begin at %" PRIu64
				" of %" PRIu64 " bytes",
				i, offset, h->sh_size);
		KP_TRY(point_wrapper(&r->ed, &elf->wrappers[i], KP_WRAPPER_HIPF,
				     r->reserved ? elf->wrappers[i].fields.index : 0,
				     h->sh_addr + offset, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t restore_file(struct restorer *r, struct kp_outfile *out,
				  struct kpackx_error *why)
{
	KP_TRY(drop_added_sections(&r->ed, why));
	KP_TRY(fill_section(r, why));
	KP_TRY(kp_edit_place(&r->ed, why));
	KP_TRY(point_wrappers(r, why));
	return kp_edit_write(&r->ed, out, why);
}

kpack_error_t kp_restore(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_restore_options *options, struct kp_outfile *out,
			 struct kpackx_error *why)
{
	struct restorer r = {.fat = fat, .options = options};
	struct kp_converted found;
	kpack_error_t err;

	KP_TRY(kp_converted_find(fd, size, fat, &found, why));
	KP_TRY(kp_edit_open_all(fd, size, &r.ed, why));
	err = restore_file(&r, out, why);
	kp_edit_close(&r.ed);
	return err;
}

/* ---- fewer bytes ---- */

/* Return whether a section other than FATBIN has memory in [BEGIN, END). */
static bool is_used(const struct kp_edit *ed, size_t fatbin, uint64_t begin, uint64_t end)
{
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *s = &ed->sections[i].h;

		if (i != fatbin && (s->sh_flags & SHF_ALLOC) && s->sh_addr < end &&
		    s->sh_addr + s->sh_size > begin)
			return true;
	}
	return false;
}

/*
 * Give up the memory behind the section if nothing else has it.  In a writable segment it
 * stays, because the loader changes its protection as a whole (PT_GNU_RELRO).
 */
static void trim_memory(struct kp_edit *ed, size_t section)
{
	const Elf64_Shdr *s = &ed->sections[section].h;
	ptrdiff_t at = kp_edit_load_of(ed, s->sh_addr, s->sh_size);
	uint64_t end = s->sh_addr + s->sh_size, memory;
	Elf64_Phdr *h;

	if (at < 0)
		return;
	h = &ed->segments[at].h;
	memory = h->p_vaddr + h->p_memsz;
	if ((h->p_flags & PF_W) || h->p_vaddr + h->p_filesz != end || memory <= end ||
	    is_used(ed, section, end, memory))
		return;
	h->p_memsz = h->p_filesz;
	ed->trimmed = true;
}

static kpack_error_t refill_file(struct restorer *r, struct kpackx_error *why)
{
	struct kp_edit *ed = &r->ed;
	size_t section = kp_edit_find(ed, KP_FATBIN_SECTION);
	Elf64_Shdr *h = &ed->sections[section].h;

	if (!section || r->options->size > h->sh_size || r->options->size == 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: " KP_FATBIN_SECTION " would not become smaller");
	KP_TRY(kp_dangling_check(ed, section, &r->fat->elf, why));
	KP_TRY(kp_edit_cut(ed, section, why));
	h->sh_size = r->options->size;
	KP_TRY(kp_edit_fill(ed, section, write_section, r, why));
	trim_memory(ed, section);
	if (!ed->whole)
		kp_edit_drop_table(ed);
	KP_TRY(kp_edit_place(ed, why));
	if (ed->out_size > ed->size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: the file would become longer");
	return point_wrappers(r, why);
}

/* Read OUT like any reader, so that no file with a fault of ours is published. */
static kpack_error_t check_refilled(const struct restorer *r, struct kp_outfile *out,
				    struct kpackx_error *why)
{
	struct kp_fatbin fat;
	kpack_error_t err = kp_fatbin_open(out->fd, r->ed.out_size, &fat, why);

	if (!err &&
	    (fat.kind != KP_FATBIN_ELF || fat.elf.n_wrappers != r->fat->elf.n_wrappers))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "wrappers are missing");
	kp_fatbin_fini(&fat);
	return err ? kp_fail_prefix(why, err, "the new file is wrong") : err;
}

kpack_error_t kp_refill_check(int fd, uint64_t size, const struct kp_fatbin *fat,
			      struct kpackx_error *why)
{
	struct kp_edit ed;
	kpack_error_t err;

	KP_TRY(check_kind(fat, why));
	KP_TRY(kp_edit_open(fd, size, &ed, why));
	err = kp_dangling_check(&ed, kp_edit_find(&ed, KP_FATBIN_SECTION), &fat->elf,
				why);
	kp_edit_close(&ed);
	return err;
}

kpack_error_t kp_refill(int fd, uint64_t size, const struct kp_fatbin *fat,
			const struct kp_restore_options *options, struct kp_outfile *out,
			struct kpackx_error *why)
{
	struct restorer r = {.fat = fat, .options = options, .reserved = true};
	kpack_error_t err = KPACK_ERROR_NOT_IMPLEMENTED;

	KP_TRY(check_kind(fat, why));
	for (int whole = 0; whole < 2 && err == KPACK_ERROR_NOT_IMPLEMENTED; whole++) {
		KP_TRY(kp_edit_open_all(fd, size, &r.ed, why));
		r.ed.whole = whole;
		err = refill_file(&r, why);
		if (!err)
			err = kp_edit_write(&r.ed, out, why);
		if (!err)
			err = check_refilled(&r, out, why);
		kp_edit_close(&r.ed);
	}
	return err;
}
