/* SPDX-License-Identifier: MIT */
#include "host_sections.h"
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/bounds.h"

/* Whether conversion makes the section, or it depends on the device code only. */
static bool is_left_out(const char *name)
{
	static const char *const names[] = {
		KP_FATBIN_SECTION,    KP_MARKER_SECTION, KP_LAYOUT_SECTION,
		".rocm_kpack_phdr", /* conversion's table of segments */
		".note.gnu.build-id", ".relro_padding",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static kpack_error_t fail_elf(struct kpackx_error *why, const char *what)
{
	const char *text = elf_errmsg(-1);

	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "elf: %s: %s", what,
		       text ? text : "no reason given");
}

static bool is_compared(const struct host_section *s)
{
	return (s->h.sh_flags & SHF_ALLOC) ? !is_left_out(s->name)
					   : strcmp(s->name, ".comment") == 0;
}

static kpack_error_t add_section(struct host_sections *s, size_t number,
				 const struct host_section *section,
				 struct kpackx_error *why)
{
	if (section->h.sh_type != SHT_NOBITS &&
	    !kp_range_ok(s->binary->size, section->h.sh_offset, section->h.sh_size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: section %zu: %" PRIu64 " bytes at offset %" PRIu64
			       " pass the end of the file at %" PRIu64,
			       number, section->h.sh_size, section->h.sh_offset,
			       s->binary->size);
	if (strcmp(section->name, KP_FATBIN_SECTION) == 0) {
		s->fatbin = number;
		s->fatbin_address = section->h.sh_addr;
	}
	if (strcmp(section->name, KP_MARKER_SECTION) == 0)
		s->marker_address = section->h.sh_addr;
	if (is_compared(section))
		s->items[s->count++] = *section;
	return KPACK_SUCCESS;
}

static kpack_error_t read_sections(struct host_sections *s, struct kpackx_error *why)
{
	size_t n, names;

	/* binary_open has checked the size of the table */
	if (elf_getshdrnum(s->libelf, &n) || elf_getshdrstrndx(s->libelf, &names))
		return fail_elf(why, "section headers");
	s->items = calloc(n + 1, sizeof(*s->items));
	if (!s->items)
		return kp_fail_memory(why, n * sizeof(*s->items), "sections");
	for (size_t i = 1; i < n; i++) {
		struct host_section section;

		if (!gelf_getshdr(elf_getscn(s->libelf, i), &section.h))
			return fail_elf(why, "section header");
		section.name = elf_strptr(s->libelf, names, section.h.sh_name);
		if (!section.name)
			return fail_elf(why, "section name");
		KP_TRY(add_section(s, i, &section, why));
	}
	return KPACK_SUCCESS;
}

/* Without a PT_GNU_STACK segment the stack is executable. */
static kpack_error_t read_stack(struct host_sections *s, struct kpackx_error *why)
{
	GElf_Phdr h;
	size_t n;

	if (elf_getphdrnum(s->libelf, &n) || n > KP_SEGMENTS_MAX)
		return fail_elf(why, "program headers");
	s->stack_executable = true;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(s->libelf, (int)i, &h))
			return fail_elf(why, "program header");
		if (h.p_type == PT_GNU_STACK)
			s->stack_executable = h.p_flags & PF_X;
	}
	return KPACK_SUCCESS;
}

kpack_error_t host_sections_read(const struct binary *b, struct host_sections *out,
				 struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct host_sections){.binary = b};
	out->libelf = elf_begin(b->fd, ELF_C_READ, NULL);
	err = out->libelf ? read_sections(out, why) : fail_elf(why, "header");
	if (!err)
		err = read_stack(out, why);
	if (err)
		host_sections_fini(out);
	return err;
}

void host_sections_fini(struct host_sections *s)
{
	free(s->items);
	elf_end(s->libelf);
	*s = (struct host_sections){0};
}

const struct host_section *host_sections_find(const struct host_sections *s,
					      const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->items[i].name, name) == 0)
			return &s->items[i];
	return NULL;
}

struct kp_source host_section_source(const struct host_sections *s,
				     const struct host_section *section)
{
	uint64_t size = section->h.sh_type == SHT_NOBITS ? 0 : section->h.sh_size;

	return kp_source_fd(s->binary->fd, section->h.sh_offset, size);
}

kpack_error_t host_section_load(const struct host_sections *s,
				const struct host_section *section, uint8_t **out,
				struct kpackx_error *why)
{
	struct kp_source src =
		section ? host_section_source(s, section) : kp_source_memory(NULL, 0);
	kpack_error_t err = KPACK_SUCCESS;
	uint8_t *buf;

	if (src.size > KP_SYMBOL_NAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "elf: section %s: %" PRIu64 " bytes, at most %d",
			       section->name, src.size, KP_SYMBOL_NAMES_MAX);
	buf = calloc(1, (size_t)src.size + 1);
	if (!buf)
		return kp_fail_memory(why, src.size, "a section");
	if (src.size)
		err = kp_source_read(&src, 0, buf, (size_t)src.size, why);
	if (err)
		free(buf);
	else
		*out = buf;
	return err;
}
