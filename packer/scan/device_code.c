/* SPDX-License-Identifier: MIT */
#include "device_code.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/format/format.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"

struct settler {
	struct kp_fatbin *fat;
	const char *name;
	bool in_tree;
	bool *packed;
	bool *read; /* per container: something in it must be read */
	struct kpackx_error *why;
};

/* --- what is known without reading --------------------------------------------------- */

/* Whether all entries of such a container are code, whatever their bytes are. */
static bool holds_code(const struct kp_format *f)
{
	return f->type || f == &kp_format_bundle || f == &kp_format_ccob ||
	       f == &kp_format_text_bundle || f == &kp_format_offload_binary ||
	       f == &kp_format_fatbin;
}

/*
 * Whether the container says that IMG is code.  For a member or section its ID can say
 * so.
 */
static bool is_declared(const struct settler *s, const struct kp_image *img)
{
	return holds_code(s->fat->containers.items[img->container].format) ||
	       img->kind[0];
}

/*
 * Whether NAME is that of preprocessed source or of dependencies, which compilers bundle,
 * too.
 */
static bool is_source_name(const char *name)
{
	static const char *const ends[] = {".d", ".i", ".ii", ".cui", ".hipi"};

	for (size_t i = 0; i < KP_COUNT(ends); i++)
		if (kp_span_ends(kp_span_str(name), ends[i]))
			return true;
	return false;
}

/* Whether IMG may be packed at all. */
static bool may_pack(const struct settler *s, const struct kp_image *img)
{
	const struct kp_container *c = &s->fat->containers.items[img->container];

	if (img->host || img->stream || img->inside != KP_NOWHERE)
		return false;
	return !(s->in_tree && c->format == &kp_format_text_bundle &&
		 is_source_name(s->name));
}

/*
 * Whether only the bytes of IMG show if it is packed, or for what.  An "sm_" may be PTX.
 */
static bool is_open(const struct settler *s, const struct kp_image *img)
{
	return !is_declared(s, img) || !*img->arch || strncmp(img->arch, "sm_", 3) == 0;
}

/* --- architectures ------------------------------------------------------------------- */

static bool is_neutral(const char *type)
{
	return strcmp(type, "bc") == 0 || strcmp(type, "tileirbc") == 0 ||
	       strcmp(type, "spv") == 0;
}

/*
 * Returns the architecture of the nearest image around IMG's container that has one, or
 * "".
 */
static const char *arch_around(const struct kp_containers *list,
			       const struct kp_image *img)
{
	size_t inside = list->items[img->container].inside;

	for (; inside != KP_NOWHERE;
	     inside = list->items[list->images[inside].container].inside)
		if (*list->images[inside].arch)
			return list->images[inside].arch;
	return "";
}

/* Rename the architecture of PTX: its container may call it sm_90a. */
static void name_ptx(struct kp_image *img)
{
	char number[KP_TARGET_TEXT_MAX];

	if (strncmp(img->arch, "sm_", 3) != 0)
		return;
	snprintf(number, sizeof(number), "%s", img->arch + 3);
	snprintf(img->arch, sizeof(img->arch), "compute_%.50s", number);
}

