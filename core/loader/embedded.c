/* SPDX-License-Identifier: MIT */
/*
 * Code objects that are still in the binary itself.  In a fat binary the wrappers say where each
 * container is.  In a converted one, which may have kept some, the wrappers have markers instead,
 * and its layout says which wrapper each container belongs to; without a layout, as other
 * converters leave it, containers and wrappers are counted together, which only means something
 * if there are as many of the one as of the other.  Then the image is chosen as from an archive:
 * the caller's architectures in order, for each the targets that it can run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/text.h"
#include "core/host/convert.h"
#include "core/host/search_path.h"
#include "core/restore/recipe.h"
#include "lookup.h"

/* A request, and what was found for it. */
struct request {
	int fd;
	uint64_t size; /* of the file */
	struct kp_fatbin fat;
	uint32_t index;
	const struct kp_container *container;
	const struct kp_image *image;
};

/* ---- the wrapper's container ---- */

static void take_place(uint32_t index, size_t container, void *arg)
{
	struct request *r = arg;

	if (index == r->index)
		r->container = &r->fat.containers.items[container];
}

/*
 * Three kinds of files, three ways.  A fat binary's wrappers point at their containers.  A binary that
 * we converted has a layout, which gives each wrapper its container; one that kept its container
 * is found by the container's own number.  Of other converters' binaries only counts are known.
 */
static kpack_error_t find_container(struct request *r, struct kpackx_error *why)
{
	const struct kp_fatbin *fat = &r->fat;
	const struct kp_containers *list = &fat->containers;
	const struct kp_host_part *part = &fat->host.layout;
	struct kp_source section = kp_source_fd(r->fd, part->offset, part->size);
	struct kp_recipe layout;
	kpack_error_t err;

	if (fat->kind == KP_FATBIN_NONE && fat->host.type == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "no binary, and no container of device code");
	if (list->count == 0)
		return kp_fail(
			why, KPACK_ERROR_KERNEL_NOT_FOUND, "no device code in it%s",
			fat->kind == KP_FATBIN_CONVERTED ? ": it was converted" : "");
	if (fat->kind != KP_FATBIN_CONVERTED) {
		kp_fatbin_places(fat, take_place, r);
	} else {
		KP_TRY(kp_fatbin_check_marker(fat, why));
		if (!section.size && list->count != fat->host.n_wrappers)
			return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				       "no layout says which of %zu containers belongs "
				       "to wrapper %u of %zu",
				       list->count, r->index, fat->host.n_wrappers);
		/* as from other converters: wrappers are numbered by their code's position */
		if (!section.size && r->index < list->count)
			r->container = &list->items[r->index];
	}
	if (fat->kind == KP_FATBIN_CONVERTED && section.size) {
		err = kp_recipe_read(&section, &layout, why);
		if (err) {
			/* for the caller it is a faulty binary, whatever is wrong with its layout */
			if (err == KPACK_ERROR_MSGPACK_PARSE_FAILED ||
			    err == KPACK_ERROR_INVALID_METADATA)
				err = KPACK_ERROR_INVALID_FORMAT;
			else if (err == KPACK_ERROR_UNSUPPORTED_VERSION)
				err = KPACK_ERROR_NOT_IMPLEMENTED;
			return kp_fail_prefix(why, err, "%s", part->name);
		}
		/* its numbers index both lists: a layout of another file is no guide */
		if (layout.n_containers != list->count ||
		    layout.n_wrappers != fat->host.n_wrappers)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "layout: %zu wrappers and %zu containers, there "
				      "are %zu and %zu",
				      layout.n_wrappers, layout.n_containers,
				      fat->host.n_wrappers, list->count);
		else if (r->index < layout.n_wrappers)
			r->container = &list->items[layout.wrapper_container[r->index]];
		for (uint32_t i = 0; !err && i < list->count && !r->container; i++)
			if (layout.containers[i].index == r->index)
				r->container = &list->items[i];
		kp_recipe_fini(&layout);
		KP_TRY(err);
	}
	return r->container ? KPACK_SUCCESS
			    : kp_fail(why, KPACK_ERROR_KERNEL_NOT_FOUND,
				      "no wrapper %u: there are %zu, and %zu containers",
				      r->index, fat->host.n_wrappers, list->count);
}

