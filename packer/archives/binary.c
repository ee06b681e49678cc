/* SPDX-License-Identifier: MIT */
#include "binary.h"
#include <stdlib.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "packer/files/below.h"

kpack_error_t binary_open(const char *path, struct binary *out, struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct binary){.path = path, .fd = -1};
	err = below_file_open(path, &out->fd, &out->st, why);
	if (err) {
		out->fd = -1;
		return err;
	}
	out->size = (uint64_t)out->st.st_size;
	err = kp_fatbin_open(out->fd, out->size, &out->fat, why);
	if (err)
		binary_close(out);
	return err;
}

void binary_close(struct binary *b)
{
	if (b->fd < 0)
		return;
	kp_recipe_fini(&b->layout);
	kp_marker_fini(&b->marker);
	kp_fatbin_fini(&b->fat);
	close(b->fd);
	*b = (struct binary){.path = b->path, .fd = -1};
}

/* Read bytes of the file to the heap; the caller frees them. */
static kpack_error_t read_bytes(const struct binary *b, uint64_t offset, uint64_t size,
				uint8_t **out, struct kpackx_error *why)
{
	struct kp_source file = kp_source_fd(b->fd, 0, b->size), part;

	if (!kp_source_sub(&file, offset, size, &part))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a section passes the end of the file");
	return kp_source_load(&part, UINT64_MAX, "a section", out, why);
}

kpack_error_t binary_read_marker(struct binary *b, struct kpackx_error *why)
{
	uint64_t size;
	uint8_t *bytes = NULL;
	kpack_error_t err;

	KP_TRY(kp_converted_find(b->fd, b->size, &b->fat, &b->where, why));
	/* bytes beyond that limit are ignored */
	size = b->where.marker_size < KP_MARKER_MAX ? b->where.marker_size
						    : KP_MARKER_MAX;
	KP_TRY(read_bytes(b, b->where.marker_offset, size, &bytes, why));
	err = kp_marker_parse((struct kp_span){bytes, (size_t)size}, &b->marker, why);
	free(bytes);
	return err;
}

kpack_error_t binary_read_layout(struct binary *b, struct kpackx_error *why)
{
	struct kp_source section =
		kp_source_fd(b->fd, b->where.layout_offset, b->where.layout_size);

	if (section.size == 0)
		return KPACK_SUCCESS;
	KP_TRY(kp_recipe_read(&section, &b->layout, why));
	b->has_layout = true;
	if (b->layout.n_wrappers != b->fat.elf.n_wrappers)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "layout: of a binary with %zu wrappers; this has %zu",
			       b->layout.n_wrappers, b->fat.elf.n_wrappers);
	return KPACK_SUCCESS;
}

kpack_error_t binary_set_marker(const struct binary *b, struct kp_span marker,
				struct kp_outfile *out, struct kpackx_error *why)
{
	struct kp_recipe recipe = {0};
	struct kp_recipe_maker maker = {
		.recipe = &recipe, .fd = b->fd, .converted = true};
	struct kp_convert_options options = {.marker = marker, .recipe_arg = &maker};
	struct kp_converted where;
	struct kp_source section;
	kpack_error_t err;

	KP_TRY(kp_converted_find(b->fd, b->size, &b->fat, &where, why));
	/* what is no recipe of ours, or a damaged one, stays */
	section = kp_source_fd(b->fd, where.layout_offset, where.layout_size);
	err = section.size ? kp_recipe_read(&section, &recipe, why)
			   : KPACK_ERROR_NOT_IMPLEMENTED;
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR)
		return err;
	if (!err)
		options.recipe = kp_recipe_complete;
	err = kp_convert_set(b->fd, b->size, &b->fat, &options, out, why);
	free((void *)maker.bytes.data);
	kp_recipe_fini(&recipe);
	return err;
}

uint32_t binary_index(const struct binary *b, size_t wrapper)
{
	return (uint32_t)b->fat.elf.wrappers[wrapper].fields.index;
}

kpack_error_t binary_unlisted(const struct binary *b, const char **out,
			      struct kpackx_error *why)
{
	const struct kp_source file = kp_source_fd(b->fd, 0, b->size);
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_fatbin fat;
	struct kp_span head;

	*out = NULL;
	KP_TRY(kp_source_head(&file, 0, bytes, sizeof(bytes), &head, why));
	if (b->fat.kind != KP_FATBIN_NONE || !kp_fatbin_is_linked(head))
		return KPACK_SUCCESS;
	KP_TRY(kp_fatbin_nest(b->fd, b->size, false, &fat, why));
	*out = fat.unlisted;
	kp_fatbin_fini(&fat);
	return KPACK_SUCCESS;
}

const char *binary_kind(const struct binary *b)
{
	switch (b->fat.kind) {
	case KP_FATBIN_ELF:
		return "fat";
	case KP_FATBIN_CONVERTED:
		return b->fat.elf.has_fatbin ? "converted, device code kept"
					     : "converted";
	case KP_FATBIN_BARE:
		return "bare container";
	default:
		return "no device code";
	}
}
