/* SPDX-License-Identifier: MIT */
/*
 * Conversions: a fat binary becomes one whose wrappers lead to a marker; such a one gets another marker,
 * or its device code again; and a fat binary gets less device code.  Each is a few steps of the editor
 * (edit.h) that make a plan, before anything is written; then the file is written, and read like any
 * reader does, so that no file with a fault of ours is published.
 */
#include "convert.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "edit.h"

/* ---- wrappers ---- */

/*
 * Patch W and its relocation: at run time W has MAGIC and INDEX and points to the address
 * TARGET.  The relocation keeps its type and its symbol, so that tables sorted by kind stay sorted.
 */
static kpack_error_t point_wrapper(struct kp_edit *ed, const struct kp_host_wrapper *w,
				   uint32_t magic, uint64_t index, uint64_t target,
				   struct kpackx_error *why)
{
	uint64_t addend = w->source == KP_POINTER_SYMBOL ? target - w->symbol : target;
	uint8_t bytes[KP_WRAPPER_SIZE];

	if (w->source == KP_POINTER_UNRESOLVED)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: a wrapper's pointer is set from outside this file");
	if (w->reloc_size == sizeof(Elf64_Rela)) {
		kp_put_le64(bytes, addend);
		KP_TRY(kp_edit_patch(ed, w->reloc_offset + offsetof(Elf64_Rela, r_addend),
				     bytes, 8, why));
		/* a word that such a relocation overwrites is zero with lld, the address with GNU ld */
		addend = w->fields.pointer ? target : 0;
	}
	kp_put_le32(bytes, magic);
	kp_put_le32(bytes + 4, KP_WRAPPER_VERSION);
	kp_put_le64(bytes + 8, addend);
	kp_put_le64(bytes + 16, index);
	return kp_edit_patch(ed, w->offset, bytes, sizeof(bytes), why);
}

static kpack_error_t refuse_file(struct kpackx_error *why, const char *text)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "%s", text);
}

/* NOT_IMPLEMENTED, with the reason: FAT is not a fat binary whose wrappers are all HIPF. */
static kpack_error_t check_kind(const struct kp_fatbin *fat, struct kpackx_error *why)
{
	const char *name = fat->host.pe ? fat->host.fatbin.name : KP_FATBIN_SECTION;

	if (fat->kind == KP_FATBIN_CONVERTED)
		return refuse_file(why, "is converted already");
	if (fat->kind != KP_FATBIN_HOST)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "has no %s", name);
	if (fat->host.n_wrappers == 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "no wrapper leads to its %s", name);
	for (size_t i = 0; i < fat->host.n_wrappers; i++)
		if (fat->host.wrappers[i].fields.magic != KP_WRAPPER_HIPF)
			return kp_fail(
				why, KPACK_ERROR_NOT_IMPLEMENTED,
				"wrapper %zu is already converted, other wrappers are "
				"not",
				i);
	return KPACK_SUCCESS;
}

/* ---- plans of files with a marker ---- */

/* What is converted, or what gets another marker. */
struct conversion {
	int fd;
	uint64_t size;
	const struct kp_fatbin *fat;
	const struct kp_convert_options *options;
};

/* Add the marker, and the recipe if it is not empty; place all, and let the wrappers lead there. */
static kpack_error_t add_marker(struct kp_edit *ed, const struct conversion *c,
				struct kp_span recipe, struct kpackx_error *why)
{
	const struct kp_host *host = &c->fat->host;
	uint64_t marker;

	KP_TRY(kp_edit_add_section(ed, KP_MARKER_SECTION, SHF_ALLOC, c->options->marker,
				   why));
	if (recipe.size)
		KP_TRY(kp_edit_add_section(ed, KP_LAYOUT_SECTION, 0, recipe, why));
	KP_TRY(kp_edit_place(ed, why));
	marker = ed->sections[kp_edit_find(ed, KP_MARKER_SECTION)].h.sh_addr;
	for (size_t i = 0; i < host->n_wrappers; i++)
		KP_TRY(point_wrapper(ed, &host->wrappers[i], KP_WRAPPER_HIPK, i, marker,
				     why));
	return KPACK_SUCCESS;
}

