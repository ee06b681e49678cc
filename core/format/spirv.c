/* SPDX-License-Identifier: MIT */
/*
 * SPIR-V: words of 32 bits in the byte order of the magic.  A header of five words -
 * magic, version, generator, bound, 0 - precedes the instructions.  The first word of an
 * instruction has its number of words (upper half) and its opcode.
 */
#include <inttypes.h>
#include <stdio.h>
#include "core/base/alloc.h"
#include "format.h"

#define MAGIC UINT32_C(0x07230203)
#define HEADER_WORDS 5

enum { OP_ENTRY_POINT = 15, OP_FUNCTION = 54 };
enum { MODEL_KERNEL = 6 };

/*
 * The generator of LLVM's SPIR-V for AMD GPUs, or the generator's version if that is 0.
 */
#define GENERATOR_AMD 0xffff

/* A walk through the words. */
struct words {
	struct kp_window window;
	bool swapped; /* big-endian */
	uint32_t version, generator;
};

static const uint8_t magics[][4] = {{0x03, 0x02, 0x23, 0x07}, {0x07, 0x23, 0x02, 0x03}};

static bool probe_spirv(struct kp_span head)
{
	return kp_span_starts(head, magics[0], 4) || kp_span_starts(head, magics[1], 4);
}

static kpack_error_t get_word(struct words *w, uint64_t number, uint32_t *word,
			      struct kpackx_error *why)
{
	const uint8_t *p;

	KP_TRY(kp_window_get(&w->window, 4 * number, 4, &p, why));
	*word = w->swapped ? __builtin_bswap32(kp_le32(p)) : kp_le32(p);
	return KPACK_SUCCESS;
}

/* Check that SRC has a header, and read it.  ARCH is set if the generator implies a target. */
static kpack_error_t begin_words(struct words *w, const struct kp_source *src,
				 char arch[KP_TARGET_TEXT_MAX], struct kpackx_error *why)
{
	uint32_t magic;

	if (src->size < (uint64_t)4 * HEADER_WORDS)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "SPIR-V of %" PRIu64 " bytes has no header", src->size);
	w->swapped = false;
	kp_window_init(&w->window, src);
	KP_TRY(get_word(w, 0, &magic, why));
	w->swapped = magic != MAGIC;
	KP_TRY(get_word(w, 1, &w->version, why));
	KP_TRY(get_word(w, 2, &w->generator, why));
	if (w->generator >> 16 == GENERATOR_AMD || w->generator == GENERATOR_AMD)
		snprintf(arch, KP_TARGET_TEXT_MAX, KP_ARCH_SPIRV);
	return KPACK_SUCCESS;
}

/* No field states the size: the module extends to the end of SRC. */
static kpack_error_t parse_spirv(const struct kp_source *src, struct kp_container *c,
				 struct kp_containers *list, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX] = "";
	struct kp_image *image;
	struct words w;

	KP_TRY(begin_words(&w, src, arch, why));
	KP_TRY(kp_containers_add_object(list, c, src->size, &image, why));
	memcpy(image->arch, arch, sizeof(arch));
	return KPACK_SUCCESS;
}

/*
 * Kernels are entry points of OpenCL's execution model; those of shaders are not listed.
 * Bodies, which are nearly all of a module, are not read.
 */
static kpack_error_t describe_spirv(const struct kp_source *src, struct kp_object *out,
				    struct kpackx_error *why)
{
	/* generators of the registry that make code for GPUs */
	static const struct {
		unsigned number;
		const char *name;
	} names[] = {
		{6, "LLVM/SPIR-V Translator"},
		{7, "SPIR-V Tools Assembler"},
		{8, "Glslang"},
		{13, "Shaderc over Glslang"},
		{14, "spiregg"},
		{17, "SPIR-V Tools Linker"},
		{21, "Clspv"},
		{22, "MLIR SPIR-V Serializer"},
		{43, "LLVM SPIR-V Backend"},
	};
	struct kp_pairs *facts = &out->facts;
	uint64_t end = src->size / 4;
	uint32_t head = 0, model;
	struct words w;
	size_t i = 0;

	KP_TRY(begin_words(&w, src, out->arch, why));
	KP_TRY(kp_pairs_print(facts, why, "SPIR-V", "%u.%u", w.version >> 16 & 0xff,
			      w.version >> 8 & 0xff));
	if (w.swapped)
		KP_TRY(kp_pairs_print(facts, why, "byte order", "big-endian"));
	while (i < KP_COUNT(names) && names[i].number != w.generator >> 16)
		i++;
	if (out->arch[0])
		KP_TRY(kp_pairs_print(facts, why, "generator", "LLVM for AMD GPUs"));
	else if (i < KP_COUNT(names))
		KP_TRY(kp_pairs_print(facts, why, "generator", "%s, version %u",
				      names[i].name, w.generator & 0xffff));
	else
		KP_TRY(kp_pairs_print(facts, why, "generator", "number %u, version %u",
				      w.generator >> 16, w.generator & 0xffff));

	/* the entry points precede the first function */
	for (uint64_t at = HEADER_WORDS; at < end; at += head >> 16) {
		KP_AUTO_FREE uint8_t *text = NULL;
		struct kp_kernel *kernel;
		uint32_t word;
		size_t n;

		KP_TRY(get_word(&w, at, &head, why));
		if ((head & 0xffff) == OP_FUNCTION)
			break;
		if (head >> 16 == 0 || head >> 16 > end - at)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "word %" PRIu64 ": an instruction of %" PRIu32
				       " words, %" PRIu64 " exist",
				       at, head >> 16, end - at);
		if ((head & 0xffff) != OP_ENTRY_POINT)
			continue;
		if (head >> 16 < 4)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "word %" PRIu64 ": an entry point of %" PRIu32
				       " words",
				       at, head >> 16);
		KP_TRY(get_word(&w, at + 1, &model, why));
		if (model != MODEL_KERNEL)
			continue;
		/* its name ends with a NUL, in the words from the fourth on */
		n = (head >> 16) - 3;
		KP_TRY(kp_new(&text, 4 * n + 1, "a kernel's name", why));
		for (i = 0; i < n; i++) {
			KP_TRY(get_word(&w, at + 3 + i, &word, why));
			kp_put_le32(text + 4 * i, word);
		}
		if (!memchr(text, '\0', 4 * n))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "word %" PRIu64 ": a kernel's name does not end",
				       at + 3);
		KP_TRY(kp_object_add_kernel(out, kp_span_str((char *)text), &kernel,
					    why));
	}
	return KPACK_SUCCESS;
}

const struct kp_format kp_format_spirv = {
	.name = "spirv",
	.type = "spv",
	.probe = probe_spirv,
	.parse = parse_spirv,
	.describe = describe_spirv,
};
