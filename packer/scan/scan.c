/* SPDX-License-Identifier: MIT */
/*
 * A scan:
 *
 *	list_tree		every path, sorted, so that equal trees give equal archives; the regular
 *				files, under their keys, for the libraries
 *	library_find_all	which files are a library's: they are taken as they are, by path
 *	scan_chain_files	hard links: the first path of a file stands for all of them
 *	classify_file		each other file is opened once: is there device code in it?
 *	scan_sort		the inputs by key
 *
 * Nothing is read twice: the entry of a file holds all that later steps ask about it.  What a
 * file is shows in four fields of its entry: `input` (it has code to pack), `note` (it has some
 * that is left alone, and why), `database`, and `faulty`, which was reported.
 *
 * Damage is a fault where the user named the file, or all code is asked for.  In a tree that is
 * converted it is a note: packing the other thousand files is worth more than stopping, and
 * scan_damaged lets the run fail at its end.
 *
 * Between the list and the look another file may get a path.  A file whose inode is another then
 * is a fault; else what was opened counts, because its content decides what is done with it.
 */
#include "scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "packer/library/arch_name.h"

/* --- paths --------------------------------------------------------------------------- */

static struct scan_entry *add_entry(struct scan *scan, const char *path, size_t skip,
				    const struct stat *st)
{
	size_t n = strlen(scan->archives_dir);
	struct scan_entry *e;

	xgrow(&scan->entries, scan->n_entries, &scan->entries_cap, sizeof(*e));
	e = &scan->entries[scan->n_entries++];
	*e = (struct scan_entry){
		.path = xstrdup(path),
		.id = file_identity_of(st),
		.mode = st->st_mode,
		.next_link = SCAN_NO_LINK,
	};
	e->relative = e->path + skip;
	while (*e->relative == '/')
		e->relative++;
	if (kp_path_within(kp_span_str(e->relative), scan->archives_dir))
		e->archive = e->relative + n + (e->relative[n] == '/');
	else if (kp_path_within(kp_span_str(e->relative), KP_UNDO_DIR))
		e->archive = e->relative;
	e->leftover = !S_ISDIR(e->mode) && kp_is_temp_name(kp_path_name(e->path));
	return e;
}

/* List the tree, and the regular files that a library may own, under their keys. */
static void list_tree(struct scan *scan, const char *root, const char *prefix)
{
	struct tree_list *list = tree_list_open(root);
	struct tree_item item;
	bool failed = false;

	while (tree_list_next(list, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			failed = true;
		} else if (item.kind != TREE_DIR_END && item.level > 0) {
			add_entry(scan, item.path, (size_t)(item.rest - item.path),
				  &item.st)
				->id.guarded = item.guarded;
		}
		if (item.kind == TREE_DIR && scan->skip.covered &&
		    scan->skip.covered(scan->skip.arg, item.path))
			tree_list_skip(list);
	}
	tree_list_close(list);
	scan->n_faults += failed;
	/* before anything refers to entries by their numbers */
	kp_sort(scan->entries, scan->n_entries, KP_BY_TEXT(struct scan_entry, relative));
	scan->file_entries = xmalloc(scan->n_entries * sizeof(size_t));
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		KP_AUTO_FREE char *key = NULL;

		if (!S_ISREG(e->mode) || e->leftover || e->archive)
			continue;
		key = xasprintf("%s%s%s", prefix, *prefix ? "/" : "", e->relative);
		scan->file_entries[scan->files.count] = i;
		file_tree_add(&scan->files, &(struct file_tree_item){.path = key,
								     .disk = e->path,
								     .size = e->id.size,
								     .mode = e->mode});
	}
	file_tree_sort(&scan->files);
}

void scan_chain(struct scan *scan, const size_t *links, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		scan->entries[links[i]].first = links[0];
		scan->entries[links[i]].next_link =
			i + 1 < n ? links[i + 1] : SCAN_NO_LINK;
	}
}

