/* SPDX-License-Identifier: MIT */
#include "convert.h"
#include <inttypes.h>
#include <stdlib.h>
#include "edit.h"
#include "core/base/bounds.h"
#include "dangling.h"
#include "wrapper.h"

static kpack_error_t refuse_file(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", text);
}

/* ---- converting ---- */

kpack_error_t kp_convert_kind(const struct kp_fatbin *fat, struct kpackx_error *why)
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
		KP_TRY(kp_wrapper_point(ed, &elf->wrappers[i], KP_WRAPPER_HIPK, i, marker,
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

	KP_TRY(kp_convert_kind(fat, why));
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
		KP_TRY(plan(arg, planned, ed, why));
		if (!o->recipe)
			return KPACK_SUCCESS;
		err = kp_edit_moves(ed, &moves, &n, why);
		if (!err) {
			err = o->recipe(o->recipe_arg, moves, n, &recipe, why);
			free(moves);
		}
		if (!err && recipe.size <= planned.size && *bytes) {
			memset(*bytes, 0, planned.size);
			memcpy(*bytes, recipe.data, recipe.size);
			return KPACK_SUCCESS;
		}
		kp_edit_close(ed);
		free(*bytes);
		*bytes = NULL;
		KP_TRY(err);
		planned.size = recipe.size + (tries ? 16 * tries : 0);
		*bytes = malloc(planned.size);
		if (!*bytes)
			return kp_fail_memory(why, planned.size, "a recipe");
		planned.data = *bytes;
	}
	free(*bytes);
	*bytes = NULL;
	return refuse_file(why, "its recipe has another size for each plan");
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
