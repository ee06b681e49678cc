/* SPDX-License-Identifier: MIT */
#include "host_sections.h"
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

	for (size_t i = 0; i < KP_COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool is_compared(const struct kp_section *s)
{
	return (s->flags & SHF_ALLOC) ? !is_left_out(s->name)
				      : strcmp(s->name, ".comment") == 0;
}

kpack_error_t host_sections_read(const struct binary *b, struct host_sections *out,
				 struct kpackx_error *why)
{
	struct kp_source src = kp_source_fd(b->fd, 0, b->size);
	struct kp_sections all;

	*out = (struct host_sections){.binary = b};
	KP_TRY(kp_sections_read(&src, &all, why));
	for (size_t i = 1; i < all.count; i++) {
		const struct kp_section *s = &all.items[i];

		if (strcmp(s->name, KP_FATBIN_SECTION) == 0) {
			out->fatbin = i;
			out->fatbin_address = s->addr;
		}
		if (strcmp(s->name, KP_MARKER_SECTION) == 0)
			out->marker_address = s->addr;
		if (is_compared(s))
			all.items[out->count++] = *s;
	}
	out->items = all.items;
	out->names = all.names;
	out->stack_executable = all.stack_flags & PF_X;
	return KPACK_SUCCESS;
}

void host_sections_fini(struct host_sections *s)
{
	free(s->items);
	free(s->names);
	*s = (struct host_sections){0};
}

const struct kp_section *host_sections_find(const struct host_sections *s,
					    const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->items[i].name, name) == 0)
			return &s->items[i];
	return NULL;
}

struct kp_source host_section_source(const struct host_sections *s,
				     const struct kp_section *section)
{
	uint64_t size = section->type == SHT_NOBITS ? 0 : section->size;

	return kp_source_fd(s->binary->fd, section->offset, size);
}

kpack_error_t host_section_load(const struct host_sections *s,
				const struct kp_section *section, uint8_t **out,
				struct kpackx_error *why)
{
	struct kp_source src =
		section ? host_section_source(s, section) : kp_source_memory(NULL, 0);

	return kp_source_load(&src, KP_SYMBOL_NAMES_MAX, section ? section->name : "",
			      out, why);
}
