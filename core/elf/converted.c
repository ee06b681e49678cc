/* SPDX-License-Identifier: MIT */
/* Reading a converted file. */
#include <inttypes.h>
#include "convert.h"
#include "edit.h"

static kpack_error_t check_targets(const struct kp_elf *elf, uint64_t marker,
				   struct kpackx_error *why)
{
	for (size_t i = 0; i < elf->n_wrappers; i++) {
		const struct kp_elf_wrapper *w = &elf->wrappers[i];

		if (w->fields.magic != KP_WRAPPER_HIPK || w->target != marker ||
		    w->source == KP_POINTER_UNRESOLVED)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "wrapper %zu leads to 0x%" PRIx64
				       ", the marker is at 0x%" PRIx64,
				       i, w->target, marker);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t find_sections(const struct kp_edit *ed, const struct kp_fatbin *fat,
				   struct kp_converted *out, struct kpackx_error *why)
{
	size_t marker = kp_edit_find(ed, KP_MARKER_SECTION);
	size_t layout = kp_edit_find(ed, KP_LAYOUT_SECTION);
	size_t fatbin = kp_edit_find(ed, KP_FATBIN_SECTION);
	const Elf64_Shdr *h = &ed->sections[marker].h;

	if (!marker || h->sh_type == SHT_NOBITS || h->sh_size == 0)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"wrappers are converted, but there is no " KP_MARKER_SECTION);
	KP_TRY(check_targets(&fat->elf, h->sh_addr, why));
	*out = (struct kp_converted){.marker_offset = h->sh_offset,
				     .marker_size = h->sh_size};
	if (layout && ed->sections[layout].h.sh_type != SHT_NOBITS) {
		out->layout_offset = ed->sections[layout].h.sh_offset;
		out->layout_size = ed->sections[layout].h.sh_size;
	}
	out->has_device_code = fatbin && ed->sections[fatbin].h.sh_type != SHT_NOBITS;
	return KPACK_SUCCESS;
}

kpack_error_t kp_converted_find(int fd, uint64_t size, const struct kp_fatbin *fat,
				struct kp_converted *out, struct kpackx_error *why)
{
	struct kp_edit ed;
	kpack_error_t err;

	if (fat->kind != KP_FATBIN_CONVERTED)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "is not converted");
	KP_TRY(kp_edit_open(fd, size, &ed, why));
	err = find_sections(&ed, fat, out, why);
	kp_edit_close(&ed);
	return err;
}
