/* SPDX-License-Identifier: MIT */
#include "database_clash.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "drop.h"
#include "packer/cli/report.h"
#include "packer/scan/rocfft_caches.h"
#include "core/view/view.h"
#include "core/target/target.h"
#include "core/archive/naming.h"

/* The number of differences that are reported one by one. */
enum { REPORTED_MAX = 20 };

/* --- our files ----------------------------------------------------------------------- */

/* Add FILE, whose path is on the heap and becomes the list's. */
static void add_file(struct clash *c, const struct clash_file *file)
{
	xgrow(&c->files, c->n_files, &c->files_cap, sizeof(*c->files));
	c->files[c->n_files++] = *file;
}

/* The path of a database's file, which O is; NULL: O is something else. */
static const char *path_of(const struct plan_object *o)
{
	return o->input->kind == INPUT_DATABASE ? o->input->objects[o->image].path : NULL;
}

/* Add what is packed. */
static void add_objects(struct clash *c)
{
	for (size_t i = 0; i < c->run->plan->n_objects; i++) {
		const struct plan_object *o = &c->run->plan->objects[i];
		const struct input *in = o->input;

		const char *path = path_of(o);

		if (path)
			add_file(c, &(struct clash_file){
					    .path = xstrdup(path),
					    .entry = in->entry,
					    .disk = in->path,
					    .offset = in->images[o->image].offset,
					    .size = in->images[o->image].size,
					    .stored = true,
				    });
	}
}

static bool is_probed(const struct clash *c, const char *path)
{
	const struct library_set *set = &c->run->args->libraries;
	const struct library_question q = {.tree = &c->run->scan->files, .path = path};

	for (size_t i = 0; i < set->count; i++)
		if (set->items[i]->probe(set->items[i], &q))
			return true;
	return false;
}

/*
 * Add the file or link ENTRY of SIZE bytes, which is not packed, if it may be a
 * library's.
 */
static void add_plain_file(struct clash *c, size_t entry, uint64_t size)
{
	const struct scan_entry *e = &c->run->scan->entries[entry];
	const char *prefix = c->run->args->prefix;
	struct clash_file file = {
		.path = xasprintf("%s%s%s", prefix, *prefix ? "/" : "", e->relative),
		.entry = entry,
		.disk = e->path,
		.size = size,
		.link = S_ISLNK(e->mode)};

	if (is_probed(c, file.path))
		add_file(c, &file);
	else
		free(file.path);
}

/* Add what is copied as it is. */
static void add_plain(struct clash *c)
{
	for (size_t i = 0; i < c->run->scan->n_entries; i++) {
		const struct scan_entry *e = &c->run->scan->entries[i];

		if (S_ISREG(e->mode) && !e->leftover && !e->archive)
			add_plain_file(c, i, e->id.size);
	}
}

/* Add the links: they are copied, too, and hide what archives have at their path. */
static void add_links(struct clash *c)
{
	for (size_t i = 0; c->run->dispositions && i < c->run->scan->n_entries; i++) {
		const struct scan_entry *e = &c->run->scan->entries[i];
		struct stat st;

		if (S_ISLNK(e->mode) && !e->archive && below_stat(e->path, &st) == 0 &&
		    S_ISREG(st.st_mode))
			add_plain_file(c, i, (uint64_t)st.st_size);
	}
}