void scan_chain_files(struct scan *scan, const size_t *entries, size_t n)
{
	struct link {
		dev_t dev;
		ino_t ino;
		size_t entry;
	} *links = xmalloc(n * sizeof(*links));
	size_t *chain = xmalloc(n * sizeof(*chain)), length = 0;

	for (size_t i = 0; i < n; i++) {
		const struct file_identity *id = &scan->entries[entries[i]].id;

		links[i] = (struct link){id->dev, id->ino, entries[i]};
	}
	kp_sort(links, n, KP_BY_NUMBER(struct link, dev), KP_BY_NUMBER(struct link, ino),
		KP_BY_NUMBER(struct link, entry));
	for (size_t i = 0; i < n; i++) {
		chain[length++] = links[i].entry;
		if (i + 1 < n && links[i + 1].dev == links[i].dev &&
		    links[i + 1].ino == links[i].ino)
			continue;
		scan_chain(scan, chain, length);
		length = 0;
	}
	free(links);
	free(chain);
}

size_t *scan_links(const struct scan *scan, size_t entry, size_t *n)
{
	size_t *links = NULL, cap = 0;

	*n = 0;
	for (size_t i = entry; i != SCAN_NO_LINK; i = scan->entries[i].next_link) {
		xgrow(&links, *n, &cap, sizeof(*links));
		links[(*n)++] = i;
	}
	return links;
}

bool scan_find(const struct scan *scan, struct kp_span path, size_t *entry)
{
	KP_AUTO_FREE char *text = xstrndup((const char *)path.data, path.size);
	const struct scan_entry probe = {.relative = text};
	const struct scan_entry *found = kp_find(scan->entries, scan->n_entries, &probe,
						 KP_BY_TEXT(struct scan_entry, relative));

	if (found)
		*entry = (size_t)(found - scan->entries);
	return found;
}

/* --- one file ------------------------------------------------------------------------ */

static void keep_input(struct scan *scan, struct input *in)
{
	xgrow(&scan->inputs, scan->n_inputs, &scan->inputs_cap, sizeof(struct input *));
	scan->inputs[scan->n_inputs++] = in;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp((*(struct input *const *)a)->key, (*(struct input *const *)b)->key);
}

void scan_sort(struct scan *scan)
{
	if (scan->n_inputs)
		qsort(scan->inputs, scan->n_inputs, sizeof(struct input *), compare_keys);
}

/* Whether ERR is about the content of a file, and not about reading it. */
static bool is_content(kpack_error_t err)
{
	return err != KPACK_ERROR_IO_ERROR && err != KPACK_ERROR_FILE_NOT_FOUND &&
	       err != KPACK_ERROR_OUT_OF_MEMORY;
}

/*
 * Handle a file that cannot be packed: note it if that is HARMLESS, else report a fault.
 * CODE: it surely has device code.
 */
static void take_fault(struct scan *scan, struct scan_entry *e, bool harmless, bool code,
		       const struct kpackx_error *fault)
{
	if (!harmless || !is_content(fault->code)) {
		report_why(e->path, fault);
		scan->n_faults++;
		return;
	}
	e->fault = xstrdup(fault->text);
	e->note = e->fault;
	e->left = !code ? SCAN_LEFT_AS_MEANT
		  : fault->code == KPACK_ERROR_NOT_IMPLEMENTED ||
				  fault->code == KPACK_ERROR_INVALID_ARGUMENT
			  ? SCAN_LEFT_UNSUPPORTED
			  : SCAN_LEFT_DAMAGED;
}

/* Check that IN is the file that the walk found at E's path.  From then on E is as IN is. */
static kpack_error_t check_same(struct scan_entry *e, const struct input *in,
				struct kpackx_error *why)
{
	bool guarded = e->id.guarded;

	if (in->st.st_dev != e->id.dev || in->st.st_ino != e->id.ino)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	e->id = file_identity_of(&in->st);
	e->id.guarded = guarded;
	return KPACK_SUCCESS;
}

/*
 * Look for device code in one file, and keep it if there is some to pack.  PREFIX and its path are
 * its key, which must be one that archives can have.
 */
