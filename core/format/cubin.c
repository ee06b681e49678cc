/* SPDX-License-Identifier: MIT */
/*
 * CUDA binary: an ELF64 whose machine is 190, of one of two ABIs, by EI_ABIVERSION:
 *
 *                      7 (CUDA <= 12)      8 (CUDA 13)
 *   SM number          e_flags 0..7        e_flags 8..15
 *   virtual SM         e_flags 16..23      .note.nv.cuinfo
 *   sm_NNa             e_flags 0x800       command line in .note.nv.tkinfo, .nv.compat
 *   toolkit            e_version           .note.nv.cuinfo
 *
 * CUDA 13 states sm_NNf only in the command line.
 */
#include "cubin.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OLD_ABI 7
#define NEW_ABI 8
#define OLD_ACCELERATED 0x800

#define NOTE_CUINFO 1000
#define NOTE_TKINFO 2000

static bool probe_cubin(struct kp_span head)
{
	uint16_t machine;

	return kp_elf_probe(head, &machine) && machine == EM_CUDA;
}

/*
 * True for the old ABI; an unknown ABI is old if a GPU's number is where the old ABI has
 * it.
 */
static bool is_old(const Elf64_Ehdr *h)
{
	unsigned low = h->e_flags & 0xff;

	if (h->e_ident[EI_ABIVERSION] == OLD_ABI)
		return true;
	return h->e_ident[EI_ABIVERSION] != NEW_ABI && low >= 20 && low <= 90;
}

static kpack_error_t open_cubin(const struct kp_source *src, struct kp_cubin *out,
				struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &out->sections.header;

	*out = (struct kp_cubin){.src = *src};
	KP_TRY(kp_sections_read(src, &out->sections, why));
	out->old = is_old(h);
	out->sm = out->old ? h->e_flags & 0xff : h->e_flags >> 8 & 0xff;
	return KPACK_SUCCESS;
}

/* --- notes ------------------------------------------------------------------------ */

/* Contents of the notes; the spans point into the windows. */
struct notes {
	struct kp_window tools, cuda;
	struct kp_span tool, version, options; /* .note.nv.tkinfo; data NULL: none */
	struct kp_span info;                   /* .note.nv.cuinfo: an array of u16 */
};

/* Return the beginning of a section, as much of it as a window holds. */
static struct kp_span section_head(struct kp_window *w, const struct kp_cubin *cubin,
				   const char *name)
{
	const struct kp_section *s = kp_sections_find(&cubin->sections, name);
	struct kpackx_error ignored;
	struct kp_span head = {NULL, 0};

	kp_window_init(w, &cubin->src);
	if (!s || s->type == SHT_NOBITS)
		return head;
	head.size = s->size < sizeof(w->buf) ? (size_t)s->size : sizeof(w->buf);
	if (kp_window_get(w, s->offset, head.size, &head.data, &ignored))
		head = (struct kp_span){NULL, 0};
	return head;
}

/*
 * Return the contents of SECTION's first note, if its type is TYPE; nvlink appends its
 * inputs' notes.
 */
static struct kp_span first_note(struct kp_span section, uint32_t type)
{
	struct kp_span desc = {NULL, 0};
	uint64_t name;

	if (section.size < 12 || kp_le32(section.data + 8) != type)
		return desc;
	name = ((uint64_t)kp_le32(section.data) + 3) & ~UINT64_C(3);
	kp_span_sub(section, 12 + name, kp_le32(section.data + 4), &desc);
	return desc;
}

/* Return string NUMBER of a tkinfo note: u32 2, u32 offsets[5], strings. */
static struct kp_span tool_string(struct kp_span desc, unsigned number)
{
	struct kp_span strings, none = {NULL, 0}, s;
	const uint8_t *end;

	if (!kp_span_sub(desc, 24, desc.size - 24, &strings) ||
	    !kp_span_sub(strings, kp_le32(desc.data + 4 + 4 * number), 0, &s))
		return none;
	s.size = strings.size - (size_t)(s.data - strings.data);
	end = s.size ? memchr(s.data, '\0', s.size) : NULL;
	if (!end)
		return none;
	s.size = (size_t)(end - s.data);
	while (s.size && s.data[s.size - 1] == ' ')
		s.size--;
	return s;
}

static void read_notes(const struct kp_cubin *cubin, struct notes *out)
{
	struct kp_span tools = first_note(
		section_head(&out->tools, cubin, ".note.nv.tkinfo"), NOTE_TKINFO);

	out->tool = tool_string(tools, 1);
	out->version = tool_string(tools, 2);
	out->options = tool_string(tools, 4);
	out->info = first_note(section_head(&out->cuda, cubin, ".note.nv.cuinfo"),
			       NOTE_CUINFO);
	if (out->info.size < 6)
		out->info.size = 0;
}

/* --- target ----------------------------------------------------------------------- */

static bool in_name(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_';
}

/*
 * Return the letter after "sm_NN" in a command line, NN being SM; "": none, or no such
 * word.
 */
