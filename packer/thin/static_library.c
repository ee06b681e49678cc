/* SPDX-License-Identifier: MIT */
/*
 * The containers of a library are a tree: the archive has members, a member is an object,
 * the object has sections, the section .hip_fatbin has bundles.
 */
#include "static_library.h"
#include <stdlib.h>
#include <string.h>
#include "core/elf/relocatable.h"
#include "core/format/ar_archive.h"
#include "packer/cli/xalloc.h"

/* The section of an object, and the containers in it as a file of their own. */
struct section {
	size_t image;            /* of the library's containers */
	struct kp_source object; /* that it is in */
	uint64_t offset;         /* in the object */
	struct kp_fatbin fat;
	uint64_t *from; /* per container: where it begins */
};

struct work {
	const struct static_library *library;
	struct kp_ar ar;
	uint64_t saved; /* when only counting */
};

bool static_library_is(const struct kp_fatbin *fat)
{
	return fat->kind == KP_FATBIN_NESTED && fat->containers.count &&
	       fat->containers.items[0].format == &kp_format_archive &&
	       fat->containers.items[0].inside == KP_NOWHERE;
}

/* The container around IMAGE, if it has the format; or NULL. */
static const struct kp_container *container_around(const struct kp_fatbin *fat,
						   size_t image,
						   const struct kp_format *format)
{
	const struct kp_container *c =
		image == KP_NOWHERE
			? NULL
			: &fat->containers.items[fat->containers.images[image].container];

	return c && c->format == format ? c : NULL;
}

/* The member's image, if IMAGE is the section .hip_fatbin of an object that it is. */
static size_t member_of(const struct kp_fatbin *fat, size_t image)
{
	const struct kp_container *object =
		container_around(fat, image, &kp_format_host_elf);
	const char *name = image == KP_NOWHERE ? NULL : fat->containers.images[image].id;

	return object && name && strcmp(name, ".hip_fatbin") == 0 &&
			       object->offset == 0 &&
			       container_around(fat, object->inside, &kp_format_archive)
		       ? object->inside
		       : KP_NOWHERE;
}

/* The image of the section of MEMBER; KP_NOWHERE: it has none, or several. */
static size_t find_section(const struct kp_fatbin *fat, size_t member)
{
	size_t object = fat->containers.images[member].inside, found = KP_NOWHERE;
	const struct kp_container *c;

	if (object == KP_NOWHERE)
		return KP_NOWHERE;
	c = &fat->containers.items[object];
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		if (member_of(fat, i) != member)
			continue;
		if (found != KP_NOWHERE)
			return KP_NOWHERE;
		found = i;
	}
	return found;
}

bool static_library_has(const struct kp_fatbin *fat, size_t image)
{
	const struct kp_container *c =
		&fat->containers.items[fat->containers.images[image].container];
	size_t member;

	if (!static_library_is(fat) ||
	    (c->format != &kp_format_bundle && c->format != &kp_format_ccob))
		return false;
	member = member_of(fat, c->inside);
	return member != KP_NOWHERE && find_section(fat, member) == c->inside;
}

/* --- a member -------------------------------------------------------------------------- */

/* The containers of a section, numbered anew; their images keep their numbers. */
static void list_containers(struct section *s, const struct kp_containers *all)
{
	size_t first = all->images[s->image].inside, n = 0;

	for (size_t i = first; i != KP_NOWHERE; i = all->items[i].next)
		n++;
	s->fat.containers.items = xcalloc(n, sizeof(*s->fat.containers.items));
	s->from = xcalloc(n, sizeof(*s->from));
	n = 0;
	for (size_t i = first; i != KP_NOWHERE; i = all->items[i].next) {
		s->from[n] = all->items[i].offset;
		s->fat.containers.items[n] = all->items[i];
		s->fat.containers.items[n++].inside = KP_NOWHERE;
	}
	s->fat.containers.count = n;
	s->fat.containers.images = all->images;
	s->fat.containers.n_images = all->n_images;
}

static kpack_error_t open_section(struct section *s, const struct work *w, size_t image,
				  struct kpackx_error *why)
{
	const struct kp_fatbin *fat = w->library->fat;
	const struct kp_image *section = &fat->containers.images[image];
	const struct kp_image *member = &fat->containers.images[member_of(fat, image)];

	*s = (struct section){.image = image, .offset = section->offset};
	s->fat.kind = KP_FATBIN_BARE;
	if (!kp_source_sub(&fat->source, member->offset, member->size, &s->object) ||
	    !kp_source_sub(&s->object, section->offset, section->size, &s->fat.source))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "its device code passes its end");
	list_containers(s, &fat->containers);
	return KPACK_SUCCESS;
}

