/* SPDX-License-Identifier: MIT */
/*
 * Which images of a file are device code, and for which architecture.
 *
 *	device_code_settle	which containers must be read to know it
 *	settle_container	decode those, and settle each image, from the outer to the inner ones
 *	kp_fatbin_number	the containers that have an index, KEY#INDEX
 *
 * Most containers say both.  Where one does not, as an archive of objects, the image must be read
 * (is_open); then its container must be loaded, and all around it.  A bare compressed container
 * is loaded in any case, to find damage now, while nothing is written: the scan decodes nested
 * containers completely, but of a bare one only its table.
 *
 * In a tree an image of a text bundle is only packed if the file's name is not that of
 * preprocessed source or of dependencies, which compilers bundle, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "core/format/format.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "input.h"

struct settler {
	struct kp_fatbin *fat;
	bool source; /* text bundles have source, not code */
	bool *packed;
	bool *read; /* per container: something in it must be read */
};

/*
 * Whether the container says that IMG is code: all entries of such a container are, whatever
 * their bytes are.  For a member or section its ID can say so.
 */
static bool is_declared(const struct settler *s, const struct kp_image *img)
{
	const struct kp_format *f = s->fat->containers.items[img->container].format;

	return f->type || f == &kp_format_bundle || f == &kp_format_ccob ||
	       f == &kp_format_text_bundle || f == &kp_format_offload_binary ||
	       f == &kp_format_fatbin || img->kind[0];
}

/* Whether IMG may be packed at all. */
static bool may_pack(const struct settler *s, const struct kp_image *img)
{
	return !img->host && !img->stream && img->inside == KP_NOWHERE &&
	       !(s->source && s->fat->containers.items[img->container].format ==
				      &kp_format_text_bundle);
}

/* Whether only the bytes of IMG show if it is packed, or for what.  An "sm_" may be PTX. */
static bool is_open(const struct settler *s, const struct kp_image *img)
{
	return !is_declared(s, img) || !*img->arch || strncmp(img->arch, "sm_", 3) == 0;
}

/*
 * Whether OBJECT is bitcode for a processor of the host, as for link-time optimisation.
 */
static bool is_for_host(const struct kp_object *object)
{
	static const char *const device[] = {"amdgcn", "amdgpu", "r600", "nvptx", "spir"};
	const char *triple = kp_pairs_find(&object->facts, "triple");

	if (strcmp(object->type, "bc") != 0 || !triple || !*triple)
		return false;
	for (size_t i = 0; i < KP_COUNT(device); i++)
		if (strncmp(triple, device[i], strlen(device[i])) == 0)
			return false;
	return true;
}

/* Find out whether image NUMBER, in PAYLOAD, is packed, and for which architecture. */
static kpack_error_t settle_image(struct settler *s, const struct kp_source *payload,
				  size_t number, struct kpackx_error *why)
{
	const struct kp_containers *list = &s->fat->containers;
	struct kp_image *img = &list->images[number];
	bool declared = is_declared(s, img);
	bool alone = list->items[img->container].format->type;
	char ptx[KP_TARGET_TEXT_MAX];
	KP_AUTO(kp_object) object = {0};
	struct kp_source src;
	const char *arch;

	s->packed[number] = true;
	if (!is_open(s, img))
		return KPACK_SUCCESS;
	if (!kp_source_sub(payload, img->offset, img->size, &src))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "an object passes the end of its container");
	KP_TRY(kp_object_describe(&src, &object, why));
	s->packed[number] = object.format
				    ? !((alone || !declared) && is_for_host(&object))
				    : declared;
	if (!s->packed[number])
		return KPACK_SUCCESS;
	/* the container of PTX may call it sm_90a */
	if (strcmp(object.type, "ptx") == 0 && strncmp(img->arch, "sm_", 3) == 0) {
		snprintf(ptx, sizeof(ptx), "%s", img->arch + 3);
		snprintf(img->arch, sizeof(img->arch), "compute_%.50s", ptx);
	}
	if (*img->arch)
		return KPACK_SUCCESS;
	/* its own, or that of the nearest image around it */
	arch = object.arch;
	for (size_t i = list->items[img->container].inside; i != KP_NOWHERE && !*arch;
	     i = list->items[list->images[i].container].inside)
		arch = list->images[i].arch;
	if (!*arch &&
	    (strcmp(object.type, "bc") == 0 || strcmp(object.type, "tileirbc") == 0 ||
	     strcmp(object.type, "spv") == 0))
		arch = KP_ARCH_GENERIC;
	snprintf(img->arch, sizeof(img->arch), "%s", arch);
	return *arch ? KPACK_SUCCESS
		     : kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "container %zu: entry %s names no target, nor does its "
			       "code",
			       img->container, img->id ? img->id : "(none)");
}

