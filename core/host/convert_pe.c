/* SPDX-License-Identifier: MIT */
/*
 * Conversions of PE files, as plans of core/pe/edit.h; convert.c writes and checks what is planned
 * here.  The wrappers' base relocations stay: they say which words the loader changes, and the words
 * have the addresses themselves.
 */
#include <inttypes.h>
#include "edit.h"

/* Let the wrappers be fat and lead to TARGET and their OFFSETS; NULL: lead to the marker at TARGET. */
static kpack_error_t point_wrappers(struct kp_pe_edit *ed, const struct kp_host *host,
				    uint64_t target, const uint64_t *offsets,
				    struct kpackx_error *why)
{
	for (size_t i = 0; i < host->n_wrappers; i++) {
		const struct kp_host_wrapper *w = &host->wrappers[i];
		uint64_t index = offsets ? 0 : i;
		uint8_t bytes[KP_WRAPPER_SIZE];

		if (w->source == KP_POINTER_UNRESOLVED)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "pe: wrapper %zu: its pointer has no base "
				       "relocation",
				       i);
		/* of a file that stays fat the last word stays */
		if (offsets && w->fields.magic == KP_WRAPPER_HIPF)
			index = w->fields.index;
		kp_put_le32(bytes, offsets ? KP_WRAPPER_HIPF : KP_WRAPPER_HIPK);
		kp_put_le32(bytes + 4, KP_WRAPPER_VERSION);
		kp_put_le64(bytes + 8, target + (offsets ? offsets[i] : 0));
		kp_put_le64(bytes + 16, index);
		KP_TRY(kp_pe_edit_patch(ed, w->offset, bytes, sizeof(bytes), why));
	}
	return KPACK_SUCCESS;
}

struct dangling {
	const struct kp_pe_edit *ed;
	const struct kp_host *host;
	const struct kp_pe_section *fatbin;
	struct kp_window words;
};

/* Refuse a word that leads into the device code, or is in it. */
static kpack_error_t check_word(void *arg, uint32_t rva, unsigned size,
				struct kpackx_error *why)
{
	struct dangling *d = arg;
	uint64_t base = d->ed->in.base, at, target;
	const uint8_t *p;

	if (rva - d->fatbin->rva < d->fatbin->memory)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"pe: a base relocation changes the device code at 0x%" PRIx64,
			base + rva);
	/* zeros in memory alone lead nowhere */
	if (size != 8 || kp_host_wrapper_at(d->host, base + rva) ||
	    !kp_pe_find(&d->ed->in, rva, 8, &at))
		return KPACK_SUCCESS;
	KP_TRY(kp_window_get(&d->words, at, 8, &p, why));
	target = kp_le64(p) - base - d->fatbin->rva;
	return target < d->fatbin->memory
		       ? kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				 "pe: the word at 0x%" PRIx64
				 ", which is no wrapper's, leads into the device code",
				 base + rva)
		       : KPACK_SUCCESS;
}

/* NOT_IMPLEMENTED: something other than the wrappers needs the bytes of the section FATBIN. */
static kpack_error_t check_dangling(const struct kp_pe_edit *ed,
				    const struct kp_host *host,
				    const struct kp_pe_section *fatbin,
				    struct kpackx_error *why)
{
	struct dangling d = {.ed = ed, .host = host, .fatbin = fatbin};

	for (size_t i = 0; i < KP_PE_DIRECTORIES; i++) {
		uint64_t rva = ed->in.directories[i].rva;
		uint64_t size = ed->in.directories[i].size;

		if (size && i != KP_PE_SIGNATURE &&
		    rva < (uint64_t)fatbin->rva + fatbin->memory &&
		    rva + size > fatbin->rva)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "pe: data directory %zu is in the device code", i);
	}
	kp_window_init(&d.words, &ed->file);
	return kp_pe_each_reloc(&ed->file, &ed->in, check_word, &d, why);
}