/* Plan what becomes of the fat file of ED, which was opened just now. */
static kpack_error_t plan_converted(struct kp_edit *ed, const struct conversion *c,
				    struct kp_span recipe, struct kpackx_error *why)
{
	size_t fatbin = kp_edit_find(ed, KP_FATBIN_SECTION);
	bool keep = c->options->keep_device_code;

	if (!keep) {
		KP_TRY(kp_dangling_check(ed, fatbin, &c->fat->host, why));
		KP_TRY(kp_edit_cut(ed, fatbin, why));
	}
	/* restoring a file can have added a table of program headers */
	if (!ed->whole)
		kp_edit_drop_table(ed);
	KP_TRY(add_marker(ed, c, recipe, why));
	if (ed->out_size > c->size && !keep)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "it would become longer: its device code has %" PRIu64
			       " bytes, which is less than what takes its place",
			       c->fat->host.fatbin.size);
	return KPACK_SUCCESS;
}

/*
 * Plan the file with a marker and the bytes RECIPE.  Never lengthen a file: if a fat one would be
 * longer without the section's place, because the program headers have to move, the place stays, for
 * what is added.
 */
static kpack_error_t plan_marked(const struct conversion *c, struct kp_span recipe,
				 struct kp_edit *ed, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_ERROR_NOT_IMPLEMENTED;
	const Elf64_Shdr *s;

	for (int whole = 0; whole < 2 && err == KPACK_ERROR_NOT_IMPLEMENTED &&
			    c->fat->kind != KP_FATBIN_CONVERTED;
	     whole++) {
		KP_TRY(kp_edit_open(c->fd, c->size, ed, why));
		ed->whole = whole;
		err = plan_converted(ed, c, recipe, why);
	}
	if (c->fat->kind != KP_FATBIN_CONVERTED)
		return err;
	KP_TRY(kp_edit_open(c->fd, c->size, ed, why));
	KP_TRY(kp_edit_drop_marker(ed, why));
	/* at the addresses of .hip_fatbin, other additions may need more or less of the file */
	s = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;
	for (size_t i = 0; !ed->whole && i < ed->n_chunks; i++)
		if (s->sh_type == SHT_NOBITS && ed->chunks[i].vaddr > s->sh_addr) {
			ed->chunks[i].page_before = true;
			kp_edit_mark_moves(ed, i);
			break;
		}
	if (recipe.size)
		kp_edit_drop_section(ed, KP_LAYOUT_SECTION);
	return add_marker(ed, c, recipe, why);
}

/* A plan for a file of either format. */
struct plan {
	struct kp_edit elf;
	struct kp_pe_edit pe;
};

static void plan_fini(struct plan *p)
{
	kp_edit_fini(&p->elf);
	kp_pe_edit_fini(&p->pe);
}

static kpack_error_t make_plan(const struct conversion *c, struct kp_span recipe,
			       struct plan *p, struct kpackx_error *why)
{
	return c->fat->host.pe ? kp_pe_plan_marked(c->fd, c->size, c->fat, c->options,
						   recipe, &p->pe, why)
			       : plan_marked(c, recipe, &p->elf, why);
}

/*
 * Write a file with a marker.  Its recipe says where it has what of its input: its size can change
 * the plan, and the plan the size.  So plan until it fits in what was planned; zeros follow it.
 */
static kpack_error_t write_marked(const struct conversion *c, struct kp_outfile *out,
				  struct kpackx_error *why)
{
	const struct kp_convert_options *o = c->options;
	static const uint8_t some[1];
	struct kp_span planned = {some, o->recipe ? 1 : 0}, recipe = {0};
	KP_AUTO_FREE uint8_t *bytes = NULL; /* the recipe in the file */
	KP_AUTO(plan) p = {0};
	KP_AUTO(kp_fatbin) fat = {0};
	bool pe = c->fat->host.pe;
	kpack_error_t err;