static void close_section(struct section *s)
{
	free(s->fat.containers.items);
	free(s->from);
}

/* Write the object with the CONTENTS of its section to OUT at AT. */
static kpack_error_t put_object(const struct kp_relocatable *object,
				const struct kp_outfile *contents, uint64_t rest,
				struct kp_outfile *out, uint64_t at,
				struct kpackx_error *why)
{
	uint64_t after = at + object->size - object->after;

	KP_TRY(kp_outfile_pwrite(out, at, object->bytes, (size_t)object->before, why));
	KP_TRY(kp_outfile_copy(out, at + object->before, contents->fd, 0, rest, why));
	return kp_outfile_pwrite(out, after, object->bytes + object->before,
				 (size_t)object->after, why);
}

/* As kp_ar_edit's, for a member with the section S. */
static kpack_error_t write_section(const struct work *w, const struct section *s,
				   struct kp_outfile *out, uint64_t at, uint64_t *size,
				   struct kpackx_error *why)
{
	const struct static_library *library = w->library;
	uint64_t *to = xcalloc(s->fat.containers.count, sizeof(*to));
	struct kp_outfile scratch = {.fd = -1, .dir_fd = -1};
	struct kp_relocatable_fill fill = {.offset = s->offset,
					   .size = s->fat.source.size,
					   .from = s->from,
					   .to = to,
					   .n = s->fat.containers.count};
	struct kp_relocatable object = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (out)
		err = library->scratch(library->arg, &scratch, why);
	if (!err)
		err = kp_selection_write(&s->fat, library->selection,
					 out ? &scratch : NULL, to, &fill.rest, why);
	if (!err)
		err = kp_relocatable_refill(&s->object, &fill, &object, why);
	if (!err && out)
		err = put_object(&object, &scratch, fill.rest, out, at, why);
	*size = object.size;
	kp_relocatable_fini(&object);
	kp_outfile_close(&scratch);
	free(to);
	return err;
}

static kpack_error_t changes_section(const struct work *w, size_t image, bool *changes,
				     struct kpackx_error *why)
{
	struct section s;
	kpack_error_t err = open_section(&s, w, image, why);

	if (!err)
		err = kp_selection_changes(&s.fat, w->library->selection, changes, why);
	close_section(&s);
	return err;
}

static kpack_error_t write_member(void *arg, size_t member, struct kp_outfile *out,
				  uint64_t at, uint64_t *size, bool *same,
				  struct kpackx_error *why)
{
	struct work *w = arg;
	const struct kp_fatbin *fat = w->library->fat;
	size_t image = find_section(fat, fat->containers.items[0].first_image + member);
	kpack_error_t err = KPACK_SUCCESS;
	bool changes = false;
	struct section s;

	if (image != KP_NOWHERE)
		err = changes_section(w, image, &changes, why);
	*same = !changes;
	if (!err && changes) {
		err = open_section(&s, w, image, why);
		if (!err)
			err = write_section(w, &s, out, at, size, why);
		if (!err)
			w->saved += s.object.size - *size -
				    kp_ar_padding(&w->ar, member, *size);
		close_section(&s);
	}
	return err ? kp_fail_prefix(why, err, "member %s", w->ar.items[member].name)
		   : KPACK_SUCCESS;
}

/* --- the library ----------------------------------------------------------------------- */

kpack_error_t static_library_changes(const struct static_library *library, bool *changes,
				     struct kpackx_error *why)
{
	const struct kp_containers *list = &library->fat->containers;
	struct work w = {.library = library};

	*changes = false;
	for (size_t i = 0; i < list->items[0].n_images && !*changes; i++) {
		size_t image = find_section(library->fat, list->items[0].first_image + i);

		if (image != KP_NOWHERE)
			KP_TRY(changes_section(&w, image, changes, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t count_members(struct work *w, struct kpackx_error *why)
{
	for (size_t i = 0; i < w->ar.count; i++) {
		uint64_t size;
		bool same;

		KP_TRY(write_member(w, i, NULL, 0, &size, &same, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t static_library_write(const struct static_library *library,
				   struct kp_outfile *out, uint64_t *size,
				   struct kpackx_error *why)
{
	const struct kp_source *src = &library->fat->source;
	struct work w = {.library = library};
	const struct kp_ar_edit edit = {write_member, &w};
	kpack_error_t err = kp_ar_read(src, &w.ar, why);

	if (!err && w.ar.count != library->fat->containers.items[0].n_images)
		err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "an archive with damaged members");
	if (!err)
		err = out ? kp_ar_rewrite(src, &w.ar, &edit, out, why)
			  : count_members(&w, why);
	*size = src->size - w.saved;
	kp_ar_fini(&w.ar);
	return err;
}