static int by_path(const void *a, const void *b)
{
	const struct clash_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

struct clash_file *clash_find(const struct clash *c, struct kp_span path)
{
	size_t low = 0, high = c->n_files;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = kp_span_cmp(path, kp_span_str(c->files[mid].path));

		if (order == 0)
			return &c->files[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

/* --- bytes --------------------------------------------------------------------------- */

static kpack_error_t same_bytes(struct clash_file *f, const struct kpack_archive *a,
				size_t entry, bool *same, struct kpackx_error *why)
{
	struct kp_hash theirs;

	*same = false;
	if (!f->hashed) {
		kpack_error_t err =
			content_hash_file(f->disk, f->offset, f->size, &f->hash, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", f->disk);
		f->hashed = true;
	}
	KP_TRY(content_hash_entry(a, entry, &theirs, why));
	*same = kp_hash_is(&f->hash, theirs.bytes);
	return KPACK_SUCCESS;
}

/* --- reporting ----------------------------------------------------------------------- */

/*
 * Leave out the file F: the output is preferred.  A packed file whose path an archive has
 * stays visible in the tree, so its disposition does not change.
 */
static void drop_file(struct clash *c, struct clash_file *f,
		      const struct clash_other *other)
{
	bool tree = c->run->args->mode == PACK_TREE;
	struct disposition *o;
	char reason[400];

	f->dropped = true;
	if (!c->run->dispositions)
		return;
	o = &c->run->dispositions->items[f->entry];
	if (o->fate == FATE_PACKED && tree && !other->is_file)
		return;
	snprintf(reason, sizeof(reason), "%.360s has other bytes", other->path);
	disposition_set(o, tree ? FATE_NOT_WANTED : FATE_LEFT_ALONE, reason);
}

static void report_fault(struct clash *c, const char *path,
			 const struct clash_other *other)
{
	c->n_faults++;
	if (++c->n_reported > REPORTED_MAX)
		return;
	if (other->fixed && c->run->args->prefer == PREFER_INPUT)
		report_error(path,
			     "other bytes than in %s (%s), which --prefer input "
			     "cannot replace: %s",
			     other->path, other->arch, other->fixed);
	else
		report_error(path,
			     "other bytes than in %s (%s): one path cannot have both; "
			     "--prefer input or output",
			     other->path, other->arch);
}

void clash_report(struct clash *c, struct clash_file *file,
		  const struct clash_other *other)
{
	const char *path = c->run->scan->entries[file->entry].path;
	enum pack_prefer prefer = c->run->args->prefer;
	bool quiet = c->run->args->quiet;

	if (prefer == PREFER_OUTPUT) {
		if (!quiet)
			report_error(path,
				     "note: left out, because %s (%s) has other bytes",
				     other->path, other->arch);
		drop_file(c, file, other);
	} else if (prefer == PREFER_INPUT && !other->fixed) {
		if (!quiet)
			report_error(path, "note: replaces other bytes in %s (%s)",
				     other->path, other->arch);
	} else {
		report_fault(c, path, other);
	}
}

/* --- archives ------------------------------------------------------------------------ */

/* Whether --force replaces the archive as a whole. */
static bool is_replaced(const struct clash *c, const struct kpack_archive *a)
{
	const struct plan *plan = c->run->plan;

	if (!c->run->args->force || !kp_span_is(kp_archive_group(a), c->run->args->group))
		return false;
	for (size_t i = 0; i < plan->n_objects; i++) {
		const struct plan_object *o = &plan->objects[i];
		const char *place = o->input->images[o->image].arch;
		const struct family *f = families_find(&c->run->args->families, place);

		if (kp_span_is(kp_archive_family(a), f ? f->name : place))
			return true;
	}
	return false;
}

/* Whether the run replaces that entry. */
static bool is_stored(const struct clash *c, const struct kpack_archive *a,
		      const struct kp_entry_info *e)
{
	const char *place;
	uint32_t binary;

	return kp_span_is(kp_archive_group(a), c->run->args->group) &&
	       plan_stores(c->run->plan, e->key, e->arch, &binary, &place);
}

/* Returns why the existing entry cannot be replaced; NULL: it can be. */
static const char *obstacle_to(const struct clash *c, const struct kpack_archive *a,
			       const struct clash_file *f, bool stored)
{
	if (stored)
		return NULL;
	if (f->link)
		return "a symbolic link replaces nothing in archives";
	if (f->stored && c->run->args->mode == PACK_IN_PLACE &&
	    kp_span_is(kp_archive_group(a), c->run->args->group))
		return NULL;
	if (!f->stored)
		return "archives are not changed when databases stay plain";
	return kp_span_is(kp_archive_group(a), c->run->args->group)
		       ? "an entry for another architecture exists"
		       : "it is another group's";
}

/*
 * Note an old cache that stays because nothing replaces it: its loaders find both forms.
 */
static void note_kept(const struct clash *c, const struct kpack_archive *a,
		      struct kp_span path)
{
	if (!c->run->args->quiet && caches_in_other_form(c->run->scan, path))
		report_error(kp_archive_path(a),
			     "note: keeps %.*s, packed with other options",
			     (int)path.size, (const char *)path.data);
}

static kpack_error_t compare_entry(struct clash *c, const struct kpack_archive *a,
				   size_t entry, struct kpackx_error *why)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_entry_info info;
	struct clash_file *f;
	struct kp_meta meta;
	bool stored, same;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	f = clash_find(c, meta.path.size ? meta.path : info.key);
	if (!f) {
		note_kept(c, a, meta.path);
		return KPACK_SUCCESS;
	}
	stored = is_stored(c, a, &info);
	if (stored && !kp_span_is(info.arch, KP_ARCH_GENERIC))
		return KPACK_SUCCESS;
	same = info.size == f->size;
	if (same)
		KP_TRY(same_bytes(f, a, entry, &same, why));
	if (same)
		return KPACK_SUCCESS;
	snprintf(arch, sizeof(arch), "%.*s", (int)info.arch.size, info.arch.data);
	clash_report(c, f,
		     &(struct clash_other){
			     .path = kp_archive_path(a),
			     .arch = arch,
			     .fixed = obstacle_to(c, a, f, stored),
		     });
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

static kpack_error_t compare_archive(struct clash *c, const char *path,
				     struct kpackx_error *why)
{
	struct kpack_archive *a = NULL;
	struct kpackx_error fault = {0};
	kpack_error_t err = below_archive_open(path, &a, &fault);

	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail(why, err, "%s: %s", path, fault.text);
	if (err) {
		warn_unread(path, &fault);
		return KPACK_SUCCESS;
	}
	for (size_t i = 0; i < kp_archive_entry_count(a) && !err; i++) {
		if (i == 0 && is_replaced(c, a))
			break;
		err = compare_entry(c, a, i, why);
	}
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	kp_archive_close(a);
	return err;
}

kpack_error_t clash_archives(struct clash *c, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kpackx_error fault = {0};
	char **paths = NULL;
	size_t n = 0;

	if (below_archives_find(c->run->archives, &paths, &n, &fault)) {
		if (fault.sys_errno != ENOENT)
			warn_unread(c->run->archives, &fault);
		return KPACK_SUCCESS;
	}
	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = compare_archive(c, paths[i], why);
		free(paths[i]);
	}
	free(paths);
	return err;
}

/* --- all together -------------------------------------------------------------------- */

static void drop_objects(const struct clash *c)
{
	struct plan *plan = c->run->plan;
	bool *drop = xcalloc(plan->n_objects, 1);

	for (size_t i = 0; i < plan->n_objects; i++) {
		const char *path = path_of(&plan->objects[i]);
		const struct clash_file *f =
			path ? clash_find(c, kp_span_str(path)) : NULL;

		drop[i] = f && f->dropped;
	}
	plan_drop(plan, drop);
	free(drop);
}

static kpack_error_t compare_files(struct clash *c, clash_side *side,
				   struct kpackx_error *why)
{
	if (databases_are_stored(c->run->args->databases))
		add_objects(c);
	else
		add_plain(c);
	add_links(c);
	if (c->n_files == 0)
		return KPACK_SUCCESS;
	qsort(c->files, c->n_files, sizeof(*c->files), by_path);
	KP_TRY(side(c, why));
	if (c->n_reported > REPORTED_MAX)
		report_error(NULL, "and %zu files more have other bytes there",
			     c->n_reported - REPORTED_MAX);
	if (c->n_faults)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "nothing was packed because of the faults above");
	drop_objects(c);
	return KPACK_SUCCESS;
}

kpack_error_t clash_check(const struct clash_run *run, clash_side *side,
			  struct kpackx_error *why)
{
	struct clash c = {.run = run};
	kpack_error_t err = compare_files(&c, side, why);

	for (size_t i = 0; i < c.n_files; i++)
		free(c.files[i].path);
	free(c.files);
	return err;
}
