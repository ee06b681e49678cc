/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the runtime's compiler, with tests/real/hip.c.  A program becomes a code
 * object that computes nothing: it has the names of the source's kernels in its symbol table,
 * and the hash of the source and its name.  Logged is
 *
 *   compile NAME ARCH KERNEL...
 */
#define __HIP_PLATFORM_AMD__
#include <hip/hiprtc.h>
#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define API __attribute__((visibility("default")))
#define KERNELS_MAX 16
#define ANY_FEATURES 0x500 /* xnack and sramecc may be on or off */

/* of tests/real/hip.c */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

static const struct {
	const char *arch;
	uint32_t flags;
} processors[] = {{"gfx1030", 0x36}, {"gfx1100", 0x41}, {"gfx90a", 0x3f | ANY_FEATURES}};

struct _hiprtcProgram {
	char *source, *name;
	void *code;
	size_t size;
};

/* An object's file: sections follow one another in this order. */
struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[4]; /* none, symbols, names, hash */
	Elf64_Sym symbols[KERNELS_MAX + 1];
	XXH128_canonical_t hash;
	char names[4096]; /* also those of sections, which are empty */
};

/* Add the kernel's descriptor; false: there are too many. */
static bool add_kernel(struct image *o, const char *name, size_t n)
{
	Elf64_Shdr *symbols = &o->sections[1], *names = &o->sections[2];
	size_t count = symbols->sh_size / sizeof(Elf64_Sym);

	if (count == KERNELS_MAX + 1 || n + 4 > sizeof(o->names) - names->sh_size)
		return false;
	o->symbols[count].st_name = (Elf64_Word)names->sh_size;
	o->symbols[count].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
	o->symbols[count].st_shndx = 3;
	symbols->sh_size += sizeof(Elf64_Sym);
	snprintf(o->names + names->sh_size, n + 4, "%.*s.kd", (int)n, name);
	names->sh_size += n + 4;
	return true;
}

/* Find "__global__ ... NAME(", whose dots may be another call: __launch_bounds__(...). */
static bool add_kernels(struct image *o, const char *source)
{
	while ((source = strstr(source, "__global__"))) {
		const char *end, *begin;

		source += strlen("__global__");
		for (end = source; (end = strchr(end, '(')); end++) {
			const char *last = end;

			while (last > source && isspace((unsigned char)last[-1]))
				last--;
			begin = last;
			while (begin > source &&
			       (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
				begin--;
			if (last == begin || strncmp(begin, "__launch", 8) == 0)
				continue;
			if (!add_kernel(o, begin, (size_t)(last - begin)))
				return false;
			source = end;
			break;
		}
	}
	return o->sections[1].sh_size > sizeof(Elf64_Sym);
}

static void init_image(struct image *o, uint32_t flags, const char *source,
		       const char *name)
{
	XXH3_state_t *hash = XXH3_createState();
	const struct {
		Elf64_Word type;
		size_t offset, size, entry;
	} rows[] = {
		{SHT_DYNSYM, offsetof(struct image, symbols), sizeof(Elf64_Sym),
		 sizeof(Elf64_Sym)},
		{SHT_STRTAB, offsetof(struct image, names), 1, 0},
		{SHT_PROGBITS, offsetof(struct image, hash), sizeof(o->hash), 0},
	};

	memcpy(o->header.e_ident, ELFMAG, SELFMAG);
	o->header.e_ident[EI_CLASS] = ELFCLASS64;
	o->header.e_ident[EI_DATA] = ELFDATA2LSB;
	o->header.e_ident[EI_VERSION] = EV_CURRENT;
	o->header.e_ident[EI_OSABI] = 64; /* HSA */
	o->header.e_ident[EI_ABIVERSION] = 3;
	o->header.e_type = ET_DYN;
	o->header.e_machine = 224; /* AMDGPU */
	o->header.e_version = EV_CURRENT;
	o->header.e_flags = flags;
	o->header.e_ehsize = sizeof(o->header);
	o->header.e_shoff = offsetof(struct image, sections);
	o->header.e_shentsize = sizeof(o->sections[0]);
	o->header.e_shnum = 4;
	o->header.e_shstrndx = 2;
	for (int i = 0; i < 3; i++) {
		o->sections[i + 1].sh_type = rows[i].type;
		o->sections[i + 1].sh_offset = rows[i].offset;
		o->sections[i + 1].sh_size = rows[i].size;
		o->sections[i + 1].sh_entsize = rows[i].entry;
	}
	o->sections[1].sh_link = 2;
	if (!hash)
		abort();
	XXH3_128bits_reset(hash);
	XXH3_128bits_update(hash, source, strlen(source));
	XXH3_128bits_update(hash, name, strlen(name));
	XXH128_canonicalFromHash(&o->hash, XXH3_128bits_digest(hash));
	XXH3_freeState(hash);
}

/* The processor that the options name; NULL: none that is known. */
static const char *find_arch(int n, const char **options, uint32_t *flags)
{
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(processors) / sizeof(processors[0]); k++) {
			const char *at = strstr(options[i], processors[k].arch);

			if (at && at > options[i] && at[-1] == '=') {
				*flags = processors[k].flags;
				return processors[k].arch;
			}
		}
	return NULL;
}

API hiprtcResult hiprtcCreateProgram(hiprtcProgram *out, const char *source,
				     const char *name, int n, const char **headers,
				     const char **names)
{
	(void)n, (void)headers, (void)names;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return HIPRTC_ERROR_OUT_OF_MEMORY;
	(*out)->source = strdup(source);
	(*out)->name = strdup(name ? name : "?");
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcCompileProgram(hiprtcProgram p, int n, const char **options)
{
	struct image *o = calloc(1, sizeof(*o));
	uint32_t flags = 0;
	const char *arch = find_arch(n, options, &flags);

	if (!o)
		return HIPRTC_ERROR_OUT_OF_MEMORY;
	init_image(o, flags, p->source, p->name);
	if (!arch || !add_kernels(o, p->source)) {
		note("compile %s %s failed", p->name, arch ? arch : "?");
		free(o);
		return HIPRTC_ERROR_COMPILATION;
	}
	note("compile %s %s %s", p->name, arch, o->names + 1);
	p->code = o;
	p->size = sizeof(*o);
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcDestroyProgram(hiprtcProgram *p)
{
	free((*p)->source);
	free((*p)->name);
	free((*p)->code);
	free(*p);
	*p = NULL;
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetCodeSize(hiprtcProgram p, size_t *size)
{
	*size = p->size;
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetCode(hiprtcProgram p, char *code)
{
	memcpy(code, p->code, p->size);
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram p, size_t *size)
{
	(void)p;
	*size = 1;
	return HIPRTC_SUCCESS;
}

API hiprtcResult hiprtcGetProgramLog(hiprtcProgram p, char *log)
{
	(void)p;
	*log = '\0';
	return HIPRTC_SUCCESS;
}
