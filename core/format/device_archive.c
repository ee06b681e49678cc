/* SPDX-License-Identifier: MIT */
/*
 * ar archive: static libraries of objects with device code, heterogeneous device archives of
 * bundles, archives of device code of one target.  Its images are the members.
 */
#include "ar.h"
#include "format.h"

static kpack_error_t add_member(const struct kp_ar_member *m, struct kp_container *c,
				struct kp_containers *list, struct kpackx_error *why)
{
	struct kp_image *image;

	KP_TRY(kp_containers_add_image(list, c, kp_span_str(m->name), m->offset, m->size,
				       why));
	image = &list->images[list->n_images - 1];
	/* names are made of entry IDs, but are none */
	image->host = false;
	image->kind[0] = image->arch[0] = '\0';
	return KPACK_SUCCESS;
}

static kpack_error_t parse(const struct kp_source *src, uint64_t off,
			   struct kp_container *c, struct kp_containers *list,
			   struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_source rest;
	struct kp_ar ar;

	if (!kp_source_sub(src, off, src->size - off, &rest))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "begins after the end");
	KP_TRY(kp_ar_read(&rest, &ar, why));
	if (ar.thin)
		err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "a thin archive: its members are other files, which are "
			      "not looked for");
	c->size = c->payload_size = rest.size;
	for (size_t i = 0; i < ar.count && !err; i++)
		err = add_member(&ar.items[i], c, list, why);
	kp_ar_fini(&ar);
	return err;
}

const struct kp_format kp_format_archive = {
	.name = "archive",
	.probe = kp_ar_probe,
	.parse = parse,
};
