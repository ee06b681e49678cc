/* SPDX-License-Identifier: MIT */
/*
 * Converting a host binary: its marker, which names its key and the archives of its code, and
 * its recipe, which gives the original back.
 *
 *	name		the key of its objects without "#index": lib/libx.so
 *	search paths	../.kpack/GROUP_@GFXARCH@.kpack, from the binary's directory
 *
 * Archives come first (run.c), so that their names and the objects' hashes, which the recipe has,
 * are known.  A file with several paths has one marker: the search paths of all its directories
 * are in it, and the loader skips those that lead nowhere.
 *
 * A run that is killed in place leaves binaries that have some of their paths converted.  Those
 * look like other files, which are converted already; the next run recognises them by their
 * marker, and joins them to the file that they come from (packing_resume).
 */
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "core/host/convert.h"
#include "core/host/search_path.h"
#include "core/restore/recipe.h"
#include "packer/archives/binary.h"
#include "packer/cli/xalloc.h"
#include "run.h"

/* --- the marker ---------------------------------------------------------------------- */

/* Texts without duplicates, in the order they were added. */
struct texts {
	char **items;
	size_t n, cap;
};

static void texts_fini(struct texts *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
}

/* Takes over TEXT. */
static void add_text(struct texts *list, char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0) {
			free(text);
			return;
		}
	xgrow(&list->items, list->n, &list->cap, sizeof(char *));
	list->items[list->n++] = text;
}

/*
 * List the files of the archives that the plan stores the code of B in; or if ALL, of those it
 * would be in if every target were selected.  In the name of an archive that is not a family's the
 * loader puts the architecture of its GPU in place of KP_SEARCH_ARCH.
 */
static void list_archives(const struct packing *p, const struct plan_binary *b, bool all,
			  struct texts *files)
{
	const struct input *in = b->input;
	size_t n = all ? in->n_images : b->n_needs;

	for (size_t i = 0; i < n || (i == 0 && !all); i++) {
		/* no requested target: another run may pack others */
		const char *arch = all     ? in->images[i].arch
				   : i < n ? b->needs[i].place
					   : NULL;
		const struct family *family =
			arch ? families_find(&p->args.families, arch) : NULL;
		KP_AUTO_FREE char *stem = NULL;
		char *file;

		if (all && !in->packed[i])
			continue;
		stem = xasprintf("%s%s", family ? "-" : "_",
				 family ? family->name : KP_SEARCH_ARCH);
		file = kp_archive_file_name(p->args.group, b->volume, stem);
		if (!file)
			xalloc_fail(0);
		add_text(files, file);
	}
}

/* --- the file ------------------------------------------------------------------------ */

static kpack_error_t check_binary(void *arg, struct input *in, int fd,
				  struct kpackx_error *why)
{
	const struct packing *p = arg;
	struct kp_convert_options options = {.keep_device_code = p->args.keep_device_code,
					     .drop_signature = p->args.drop_signature};

	return kp_convert_check(fd, (uint64_t)in->st.st_size, &in->fat, &options, why);
}

static kpack_error_t convert_binary(void *arg, struct input *in, int fd,
				    struct kp_outfile *out, struct kpackx_error *why)
{
	const struct packing *p = arg;
	const struct scan *scan = &p->scan;
	struct disposition *o = &p->dispositions.items[in->entry];
	uint64_t size = (uint64_t)in->st.st_size;
	KP_AUTO(texts) files = {0}, paths = {0};
	struct kp_marker marker = {.kernel_name = in->key};
	KP_AUTO(kp_recipe) recipe = {0};
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = fd, .size = size};
	struct kp_convert_options options = {.recipe = kp_recipe_complete,
					     .recipe_arg = &maker,
					     .keep_device_code = p->args.keep_device_code,
					     .drop_signature = p->args.drop_signature};
	KP_AUTO_FREE uint8_t *bytes = NULL;
	size_t n_bytes;
	kpack_error_t err;

	/*
	 * The marker: archives are search paths from every path that the binary has in the scan;
	 * paths at different depths below the root have their own.
	 */
	list_archives(p, plan_find(&p->plan, in->key), p->kind == PACKING_APART, &files);
	for (size_t e = in->entry; e != SCAN_NO_LINK; e = scan->entries[e].next_link) {
		KP_AUTO_FREE char *up = xstrdup("");

		for (const char *c = scan->entries[e].relative; *c; c++) {
			char *more = *c == '/' ? xasprintf("../%s", up) : NULL;

			if (more) {
				free(up);
				up = more;
			}
		}
		for (size_t i = 0; i < files.n; i++)
			add_text(&paths, xasprintf("%s%s/%s", up, scan->archives_dir,
						   files.items[i]));
	}
	marker.search_paths = paths.items;
	marker.n_search_paths = paths.n;
	KP_TRY(kp_marker_write(&marker, &bytes, &n_bytes, why));
	options.marker = (struct kp_span){bytes, n_bytes};

	/* the recipe: apart, the binary is the same whatever was selected, even nothing */
	KP_TRY(kp_recipe_describe(
		&in->fat, (const uint8_t(*)[16])in->xxh3, in->known,
		(p->kind == PACKING_APART ? KP_RECIPE_COMPUTE : 0) |
			(p->args.keep_containers ? KP_RECIPE_KEEP : 0) |
			(p->args.keep_device_code ? KP_RECIPE_IN_FILE : 0),
		&recipe, why));
	for (size_t i = 0; i < recipe.n_forms; i++)
		o->n_kept += recipe.forms[i].kept != 0;
	o->kept_size = recipe.n_kept;
	err = kp_convert(fd, size, &in->fat, &options, out, why);
	free((void *)maker.bytes.data);
	return err;
}

