/* SPDX-License-Identifier: MIT */
/*
 * Files of kernel databases whose path already has other bytes in the output: in archives of
 * other runs, or in the tree.  The files of the run are listed by path, as archives name them;
 * then each side of the output is asked what it has there.
 *
 * A path cannot have two contents.  A mount shows one of them, and which one depends on its order
 * of archives; so a library would find, for the same GPU, one build's index and another build's
 * kernels.  That is why a difference is a fault unless --prefer says who wins.
 *
 *	ours, for one GPU	replaces our group's entry, or the file, for it: it is a rebuild
 *	ours, generic		every GPU needs it, and the other build's GPUs still do: a clash
 *
 * Bytes are compared by hash with archives, of which most have one stored, and directly with files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/target/target.h"
#include "packer/archives/content.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "run.h"

/* The number of differences that are reported one by one. */
enum { REPORTED_MAX = 20 };

/* A file of a database, or a link in its place, that is to be packed or copied. */
struct clash_file {
	char *path; /* as archives name it */
	size_t entry;
	const char *disk; /* the file that has its bytes, from `offset` on */
	uint64_t offset, size;
	bool stored; /* the plan stores it */
	bool link;   /* it is a symbolic link */
	bool hashed;
	struct kp_hash hash;
	bool differs; /* the output's tree has other bytes at its path */
	bool dropped; /* the output's file or entry is preferred */
};

struct clash {
	struct packing *p;
	struct clash_file *files; /* sorted by path */
	size_t n_files, cap;
	size_t n_faults;
	bool in_tree; /* they are compared with the output's tree, not with its archives */
};

/* --- our files ----------------------------------------------------------------------- */

/* The path of a database's file, which O is; NULL: O is something else. */
static const char *path_of(const struct plan_object *o)
{
	return o->input->kind == INPUT_DATABASE ? o->input->objects[o->image].path : NULL;
}

static struct clash_file *find_file(const struct clash *c, const char *path)
{
	const struct clash_file probe = {.path = (char *)path};

	return kp_find(c->files, c->n_files, &probe, KP_BY_TEXT(struct clash_file, path));
}

/* Add the file or link ENTRY, which is not packed, if it may be a library's. */
static void add_plain_file(struct clash *c, size_t entry, uint64_t size)
{
	const struct scan_entry *e = &c->p->scan.entries[entry];
	const struct library_set *set = &c->p->args.libraries;
	const char *prefix = c->p->args.prefix;
	struct clash_file file = {
		.path = xasprintf("%s%s%s", prefix, *prefix ? "/" : "", e->relative),
		.entry = entry,
		.disk = e->path,
		.size = size,
		.link = S_ISLNK(e->mode)};
	struct library_question q = {.tree = &c->p->scan.files, .path = file.path};

	for (size_t i = 0; i < set->count; i++) {
		q.library = set->items[i];
		if (!q.library->probe(&q))
			continue;
		xgrow(&c->files, c->n_files, &c->cap, sizeof(file));
		c->files[c->n_files++] = file;
		return;
	}
	free(file.path);
}

/* List what is packed, or copied as it is; and links, which hide what archives have there. */
static void list_files(struct clash *c)
{
	bool packed = pack_args_take_databases(&c->p->args);
	const struct plan *plan = &c->p->plan;
	const struct scan *scan = &c->p->scan;

	for (size_t i = 0; i < plan->n_objects && packed; i++) {
		const struct input *in = plan->objects[i].input;
		const struct kp_image *img = &in->images[plan->objects[i].image];

		if (!path_of(&plan->objects[i]))
			continue;
		xgrow(&c->files, c->n_files, &c->cap, sizeof(*c->files));
		c->files[c->n_files++] =
			(struct clash_file){.path = xstrdup(path_of(&plan->objects[i])),
					    .entry = in->entry,
					    .disk = in->path,
					    .offset = img->offset,
					    .size = img->size,
					    .stored = true};
	}
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		struct stat st;

		if (e->archive)
			continue;
		if (S_ISREG(e->mode) && !e->leftover && !packed)
			add_plain_file(c, i, e->id.size);
		else if (S_ISLNK(e->mode) && c->p->args.mode != PACK_ARCHIVES &&
			 below_stat(e->path, &st) == 0 && S_ISREG(st.st_mode))
			add_plain_file(c, i, (uint64_t)st.st_size);
	}
	kp_sort(c->files, c->n_files, KP_BY_TEXT(struct clash_file, path));
}

/*
 * Report that OTHER, an archive with code for ARCH or a file for it, has other bytes than F, and apply
 * the preference; FIXED is why --prefer input cannot replace these, or NULL.  Where the output is
 * preferred, F is left out; but a packed file whose path an archive has stays visible in the tree, so its
 * disposition does not change.
 */