static void classify_file(struct scan *scan, size_t entry, const char *prefix, bool alone)
{
	struct scan_entry *e = &scan->entries[entry];
	const struct input_look look = {.in_tree = !alone,
					.guarded = e->id.guarded,
					.sections = scan->code != SCAN_CONVERTIBLE};
	KP_AUTO_FREE char *key =
		xasprintf("%s%s%s", prefix, *prefix ? "/" : "", e->relative);
	/* bad content of a file in a tree is no fault then */
	bool tolerant = scan->code != SCAN_ALL_CODE, binary = false, code = false;
	struct input *in = xmalloc(sizeof(*in));
	const struct kp_fatbin *fat = &in->fat;
	struct kpackx_error fault = {0};
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_source file;
	struct kp_span head;
	struct stat st;
	int fd;

	scan->n_files++;
	if (input_open(e->path, key, &look, in, &fault))
		goto refused;
	if (check_same(e, in, &fault)) {
		input_fini(in);
		goto refused;
	}
	in->entry = entry;
	e->converted = fat->kind == KP_FATBIN_CONVERTED;
	e->note = e->converted                  ? "is converted already"
		  : fat->kind == KP_FATBIN_NONE ? fat->unlisted
		  : fat->containers.count == 0  ? "its .hip_fatbin is empty"
						: NULL;
	if (fat->unlisted && !e->converted)
		e->left = SCAN_LEFT_UNSUPPORTED;
	if (fat->kind != KP_FATBIN_NONE && !e->note) {
		if (kp_path_ok(kp_span_str(key))) {
			e->input = in;
			e->note = fat->unlisted;
			keep_input(scan, in);
			return;
		}
		kp_fail(&fault, KPACK_ERROR_INVALID_ARGUMENT, "its path cannot be a key");
		take_fault(scan, e, tolerant && !alone, true, &fault);
	}
	input_fini(in);
	free(in);
	return;
refused:
	free(in);
	/* a file that is no linked binary may only look like one of the formats */
	if (!below_file_open_nofollow(e->path, &fd, &st, NULL)) {
		file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
		binary = !kp_source_head(&file, 0, bytes, sizeof(bytes), &head, NULL) &&
			 kp_fatbin_is_linked(head);
		code = kp_fatbin_has_code(fd, file.size);
		close(fd);
	}
	take_fault(scan, e, !alone && (tolerant || !binary), code, &fault);
}

kpack_error_t scan_add_database(struct scan *scan, size_t entry,
				const struct scan_database *d, struct input **input,
				struct kpackx_error *why)
{
	struct input *in;
	kpack_error_t err;

	if (!kp_path_ok(kp_span_str(d->key)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "its path cannot be a key");
	in = xmalloc(sizeof(*in));
	err = input_open_database(d->path, d->key, d->objects, d->n_objects, in, why);
	if (err) {
		free(in);
		return err;
	}
	in->entry = entry;
	in->shown = scan->entries[entry].path;
	keep_input(scan, in);
	if (input)
		*input = in;
	return KPACK_SUCCESS;
}

kpack_error_t scan_add_plain(struct scan *scan, size_t entry, struct kpackx_error *why)
{
	struct scan_entry *e = &scan->entries[entry];
	const struct scan_database d = {.path = e->path, .key = e->relative};

	KP_TRY(scan_add_database(scan, entry, &d, &e->input, why));
	return check_same(e, e->input, why);
}

kpack_error_t scan_add_code(struct scan *scan, size_t file, struct kpackx_error *why)
{
	struct scan_entry *e = &scan->entries[scan->file_entries[file]];
	const struct input_look look = {.in_tree = true, .guarded = e->id.guarded};
	struct input *in = xmalloc(sizeof(*in));
	kpack_error_t err;

	err = input_open(e->path, scan->files.items[file].path, &look, in, why);
	if (err) {
		free(in);
		return is_content(err) ? KPACK_SUCCESS : err;
	}
	err = check_same(e, in, why);
	if (!err && in->fat.kind == KP_FATBIN_BARE) {
		in->entry = scan->file_entries[file];
		in->objects = scan->found.objects[file];
		e->input = in;
		keep_input(scan, in);
		return KPACK_SUCCESS;
	}
	input_fini(in);
	free(in);
	return err;
}

/* --- the whole ----------------------------------------------------------------------- */

static void report_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	struct scan *scan = arg;