static kpack_error_t open_code(int fd, uint64_t size, bool unsign, struct kp_pe_edit *ed,
			       struct kp_pe_part **code, struct kpackx_error *why)
{
	KP_TRY(kp_pe_edit_open(fd, size, unsign, ed, why));
	*code = kp_pe_edit_find(ed, KP_PE_FATBIN);
	/* old linkers did not state the size in memory */
	if (!*code || !(*code)->s.memory)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: no section " KP_PE_FATBIN " with a size in memory");
	return KPACK_SUCCESS;
}

kpack_error_t kp_pe_plan_marked(int fd, uint64_t size, const struct kp_fatbin *fat,
				const struct kp_convert_options *options,
				struct kp_span recipe, struct kp_pe_edit *ed,
				struct kpackx_error *why)
{
	bool cut = fat->kind != KP_FATBIN_CONVERTED && !options->keep_device_code;
	struct kp_pe_part *code;
	uint32_t rva;

	KP_TRY(open_code(fd, size, options->drop_signature, ed, &code, why));
	if (cut) {
		KP_TRY(check_dangling(ed, &fat->host, &code->s, why));
		kp_pe_edit_fill(ed, code, 0, NULL, NULL);
	}
	/* a recipe that cannot be read stays, and so does the marker before it */
	if (recipe.size)
		KP_TRY(kp_pe_edit_drop(ed, KP_PE_LAYOUT, why));
	KP_TRY(kp_pe_edit_drop(ed, KP_PE_MARKER, why));
	KP_TRY(kp_pe_edit_add(ed, KP_PE_MARKER, KP_PE_DATA | KP_PE_READ, options->marker,
			      why));
	rva = kp_pe_edit_find(ed, KP_PE_MARKER)->s.rva;
	if (recipe.size)
		KP_TRY(kp_pe_edit_add(ed, KP_PE_LAYOUT,
				      KP_PE_DATA | KP_PE_READ | KP_PE_DISCARDABLE, recipe,
				      why));
	KP_TRY(kp_pe_edit_place(ed, why));
	if (cut && ed->size > size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it would become longer: its device code has %" PRIu64
			       " bytes, which is less than what takes its place",
			       fat->host.fatbin.size);
	return point_wrappers(ed, &fat->host, ed->in.base + rva, NULL, why);
}

kpack_error_t kp_pe_plan_fat(int fd, uint64_t size, const struct kp_fatbin *fat,
			     const struct kp_restore_options *options,
			     struct kp_pe_edit *ed, struct kpackx_error *why)
{
	struct kp_pe_part *code;

	KP_TRY(open_code(fd, size, options->drop_signature, ed, &code, why));
	KP_TRY(kp_pe_edit_drop(ed, KP_PE_LAYOUT, why));
	KP_TRY(kp_pe_edit_drop(ed, KP_PE_MARKER, why));
	if (options->size > code->s.memory)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "pe: " KP_PE_FATBIN " has no room for %" PRIu64 " bytes",
			       options->size);
	for (size_t i = 0; i < fat->host.n_wrappers; i++)
		if (options->offsets[i] >= options->size)
			return kp_fail(
				why, KPACK_ERROR_INVALID_METADATA,
				"wrapper %zu: its container would begin at %" PRIu64
				" of %" PRIu64 " bytes",
				i, options->offsets[i], options->size);
	if (fat->kind != KP_FATBIN_CONVERTED)
		KP_TRY(check_dangling(ed, &fat->host, &code->s, why));
	/* unless the device code was kept */
	if (fat->kind != KP_FATBIN_CONVERTED || !fat->host.has_fatbin)
		kp_pe_edit_fill(ed, code, (uint32_t)options->size, options->write,
				options->arg);
	KP_TRY(kp_pe_edit_place(ed, why));
	return point_wrappers(ed, &fat->host, ed->in.base + code->s.rva, options->offsets,
			      why);
}