static kpack_error_t name_arch(struct settler *s, struct kp_image *img,
			       const struct kp_object *object)
{
	const char *arch = object->arch;

	if (strcmp(object->type, "ptx") == 0)
		name_ptx(img);
	if (*img->arch)
		return KPACK_SUCCESS;
	if (!*arch)
		arch = arch_around(&s->fat->containers, img);
	if (!*arch && is_neutral(object->type))
		arch = KP_ARCH_GENERIC;
	if (!*arch)
		return kp_fail(s->why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "container %zu: entry %s names no target, nor does its "
			       "code",
			       img->container, img->id ? img->id : "(none)");
	snprintf(img->arch, sizeof(img->arch), "%s", arch);
	return KPACK_SUCCESS;
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

/* Whether OBJECT is code of a known kind. */
static bool is_code(const struct settler *s, const struct kp_image *img,
		    const struct kp_object *object)
{
	bool alone = s->fat->containers.items[img->container].format->type;

	if (!object->format)
		return is_declared(s, img);
	return !((alone || !is_declared(s, img)) && is_for_host(object));
}

static kpack_error_t settle_image(struct settler *s, const struct kp_source *payload,
				  size_t number)
{
	struct kp_image *img = &s->fat->containers.images[number];
	struct kp_object object;
	struct kp_source src;
	struct kpackx_error fault = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (!is_open(s, img)) {
		s->packed[number] = true;
		return KPACK_SUCCESS;
	}
	if (!kp_source_sub(payload, img->offset, img->size, &src))
		return kp_fail(s->why, KPACK_ERROR_INVALID_FORMAT,
			       "an object passes the end of its container");
	err = kp_object_describe(&src, &object, &fault);
	if (err) {
		if (s->why)
			*s->why = fault;
		return err;
	}
	s->packed[number] = is_code(s, img, &object);
	if (s->packed[number])
		err = name_arch(s, img, &object);
	kp_object_fini(&object);
	return err;
}

/* --- the walk ------------------------------------------------------------------------ */

/*
 * Whether C must be read to find damage: the scan decodes nested containers completely,
 * but of a bare one only its table.
 */
static bool may_be_damaged(const struct settler *s, const struct kp_container *c)
{
	return s->fat->kind == KP_FATBIN_BARE && c->inside == KP_NOWHERE &&
	       c->format->load;
}

/*
 * Find the containers that must be read.  Containers follow what they are inside of, so
 * the loop runs from the end, and each marks the one around it.  Damage must be found
 * now, while nothing is written; in a tree it is a note.
 */
static void find_open(struct settler *s)
{
	const struct kp_containers *list = &s->fat->containers;

	for (size_t c = list->count; c-- > 0;) {
		const struct kp_container *item = &list->items[c];

		if (may_be_damaged(s, item))
			s->read[c] = true;
		for (size_t i = item->first_image; i < item->first_image + item->n_images;
		     i++)
			if (may_pack(s, &list->images[i]) && is_open(s, &list->images[i]))
				s->read[c] = true;
		if (s->read[c] && item->inside != KP_NOWHERE)
			s->read[list->images[item->inside].container] = true;
	}
}

static kpack_error_t settle_container(struct settler *s, const struct kp_source *src,
				      size_t number);

/*
 * Settle an image, or the containers in it.  The container is loaded if anything in it
 * must be read.
 */
static kpack_error_t settle_or_descend(struct settler *s, const struct kp_source *payload,
				       size_t number)
{
	const struct kp_containers *list = &s->fat->containers;
	const struct kp_image *img = &list->images[number];
	struct kp_source src = {.fd = -1};

	if (may_pack(s, img))
		return settle_image(s, payload, number);
	if (img->inside == KP_NOWHERE)
		return KPACK_SUCCESS;
	/* where nothing must be read there is no payload, and none is needed */
	if (payload->size && !kp_source_sub(payload, img->offset, img->size, &src))
		return kp_fail(s->why, KPACK_ERROR_INVALID_FORMAT,
			       "an image passes the end of its container");
	for (size_t c = img->inside; c != KP_NOWHERE; c = list->items[c].next)
		KP_TRY(settle_container(s, &src, c));
	return KPACK_SUCCESS;
}

/* Settle container NUMBER in SRC.  Each is decoded at most once. */
static kpack_error_t settle_container(struct settler *s, const struct kp_source *src,
				      size_t number)
{
	const struct kp_container *c = &s->fat->containers.items[number];
	struct kp_payload payload = {.source = {.fd = -1}};
	kpack_error_t err = KPACK_SUCCESS;

	if (s->read[number])
		err = kp_container_load(src, c, &payload, s->why);
	for (size_t i = c->first_image; i < c->first_image + c->n_images && !err; i++)
		err = settle_or_descend(s, &payload.source, i);
	kp_payload_fini(&payload);
	return err;
}

/* --- numbers ------------------------------------------------------------------------- */

/*
 * Find the containers that get an index: those with packed code, and every one in
 * .hip_fatbin except for containers that only hold others.
 */
static void find_counted(const struct settler *s, bool *count)
{
	const struct kp_containers *list = &s->fat->containers;

	for (size_t c = 0; c < list->count; c++)
		count[c] = list->items[c].inside == KP_NOWHERE &&
			   kp_format_is_hip(list->items[c].format);
	for (size_t i = 0; i < list->n_images; i++)
		if (list->images[i].inside != KP_NOWHERE)
			count[list->images[i].container] = false;
	for (size_t i = 0; i < list->n_images; i++)
		if (s->packed[i])
			count[list->images[i].container] = true;
}

static bool names_file(struct kp_span arch)
{
	return kp_component_ok(arch) && kp_text_ok(arch);
}

static kpack_error_t check_names(const struct settler *s)
{
	const struct kp_containers *list = &s->fat->containers;

	for (size_t i = 0; i < list->n_images; i++)
		if (s->packed[i] && !names_file(kp_span_str(list->images[i].arch)))
			return kp_fail(
				s->why, KPACK_ERROR_NOT_IMPLEMENTED,
				"container %zu: architecture %s gives no file name",
				list->images[i].container, list->images[i].arch);
	return KPACK_SUCCESS;
}

static kpack_error_t settle_all(struct settler *s, bool *count)
{
	const struct kp_containers *list = &s->fat->containers;

	find_open(s);
	for (size_t c = 0; c < list->count; c++)
		if (list->items[c].inside == KP_NOWHERE)
			KP_TRY(settle_container(s, &s->fat->source, c));
	KP_TRY(check_names(s));
	find_counted(s, count);
	return kp_fatbin_number(s->fat, count, s->why);
}

kpack_error_t device_code_settle(struct kp_fatbin *fat, const char *name, bool in_tree,
				 bool *packed, struct kpackx_error *why)
{
	size_t n = fat->containers.count;
	struct settler s = {.fat = fat,
			    .name = name,
			    .in_tree = in_tree,
			    .packed = packed,
			    .read = xcalloc(n, 1),
			    .why = why};
	bool *count = xcalloc(n, 1);
	kpack_error_t err = settle_all(&s, count);

	free(s.read);
	free(count);
	return err;
}
