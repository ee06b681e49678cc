/* SPDX-License-Identifier: MIT */
/* Host-only binary -> fat binary. */
#include <inttypes.h>
#include "convert.h"
#include "dangling.h"
#include "edit.h"
#include "wrapper.h"

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

/* Fill .hip_fatbin, in its place or after all other segments. */
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
	if (r->options->size > h->sh_size &&
	    !kp_edit_widen(ed, section, r->options->size))
		KP_TRY(kp_edit_move_behind(ed, section, r->options->size, why));
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
		KP_TRY(kp_wrapper_point(&r->ed, &elf->wrappers[i], KP_WRAPPER_HIPF,
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

	KP_TRY(kp_convert_kind(fat, why));
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

	KP_TRY(kp_convert_kind(fat, why));
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