static const char *variant_in(struct kp_span text, unsigned sm)
{
	char word[16];
	size_t n = (size_t)snprintf(word, sizeof(word), "sm_%u", sm);

	for (size_t i = 0; i + n < text.size; i++) {
		const uint8_t *p = text.data + i;

		if (memcmp(p, word, n) != 0 || (i > 0 && in_name(p[-1])) ||
		    (i + n + 1 < text.size && in_name(p[n + 1])))
			continue;
		if (p[n] == 'a' || p[n] == 'f')
			return p[n] == 'a' ? "a" : "f";
	}
	return "";
}

/* .nv.compat begins with 02 09 VV 00, where VV is 1 only for sm_NNa. */
static bool compat_specific(const struct kp_cubin *cubin)
{
	struct kp_window w;
	struct kp_span head = section_head(&w, cubin, ".nv.compat");

	return head.size >= 4 && head.data[0] == 2 && head.data[1] == 9 &&
	       head.data[2] == 1;
}

static void set_arch(const struct kp_cubin *cubin, const struct notes *notes,
		     char arch[KP_TARGET_TEXT_MAX])
{
	const char *variant = "";

	if (!cubin->sm)
		return;
	if (cubin->old)
		variant = cubin->sections.header.e_flags & OLD_ACCELERATED ? "a" : "";
	else
		variant = variant_in(notes->options, cubin->sm);
	if (!cubin->old && !*variant && compat_specific(cubin))
		variant = "a";
	snprintf(arch, KP_TARGET_TEXT_MAX, "sm_%u%s", cubin->sm, variant);
}

static kpack_error_t parse_cubin(const struct kp_source *src, uint64_t off,
				 struct kp_container *c, struct kp_containers *list,
				 struct kpackx_error *why)
{
	struct kp_span none = {NULL, 0};
	struct kpackx_error ignored;
	struct kp_cubin cubin;
	struct notes notes;
	struct kp_source rest;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_elf_extent(&rest, &c->size, why));
	c->payload_size = c->size;
	kp_source_sub(&rest, 0, c->size, &rest);
	KP_TRY(kp_containers_add_image(list, c, none, 0, c->size, why));
	snprintf(list->images[list->n_images - 1].kind, 16, "cuda");
	if (open_cubin(&rest, &cubin, &ignored))
		return KPACK_SUCCESS;
	read_notes(&cubin, &notes);
	set_arch(&cubin, &notes, list->images[list->n_images - 1].arch);
	kp_sections_fini(&cubin.sections);
	return KPACK_SUCCESS;
}

/* --- description ------------------------------------------------------------------ */

/* Return the toolkit's version, 130 for 13.0; 0: unknown. */
static unsigned toolkit(const struct kp_cubin *cubin, const struct notes *notes)
{
	if (notes->info.size)
		return kp_le16(notes->info.data + 4);
	return cubin->old && cubin->sections.header.e_version > 1
		       ? cubin->sections.header.e_version
		       : 0;
}

static unsigned virtual_arch(const struct kp_cubin *cubin, const struct notes *notes)
{
	if (notes->info.size)
		return kp_le16(notes->info.data + 2);
	return cubin->old ? cubin->sections.header.e_flags >> 16 & 0xff : 0;
}

static kpack_error_t add_text(struct kp_pairs *facts, const char *name,
			      struct kp_span text, struct kpackx_error *why)
{
	return text.size ? kp_pairs_add(facts, kp_span_str(name), text, why)
			 : KPACK_SUCCESS;
}

static kpack_error_t add_facts(const struct kp_cubin *cubin, const struct notes *notes,
			       struct kp_pairs *facts, struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &cubin->sections.header;
	unsigned number;

	KP_TRY(kp_pairs_print(facts, why, "abi", "%u", h->e_ident[EI_ABIVERSION]));
	if (h->e_type == ET_REL)
		KP_TRY(kp_pairs_print(facts, why, "linked", "no"));
	number = virtual_arch(cubin, notes);
	if (number)
		KP_TRY(kp_pairs_print(facts, why, "virtual arch", "compute_%u", number));
	number = toolkit(cubin, notes);
	if (number)
		KP_TRY(kp_pairs_print(facts, why, "toolkit", "%u.%u", number / 10,
				      number % 10));
	KP_TRY(add_text(facts, "tool", notes->tool, why));
	KP_TRY(add_text(facts, "tool version", notes->version, why));
	return add_text(facts, "options", notes->options, why);
}

static kpack_error_t describe_cubin(const struct kp_source *src, struct kp_object *out,
				    struct kpackx_error *why)
{
	struct kp_cubin cubin;
	struct notes notes;
	kpack_error_t err;

	KP_TRY(open_cubin(src, &cubin, why));
	read_notes(&cubin, &notes);
	set_arch(&cubin, &notes, out->arch);
	err = add_facts(&cubin, &notes, &out->facts, why);
	if (!err)
		err = kp_cubin_kernels(&cubin, out, why);
	kp_sections_fini(&cubin.sections);
	return err;
}

const struct kp_format kp_format_cubin = {
	.name = "cubin",
	.type = "cubin",
	.probe = probe_cubin,
	.parse = parse_cubin,
	.describe = describe_cubin,
};
