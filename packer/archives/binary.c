/* SPDX-License-Identifier: MIT */
/*
 * A converted binary has two sections of ours: the marker, which names its key and the archives of
 * its code, and the layout, a recipe that says how the original came to be (core/restore).  The
 * layout may be missing, or of another tool; the marker never is.
 *
 * Rewriting: rewrite_open finds the file that is replaced, and makes one without a name beside it;
 * the caller writes it; rewrite_publish gives it attributes and name.  Until then nothing has
 * changed, and then only if the file that was read is still there: between the two a package
 * manager may have put a newer one in its place, which must not be lost.
 */
#include "binary.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"
#include "packer/files/identity.h"

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

kpack_error_t binary_read_marker(struct binary *b, struct kpackx_error *why)
{
	const struct kp_host_part *marker = &b->fat.host.marker;
	struct kp_source section = kp_source_fd(b->fd, marker->offset, marker->size);
	KP_AUTO_FREE uint8_t *bytes = NULL;

	KP_TRY(kp_fatbin_check_marker(&b->fat, why));
	/* bytes beyond that limit are ignored */
	if (section.size > KP_MARKER_MAX)
		section.size = KP_MARKER_MAX;
	KP_TRY(kp_source_load(&section, KP_MARKER_MAX, "a section", &bytes, why));
	return kp_marker_parse((struct kp_span){bytes, (size_t)section.size}, &b->marker,
			       why);
}

kpack_error_t binary_read_layout(struct binary *b, struct kpackx_error *why)
{
	const struct kp_host_part *layout = &b->fat.host.layout;
	struct kp_source section = kp_source_fd(b->fd, layout->offset, layout->size);

	if (section.size == 0)
		return KPACK_SUCCESS;
	KP_TRY(kp_recipe_read(&section, &b->layout, why));
	b->has_layout = true;
	if (b->layout.n_wrappers != b->fat.host.n_wrappers)
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "layout: of a binary with %zu wrappers; this has %zu",
			       b->layout.n_wrappers, b->fat.host.n_wrappers);
	return KPACK_SUCCESS;
}

kpack_error_t binary_set_marker(const struct binary *b, struct kp_span marker,
				struct kp_outfile *out, struct kpackx_error *why)
{
	KP_AUTO(kp_recipe) recipe = {0};
	struct kp_recipe_maker maker = {
		.recipe = &recipe, .fd = b->fd, .converted = true};
	struct kp_convert_options options = {.marker = marker,
					     .recipe_arg = &maker,
					     .drop_signature = b->drop_signature};
	const struct kp_host_part *layout = &b->fat.host.layout;
	struct kp_source section = kp_source_fd(b->fd, layout->offset, layout->size);
	kpack_error_t err;

	KP_TRY(kp_fatbin_check_marker(&b->fat, why));
	/* what is no recipe of ours, or a damaged one, stays */
	err = section.size ? kp_recipe_read(&section, &recipe, why)
			   : KPACK_ERROR_NOT_IMPLEMENTED;
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR)
		return err;
	if (!err)
		options.recipe = kp_recipe_complete;
	err = kp_convert_set(b->fd, b->size, &b->fat, &options, out, why);
	free((void *)maker.bytes.data);
	return err;
}

uint32_t binary_index(const struct binary *b, size_t wrapper)
{
	return (uint32_t)b->fat.host.wrappers[wrapper].fields.index;
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
	case KP_FATBIN_HOST:
		return "fat";
	case KP_FATBIN_CONVERTED:
		return b->fat.host.has_fatbin ? "converted, device code kept"
					      : "converted";
	case KP_FATBIN_BARE:
		return "bare container";
	default:
		return "no device code";
	}
}

/* --- rewriting ---------------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

kpack_error_t rewrite_open(struct rewrite *r, const struct binary *from, const char *path,
			   struct kpackx_error *why)
{
	const char *fault = NULL;
	char text[160];
	struct stat link;
	kpack_error_t err;
	int error;

	*r = (struct rewrite){.from = from,
			      .to = {.dir = -1, .fd = -1},
			      .out = {.fd = -1, .dir_fd = -1}};
	/* the file to replace; for a link, the one that it leads to */
	error = below_target_open(&r->to, path) < 0 ? errno : 0;
	r->in_place = r->to.fd >= 0 && same_file(&r->to.st, &from->st);
	/* a device or the like stays: a user who names /dev/null wants to keep it */
	if (r->to.fd < 0 && (!error || error == ENOENT) && below_lstat(path, &link) == 0)
		fault = "is a link that leads nowhere";
	else if (r->to.fd >= 0 && (!S_ISREG(r->to.st.st_mode) || r->to.is_open))
		fault = "is no regular file";
	errno = error;
	if (fault)
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: %s; not replaced",
			      kp_text_escape(kp_span_str(path), text, sizeof(text)),
			      fault);
	else if (error)
		err = kp_fail_prefix(why, below_fail(why, "cannot find where it is"),
				     "%s", path);
	else /* no other user can read it before it has its permissions */
		err = below_target_outfile(&r->to, &r->out, 0600, why);
	if (err)
		rewrite_close(r);
	return err;
}

kpack_error_t rewrite_publish(struct rewrite *r, struct kpackx_error *why)
{
	const struct stat *st = &r->from->st;
	const struct file_identity was = file_identity_of(st);
	struct stat now;

	KP_TRY(attributes_copy(r->from->fd, r->out.fd, st, why));
	/* a replaced file keeps its owner, and leaves no other links with the old content */
	if (r->in_place && st->st_nlink > 1)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"has %llu hard links; replacing one would leave the others "
			"as they are",
			(unsigned long long)st->st_nlink);
	if (r->in_place && fstat(r->out.fd, &now) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	if (r->in_place && (now.st_uid != st->st_uid || now.st_gid != st->st_gid))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "cannot keep its owner %u:%u",
			       (unsigned)st->st_uid, (unsigned)st->st_gid);
	/* what was read is unchanged, and still has the name that will be replaced */
	if (fstat(r->from->fd, &now) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	if (!file_identity_is(&was, &now))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	if (r->in_place && below_lstat_at(r->to.dir, r->to.name, &now) < 0)
		return below_fail(why, "cannot stat");
	if (r->in_place && !same_file(&now, st))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	return kp_outfile_publish(&r->out, why);
}

void rewrite_close(struct rewrite *r)
{
	kp_outfile_close(&r->out);
	if (r->from)
		below_target_close(&r->to);
	*r = (struct rewrite){.out = {.fd = -1, .dir_fd = -1}};
}

/* --- markers from options ------------------------------------------------------------ */

void marker_set_name(struct kp_marker *marker, const char *name)
{
	char *copy = xstrdup(name);

	free(marker->kernel_name);
	marker->kernel_name = copy;
}

void marker_add_path(struct kp_marker *marker, const char *path)
{
	size_t n = marker->n_search_paths;

	marker->search_paths = xrealloc(marker->search_paths, (n + 1) * sizeof(char *));
	marker->search_paths[n] = xstrdup(path);
	marker->n_search_paths++;
}