	KP_TRY(make_plan(c, planned, &p, why));
	for (unsigned tries = 0; o->recipe; tries++) {
		KP_AUTO_FREE struct kp_move *moves = NULL;
		size_t n;

		if (tries == 8)
			return refuse_file(why, "its recipe has another size for each "
						"plan");
		KP_TRY(pe ? kp_pe_edit_moves(&p.pe, &moves, &n, why)
			  : kp_edit_moves(&p.elf, &moves, &n, why));
		KP_TRY(o->recipe(o->recipe_arg, moves, n, &recipe, why));
		if (bytes && recipe.size <= planned.size) {
			/* the section that P borrows gets its contents only now */
			memcpy(bytes, recipe.data, recipe.size);
			break;
		}
		free(bytes);
		planned.size = recipe.size + 16 * tries;
		planned.data = bytes = calloc(1, planned.size);
		if (!bytes)
			return kp_fail_memory(why, planned.size, "a recipe");
		KP_TRY(make_plan(c, planned, &p, why));
	}
	KP_TRY(pe ? kp_pe_edit_write(&p.pe, out, why) : kp_edit_write(&p.elf, out, why));
	err = kp_fatbin_open(out->fd, pe ? p.pe.size : p.elf.out_size, &fat, why);
	if (!err)
		err = kp_fatbin_check_marker(&fat, why);
	return err ? kp_fail_prefix(why, err, "the converted file is wrong") : err;
}

kpack_error_t kp_convert_check(int fd, uint64_t size, const struct kp_fatbin *fat,
			       const struct kp_convert_options *options,
			       struct kpackx_error *why)
{
	static const uint8_t some[1];
	struct kp_convert_options o = *options;
	KP_AUTO(plan) p = {0};

	o.marker = (struct kp_span){some, 1};
	KP_TRY(check_kind(fat, why));
	return make_plan(&(struct conversion){fd, size, fat, &o},
			 (struct kp_span){some, 1}, &p, why);
}

kpack_error_t kp_convert(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_convert_options *options, struct kp_outfile *out,
			 struct kpackx_error *why)
{
	KP_TRY(check_kind(fat, why));
	return write_marked(&(struct conversion){fd, size, fat, options}, out, why);
}

kpack_error_t kp_convert_set(int fd, uint64_t size, const struct kp_fatbin *fat,
			     const struct kp_convert_options *options,
			     struct kp_outfile *out, struct kpackx_error *why)
{
	KP_TRY(kp_fatbin_check_marker(fat, why));
	return write_marked(&(struct conversion){fd, size, fat, options}, out, why);
}

/* ---- where a converted file's program headers are ---- */

kpack_error_t kp_convert_headers(int fd, uint64_t size, bool *program, bool *right,
				 struct kpackx_error *why)
{
	const Elf64_Phdr *first = NULL, *own = NULL, *load = NULL;
	KP_AUTO(kp_edit) ed = {0};
	uint64_t at, bytes;
	ptrdiff_t i;

	KP_TRY(kp_edit_open(fd, size, &ed, why));
	*program = false;
	for (size_t k = ed.n_segments; k-- > 0;) {
		const Elf64_Phdr *h = &ed.segments[k].h;

		*program |= h->p_type == PT_INTERP;
		first = h->p_type == PT_LOAD ? h : first;
		own = h->p_type == PT_PHDR ? h : own;
	}
	at = ed.h.e_phoff + first->p_vaddr - first->p_offset;
	bytes = ed.n_segments * sizeof(Elf64_Phdr);
	i = kp_edit_load_of(&ed, at, bytes);
	load = i < 0 ? NULL : &ed.segments[i].h;
	*right = load && (!own || own->p_vaddr == at) &&
		 load->p_vaddr - load->p_offset == first->p_vaddr - first->p_offset &&
		 kp_range_ok(load->p_filesz, at - load->p_vaddr, bytes);
	return KPACK_SUCCESS;
}

kpack_error_t kp_convert_normalise(int fd, uint64_t size, const struct kp_fatbin *fat,
				   struct kp_outfile *out, bool *changed,
				   struct kpackx_error *why)
{
	const struct kp_host_part *part = &fat->host.marker;
	struct kp_source section = kp_source_fd(fd, part->offset, part->size);
	struct kp_convert_options options = {0};
	KP_AUTO_FREE uint8_t *marker = NULL;
	bool program, right;

	KP_TRY(kp_fatbin_check_marker(fat, why));
	*changed = false;
	/* Windows's loader reads the headers of the file */
	if (fat->host.pe)
		return KPACK_SUCCESS;
	KP_TRY(kp_convert_headers(fd, size, &program, &right, why));
	*changed = !right;
	if (right)
		return KPACK_SUCCESS;
	if (part->size > KP_MARKER_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "marker: %" PRIu64 " bytes of at most %d", part->size,
			       KP_MARKER_MAX);
	KP_TRY(kp_source_load(&section, KP_MARKER_MAX, "a marker", &marker, why));
	options.marker = (struct kp_span){marker, (size_t)part->size};
	return kp_convert_set(fd, size, fat, &options, out, why);
}

