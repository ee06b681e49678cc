/* SPDX-License-Identifier: MIT */
/*
 * ar archive as a container: static libraries of objects with device code, heterogeneous
 * device archives of bundles, archives of device code for one target.  The images are the
 * members.
 */
#include "ar_archive.h"
#include "format.h"

static kpack_error_t add_member(const struct kp_ar_member *m, struct kp_container *c,
				struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_image *image;

	KP_TRY(kp_containers_add_image(list, c, kp_span_str(m->name), m->offset, m->size,
				       why));
	image = &list->images[list->n_images - 1];
	/* a member's name contains an entry ID, but is not one */
	image->host = false;
	image->kind[0] = image->arch[0] = '\0';
	return KPACK_SUCCESS;
}

/* Set C, which is all of SRC, to the members of AR. */
static kpack_error_t take_members(const struct kp_source *src, const struct kp_ar *ar,
				  struct kp_container *c, struct kp_containers *list,
				  struct kpackx_error *why)
{
	if (ar->thin)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "a thin archive: its members are other files, which are "
			       "not looked for");
	c->size = c->payload_size = src->size;
	for (size_t i = 0; i < ar->count; i++)
		KP_TRY(add_member(&ar->items[i], c, list, why));
	return KPACK_SUCCESS;
}

typedef kpack_error_t read_archive(const struct kp_source *src, struct kp_ar *out,
				   struct kpackx_error *why);

/*
 * List the members that READ finds.  After a failure, members before the damage are
 * listed.
 */
static kpack_error_t list_members(const struct kp_source *src, uint64_t off,
				  read_archive *read, struct kp_container *c,
				  struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_source rest;
	kpack_error_t err;
	struct kp_ar ar;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	err = read(&rest, &ar, why);
	if (!err || ar.count)
		err = take_members(&rest, &ar, c, list, why);
	kp_ar_fini(&ar);
	return err;
}

static kpack_error_t parse_archive(const struct kp_source *src, uint64_t off,
				   struct kp_container *c, struct kp_containers *list,
				   struct kpackx_error *why)
{
	return list_members(src, off, kp_ar_read, c, list, why);
}

static kpack_error_t salvage_archive(const struct kp_source *src, uint64_t off,
				     struct kp_container *c, struct kp_containers *list,
				     struct kpackx_error *why)
{
	return list_members(src, off, kp_ar_salvage, c, list, why);
}

const struct kp_format kp_format_archive = {
	.name = "archive",
	.probe = kp_ar_probe,
	.parse = parse_archive,
	.salvage = salvage_archive,
};