	report_why(scan->files.items[file].disk, why);
	scan->entries[scan->file_entries[file]].faulty = true;
}

kpack_error_t scan_open(const char *root, const char *prefix, enum scan_code code,
			const struct library_set *libraries,
			enum scan_databases databases, struct scan *out,
			struct kpackx_error *why)
{
	const struct scan_skip *skip = &out->skip;
	KP_AUTO_FREE size_t *linked = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t bytes = 0;
	struct stat st;
	size_t n = 0;

	*out = (struct scan){.code = code,
			     .skip = out->skip,
			     .progress = out->progress,
			     .archives_dir = out->archives_dir ? out->archives_dir
							       : KP_ARCHIVES_DIR};
	if (below_stat(root, &st) < 0)
		return below_fail(why, "cannot look at it");
	out->root = file_identity_of(&st);
	if (!S_ISDIR(st.st_mode)) {
		add_entry(out, root, kp_path_directory(root).size, &st)->leftover = false;
		classify_file(out, 0, prefix, true);
		return KPACK_SUCCESS;
	}
	list_tree(out, root, prefix);
	if (libraries)
		err = library_find_all(libraries, &out->files, report_fault, out,
				       &out->found, &out->n_faults, why);
	if (err) {
		scan_close(out);
		return err;
	}
	/* before other files are looked at: code in a database's file belongs to the database */
	for (size_t i = 0; libraries && i < out->files.count && databases != SCAN_FIND;
	     i++) {
		const struct library_object *o = out->found.objects[i];
		size_t entry = out->file_entries[i];
		struct scan_entry *e = &out->entries[entry];
		const struct scan_database d = {.path = e->path,
						.key = out->files.items[i].path,
						.objects = o,
						.n_objects = 1};
		struct kpackx_error fault = {0};

		if (!o)
			continue;
		out->n_files++;
		if (databases != SCAN_IDENTIFY && o->is_archive) {
			/* in ours, or merged, it is lost */
			e->note = "an archive that its library opens by path";
		} else if (databases != SCAN_IDENTIFY &&
			   (scan_add_database(out, entry, &d, &e->input, &fault) ||
			    check_same(e, e->input, &fault))) {
			report_fault(out, i, &fault);
			out->n_faults++;
		} else {
			e->database = true;
		}
	}
	linked = xmalloc(out->n_entries * sizeof(*linked));
	for (size_t i = 0; i < out->n_entries; i++) {
		struct scan_entry *e = &out->entries[i];

		e->first = i;
		bytes += S_ISREG(e->mode) ? e->id.size : 0;
		/* the paths of a database's file are files of their own */
		if (e->id.nlink > 1 && !S_ISDIR(e->mode) && !e->leftover && !e->database)
			linked[n++] = i;
	}
	scan_chain_files(out, linked, n);
	if (out->progress)
		progress_begin("looking at files", bytes, true);
	for (size_t i = 0; i < out->n_entries; i++) {
		const struct scan_entry *e = &out->entries[i];

		if (S_ISREG(e->mode) && e->first == i && !e->leftover && !e->database &&
		    !e->faulty && !e->note && !e->archive &&
		    !(skip->known && skip->known(skip->arg, e->relative, &e->id)))
			classify_file(out, i, prefix, false);
		if (out->progress && S_ISREG(e->mode))
			progress_add(e->id.size);
	}
	if (out->progress)
		progress_end();
	scan_sort(out);
	return KPACK_SUCCESS;
}