/* ---- device code again, or less of it ---- */

/* Let the wrappers lead to their containers; in fat files their last word stays. */
static kpack_error_t point_to_containers(struct kp_edit *ed, const struct kp_fatbin *fat,
					 const struct kp_restore_options *options,
					 struct kpackx_error *why)
{
	const struct kp_host *host = &fat->host;
	const Elf64_Shdr *h = &ed->sections[kp_edit_find(ed, KP_FATBIN_SECTION)].h;

	for (size_t i = 0; i < host->n_wrappers; i++) {
		const struct kp_host_wrapper *w = &host->wrappers[i];
		uint64_t offset = options->offsets[i];

		if (offset >= h->sh_size)
			return kp_fail(
				why, KPACK_ERROR_INVALID_METADATA,
				"wrapper %zu: its container would begin at %" PRIu64
				" of %" PRIu64 " bytes",
				i, offset, h->sh_size);
		KP_TRY(point_wrapper(ed, w, KP_WRAPPER_HIPF,
				     fat->kind == KP_FATBIN_HOST ? w->fields.index : 0,
				     h->sh_addr + offset, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_restore(int fd, uint64_t size, const struct kp_fatbin *fat,
			 const struct kp_restore_options *options, struct kp_outfile *out,
			 struct kpackx_error *why)
{
	KP_AUTO(kp_pe_edit) pe = {0};
	KP_AUTO(kp_edit) ed = {0};
	size_t fatbin;
	Elf64_Shdr *s;

	KP_TRY(kp_fatbin_check_marker(fat, why));
	if (fat->host.pe) {
		KP_TRY(kp_pe_plan_fat(fd, size, fat, options, &pe, why));
		return kp_pe_edit_write(&pe, out, why);
	}
	KP_TRY(kp_edit_open(fd, size, &ed, why));
	kp_edit_drop_section(&ed, KP_LAYOUT_SECTION);
	KP_TRY(kp_edit_drop_marker(&ed, why));
	fatbin = kp_edit_find(&ed, KP_FATBIN_SECTION);
	s = &ed.sections[fatbin].h;
	if (!fatbin)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the section " KP_FATBIN_SECTION " is gone");
	/* our additions may have taken the addresses that the section had */
	if (s->sh_type == SHT_NOBITS && options->size > s->sh_size) {
		ptrdiff_t load = kp_edit_load_of(&ed, s->sh_addr, s->sh_size);
		size_t at = load < 0 ? 0 : (size_t)load;
		Elf64_Phdr *h = &ed.segments[at].h;
		bool inside = s->sh_addr - h->p_vaddr < h->p_filesz;
		/* as memory without bytes, it must end its segment, which can grow then */
		bool ends = s->sh_addr + s->sh_size == h->p_vaddr + h->p_memsz &&
			    (h->p_filesz || h->p_vaddr == s->sh_addr);
		uint64_t until = inside ? kp_edit_gap_end(&ed, at, s->sh_addr)
					: kp_edit_free_until(&ed, at);

		if (load < 0 || !(inside || ends) ||
		    !kp_range_ok(until, s->sh_addr, options->size))
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "elf: " KP_FATBIN_SECTION
				       " has no room for the %" PRIu64
				       " bytes that it had",
				       options->size);
		s->sh_size = options->size;
		if (!inside)
			h->p_memsz = s->sh_addr + s->sh_size - h->p_vaddr;
	}
	if (s->sh_type == SHT_NOBITS) /* else the device code was kept */
		KP_TRY(kp_edit_fill(&ed, fatbin, options->write, options->arg, why));
	KP_TRY(kp_edit_place(&ed, why));
	KP_TRY(point_to_containers(&ed, fat, options, why));
	return kp_edit_write(&ed, out, why);
}

/* Check the file of SIZE bytes that OUT has in the place of FAT. */
static kpack_error_t check_refilled(const struct kp_outfile *out, uint64_t size,
				    const struct kp_fatbin *fat, struct kpackx_error *why)
{
	KP_AUTO(kp_fatbin) new = {0};
	kpack_error_t err = kp_fatbin_open(out->fd, size, &new, why);

	if (!err &&
	    (new.kind != KP_FATBIN_HOST || new.host.n_wrappers != fat->host.n_wrappers))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "wrappers are missing");
	return err ? kp_fail_prefix(why, err, "the new file is wrong") : err;
}

static kpack_error_t refill_pe(int fd, uint64_t size, const struct kp_fatbin *fat,
			       const struct kp_restore_options *options,
			       struct kp_outfile *out, uint64_t *after,
			       struct kpackx_error *why)
{
	KP_AUTO(kp_pe_edit) ed = {0};

	if (options->size > fat->host.fatbin.size || options->size == 0)
		return refuse_file(why, "pe: " KP_PE_FATBIN " would not become smaller");
	KP_TRY(kp_pe_plan_fat(fd, size, fat, options, &ed, why));
	*after = ed.size;
	if (!out)
		return KPACK_SUCCESS;
	KP_TRY(kp_pe_edit_write(&ed, out, why));
	return check_refilled(out, ed.size, fat, why);
}

/* Refill the file of ED, which was opened just now. */
static kpack_error_t refill_opened(struct kp_edit *ed, const struct kp_fatbin *fat,
				   const struct kp_restore_options *options,
				   struct kp_outfile *out, uint64_t *after,
				   struct kpackx_error *why)
{
	size_t section = kp_edit_find(ed, KP_FATBIN_SECTION);
	Elf64_Shdr *s = &ed->sections[section].h;
	uint64_t end, memory;
	bool trims;
	Elf64_Phdr *h;

	if (options->size > s->sh_size || options->size == 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: " KP_FATBIN_SECTION " would not become smaller");
	KP_TRY(kp_dangling_check(ed, section, &fat->host, why));
	KP_TRY(kp_edit_cut(ed, section, why));
	s->sh_size = options->size;
	KP_TRY(kp_edit_fill(ed, section, options->write, options->arg, why));
	/*
	 * Give up the memory behind the section if nothing else has it.  In a writable segment it
	 * stays, because the loader changes its protection as a whole (PT_GNU_RELRO).
	 */
	h = &ed->segments[kp_edit_load_of(ed, s->sh_addr, s->sh_size)].h;
	end = s->sh_addr + s->sh_size;
	memory = h->p_vaddr + h->p_memsz;
	trims = !(h->p_flags & PF_W) && h->p_vaddr + h->p_filesz == end && memory > end;
	for (size_t i = 1; i < ed->n_sections; i++) {
		const Elf64_Shdr *other = &ed->sections[i].h;

		trims &= other == s || !(other->sh_flags & SHF_ALLOC) ||
			 other->sh_addr >= memory ||
			 other->sh_addr + other->sh_size <= end;
	}
	if (trims)
		h->p_memsz = h->p_filesz;
	ed->trimmed = trims;
	if (!ed->whole)
		kp_edit_drop_table(ed);
	KP_TRY(kp_edit_place(ed, why));
	if (ed->out_size > ed->size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: the file would become longer");
	KP_TRY(point_to_containers(ed, fat, options, why));
	*after = ed->out_size;
	if (!out)
		return KPACK_SUCCESS;
	KP_TRY(kp_edit_write(ed, out, why));
	return check_refilled(out, ed->out_size, fat, why);
}

kpack_error_t kp_refill(int fd, uint64_t size, const struct kp_fatbin *fat,
			const struct kp_restore_options *options, struct kp_outfile *out,
			uint64_t *after, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_ERROR_NOT_IMPLEMENTED;
	KP_AUTO(kp_edit) ed = {0};

	KP_TRY(check_kind(fat, why));
	if (fat->host.pe)
		return refill_pe(fd, size, fat, options, out, after, why);
	/* the second try keeps the place of the section, as plan_marked does */
	for (int whole = 0; whole < 2 && err == KPACK_ERROR_NOT_IMPLEMENTED; whole++) {
		KP_TRY(kp_edit_open(fd, size, &ed, why));
		ed.whole = whole;
		err = refill_opened(&ed, fat, options, out, after, why);
	}
	return err;
}