/* Settle container NUMBER in SRC, and those inside it.  Each is decoded at most once. */
static kpack_error_t settle_container(struct settler *s, const struct kp_source *src,
				      size_t number, struct kpackx_error *why)
{
	const struct kp_containers *list = &s->fat->containers;
	const struct kp_container *c = &list->items[number];
	struct kp_payload payload = {.source = {.fd = -1}};
	kpack_error_t err = KPACK_SUCCESS;

	if (s->read[number])
		err = kp_container_load(src, c, &payload, why);
	for (size_t i = c->first_image; i < c->first_image + c->n_images && !err; i++) {
		const struct kp_image *img = &list->images[i];
		struct kp_source inner = {.fd = -1};

		if (may_pack(s, img)) {
			err = settle_image(s, &payload.source, i, why);
			continue;
		}
		/* where nothing must be read there is no payload, and none is needed */
		if (img->inside != KP_NOWHERE && payload.source.size &&
		    !kp_source_sub(&payload.source, img->offset, img->size, &inner))
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "an image passes the end of its container");
		for (size_t k = img->inside; k != KP_NOWHERE && !err;
		     k = list->items[k].next)
			err = settle_container(s, &inner, k, why);
	}
	kp_payload_fini(&payload);
	return err;
}

kpack_error_t device_code_settle(struct kp_fatbin *fat, const char *name, bool in_tree,
				 bool *packed, struct kpackx_error *why)
{
	static const char *const source_ends[] = {".d", ".i", ".ii", ".cui", ".hipi"};
	const struct kp_containers *list = &fat->containers;
	struct settler s = {
		.fat = fat, .packed = packed, .read = xcalloc(list->count, 1)};
	/* the containers that get an index: those with packed code, and every one in
	 * .hip_fatbin except for containers that only hold others */
	bool *count = xcalloc(list->count, 1);
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < KP_COUNT(source_ends) && in_tree; i++)
		s.source |= kp_span_ends(kp_span_str(name), source_ends[i]);
	/*
	 * Which containers must be read?  They follow what they are inside of, so the loop runs from
	 * the end, and each marks the one around it.
	 */
	for (size_t c = list->count; c-- > 0;) {
		const struct kp_container *item = &list->items[c];

		if (fat->kind == KP_FATBIN_BARE && item->inside == KP_NOWHERE &&
		    item->format->load)
			s.read[c] = true;
		for (size_t i = item->first_image; i < item->first_image + item->n_images;
		     i++)
			if (may_pack(&s, &list->images[i]) &&
			    is_open(&s, &list->images[i]))
				s.read[c] = true;
		if (s.read[c] && item->inside != KP_NOWHERE)
			s.read[list->images[item->inside].container] = true;
	}
	for (size_t c = 0; c < list->count && !err; c++) {
		count[c] = list->items[c].inside == KP_NOWHERE &&
			   kp_format_is_hip(list->items[c].format);
		if (list->items[c].inside == KP_NOWHERE)
			err = settle_container(&s, &fat->source, c, why);
	}
	for (size_t i = 0; i < list->n_images; i++)
		if (list->images[i].inside != KP_NOWHERE)
			count[list->images[i].container] = false;
	for (size_t i = 0; i < list->n_images && !err; i++) {
		struct kp_span arch = kp_span_str(list->images[i].arch);

		if (!packed[i])
			continue;
		count[list->images[i].container] = true;
		if (!kp_component_ok(arch) || !kp_text_ok(arch))
			err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
				      "container %zu: architecture %s gives no file name",
				      list->images[i].container, list->images[i].arch);
	}
	if (!err)
		err = kp_fatbin_number(fat, count, why);
	free(s.read);
	free(count);
	return err;
}