static void report_clash(struct clash *c, struct clash_file *f, const char *other,
			 const char *arch, const char *fixed)
{
	const struct pack_args *args = &c->p->args;
	const char *path = c->p->scan.entries[f->entry].path;
	bool tree = args->mode == PACK_TREE;
	struct disposition *o;
	char reason[400];

	if (args->prefer == PREFER_OUTPUT) {
		if (!args->quiet)
			report_error(path,
				     "note: left out, because %s (%s) has other bytes",
				     other, arch);
		f->dropped = true;
		if (args->mode == PACK_ARCHIVES)
			return;
		o = &c->p->dispositions.items[f->entry];
		if (o->fate == FATE_PACKED && tree && !c->in_tree)
			return;
		snprintf(reason, sizeof(reason), "%.360s has other bytes", other);
		disposition_set(o, tree ? FATE_NOT_WANTED : FATE_LEFT_ALONE, reason);
	} else if (args->prefer == PREFER_INPUT && !fixed) {
		if (!args->quiet)
			report_error(path, "note: replaces other bytes in %s (%s)", other,
				     arch);
	} else if (++c->n_faults > REPORTED_MAX) {
		return;
	} else if (args->prefer == PREFER_INPUT) {
		report_error(path,
			     "other bytes than in %s (%s), which --prefer input cannot "
			     "replace: %s",
			     other, arch, fixed);
	} else {
		report_error(path,
			     "other bytes than in %s (%s): one path cannot have both; "
			     "--prefer input or output",
			     other, arch);
	}
}

/*
 * End a comparison: say how many faults there are more, or let the plan store nothing of what was
 * dropped.  ERR, if it failed, is returned.
 */
static kpack_error_t settle_clashes(struct clash *c, kpack_error_t err,
				    struct kpackx_error *why)
{
	struct plan *plan = &c->p->plan;
	KP_AUTO_FREE bool *drop = xcalloc(plan->n_objects, 1);

	if (!err && c->n_faults > REPORTED_MAX)
		report_error(NULL, "and %zu files more have other bytes there",
			     c->n_faults - REPORTED_MAX);
	if (!err && c->n_faults)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "nothing was packed because of the faults above");
	for (size_t i = 0; i < plan->n_objects && c->n_files; i++) {
		const char *path = path_of(&plan->objects[i]);
		const struct clash_file *f = path ? find_file(c, path) : NULL;

		drop[i] = f && f->dropped;
	}
	if (!err && c->n_files)
		plan_drop(plan, drop);
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i].path);
	free(c->files);
	return err;
}

/* --- archives ------------------------------------------------------------------------ */

static kpack_error_t compare_entry(struct clash *c, const struct kpack_archive *a,
				   size_t entry, struct kpackx_error *why)
{
	struct packing *p = c->p;
	bool ours = kp_span_is(kp_archive_group(a), p->args.group), stored, same;
	char arch[KP_TARGET_TEXT_MAX];
	KP_AUTO_FREE char *path = NULL;
	struct kp_entry_info info;
	struct clash_file *f;
	struct kp_span name;
	struct kp_meta meta;
	struct kp_hash theirs;
	const char *place;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	name = meta.path.size ? meta.path : info.key;
	path = xstrndup((const char *)name.data, name.size);
	f = find_file(c, path);
	if (!f) {
		/* an old cache stays if nothing replaces it: its loaders find both forms */
		if (meta.path.size && !p->args.quiet &&
		    rocfft_cache_in_other_form(&p->scan, path))
			report_error(kp_archive_path(a),
				     "note: keeps %s, packed with other options", path);
		return KPACK_SUCCESS;
	}
	stored = ours && plan_stores(&p->plan, info.key, info.arch, &place);
	if (stored && !kp_span_is(info.arch, KP_ARCH_GENERIC))
		return KPACK_SUCCESS;
	same = info.size == f->size;
	if (same && !f->hashed) {
		kpack_error_t err =
			content_hash_file(f->disk, f->offset, f->size, &f->hash, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", f->disk);
		f->hashed = true;
	}
	if (same) {
		KP_TRY(content_hash_entry(a, entry, &theirs, why));
		same = kp_hash_is(&f->hash, theirs.bytes);
	}
	if (same)
		return KPACK_SUCCESS;
	snprintf(arch, sizeof(arch), "%.*s", (int)info.arch.size, info.arch.data);
	report_clash(c, f, kp_archive_path(a), arch,
		     stored       ? NULL
		     : f->link    ? "a symbolic link replaces nothing in archives"
		     : !f->stored ? "archives are not changed when databases stay plain"
		     : !ours      ? "it is another group's"
		     : p->args.mode == PACK_IN_PLACE
			     ? NULL
			     : "an entry for another architecture exists");
	return KPACK_SUCCESS;
}

/*
 * Only warn about an unreadable archive: a mount shows none of its paths.  If the run has
 * to add to it, that fails later.
 */
static void warn_unread(const char *path, const struct kpackx_error *fault)
{
	report_error(path, "warning: not compared with what is packed: %s",
		     fault->text[0] ? fault->text : kpackx_error_name(fault->code));
}

kpack_error_t clash_check_archives(struct packing *p, struct kpackx_error *why)
{
	struct clash c = {.p = p};
	kpack_error_t err = KPACK_SUCCESS;
	struct kpackx_error fault = {0};
	char **paths = NULL;
	size_t n = 0;

	list_files(&c);
	if (c.n_files && below_archives_find(p->archives, &paths, &n, &fault) &&
	    fault.sys_errno != ENOENT)
		warn_unread(p->archives, &fault);
	for (size_t i = 0; i < n; i++) {
		struct kpack_archive *a = NULL;
		kpack_error_t open_err;
		size_t entries = 0;

		if (!err) {
			open_err = below_archive_open(paths[i], &a, &fault);
			if (open_err == KPACK_ERROR_OUT_OF_MEMORY)
				err = kp_fail(why, open_err, "%s: %s", paths[i],
					      fault.text);
			else if (open_err)
				warn_unread(paths[i], &fault);
			else
				entries = kp_archive_entry_count(a);
		}
		/* --force replaces an archive as a whole */
		for (size_t k = 0; entries && p->args.force && k < p->plan.n_objects &&
				   kp_span_is(kp_archive_group(a), p->args.group);
		     k++) {
			const struct plan_object *o = &p->plan.objects[k];
			const char *place = o->input->images[o->image].arch;
			const struct family *f = families_find(&p->args.families, place);

			if (kp_span_is(kp_archive_toc(a)->family, f ? f->name : place))
				entries = 0;
		}
		for (size_t k = 0; k < entries && !err; k++) {
			err = compare_entry(&c, a, k, why);
			if (err)
				kp_fail_prefix(why, err, "%s", paths[i]);
		}
		kp_archive_close(a);
		free(paths[i]);
	}
	free(paths);
	return settle_clashes(&c, err, why);
}

/* --- the tree ------------------------------------------------------------------------ */

/* Whether two files have the same bytes; an unreadable file differs. */
static bool same_files(const char *a, const char *b)
{
	KP_AUTO_CLOSE int x = -1, y = -1;
	struct kp_source ours, theirs;
	struct stat st, there;

	if (below_file_open(a, &x, &st, NULL) || below_file_open(b, &y, &there, NULL))
		return false;
	ours = kp_source_fd(x, 0, (uint64_t)st.st_size);
	theirs = kp_source_fd(y, 0, (uint64_t)there.st_size);
	return kp_source_same(&ours, &theirs);
}

/* Faults do not matter here: the file differs anyway. */
static void ignore_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	(void)arg, (void)file, (void)why;
}

