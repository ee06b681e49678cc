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
 * CUDA 13 states sm_NNf only in the command line.  Kernels are functions whose st_other
 * marks them as entries or, in a cubin without .nv.info, all functions that are not local.
 */
#include <inttypes.h>
#include <stdio.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "format.h"
#include "sections.h"

#define OLD_ABI 7
#define NEW_ABI 8
#define OLD_ACCELERATED 0x800

#define NOTE_CUINFO 1000
#define NOTE_TKINFO 2000

#define STO_ENTRY 0x10

struct cubin {
	struct kp_source src; /* the cubin and nothing else */
	struct kp_sections sections;
	bool old; /* e_flags as written by CUDA up to 12 */
	unsigned sm;
	/* Contents of the notes; the spans point into the windows. */
	struct kp_window tools, cuda;
	struct kp_span tool, version, options; /* .note.nv.tkinfo; data NULL: none */
	struct kp_span info; /* .note.nv.cuinfo: at least three u16; size 0: none */
};

static bool probe_cubin(struct kp_span head)
{
	uint16_t machine;

	return kp_elf_probe(head, &machine) && machine == EM_CUDA;
}

/* ---- notes ---- */

/* The beginning of a section, as much of it as a window holds. */
static struct kp_span section_head(struct kp_window *w, const struct cubin *cubin,
				   const char *name)
{
	const struct kp_section *s = kp_sections_find(&cubin->sections, name);
	struct kp_span head = {NULL, 0};

	kp_window_init(w, &cubin->src);
	if (!s || s->type == SHT_NOBITS)
		return head;
	head.size = s->size < sizeof(w->buf) ? (size_t)s->size : sizeof(w->buf);
	return kp_window_get(w, s->offset, head.size, &head.data, NULL)
		       ? (struct kp_span){NULL, 0}
		       : head;
}

/*
 * The contents of the first note in section NAME, if its type is TYPE; nvlink appends its
 * inputs' notes.
 */
static struct kp_span first_note(struct kp_window *w, const struct cubin *cubin,
				 const char *name, uint32_t type)
{
	struct kp_span section = section_head(w, cubin, name), desc = {NULL, 0};

	if (section.size >= 12 && kp_le32(section.data + 8) == type)
		kp_span_sub(section,
			    12 + (((uint64_t)kp_le32(section.data) + 3) & ~UINT64_C(3)),
			    kp_le32(section.data + 4), &desc);
	return desc;
}

/* String NUMBER of a tkinfo note: u32 2, u32 offsets[5], strings. */
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

static kpack_error_t open_cubin(const struct kp_source *src, struct cubin *out,
				struct kpackx_error *why)
{
	const Elf64_Ehdr *h = &out->sections.header;
	struct kp_span tools;
	unsigned low;

	out->src = *src;
	KP_TRY(kp_sections_read(src, &out->sections, why));
	low = h->e_flags & 0xff;
	/* an unknown ABI is old if a GPU's number is where the old ABI has it */
	out->old = h->e_ident[EI_ABIVERSION] == OLD_ABI ||
		   (h->e_ident[EI_ABIVERSION] != NEW_ABI && low >= 20 && low <= 90);
	out->sm = out->old ? low : h->e_flags >> 8 & 0xff;
	tools = first_note(&out->tools, out, ".note.nv.tkinfo", NOTE_TKINFO);
	out->tool = tool_string(tools, 1);
	out->version = tool_string(tools, 2);
	out->options = tool_string(tools, 4);
	out->info = first_note(&out->cuda, out, ".note.nv.cuinfo", NOTE_CUINFO);
	if (out->info.size < 6)
		out->info.size = 0;
	return KPACK_SUCCESS;
}

static void cubin_fini(struct cubin *cubin)
{
	kp_sections_fini(&cubin->sections);
}

/* ---- target ---- */

static void set_arch(const struct cubin *cubin, char arch[KP_TARGET_TEXT_MAX])
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	struct kp_span text = cubin->options, compat;
	const char *variant = "";
	struct kp_window w;
	char name[16];

	if (!cubin->sm)
		return;
	/* the letter after "sm_NN" in the command line */
	snprintf(name, sizeof(name), "sm_%u", cubin->sm);
	while (!cubin->old && text.size && !*variant) {
		struct kp_span word = text;

		word.size = 0;
		while (word.size < text.size && text.data[word.size] &&
		       strchr(letters, text.data[word.size]))
			word.size++;
		text = kp_span_tail(text, word.size + (word.size < text.size));
		if (kp_span_take(&word, name) && kp_span_is_one_of(word, "a f"))
			variant = word.data[0] == 'a' ? "a" : "f";
	}
	if (cubin->old) {
		variant = cubin->sections.header.e_flags & OLD_ACCELERATED ? "a" : "";
	} else if (!*variant) {
		/* .nv.compat begins with 02 09 VV 00, where VV is 1 only for sm_NNa */
		compat = section_head(&w, cubin, ".nv.compat");
		if (compat.size >= 4 && memcmp(compat.data, "\x02\x09\x01", 3) == 0)
			variant = "a";
	}
	snprintf(arch, KP_TARGET_TEXT_MAX, "sm_%u%s", cubin->sm, variant);
}