struct converter packing_converter(struct packing *p)
{
	return (struct converter){
		.scan = &p->scan,
		.inputs = p->scan.inputs,
		.n_inputs = p->scan.n_inputs,
		.dispositions = &p->dispositions,
		.output = p->args.mode == PACK_TREE ? p->args.output : NULL,
		.jobs = p->args.how.jobs,
		.check = check_binary,
		.rewrite = convert_binary,
		.arg = p,
	};
}

/* --- after a killed run -------------------------------------------------------------- */

/*
 * Join the converted binary B, the scan's ENTRY, to the paths of the file that it seems to come from, if
 * it leads to an archive GROUP_..., GROUP-... or GROUP.N_... of this run.
 */
static kpack_error_t resume_binary(struct packing *p, size_t entry, struct binary *b,
				   struct kpackx_error *why)
{
	struct scan_entry *entries = p->scan.entries;
	const struct kp_marker *marker = &b->marker;
	const struct plan_binary *binary = NULL;
	const struct input *in;
	size_t n_group = strlen(p->args.group), n = 0, head;
	KP_AUTO(texts) files = {0};
	KP_AUTO_FREE size_t *links = NULL;
	bool same, all = true;

	/* faults of a marker are not reported here */
	if (binary_read_marker(b, NULL))
		return KPACK_SUCCESS;
	for (size_t i = 0; i < marker->n_search_paths && !binary; i++) {
		const char *file = kp_path_name(marker->search_paths[i]);

		if (strncmp(file, p->args.group, n_group) == 0 && file[n_group] &&
		    strchr("_-.", file[n_group]))
			binary = plan_find(&p->plan, marker->kernel_name);
	}
	if (!binary)
		return KPACK_SUCCESS;
	in = binary->input;

	/* its key is going to have the objects of this run: are they those that it was made of? */
	same = !binary_read_layout(b, NULL) && b->has_layout &&
	       b->layout.n_images == in->n_images;
	for (size_t i = 0; i < in->n_images && same; i++) {
		const struct kp_recipe_image *image = &b->layout.images[i];

		same = image->size == in->images[i].size &&
		       (!in->known[i] ||
			(image->has_xxh3 &&
			 memcmp(image->xxh3, in->xxh3[i], sizeof(image->xxh3)) == 0));
	}
	list_archives(p, binary, false, &files);
	for (size_t i = 0; i < files.n; i++) {
		bool named = false;

		for (size_t k = 0; k < marker->n_search_paths; k++)
			named |= strcmp(kp_path_name(marker->search_paths[k]),
					files.items[i]) == 0;
		all &= named;
	}
	if (!same || !all)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "its marker names %s, whose code %s: give another --group "
			       "or a --key-prefix",
			       in->key,
			       same ? "would go to other archives now"
				    : "now is another");

	/* the first path is converted last, and converting preserves attributes */
	head = in->entry;
	if (entry < head || p->dispositions.items[head].fate != FATE_CONVERTED ||
	    b->st.st_mode != in->st.st_mode || b->st.st_uid != in->st.st_uid ||
	    b->st.st_gid != in->st.st_gid ||
	    !file_identity_same_time(&b->st.st_mtim, &in->st.st_mtim))
		return KPACK_SUCCESS;
	links = xmalloc(p->scan.n_entries * sizeof(*links));
	for (size_t i = head; i < p->scan.n_entries; i++)
		if (entries[i].first == head || entries[i].first == entry)
			links[n++] = i;
	scan_chain(&p->scan, links, n);
	p->dispositions.items[entry].fate = FATE_LINKED;
	return KPACK_SUCCESS;
}

kpack_error_t packing_resume(struct packing *p, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < p->scan.n_entries && !err; i++) {
		const struct scan_entry *e = &p->scan.entries[i];
		struct binary b;

		if (!e->converted)
			continue;
		err = binary_open(e->path, &b, why);
		if (!err && !file_identity_is(&e->id, &b.st))
			err = kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
		if (!err)
			err = resume_binary(p, i, &b, why);
		if (err)
			kp_fail_prefix(why, err, "%s", e->path);
		binary_close(&b);
	}
	return err;
}