/* Whether A is a rebuild of B, for the same GPUs. */
static bool is_rebuilt(const struct library_object *a, const struct library_object *b)
{
	if (!b || a->n_arches != b->n_arches ||
	    strcmp(a->arches[0], KP_ARCH_GENERIC) == 0)
		return false;
	for (size_t i = 0; i < a->n_arches; i++)
		if (strcmp(a->arches[i], b->arches[i]) != 0)
			return false;
	return true;
}

kpack_error_t clash_check_tree(struct packing *p, struct kpackx_error *why)
{
	const struct library_set *set = &p->args.libraries;
	struct clash c = {.p = p, .in_tree = true};
	/*
	 * Of all files that both sides have: libraries identify files by their neighbours, so
	 * those with the same bytes are here as well.
	 */
	struct file_tree ours = {0}, theirs = {0};
	struct library_found our_found = {0}, their_found = {0};
	kpack_error_t err = KPACK_SUCCESS;
	size_t ignored = 0;
	bool any = false;

	list_files(&c);
	for (size_t i = 0; i < c.n_files; i++) {
		struct clash_file *f = &c.files[i];
		const struct scan_entry *e = &p->scan.entries[f->entry];
		KP_AUTO_FREE char *to = xasprintf("%s/%s", p->args.output, e->relative);
		struct stat st;

		/*
		 * Parts of a file are not in the tree.  A link is replaced, too, and what it
		 * leads to disappears from here.
		 */
		if (strcmp(f->disk, e->path) != 0 || below_stat(to, &st) < 0 ||
		    S_ISDIR(st.st_mode))
			continue;
		f->differs = !same_files(f->disk, to);
		any |= f->differs;
		file_tree_add(&ours, &(struct file_tree_item){.path = f->path,
							      .disk = (char *)f->disk,
							      .size = f->size});
		file_tree_add(&theirs,
			      &(struct file_tree_item){.path = f->path,
						       .disk = to,
						       .size = (uint64_t)st.st_size,
						       .mode = st.st_mode});
	}
	file_tree_sort(&ours);
	file_tree_sort(&theirs);
	if (any)
		err = library_find_all(set, &ours, ignore_fault, NULL, &our_found,
				       &ignored, why);
	if (any && !err)
		err = library_find_all(set, &theirs, ignore_fault, NULL, &their_found,
				       &ignored, why);
	for (size_t i = 0; i < ours.count && any && !err; i++) {
		const struct library_object *a = our_found.objects[i],
					    *b = their_found.objects[i];
		struct clash_file *f = find_file(&c, ours.items[i].path);

		if (a && f->differs && !is_rebuilt(a, b))
			report_clash(&c, f, theirs.items[i].disk,
				     b ? b->arches[0] : "damaged", NULL);
	}
	err = settle_clashes(&c, err, why);
	library_found_fini(&our_found);
	library_found_fini(&their_found);
	file_tree_fini(&ours);
	file_tree_fini(&theirs);
	return err;
}