/* ---- the image ---- */

/* True if IMAGE is for HIP; a bundle may have the same architecture for OpenMP. */
static bool is_hip(const struct kp_image *image)
{
	struct kp_entry_id id;

	return !image->id || (kp_entry_id_parse(kp_span_str(image->id), &id) &&
			      kp_span_starts(id.kind, "hip", 3));
}

/*
 * Take the image for TARGET; false if there is one, so that no further target is tried.
 */
static bool take_image(struct kp_span target, void *arg)
{
	struct request *r = arg;
	const struct kp_image *image =
		&r->fat.containers.images[r->container->first_image];
	char arch[KP_TARGET_TEXT_MAX];

	if (target.size >= sizeof(arch)) /* longer than any image's arch */
		return true;
	kp_target_canonical(target, arch);
	for (size_t i = 0; i < r->container->n_images; i++, image++) {
		/* the host's image has no arch */
		if (image->size == 0 || strcmp(image->arch, arch) != 0)
			continue;
		if (!r->image || (is_hip(image) && !is_hip(r->image)))
			r->image = image;
	}
	return !r->image;
}

struct names {
	char text[112];
	size_t used;
};

static void add_name(struct names *n, const char *name)
{
	char shown[KP_TARGET_TEXT_MAX];
	size_t room = sizeof(n->text) - n->used;
	int wrote = snprintf(n->text + n->used, room, " %s",
			     kp_text_escape(kp_span_str(name), shown, sizeof(shown)));

	n->used += (size_t)wrote < room ? (size_t)wrote : 0;
	n->text[n->used] = '\0'; /* whole names only */
}

/* ---- the call ---- */

kpack_error_t kpackx_load_embedded(const char *binary_path, uint32_t co_index,
				   const char *const *arch_list, size_t arch_count,
				   void **code_object_out, size_t *code_object_size_out,
				   struct kpackx_error *why)
{
	struct request r = {.index = co_index};
	struct names asked = {.used = 0}, has = {.used = 0};
	const struct kp_image *images;
	struct kp_payload payload;
	struct kp_source bytes;
	kpack_error_t err;
	struct stat st;
	uint8_t *buf;
	char *real;

	if (!binary_path || !arch_list || arch_count == 0 || !code_object_out ||
	    !code_object_size_out)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       arch_count ? "an argument is NULL" : "no architectures");
	err = kp_trusted_binary(binary_path, &real, why);
	if (!err)
		err = kp_trusted_file(&real, why);
	if (!err)
		err = kp_file_open(real, &r.fd, &st, why);
	free(real);
	KP_TRY(err);
	r.size = (uint64_t)st.st_size;
	err = kp_fatbin_open(r.fd, r.size, &r.fat, why);
	if (!err)
		err = find_container(&r, why);
	if (err)
		goto out;

	/* the image of the first architecture that has one */
	images = &r.fat.containers.images[r.container->first_image];
	for (size_t i = 0; i < arch_count && !r.image; i++)
		if (arch_list[i])
			kp_search_targets(kp_span_str(arch_list[i]), take_image, &r);
	if (!r.image) {
		for (size_t i = 0; i < arch_count; i++)
			if (arch_list[i])
				add_name(&asked, arch_list[i]);
		for (size_t i = 0; i < r.container->n_images; i++)
			if (!images[i].host && images[i].size)
				add_name(&has, images[i].arch);
		err = kp_fail(why, KPACK_ERROR_ARCH_NOT_FOUND,
			      "wrapper %u has no code for%s; it has%s", r.index,
			      asked.text, has.used ? has.text : " none");
		goto out;
	}

	err = kp_container_load(&r.fat.source, r.container, &payload, why);
	if (err)
		goto out;
	if (!kp_source_sub(&payload.source, r.image->offset, r.image->size, &bytes))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "%s: passes the end of its container", r.image->arch);
	else
		err = kp_source_load(&bytes, KP_OBJECT_MAX, "a code object", &buf, why);
	if (!err) {
		*code_object_out = buf;
		*code_object_size_out = (size_t)bytes.size;
	}
	kp_payload_fini(&payload);
out:
	kp_fatbin_fini(&r.fat);
	close(r.fd);
	return err;
}