static kpack_error_t parse_cubin(const struct kp_source *src, struct kp_container *c,
				 struct kp_containers *list, struct kpackx_error *why)
{
	KP_AUTO(cubin) cubin = {.sm = 0};
	struct kp_image *image;
	struct kp_source own;
	uint64_t size;

	KP_TRY(kp_elf_extent(src, &size, why));
	KP_TRY(kp_containers_add_object(list, c, size, &image, why));
	snprintf(image->kind, sizeof(image->kind), "cuda");
	kp_source_sub(src, 0, size, &own);
	if (!open_cubin(&own, &cubin, NULL))
		set_arch(&cubin, image->arch);
	return KPACK_SUCCESS;
}

/* ---- description ---- */

/* For the walk through the symbols. */
struct kernels {
	bool marked;     /* st_other marks them */
	uint64_t copied; /* bytes of names, so far */
	struct kp_object *out;
};

static kpack_error_t visit_symbol(void *arg, const uint8_t *symbol, const char *name,
				  uint64_t names_size, struct kpackx_error *why)
{
	uint8_t info = symbol[offsetof(Elf64_Sym, st_info)];
	struct kernels *k = arg;
	struct kp_kernel *kernel;

	if (ELF64_ST_TYPE(info) != STT_FUNC ||
	    kp_le16(symbol + offsetof(Elf64_Sym, st_shndx)) == SHN_UNDEF ||
	    !(k->marked ? symbol[offsetof(Elf64_Sym, st_other)] & STO_ENTRY
			: ELF64_ST_BIND(info) != STB_LOCAL))
		return KPACK_SUCCESS;
	if (!name)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the name of a kernel is outside of the names, %" PRIu64
			       " bytes",
			       names_size);
	k->copied += strlen(name);
	if (k->copied > 4 * names_size)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"names of kernels have more bytes than all names, %" PRIu64,
			names_size);
	return kp_object_add_kernel(k->out, kp_span_str(name), &kernel, why);
}

static kpack_error_t describe_cubin(const struct kp_source *src, struct kp_object *out,
				    struct kpackx_error *why)
{
	unsigned virtual_sm = 0, toolkit = 0; /* 130 is 13.0; 0: not stated */
	struct kernels k = {.out = out};
	struct kp_pairs *facts = &out->facts;
	const struct kp_section *symbols;
	KP_AUTO(cubin) cubin = {.sm = 0};
	const Elf64_Ehdr *h = &cubin.sections.header;
	const struct {
		const char *name;
		const struct kp_span *text;
	} texts[] = {{"tool", &cubin.tool},
		     {"tool version", &cubin.version},
		     {"options", &cubin.options}};

	KP_TRY(open_cubin(src, &cubin, why));
	set_arch(&cubin, out->arch);
	if (cubin.info.size) {
		virtual_sm = kp_le16(cubin.info.data + 2);
		toolkit = kp_le16(cubin.info.data + 4);
	} else if (cubin.old) {
		virtual_sm = h->e_flags >> 16 & 0xff;
		toolkit = h->e_version > 1 ? h->e_version : 0;
	}
	KP_TRY(kp_pairs_print(facts, why, "abi", "%u", h->e_ident[EI_ABIVERSION]));
	if (h->e_type == ET_REL)
		KP_TRY(kp_pairs_print(facts, why, "linked", "no"));
	if (virtual_sm)
		KP_TRY(kp_pairs_print(facts, why, "virtual arch", "compute_%u",
				      virtual_sm));
	if (toolkit)
		KP_TRY(kp_pairs_print(facts, why, "toolkit", "%u.%u", toolkit / 10,
				      toolkit % 10));
	for (size_t i = 0; i < KP_COUNT(texts); i++)
		if (texts[i].text->size)
			KP_TRY(kp_pairs_add(facts, kp_span_str(texts[i].name),
					    *texts[i].text, why));
	k.marked = kp_sections_find(&cubin.sections, ".nv.info") != NULL;
	symbols = kp_sections_first(&cubin.sections, SHT_SYMTAB);
	return symbols ? kp_symbols_each(src, &cubin.sections, symbols, visit_symbol, &k,
					 why)
		       : KPACK_SUCCESS;
}

const struct kp_format kp_format_cubin = {
	.name = "cubin",
	.type = "cubin",
	.probe = probe_cubin,
	.parse = parse_cubin,
	.describe = describe_cubin,
};
