/* SPDX-License-Identifier: MIT */
/*
 * Static libraries whose members are objects with device code (.hip_fatbin), which programs
 * get when they are linked.  The containers of a library are a tree: the archive has members, a
 * member is an object, the object has sections, the section .hip_fatbin has bundles.  Code is
 * removed from members with one such section; the object around it is linked later, so that its
 * symbols and relocations follow.
 *
 *	archive        items[0]; its images are the members, in order
 *	  object       inside a member; its images are the sections
 *	    bundles    inside a section; their images are the code
 *
 * Where a library is not of that shape - an archive in an archive, several such sections in a member -
 * its code stays.
 */
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/format/ar_archive.h"
#include "core/host/convert.h"
#include "packer/cli/xalloc.h"
#include "thin.h"

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

/* --- a section ------------------------------------------------------------------------- */

/* The section of a member, and the containers in it as those of a file of their own. */
struct section {
	struct kp_source object; /* that it is in */
	uint64_t offset;         /* in the object */
	struct kp_fatbin fat;
	uint64_t *from; /* per container: where it begins */
};

static void section_fini(struct section *s)
{
	free(s->fat.containers.items);
	free(s->from);
}

/* Open the section that is the image IMAGE of the library FAT. */
static kpack_error_t open_section(struct section *s, const struct kp_fatbin *fat,
				  size_t image, struct kpackx_error *why)
{
	const struct kp_containers *all = &fat->containers;
	const struct kp_image *section = &all->images[image];
	const struct kp_image *member = &all->images[member_of(fat, image)];
	struct kp_containers *own = &s->fat.containers;
	size_t n = 0;

	s->offset = section->offset;
	s->fat.kind = KP_FATBIN_BARE;
	if (!kp_source_sub(&fat->source, member->offset, member->size, &s->object) ||
	    !kp_source_sub(&s->object, section->offset, section->size, &s->fat.source))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "its device code passes its end");
	/* the containers get numbers from 0, their images keep theirs */
	for (size_t i = section->inside; i != KP_NOWHERE; i = all->items[i].next)
		n++;
	own->items = xcalloc(n, sizeof(*own->items));
	s->from = xcalloc(n, sizeof(*s->from));
	for (size_t i = section->inside; i != KP_NOWHERE; i = all->items[i].next) {
		s->from[own->count] = all->items[i].offset;
		own->items[own->count] = all->items[i];
		own->items[own->count++].inside = KP_NOWHERE;
	}
	own->images = all->images;
	own->n_images = all->n_images;
	return KPACK_SUCCESS;
}

/* --- a library ------------------------------------------------------------------------- */

struct library_edit {
	const struct thin *thin;
	const struct input *in;
	const struct kp_selection *selection;
	struct kp_ar ar;
	uint64_t saved; /* when only counting */
};

/* Write MEMBER, if something in it changes, for write_member. */
static kpack_error_t write_changed(struct library_edit *e, size_t member,
				   struct kp_outfile *out, uint64_t at, uint64_t *size,
				   bool *changes, struct kpackx_error *why)
{
	const struct kp_fatbin *fat = &e->in->fat;
	size_t image = find_section(fat, fat->containers.items[0].first_image + member);
	KP_AUTO(kp_outfile) scratch = {.fd = -1, .dir_fd = -1};
	struct kp_relocatable_fill fill = {0};
	KP_AUTO(kp_relocatable) object = {0};
	KP_AUTO_FREE uint64_t *to = NULL;
	KP_AUTO(section) s = {0};

	if (image == KP_NOWHERE)
		return KPACK_SUCCESS;
	KP_TRY(open_section(&s, fat, image, why));
	KP_TRY(kp_selection_changes(&s.fat, e->selection, changes, why));
	if (!*changes)
		return KPACK_SUCCESS;
	to = xcalloc(s.fat.containers.count, sizeof(*to));
	if (out)
		KP_TRY(thin_open_scratch(e->thin, e->in, &scratch, why));
	KP_TRY(kp_selection_write(&s.fat, e->selection, out ? &scratch : NULL, to,
				  &fill.rest, why));
	fill.offset = s.offset;
	fill.size = s.fat.source.size;
	fill.from = s.from;
	fill.to = to;
	fill.n = s.fat.containers.count;
	KP_TRY(kp_relocatable_refill(&s.object, &fill, &object, why));
	*size = object.size;
	e->saved += s.object.size - *size - kp_ar_padding(&e->ar, member, *size);
	if (!out)
		return KPACK_SUCCESS;
	KP_TRY(kp_outfile_pwrite(out, at, object.bytes, (size_t)object.before, why));
	KP_TRY(kp_outfile_copy(out, at + object.before, scratch.fd, 0, fill.rest, why));
	return kp_outfile_pwrite(out, at + object.size - object.after,
				 object.bytes + object.before, (size_t)object.after, why);
}

/* For kp_ar_rewrite; OUT NULL: only count. */
static kpack_error_t write_member(void *arg, size_t member, struct kp_outfile *out,
				  uint64_t at, uint64_t *size, bool *same,
				  struct kpackx_error *why)
{
	struct library_edit *e = arg;
	bool changes = false;
	kpack_error_t err = write_changed(e, member, out, at, size, &changes, why);

	*same = !changes;
	return err ? kp_fail_prefix(why, err, "member %s", e->ar.items[member].name)
		   : err;
}

kpack_error_t static_library_changes(const struct kp_fatbin *fat,
				     const struct kp_selection *selection, bool *changes,
				     struct kpackx_error *why)
{
	const struct kp_container *library = &fat->containers.items[0];

	*changes = false;
	for (size_t i = 0; i < library->n_images && !*changes; i++) {
		size_t image = find_section(fat, library->first_image + i);
		KP_AUTO(section) s = {0};

		if (image == KP_NOWHERE)
			continue;
		KP_TRY(open_section(&s, fat, image, why));
		KP_TRY(kp_selection_changes(&s.fat, selection, changes, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t static_library_write(const struct thin *t, const struct input *in,
				   const struct kp_selection *selection,
				   struct kp_outfile *out, uint64_t *size,
				   struct kpackx_error *why)
{
	const struct kp_source *src = &in->fat.source;
	struct library_edit e = {.thin = t, .in = in, .selection = selection};
	const struct kp_ar_edit edit = {write_member, &e};
	kpack_error_t err = kp_ar_read(src, &e.ar, why);
	uint64_t member_size;
	bool same;

	if (!err && e.ar.count != in->fat.containers.items[0].n_images)
		err = kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			      "an archive with damaged members");
	if (!err && out)
		err = kp_ar_rewrite(src, &e.ar, &edit, out, why);
	for (size_t i = 0; i < e.ar.count && !err && !out; i++)
		err = write_member(&e, i, NULL, 0, &member_size, &same, why);
	*size = src->size - e.saved;
	kp_ar_fini(&e.ar);
	return err;
}
