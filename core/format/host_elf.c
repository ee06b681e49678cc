/* SPDX-License-Identifier: MIT */
/*
 * Host ELF: objects, programs and shared libraries with device code in their sections.
 * Its images are sections: HIP's and CUDA's fat binaries, offload binaries (recognised by
 * the section's type, with any name), and the sections that clang-offload-bundler adds to
 * objects, one for each entry.
 *
 * Of a linked file whose sections name no device code - of another class or byte order,
 * or without a readable table - the segments are searched.  Wrappers show that there is
 * device code; where its containers are, only their magics show, because the wrappers'
 * pointers are seldom in the file (core/host/host_file.c).  Programs without wrappers are
 * not searched: the strings of compilers and of runtimes have the magics, too.
 */
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "format.h"
#include "sections.h"

/* SHT_LLVM_OFFLOADING */
#define TYPE_OFFLOADING 0x6fff4c0b

static const char entry_prefix[] = "__CLANG_OFFLOAD_BUNDLE__";

/* Append section S as an image, if it holds device code or a bundle's host entry. */
static kpack_error_t add_section(const struct kp_section *s, struct kp_container *c,
				 struct kp_containers *list, struct kpackx_error *why)
{
	/* sections that hold containers one after another; "": of any kind */
	static const struct {
		const char *name, *kind;
	} streams[] = {
		{".hip_fatbin", "hip"},
		{".nv_fatbin", "cuda"},
		{"__nv_relfatbin", "cuda"},
	};
	bool entry = strncmp(s->name, entry_prefix, strlen(entry_prefix)) == 0;
	const char *kind = s->type == TYPE_OFFLOADING ? "" : NULL;
	struct kp_image *image;

	for (size_t i = 0; i < KP_COUNT(streams); i++)
		if (strcmp(s->name, streams[i].name) == 0)
			kind = streams[i].kind;
	if ((!kind && !entry) || s->type == SHT_NULL || s->type == SHT_NOBITS ||
	    s->size == 0)
		return KPACK_SUCCESS;
	if (strnlen(s->name, KP_ENTRY_ID_MAX + 1) > KP_ENTRY_ID_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a section of device code has a name of more than %d "
			       "bytes",
			       KP_ENTRY_ID_MAX);
	if (!kind)
		return kp_containers_add_image(
			list, c, kp_span_str(s->name + strlen(entry_prefix)), s->offset,
			s->size, why);
	KP_TRY(kp_containers_add_named(list, c, kp_span_str(s->name), s->offset, s->size,
				       &image, why));
	image->stream = true;
	memcpy(image->kind, kind, strlen(kind) + 1);
	return KPACK_SUCCESS;
}

/* ---- headers of either class and byte order ---- */

struct loose {
	struct kp_window window;
	bool wide, big;
	uint16_t type;
	uint64_t phoff, shoff;
	unsigned phsize, phnum, shsize, shnum, names;
};

