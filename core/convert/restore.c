/* SPDX-License-Identifier: MIT */
/* Host-only binary -> fat binary. */
#include <inttypes.h>
#include "convert.h"
#include "edit.h"
#include "wrapper.h"

struct restorer {
	struct kp_edit ed;
	const struct kp_fatbin *fat;
	const struct kp_restore_options *options;
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
		KP_TRY(kp_wrapper_point(&r->ed, &elf->wrappers[i], KP_WRAPPER_HIPF, 0,
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
	KP_TRY(kp_edit_open(fd, size, &r.ed, why));
	err = restore_file(&r, out, why);
	kp_edit_close(&r.ed);
	return err;
}
