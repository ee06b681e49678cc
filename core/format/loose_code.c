/* SPDX-License-Identifier: MIT */
/*
 * Wrappers show that a file has device code; where its containers are, only their magics
 * show, because the wrappers' pointers are seldom in the file (core/elf/relocate.c).
 * Programs without wrappers are not searched: the strings of compilers and of runtimes
 * have the magics, too.
 */
#include "loose_code.h"
#include <elf.h>
#include <stdlib.h>
#include "core/base/bounds.h"

/* Fields of a header in either class and byte order. */
struct reader {
	struct kp_window window;
	bool wide, big;
	uint16_t type;
	uint64_t phoff, shoff;
	unsigned phsize, phnum, shsize, shnum, names;
};

static uint64_t number(const struct reader *r, const uint8_t *p, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)p[r->big ? bytes - 1 - i : i] << 8 * i;
	return value;
}

#define FIELD(r, p, name, header)                                                        \
	((r)->wide ? number(r, (p) + offsetof(Elf64_##header, name),                     \
			    sizeof(((Elf64_##header *)0)->name))                         \
		   : number(r, (p) + offsetof(Elf32_##header, name),                     \
			    sizeof(((Elf32_##header *)0)->name)))
#define SIZE_OF(r, header) ((r)->wide ? sizeof(Elf64_##header) : sizeof(Elf32_##header))

bool kp_elf_any_probe(struct kp_span head, uint16_t *type, uint16_t *machine)
{
	struct reader r;

	if (head.size < 20 || memcmp(head.data, ELFMAG, SELFMAG) != 0 ||
	    (head.data[EI_CLASS] != ELFCLASS32 && head.data[EI_CLASS] != ELFCLASS64) ||
	    (head.data[EI_DATA] != ELFDATA2LSB && head.data[EI_DATA] != ELFDATA2MSB))
		return false;
	r.big = head.data[EI_DATA] == ELFDATA2MSB;
	*type = (uint16_t)number(&r, head.data + 16, 2);
	*machine = (uint16_t)number(&r, head.data + 18, 2);
	return true;
}

static kpack_error_t read_header(struct reader *r, const struct kp_source *src,
				 struct kpackx_error *why)
{
	uint16_t machine;
	struct kp_span head;

	kp_window_init(&r->window, src);
	KP_TRY(kp_window_get(&r->window, 0, sizeof(Elf32_Ehdr), &head.data, why));
	head.size = sizeof(Elf32_Ehdr);
	if (!kp_elf_any_probe(head, &r->type, &machine))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "not an ELF file");
	r->wide = head.data[EI_CLASS] == ELFCLASS64;
	r->big = head.data[EI_DATA] == ELFDATA2MSB;
	KP_TRY(kp_window_get(&r->window, 0, SIZE_OF(r, Ehdr), &head.data, why));
	r->phoff = FIELD(r, head.data, e_phoff, Ehdr);
	r->phsize = (unsigned)FIELD(r, head.data, e_phentsize, Ehdr);
	r->phnum = (unsigned)FIELD(r, head.data, e_phnum, Ehdr);
	r->shoff = FIELD(r, head.data, e_shoff, Ehdr);
	r->shsize = (unsigned)FIELD(r, head.data, e_shentsize, Ehdr);
	r->shnum = (unsigned)FIELD(r, head.data, e_shnum, Ehdr);
	r->names = (unsigned)FIELD(r, head.data, e_shstrndx, Ehdr);
	return KPACK_SUCCESS;
}

/* --- sections -------------------------------------------------------------------------- */

static bool get_section(struct reader *r, unsigned i, struct kp_section *s,
			uint64_t *name)
{
	const uint8_t *p;

	if (r->shsize != SIZE_OF(r, Shdr) || r->shoff > r->window.src.size ||
	    kp_window_get(&r->window, r->shoff + (uint64_t)i * r->shsize, r->shsize, &p,
			  NULL))
		return false;
	*name = FIELD(r, p, sh_name, Shdr);
	*s = (struct kp_section){.type = (uint32_t)FIELD(r, p, sh_type, Shdr),
				 .flags = FIELD(r, p, sh_flags, Shdr),
				 .offset = FIELD(r, p, sh_offset, Shdr),
				 .size = FIELD(r, p, sh_size, Shdr)};
	return true;
}

kpack_error_t kp_loose_sections(const struct kp_source *src, kp_loose_section *fn,
				void *arg, struct kpackx_error *why)
{
	char text[KP_LOOSE_NAME_MAX + 1];
	struct kp_section s, names;
	uint64_t name, ignored;
	struct kp_source part;
	struct kp_span head;
	struct reader r;

	KP_TRY(read_header(&r, src, why));
	if (!r.shoff || !get_section(&r, r.names, &names, &ignored))
		return KPACK_SUCCESS;
	for (unsigned i = 1; i < r.shnum && get_section(&r, i, &s, &name); i++) {
		if (s.type == SHT_NOBITS || s.type == SHT_NULL || name >= names.size ||
		    !kp_source_sub(src, names.offset, names.size, &part) ||
		    !kp_range_ok(src->size, s.offset, s.size) ||
		    kp_source_head(&part, name, (uint8_t *)text, sizeof(text) - 1, &head,
				   NULL))
			continue;
		text[head.size] = '\0';
		s.name = text;
		KP_TRY(fn(arg, &s, why));
	}
	return KPACK_SUCCESS;
}

/* --- segments -------------------------------------------------------------------------- */

struct load {
	uint64_t vaddr, offset, size;
	bool writable;
};

struct loads {
	struct load items[KP_SEGMENTS_MAX];
	unsigned n;
	bool cut;   /* the file ends before a segment does */
	bool found; /* a wrapper */
};

/*
 * Of a segment only the part in the file counts, and of overlapping segments no more than the
 * file has.
 */
static void read_loads(struct reader *r, struct loads *loads)
{
	uint64_t all = r->window.src.size, sum = 0;
	const uint8_t *p;

	for (unsigned i = 0; i < r->phnum && i < KP_SEGMENTS_MAX; i++) {
		struct load *l = &loads->items[loads->n];

		if (r->phsize != SIZE_OF(r, Phdr) || r->phoff > r->window.src.size ||
		    kp_window_get(&r->window, r->phoff + (uint64_t)i * r->phsize,
				  r->phsize, &p, NULL))
			return;
		*l = (struct load){.vaddr = FIELD(r, p, p_vaddr, Phdr),
				   .offset = FIELD(r, p, p_offset, Phdr),
				   .size = FIELD(r, p, p_filesz, Phdr),
				   .writable = FIELD(r, p, p_flags, Phdr) & PF_W};
		if (FIELD(r, p, p_type, Phdr) != PT_LOAD)
			continue;
		loads->cut |= !kp_range_ok(all, l->offset, l->size);
		if (l->offset >= all)
			continue;
		if (l->size > all - l->offset)
			l->size = all - l->offset;
		if (l->size > all - sum)
			l->size = all - sum;
		sum += l->size;
		loads->n++;
	}
}

/* Magics of HIP's and of CUDA's wrappers. */
enum { HIPF = 0x48495046, CUDA = 0x466243b1 };

/* Whether a wrapper is at P: magic, version, pointer, and a word that HIP leaves zero. */
static bool is_wrapper(const struct reader *r, const struct loads *loads,
		       const uint8_t *p)
{
	unsigned word = r->wide ? 8 : 4;
	uint64_t magic = number(r, p, 4), version = number(r, p + 4, 4),
		 pointer = number(r, p + 8, word), rest = number(r, p + 8 + word, word);

	if (!(magic == HIPF && version == 1 && rest == 0) &&
	    !(magic == CUDA && (version == 1 || version == 2)))
		return false;
	for (unsigned i = 0; i < loads->n && pointer; i++)
		if (pointer - loads->items[i].vaddr < loads->items[i].size)
			return true;
	return pointer == 0; /* only the relocation has it */
}

/*
 * Of what is loaded at any address the pointers are relocated, and therefore in writable
 * segments.
 */
static kpack_error_t find_wrapper(struct reader *r, struct loads *loads,
				  struct kpackx_error *why)
{
	unsigned word = r->wide ? 8 : 4, size = 8 + 2 * word;
	const uint8_t *p;

	for (unsigned i = 0; i < loads->n; i++) {
		const struct load *l = &loads->items[i];

		if (r->type == ET_DYN && !l->writable)
			continue;
		for (uint64_t at = -l->vaddr & (word - 1);
		     !loads->found && kp_range_ok(l->size, at, size); at += word) {
			KP_TRY(kp_window_get(&r->window, l->offset + at, size, &p, why));
			loads->found = (p[0] == (r->big ? HIPF >> 24 : HIPF & 0xff) ||
					p[0] == (r->big ? CUDA >> 24 : CUDA & 0xff)) &&
				       is_wrapper(r, loads, p);
		}
	}
	return KPACK_SUCCESS;
}

/* --- containers ------------------------------------------------------------------------ */

/* Compilers align containers to 8 bytes at least. */
enum { ALIGN = 8 };

/*
 * Magics without a container behind them that end the search: each costs a look at up to
 * some 100 KiB.
 */
enum { FALSE_MAX = 64 };

static const struct kp_format *format_at(struct kp_window *w, uint64_t at,
					 const uint8_t **p, struct kpackx_error *why,
					 kpack_error_t *err)
{
	static const struct kp_format *const formats[] = {
		&kp_format_bundle, &kp_format_ccob, &kp_format_code_object,
		&kp_format_fatbin};
	struct kp_span head = {.size = 64};

	*err = KPACK_SUCCESS;
	if (w->src.size - at < head.size)
		return NULL;
	*err = kp_window_get(w, at, head.size, &head.data, why);
	*p = head.data;
	for (size_t i = 0; i < KP_COUNT(formats) && !*err; i++)
		if (formats[i]->probe(head))
			return formats[i];
	return NULL;
}

/*
 * Whether what begins like FORMAT at P, of which 64 bytes are there, is no text with the magic,
 * but a damaged container: it states a possible number of entries, or version and method.
 */
static bool is_meant(const struct kp_format *format, const uint8_t *p)
{
	uint64_t n = kp_le64(p + 24);

	if (format == &kp_format_bundle)
		return n > 0 && n <= KP_BUNDLE_ENTRIES_MAX;
	return format == &kp_format_ccob ? kp_le16(p + 4) - 1u < 3 && kp_le16(p + 6) < 2
					 : false;
}

/*
 * Append the containers of segment L.  A damaged one is an image up to the segment's end.
 * FALSE counts magics that are text.
 */
static kpack_error_t find_containers(struct reader *r, const struct load *l,
				     struct kp_container *c, struct kp_containers *list,
				     unsigned *n_false, struct kpackx_error *why)
{
	const struct kp_source *src = &r->window.src;
	uint64_t end = l->offset + l->size, size, step;
	kpack_error_t err = KPACK_SUCCESS;

	for (uint64_t at = (l->offset + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	     at < end && !err && *n_false < FALSE_MAX; at += step) {
		const uint8_t *p;
		const struct kp_format *format = format_at(&r->window, at, &p, why, &err);
		struct kp_containers one = {0};

		step = ALIGN;
		if (!format)
			continue;
		size = end - at;
		if (!kp_containers_add(src, at, format, KP_NOWHERE, &one, why))
			size = one.items[0].size;
		else if (!is_meant(format, p))
			size = 0;
		kp_containers_fini(&one);
		*n_false += !size;
		if (!size)
			continue;
		step = (size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
		err = kp_containers_add_image(list, c, kp_span_str(KP_NO_SECTION), at,
					      size, why);
		if (!err)
			list->images[list->n_images - 1].stream = true;
	}
	return err;
}

/* Read the segments of SRC; the caller frees them. */
static kpack_error_t open_loads(struct reader *r, const struct kp_source *src,
				struct loads **loads, struct kpackx_error *why)
{
	*loads = calloc(1, sizeof(**loads));
	if (!*loads)
		return kp_fail_memory(why, sizeof(**loads), "segments");
	KP_TRY(read_header(r, src, why));
	if (r->type != ET_DYN && r->type != ET_EXEC)
		return KPACK_SUCCESS;
	read_loads(r, *loads);
	return find_wrapper(r, *loads, why);
}

bool kp_loose_wrapper(const struct kp_source *src)
{
	struct loads *loads;
	struct reader r;
	bool found = !open_loads(&r, src, &loads, NULL) && loads->found;

	free(loads);
	return found;
}

kpack_error_t kp_loose_code_find(const struct kp_source *src, enum kp_loose_rest rest,
				 struct kp_container *c, struct kp_containers *list,
				 struct kpackx_error *why)
{
	unsigned n_false = 0;
	struct loads *loads;
	struct reader r;
	kpack_error_t err = open_loads(&r, src, &loads, why);
	bool search = !err && (loads->found || (loads->cut && rest == KP_LOOSE_UNREAD));

	for (unsigned i = 0; search && i < loads->n && !err; i++)
		err = find_containers(&r, &loads->items[i], c, list, &n_false, why);
	if (!err && loads->found && rest != KP_LOOSE_ELSEWHERE && !c->n_images)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "it has wrappers of device code, but no container of it");
	free(loads);
	return err;
}
