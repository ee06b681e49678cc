/* SPDX-License-Identifier: MIT */
/*
 * Kernels are functions whose st_other marks them as entries or, in a cubin without
 * .nv.info, all functions that are not local.  The resources of a kernel are stated in
 * sections named after it:
 *
 *   .text.NAME        sh_info's top byte: registers, until sm_8x
 *   .nv.shared.NAME   section size: shared memory
 *   .nv.info          attributes of all kernels: u32 symbol, u32 value
 *   .nv.info.NAME     attributes of one kernel
 *
 * An attribute is u8 format, u8 number, u16 value; with format 4 the value is the number
 * of bytes that follow.
 */
#include <stdlib.h>
#include "core/base/bounds.h"
#include "cubin.h"

#define STO_ENTRY 0x10

#define SIZED 4 /* the format of attributes followed by bytes */

enum attribute {
	MAX_THREADS = 0x05, /* u32 x, y, z */
	PARAM_CBANK = 0x0a, /* u32 symbol, u16 offset, u16 size */
	REQUIRED_THREADS = 0x10,
	FRAME_SIZE = 0x11,
	MIN_STACK_SIZE = 0x12,
	CBANK_PARAM_SIZE = 0x19,
	REGISTERS = 0x2f,
};

/* Bytes of a linked kernel's shared memory that the system uses from sm_90 on. */
#define SYSTEM_SHARED 1024
#define SYSTEM_SHARED_SM 90

struct reader {
	const struct kp_cubin *cubin;
	struct kp_object *out;
	struct kp_window window;
	uint64_t symbols, n_symbols;
	char *names;
	uint64_t names_size;
	uint32_t *kernels; /* by symbol: 1 + its number in OUT, or 0 */
	uint32_t *sorted;  /* numbers in OUT, by name */
};

/* --- symbols ---------------------------------------------------------------------- */

struct symbol {
	uint32_t name;
	uint8_t info, other;
	uint16_t section;
};

static kpack_error_t get_symbol(struct reader *r, uint64_t i, struct symbol *out,
				struct kpackx_error *why)
{
	const uint8_t *p;

	KP_TRY(kp_window_get(&r->window, r->symbols + i * sizeof(Elf64_Sym),
			     sizeof(Elf64_Sym), &p, why));
	*out = (struct symbol){
		.name = kp_le32(p),
		.info = p[offsetof(Elf64_Sym, st_info)],
		.other = p[offsetof(Elf64_Sym, st_other)],
		.section = kp_le16(p + offsetof(Elf64_Sym, st_shndx)),
	};
	return KPACK_SUCCESS;
}

static bool is_function(const struct symbol *s)
{
	return ELF64_ST_TYPE(s->info) == STT_FUNC && s->section != SHN_UNDEF;
}

static bool is_kernel(const struct symbol *s, bool marked)
{
	return is_function(s) &&
	       (marked ? s->other & STO_ENTRY : ELF64_ST_BIND(s->info) != STB_LOCAL);
}

static kpack_error_t find_symbols(struct reader *r, struct kpackx_error *why)
{
	const struct kp_sections *all = &r->cubin->sections;
	const struct kp_section *names;

	for (size_t i = 0; i < all->count; i++) {
		const struct kp_section *s = &all->items[i];

		if (s->type != SHT_SYMTAB)
			continue;
		if (s->link >= all->count || all->items[s->link].type != SHT_STRTAB)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "symbols: their names are in section %u of %zu",
				       s->link, all->count);
		names = &all->items[s->link];
		r->symbols = s->offset;
		r->n_symbols = s->size / sizeof(Elf64_Sym);
		r->names_size = names->size;
		if (names->size == 0 || names->size > KP_SYMBOL_NAMES_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "symbols: names of %llu bytes, at most %d",
				       (unsigned long long)names->size,
				       KP_SYMBOL_NAMES_MAX);
		r->names = malloc((size_t)names->size);
		if (!r->names)
			return kp_fail_memory(why, names->size, "symbol names");
		return kp_source_read(&r->cubin->src, names->offset, r->names,
				      (size_t)names->size, why);
	}
	return KPACK_SUCCESS;
}