void scan_close(struct scan *scan)
{
	for (size_t i = 0; i < scan->n_inputs; i++) {
		input_fini(scan->inputs[i]);
		free(scan->inputs[i]);
	}
	for (size_t i = 0; i < scan->n_entries; i++) {
		free(scan->entries[i].path);
		free(scan->entries[i].fault);
	}
	library_found_fini(&scan->found);
	file_tree_fini(&scan->files);
	free(scan->file_entries);
	free(scan->inputs);
	free(scan->entries);
	*scan = (struct scan){0};
}

void scan_count_code(const struct scan *scan, struct code_table *table)
{
	char target[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < scan->n_inputs; i++) {
		const struct input *in = scan->inputs[i];

		/* files of databases are below, with all GPUs that each is for */
		for (size_t k = 0; k < in->n_images && !in->objects; k++)
			if (in->packed[k] && in->images[k].size)
				code_table_add(table, kp_span_str(in->images[k].arch),
					       in->entry, in->images[k].size, 0);
	}
	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];

		for (size_t k = 0; o && k < o->n_arches; k++) {
			library_object_target(o, k, target);
			code_table_add(table, kp_span_str(target), scan->file_entries[i],
				       scan->files.items[i].size, 0);
		}
	}
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		struct kpack_archive *a = NULL;

		if (S_ISREG(e->mode) && e->first == i && !e->database && !e->leftover &&
		    kp_is_archive_name(e->relative) &&
		    !below_archive_open(e->path, &a, NULL))
			code_table_add_archive(table, a, i, false);
		kp_archive_close(a);
	}
}

/* --- reports ------------------------------------------------------------------------- */

void scan_report_left(const struct scan *scan, bool quiet)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (!e->note || (quiet && e->left == SCAN_LEFT_AS_MEANT))
			continue;
		if (e->left == SCAN_LEFT_DAMAGED)
			report_error(e->path, "damaged, its device code stays in it: %s",
				     e->note);
		else if (e->left == SCAN_LEFT_UNSUPPORTED)
			report_error(e->path, "warning: %s%s",
				     e->fault ? "its device code stays in it: " : "",
				     e->note);
		else
			report_error(e->path, "note: %s", e->note);
	}
}

bool scan_damaged(const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].note && scan->entries[i].left == SCAN_LEFT_DAMAGED)
			return true;
	return false;
}

bool scan_unrecognised(const struct scan *scan, size_t entry, char *out)
{
	const struct scan_entry *e = &scan->entries[entry];
	char arch[KP_TARGET_TEXT_MAX] = "one GPU";
	KP_AUTO_FREE uint8_t *bytes = NULL;
	size_t size;

	if (!scan->found.objects || !S_ISREG(e->mode) || e->input || e->note ||
	    e->converted || e->faulty || e->leftover || e->archive ||
	    scan->entries[e->first].input || !arch_in_path(e->relative))
		return false;
	/* short lines of text, such as a compiler's spec, are no code */
	if (!below_file_load(e->path, 64 << 10, "a text", &bytes, &size, NULL) &&
	    memchr(bytes, '\n', size) && !memchr(bytes, '\0', size))
		return false;
	/* the target ID in the file's name, else in that of the nearest directory */
	for (size_t end = strlen(e->relative); end > 0 && out;) {
		const char *slash = memrchr(e->relative, '/', end);
		size_t begin = slash ? (size_t)(slash + 1 - e->relative) : 0;
		const struct kp_span name = {(const uint8_t *)e->relative + begin,
					     end - begin};

		if (arch_of_name(name, arch))
			break;
		end = begin ? begin - 1 : 0;
	}
	if (out)
		memcpy(out, arch, sizeof(arch));
	return true;
}

void scan_report_unrecognised(const struct scan *scan)
{
	enum { REPORTED_MAX = 20 };
	char arch[KP_TARGET_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan_unrecognised(scan, i, arch) && ++n <= REPORTED_MAX)
			report_error(scan->entries[i].path,
				     "note: looks like a file for %s, no library is "
				     "known for it; it stays as it is",
				     arch);
	if (n > REPORTED_MAX)
		report_error(NULL, "note: and %zu more like that; --json lists all",
			     n - REPORTED_MAX);
}