#define FIELD(r, p, name, header)                                                        \
	((r)->wide ? kp_number((p) + offsetof(Elf64_##header, name),                     \
			       sizeof(((Elf64_##header *)0)->name), (r)->big)            \
		   : kp_number((p) + offsetof(Elf32_##header, name),                     \
			       sizeof(((Elf32_##header *)0)->name), (r)->big))
#define SIZE_OF(r, header) ((r)->wide ? sizeof(Elf64_##header) : sizeof(Elf32_##header))

bool kp_elf_any_probe(struct kp_span head, uint16_t *type, uint16_t *machine)
{
	bool big;

	if (head.size < 20 || memcmp(head.data, ELFMAG, SELFMAG) != 0 ||
	    (head.data[EI_CLASS] != ELFCLASS32 && head.data[EI_CLASS] != ELFCLASS64) ||
	    (head.data[EI_DATA] != ELFDATA2LSB && head.data[EI_DATA] != ELFDATA2MSB))
		return false;
	big = head.data[EI_DATA] == ELFDATA2MSB;
	*type = (uint16_t)kp_number(head.data + 16, 2, big);
	*machine = (uint16_t)kp_number(head.data + 18, 2, big);
	return true;
}

static bool probe_host_elf(struct kp_span head)
{
	uint16_t type, machine;

	return kp_elf_any_probe(head, &type, &machine) && machine != EM_AMDGPU &&
	       machine != EM_CUDA;
}

static kpack_error_t open_loose(struct loose *r, const struct kp_source *src,
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

static bool get_loose_section(struct loose *r, unsigned i, struct kp_section *s,
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

/* ---- segments ---- */

struct segments {
	struct loose r;
	struct segment {
		uint64_t vaddr, offset, size;
		bool writable;
	} items[KP_SEGMENTS_MAX];
	unsigned n;
	bool cut;     /* the file ends before a segment does */
	bool wrapper; /* one was found */
};

/* Magics of HIP's and of CUDA's wrappers. */
enum { HIPF = 0x48495046, CUDA = 0x466243b1 };

/*
 * Whether a wrapper is at P: u32 magic, u32 version, a pointer to the container, and a word that
 * HIP leaves zero.  The words have the size of the class.  A pointer that is zero or leads
 * into a segment is possible; the magic alone also occurs in code that compares with it.
 */
static bool is_wrapper(const struct segments *all, const uint8_t *p)
{
	unsigned word = all->r.wide ? 8 : 4;
	bool big = all->r.big;
	uint64_t magic = kp_number(p, 4, big), version = kp_number(p + 4, 4, big),
		 pointer = kp_number(p + 8, word, big),
		 rest = kp_number(p + 8 + word, word, big);

	if (!(magic == HIPF && version == 1 && rest == 0) &&
	    !(magic == CUDA && (version == 1 || version == 2)))
		return false;
	for (unsigned i = 0; i < all->n && pointer; i++)
		if (pointer - all->items[i].vaddr < all->items[i].size)
			return true;
	return pointer == 0; /* only the relocation has it */
}

/*
 * List the loaded segments of SRC, and look for a wrapper in them; the caller frees *OUT.  Of a segment
 * only the part in the file counts, and of overlapping ones no more than the file has.  In what is
 * loaded at any address the pointers are relocated, and therefore in writable segments.
 */
static kpack_error_t open_segments(const struct kp_source *src, struct segments **out,
				   struct kpackx_error *why)
{
	uint64_t left = src->size;
	struct segments *all;
	struct loose *r;
	const uint8_t *p;
	unsigned word;

	KP_TRY(kp_new(out, 1, "segments", why));
	all = *out;
	r = &all->r;
	KP_TRY(open_loose(r, src, why));
	if (r->type != ET_DYN && r->type != ET_EXEC)
		return KPACK_SUCCESS;
	for (unsigned i = 0; i < r->phnum && i < KP_SEGMENTS_MAX; i++) {
		struct segment *s = &all->items[all->n];

		if (r->phsize != SIZE_OF(r, Phdr) || r->phoff > src->size ||
		    kp_window_get(&r->window, r->phoff + (uint64_t)i * r->phsize,
				  r->phsize, &p, NULL))
			break;
		*s = (struct segment){.vaddr = FIELD(r, p, p_vaddr, Phdr),
				      .offset = FIELD(r, p, p_offset, Phdr),
				      .size = FIELD(r, p, p_filesz, Phdr),
				      .writable = FIELD(r, p, p_flags, Phdr) & PF_W};
		if (FIELD(r, p, p_type, Phdr) != PT_LOAD)
			continue;
		all->cut |= !kp_range_ok(src->size, s->offset, s->size);
		if (s->offset >= src->size)
			continue;
		if (s->size > src->size - s->offset)
			s->size = src->size - s->offset;
		if (s->size > left)
			s->size = left;
		left -= s->size;
		all->n++;
	}
	word = r->wide ? 8 : 4;
	for (unsigned i = 0; i < all->n; i++) {
		const struct segment *s = &all->items[i];
		unsigned size = 8 + 2 * word;

		if (r->type == ET_DYN && !s->writable)
			continue;
		for (uint64_t at = -s->vaddr & (word - 1);
		     !all->wrapper && kp_range_ok(s->size, at, size); at += word) {
			KP_TRY(kp_window_get(&r->window, s->offset + at, size, &p, why));
			/* the first byte excludes most */
			all->wrapper = (p[0] == (r->big ? HIPF >> 24 : HIPF & 0xff) ||
					p[0] == (r->big ? CUDA >> 24 : CUDA & 0xff)) &&
				       is_wrapper(all, p);
		}
	}
	return KPACK_SUCCESS;
}

bool kp_elf_has_wrapper(const struct kp_source *src)
{
	KP_AUTO_FREE struct segments *all = NULL;

	return !open_segments(src, &all, NULL) && all->wrapper;
}

/* Compilers align containers to 8 bytes at least. */
enum { ALIGN = 8 };

/*
 * Magics without a container behind them that end the search: each costs a look at up to
 * some 100 KiB.
 */
enum { FALSE_MAX = 64 };

/* What the section table says. */
enum table {
	NO_DEVICE_CODE,  /* it names no section of device code, nor one of wrappers */
	CODE_ELSEWHERE,  /* it has a section of wrappers, whose code is in another file */
	TABLE_UNREADABLE /* the file may be cut off */
};

/*
 * If the segments of SRC have a wrapper, or are cut off, append each container in them.  A damaged one
 * - what has a magic and states a possible number of entries, or version and method - is an image up
 * to the segment's end.
 * INVALID_FORMAT: there are wrappers, but no container, and TABLE does not explain it.
 */
static kpack_error_t search_segments(const struct kp_source *src, enum table table,
				     struct kp_container *c, struct kp_containers *list,
				     struct kpackx_error *why)
{
	static const struct kp_format *const formats[] = {
		&kp_format_bundle, &kp_format_ccob, &kp_format_code_object,
		&kp_format_fatbin};
	KP_AUTO_FREE struct segments *all = NULL;
	unsigned n_false = 0; /* magics that are text */

	KP_TRY(open_segments(src, &all, why));
	if (!all->wrapper && !(all->cut && table == TABLE_UNREADABLE))
		return KPACK_SUCCESS;
	for (const struct segment *s = all->items; s < all->items + all->n; s++) {
		uint64_t end = s->offset + s->size, step;

		for (uint64_t at = (s->offset + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
		     at < end && n_false < FALSE_MAX; at += step) {
			struct kp_containers one = {0};
			struct kp_span head = {.size = 64};
			struct kp_image *image;
			uint64_t size = end - at;
			size_t f = 0;
			bool damaged;

			step = ALIGN;
			if (src->size - at < head.size)
				break;
			KP_TRY(kp_window_get(&all->r.window, at, head.size, &head.data,
					     why));
			while (f < KP_COUNT(formats) && !formats[f]->probe(head))
				f++;
			if (f == KP_COUNT(formats))
				continue;
			damaged = (formats[f] == &kp_format_bundle &&
				   kp_le64(head.data + 24) - 1 < KP_BUNDLE_ENTRIES_MAX) ||
				  (formats[f] == &kp_format_ccob &&
				   kp_le16(head.data + 4) - 1u < 3 &&
				   kp_le16(head.data + 6) < 2);
			if (!kp_containers_add(src, at, formats[f], KP_NOWHERE, &one,
					       why))
				size = one.items[0].size;
			else if (!damaged)
				size = 0;
			kp_containers_fini(&one);
			if (size == 0) {
				n_false++;
				continue;
			}
			step = (size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
			KP_TRY(kp_containers_add_named(list, c,
						       kp_span_str(KP_NO_SECTION), at,
						       size, &image, why));
			image->stream = true;
		}
	}
	if (all->wrapper && table != CODE_ELSEWHERE && !c->n_images)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "it has wrappers of device code, but no container of it");
	return KPACK_SUCCESS;
}

/* ---- the format ---- */

/* Another class or byte order, or a damaged section table. */
static kpack_error_t salvage_host_elf(const struct kp_source *src, struct kp_container *c,
				      struct kp_containers *list,
				      struct kpackx_error *why)
{
	char text[64]; /* names are cut off */
	struct kp_section s, names;
	uint64_t name, ignored;
	struct kp_source part;
	struct kp_span head;
	struct loose r;
	bool readable;

	c->size = c->payload_size = src->size;
	KP_TRY(open_loose(&r, src, why));
	/* the sections with device code; what cannot be read of the table is left out */
	readable = r.shoff && get_loose_section(&r, r.names, &names, &ignored) &&
		   kp_source_sub(src, names.offset, names.size, &part);
	for (unsigned i = 1;
	     readable && i < r.shnum && get_loose_section(&r, i, &s, &name); i++) {
		if (name >= names.size || !kp_range_ok(src->size, s.offset, s.size) ||
		    kp_source_head(&part, name, (uint8_t *)text, sizeof(text) - 1, &head,
				   NULL))
			continue;
		text[head.size] = '\0';
		s.name = text;
		KP_TRY(add_section(&s, c, list, why));
	}
	return c->n_images ? KPACK_SUCCESS
			   : search_segments(src, TABLE_UNREADABLE, c, list, why);
}

static kpack_error_t parse_host_elf(const struct kp_source *src, struct kp_container *c,
				    struct kp_containers *list, struct kpackx_error *why)
{
	enum table table = NO_DEVICE_CODE;
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_sections sections;
	struct kp_span head;
	uint8_t bytes[20];

	KP_TRY(kp_source_head(src, 0, bytes, sizeof(bytes), &head, why));
	if (!kp_elf_probe(head, NULL))
		return salvage_host_elf(src, c, list, why);
	KP_TRY(kp_sections_read(src, &sections, why));
	c->size = c->payload_size = sections.end;
	for (size_t i = 0; i < sections.count && !err; i++)
		err = add_section(&sections.items[i], c, list, why);
	if (kp_sections_find(&sections, ".hipFatBinSegment") ||
	    kp_sections_find(&sections, ".nvFatBinSegment"))
		table = CODE_ELSEWHERE;
	kp_sections_fini(&sections);
	return err || c->n_images ? err : search_segments(src, table, c, list, why);
}

const struct kp_format kp_format_host_elf = {
	.name = "elf",
	.probe = probe_host_elf,
	.parse = parse_host_elf,
	.salvage = salvage_host_elf,
};
