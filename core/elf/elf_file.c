/* SPDX-License-Identifier: MIT */
/*
 * libelf finds the sections; we read their contents with pread, so that memory is bounded
 * whatever the headers state.
 */
#include "elf_file.h"
#include <elf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include "host_internal.h"
#include "core/base/bounds.h"

static void init_libelf(void)
{
	elf_version(EV_CURRENT);
}

kpack_error_t kp_elf_fail(struct kpackx_error *why, const char *what)
{
	const char *text = elf_errmsg(-1);

	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       text ? text : "no reason given");
}

/* ---- headers ---- */

static bool is_elf(struct kp_span head)
{
	return head.size >= 20 && memcmp(head.data, ELFMAG, SELFMAG) == 0;
}

static bool is_host_class(struct kp_span head)
{
	return head.data[EI_CLASS] == ELFCLASS64 && head.data[EI_DATA] == ELFDATA2LSB;
}

bool kp_elf_host_probe(struct kp_span head)
{
	uint16_t machine;

	if (!is_elf(head) || !is_host_class(head))
		return false;
	machine = kp_le16(head.data + offsetof(Elf64_Ehdr, e_machine));
	return machine != EM_AMDGPU && machine != EM_CUDA;
}

/*
 * Check the section table before libelf does, which allocates memory for all sections at
 * once, and treats a truncated table as no table.
 */
static kpack_error_t check_section_table(const struct kp_source *src, const uint8_t *eh,
					 struct kpackx_error *why)
{
	uint64_t shoff = kp_le64(eh + offsetof(Elf64_Ehdr, e_shoff));
	uint64_t n = kp_le16(eh + offsetof(Elf64_Ehdr, e_shnum));
	uint8_t sh[sizeof(Elf64_Shdr)];

	if (shoff == 0)
		return KPACK_SUCCESS;
	if (n == 0) {
		KP_TRY(kp_source_read(src, shoff, sh, sizeof(sh), why));
		n = kp_le64(sh + offsetof(Elf64_Shdr, sh_size));
	}
	if (n > KP_SECTIONS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " sections of at most %d", n,
			       KP_SECTIONS_MAX);
	if (!kp_range_ok(src->size, shoff, n * sizeof(sh)))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " section headers at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       n, shoff, src->size);
	return KPACK_SUCCESS;
}

static kpack_error_t check_header(const struct kp_source *src, struct kpackx_error *why)
{
	uint8_t eh[sizeof(Elf64_Ehdr)];

	KP_TRY(kp_source_read(src, 0, eh, sizeof(eh), why));
	if (!is_elf((struct kp_span){eh, sizeof(eh)}))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: not an ELF file");
	if (!is_host_class((struct kp_span){eh, sizeof(eh)}))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: class %u, byte order %u: only 64-bit little-endian",
			       eh[EI_CLASS], eh[EI_DATA]);
	return check_section_table(src, eh, why);
}

static kpack_error_t begin_libelf(int fd, Elf **elf, size_t *names,
				  struct kpackx_error *why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const Elf64_Shdr *sh;
	size_t n;

	pthread_once(&once, init_libelf);
	/* not READ_MMAP: a file that becomes shorter must not cause a SIGBUS */
	*elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!*elf || elf_kind(*elf) != ELF_K_ELF)
		return kp_elf_fail(why, "header");
	if (elf_getshdrnum(*elf, &n) || elf_getshdrstrndx(*elf, names))
		return kp_elf_fail(why, "section headers");
	if (n == 0 || *names == SHN_UNDEF)
		return KPACK_SUCCESS;
	/* not gelf_getshdr, which forgets that memory ran out */
	sh = elf64_getshdr(elf_getscn(*elf, *names));
	if (!sh)
		return kp_elf_fail(why, "section names");
	if (sh->sh_size > KP_SECTION_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %" PRIu64 " bytes of section names, at most %d",
			       sh->sh_size, KP_SECTION_NAMES_MAX);
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_open(int fd, uint64_t size, struct Elf **elf, size_t *names,
			  struct kpackx_error *why)
{
	const struct kp_source src = kp_source_fd(fd, 0, size);
	kpack_error_t err;

	*elf = NULL;
	KP_TRY(check_header(&src, why));
	err = begin_libelf(fd, elf, names, why);
	if (err && *elf) {
		elf_end(*elf);
		*elf = NULL;
	}
	return err;
}

/* ---- sections ---- */