/* Up to sm_8x the code section states the number of registers. */
static int64_t registers_of_text(const struct reader *r, uint16_t section)
{
	const struct kp_sections *all = &r->cubin->sections;
	int64_t n = section < all->count ? all->items[section].info >> 24 : 0;

	return n ? n : KP_NOT_STATED;
}

static kpack_error_t add_kernel(struct reader *r, uint64_t i, const struct symbol *s,
				struct kpackx_error *why)
{
	uint64_t left = s->name < r->names_size ? r->names_size - s->name : 0;
	struct kp_span name = {(const uint8_t *)r->names + (left ? s->name : 0),
			       (size_t)left};
	struct kp_kernel *k;

	if (!left || !memchr(name.data, '\0', name.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "symbol %llu: its name at %u of %llu bytes does not end",
			       (unsigned long long)i, s->name,
			       (unsigned long long)r->names_size);
	KP_TRY(kp_object_add_kernel(r->out, name, &k, why));
	k->vgprs = registers_of_text(r, s->section);
	k->lds = 0; /* a kernel without shared memory has no section for it */
	r->kernels[i] = (uint32_t)r->out->n_kernels;
	return KPACK_SUCCESS;
}

static kpack_error_t add_kernels(struct reader *r, struct kpackx_error *why)
{
	bool marked = kp_sections_find(&r->cubin->sections, ".nv.info") != NULL;
	struct symbol s;

	r->kernels = calloc((size_t)r->n_symbols + 1, sizeof(*r->kernels));
	if (!r->kernels)
		return kp_fail_memory(why, r->n_symbols * sizeof(*r->kernels), "symbols");
	for (uint64_t i = 0; i < r->n_symbols; i++) {
		KP_TRY(get_symbol(r, i, &s, why));
		if (is_kernel(&s, marked))
			KP_TRY(add_kernel(r, i, &s, why));
	}
	return KPACK_SUCCESS;
}

/* --- attributes ------------------------------------------------------------------- */

static int64_t volume(const uint8_t *p)
{
	uint64_t xy = (uint64_t)kp_le32(p) * kp_le32(p + 4);

	/* more threads than any GPU has count as not stated */
	return xy > 1 << 20 ? KP_NOT_STATED : (int64_t)(xy * kp_le32(p + 8));
}

/* Take an attribute from the section of kernel K. */
static void state_one(struct kp_kernel *k, unsigned attribute, uint16_t value,
		      struct kp_span body)
{
	switch (attribute) {
	case MAX_THREADS:
	case REQUIRED_THREADS:
		if (body.size >= 12)
			k->threads = volume(body.data);
		break;
	case PARAM_CBANK:
		if (body.size >= 8)
			k->kernarg = kp_le16(body.data + 6);
		break;
	case CBANK_PARAM_SIZE:
		if (!body.data)
			k->kernarg = value;
		break;
	default:
		break;
	}
}

/* Take an attribute of the kernel whose symbol is in BODY. */
static void state_symbol(const struct reader *r, unsigned attribute, struct kp_span body)
{
	uint32_t symbol = body.size >= 8 ? kp_le32(body.data) : UINT32_MAX, value;
	struct kp_kernel *k;

	if (symbol >= r->n_symbols || !r->kernels[symbol])
		return;
	k = &r->out->kernels[r->kernels[symbol] - 1];
	value = kp_le32(body.data + 4);
	if (attribute == REGISTERS)
		k->vgprs = value;
	else if (attribute == MIN_STACK_SIZE ||
		 (attribute == FRAME_SIZE && k->scratch == KP_NOT_STATED))
		k->scratch = value;
}

/*
 * Read the attributes of section S, of kernel K or (NULL) of all kernels, up to any
 * damage.
 */
static void read_info(struct reader *r, const struct kp_section *s, struct kp_kernel *k)
{
	struct kpackx_error ignored;
	const uint8_t *p;

	for (uint64_t at = 0; kp_range_ok(s->size, at, 4);) {
		struct kp_span body = {NULL, 0};
		unsigned attribute;
		uint16_t value;

		if (kp_window_get(&r->window, s->offset + at, 4, &p, &ignored))
			return;
		attribute = p[1];
		value = kp_le16(p + 2);
		at += 4;
		if (p[0] == SIZED) {
			/* no attribute that we use is longer */
			body.size = value < 12 ? value : 12;
			if (!kp_range_ok(s->size, at, value) ||
			    kp_window_get(&r->window, s->offset + at, body.size,
					  &body.data, &ignored))
				return;
			at += value;
		}
		if (k)
			state_one(k, attribute, value, body);
		else
			state_symbol(r, attribute, body);
	}
}

/* --- sections of kernels ---------------------------------------------------------- */

static int by_name(const void *a, const void *b, void *object)
{
	const struct kp_kernel *k = ((struct kp_object *)object)->kernels;

	return strcmp(k[*(const uint32_t *)a].name, k[*(const uint32_t *)b].name);
}

static kpack_error_t sort_kernels(struct reader *r, struct kpackx_error *why)
{
	size_t n = r->out->n_kernels;

	r->sorted = malloc((n + 1) * sizeof(*r->sorted));
	if (!r->sorted)
		return kp_fail_memory(why, n * sizeof(*r->sorted), "kernels");
	for (size_t i = 0; i < n; i++)
		r->sorted[i] = (uint32_t)i;
	qsort_r(r->sorted, n, sizeof(*r->sorted), by_name, r->out);
	return KPACK_SUCCESS;
}

/*
 * Return the kernel whose section is NAME, which is PREFIX and the kernel's name; or
 * NULL.
 */
static struct kp_kernel *kernel_of(const struct reader *r, const char *name,
				   const char *prefix)
{
	size_t low = 0, high = r->out->n_kernels, length = strlen(prefix);

	if (strncmp(name, prefix, length) != 0)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct kp_kernel *k = &r->out->kernels[r->sorted[middle]];
		int c = strcmp(name + length, k->name);

		if (c == 0)
			return k;
		if (c < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* Return the bytes of shared memory without the system's. */
static int64_t shared_size(const struct kp_cubin *cubin, const struct kp_section *s)
{
	if (s->type != SHT_NOBITS || s->size == 0 || cubin->sm < SYSTEM_SHARED_SM)
		return s->size > INT64_MAX ? KP_NOT_STATED : (int64_t)s->size;
	if (s->size < SYSTEM_SHARED || s->size > INT64_MAX)
		return KP_NOT_STATED;
	return (int64_t)(s->size - SYSTEM_SHARED);
}

static void read_sections(struct reader *r)
{
	const struct kp_sections *all = &r->cubin->sections;
	struct kp_kernel *k;

	for (size_t i = 0; i < all->count; i++) {
		const struct kp_section *s = &all->items[i];

		k = kernel_of(r, s->name, ".nv.shared.");
		if (k)
			k->lds = shared_size(r->cubin, s);
		k = kernel_of(r, s->name, ".nv.info.");
		if (k && k->kernarg == KP_NOT_STATED)
			k->kernarg = 0; /* not stated without parameters */
		if ((k || strcmp(s->name, ".nv.info") == 0) && s->type != SHT_NOBITS)
			read_info(r, s, k);
	}
}

static kpack_error_t list_kernels(struct reader *r, struct kpackx_error *why)
{
	KP_TRY(find_symbols(r, why));
	KP_TRY(add_kernels(r, why));
	KP_TRY(sort_kernels(r, why));
	read_sections(r);
	return KPACK_SUCCESS;
}

kpack_error_t kp_cubin_kernels(const struct kp_cubin *cubin, struct kp_object *out,
			       struct kpackx_error *why)
{
	struct reader r = {.cubin = cubin, .out = out};
	kpack_error_t err;

	kp_window_init(&r.window, &cubin->src);
	err = list_kernels(&r, why);
	free(r.names);
	free(r.kernels);
	free(r.sorted);
	return err;
}