kpack_error_t kp_elf_check_section(const struct kp_elf_reader *r, const char *name,
				   const GElf_Shdr *sh, struct kpackx_error *why)
{
	if (!kp_range_ok(r->src.size, sh->sh_offset, sh->sh_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %s: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       name, sh->sh_size, sh->sh_offset, r->src.size);
	if (!kp_range_ok(UINT64_MAX, sh->sh_addr, sh->sh_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: %s: %" PRIu64 " bytes at address 0x%" PRIx64
			       " pass the end of the address space",
			       name, sh->sh_size, sh->sh_addr);
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_account(const struct kp_elf_reader *r, const char *name,
			     const GElf_Shdr *sh, uint64_t *total,
			     struct kpackx_error *why)
{
	if (sh->sh_size > r->src.size - *total)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: more %s than the file's %" PRIu64 " bytes hold",
			       name, r->src.size);
	*total += sh->sh_size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_each_section(struct kp_elf_reader *r, kp_elf_section_fn *fn,
				  struct kpackx_error *why)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(r->elf, scn))) {
		if (!gelf_getshdr(scn, &sh))
			return kp_elf_fail(why, "section header");
		KP_TRY(fn(r, elf_ndxscn(scn), &sh, why));
	}
	return KPACK_SUCCESS;
}

/* The member of R for the section NAME, or NULL. */
static struct kp_elf_section *find_member(struct kp_elf_reader *r, const char *name)
{
	return strcmp(name, ".hip_fatbin") == 0         ? &r->fatbin
	       : strcmp(name, ".hipFatBinSegment") == 0 ? &r->segment
	       : strcmp(name, ".rocm_kpack_ref") == 0   ? &r->marker
							: NULL;
}

static kpack_error_t take_section(struct kp_elf_reader *r, size_t index,
				  const GElf_Shdr *sh, struct kpackx_error *why)
{
	const char *name = elf_strptr(r->elf, r->names, sh->sh_name);
	struct kp_elf_section *section;

	if (!name)
		return kp_elf_fail(why, "section name");
	section = find_member(r, name);
	/*
	 * of sections without bytes, which split debug info has, only .hip_fatbin counts
	 */
	if (!section || (sh->sh_type == SHT_NOBITS && section != &r->fatbin))
		return KPACK_SUCCESS;
	if (section->index)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "elf: two sections %s, %zu and %zu", name, section->index,
			       index);
	if (sh->sh_type != SHT_NOBITS)
		KP_TRY(kp_elf_check_section(r, name, sh, why));
	*section = (struct kp_elf_section){index, *sh};
	return KPACK_SUCCESS;
}

static void describe_fatbin(struct kp_elf_reader *r)
{
	const GElf_Shdr *sh = &r->fatbin.header;
	struct kp_elf *out = r->out;

	if (!r->fatbin.index)
		return;
	out->fatbin_nobits = sh->sh_type == SHT_NOBITS;
	if (out->fatbin_nobits)
		return;
	out->has_fatbin = sh->sh_size > 0;
	out->fatbin_vaddr = sh->sh_addr;
	out->fatbin_offset = sh->sh_offset;
	out->fatbin_size = sh->sh_size;
}

/* ---- reading ---- */

static kpack_error_t read_all(struct kp_elf_reader *r, struct kpackx_error *why)
{
	GElf_Ehdr header;

	KP_TRY(kp_elf_open(r->src.fd, r->src.size, &r->elf, &r->names, why));
	if (!gelf_getehdr(r->elf, &header))
		return kp_elf_fail(why, "header");
	r->out->type = header.e_type;
	r->out->machine = header.e_machine;
	r->relocatable = header.e_type == ET_REL;
	/* without section names no section can be found */
	if (r->names == SHN_UNDEF)
		return KPACK_SUCCESS;
	KP_TRY(kp_elf_each_section(r, take_section, why));
	describe_fatbin(r);
	KP_TRY(kp_elf_find_wrappers(r, why));
	KP_TRY(kp_elf_relocate(r, why));
	if (r->out->wrappers_scanned)
		kp_elf_drop_strays(r);
	return KPACK_SUCCESS;
}

kpack_error_t kp_elf_read(int fd, uint64_t size, struct kp_elf *out,
			  struct kpackx_error *why)
{
	struct kp_elf_reader r = {.src = kp_source_fd(fd, 0, size), .out = out};
	kpack_error_t err;

	*out = (struct kp_elf){0};
	err = read_all(&r, why);
	if (r.elf)
		elf_end(r.elf);
	if (err != KPACK_SUCCESS)
		kp_elf_fini(out);
	return err;
}

void kp_elf_fini(struct kp_elf *elf)
{
	free(elf->wrappers);
	*elf = (struct kp_elf){0};
}
