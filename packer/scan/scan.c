/* SPDX-License-Identifier: MIT */
#include "scan.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "core/base/text.h"
#include "core/archive/naming.h"
#include "core/base/file.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

/* Data of the walk only. */
struct walk {
	struct scan *scan;
	bool failed;
};

static int by_path(const void *a, const void *b)
{
	const struct scan_entry *x = a, *y = b;

	return strcmp(x->relative, y->relative);
}

/* The path RELATIVE in the directory DIR: NULL, it is not in it; "": it is DIR. */
static const char *path_in(const char *relative, const char *dir)
{
	size_t n = strlen(dir);

	if (strncmp(relative, dir, n) != 0 || (relative[n] && relative[n] != '/'))
		return NULL;
	return relative + n + (relative[n] == '/');
}

static struct scan_entry *add_entry(struct scan *scan, const char *path, size_t skip,
				    const struct stat *st)
{
	struct scan_entry *e;
	const char *name;

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
	e->archive = path_in(e->relative, scan->archives_dir);
	name = strrchr(e->path, '/');
	e->leftover = !S_ISDIR(e->mode) && kp_is_temp_name(name ? name + 1 : e->path);
	return e;
}

static void visit_item(struct walk *w, const struct tree_item *item)
{
	if (item->kind == TREE_FAULT) {
		report_error(item->path, "%s", strerror(item->error));
		w->failed = true;
	} else if (item->kind != TREE_DIR_END && item->level > 0) {
		size_t skip = (size_t)(item->rest - item->path);

		add_entry(w->scan, item->path, skip, &item->st)->id.guarded =
			item->guarded;
	}
}

static void walk_tree(const char *root, struct walk *w)
{
	struct tree_list *list = tree_list_open(root);
	struct scan *scan = w->scan;
	struct tree_item item;

	while (tree_list_next(list, &item)) {
		visit_item(w, &item);
		if (item.kind == TREE_DIR && scan->skip.covered &&
		    scan->skip.covered(scan->skip.arg, item.path))
			tree_list_skip(list);
	}
	tree_list_close(list);
	if (scan->n_entries)
		qsort(scan->entries, scan->n_entries, sizeof(*scan->entries), by_path);
}

/* By device and inode, then by path, which is the order of the entries. */
static int by_inode(const void *a, const void *b)
{
	const struct scan_entry *x = *(struct scan_entry *const *)a,
				*y = *(struct scan_entry *const *)b;

	if (x->id.dev != y->id.dev)
		return KP_ORDER(x->id.dev, y->id.dev);
	if (x->id.ino != y->id.ino)
		return KP_ORDER(x->id.ino, y->id.ino);
	return KP_ORDER(x, y);
}

/* Chain the paths of each file that has several links. */
static void chain_links(struct scan *scan)
{
	struct scan_entry **linked = xmalloc(scan->n_entries * sizeof(*linked));
	size_t n = 0;

	for (size_t i = 0; i < scan->n_entries; i++) {
		struct scan_entry *e = &scan->entries[i];

		e->first = i;
		if (e->id.nlink > 1 && !S_ISDIR(e->mode) && !e->leftover && !e->database)
			linked[n++] = e;
	}
	qsort(linked, n, sizeof(*linked), by_inode);
	for (size_t i = 1; i < n; i++) {
		if (linked[i]->id.dev != linked[i - 1]->id.dev ||
		    linked[i]->id.ino != linked[i - 1]->id.ino)
			continue;
		linked[i]->first = linked[i - 1]->first;
		linked[i - 1]->next_link = (size_t)(linked[i] - scan->entries);
	}
	free(linked);
}

size_t *scan_links(const struct scan *scan, size_t entry, size_t *n)
{
	size_t *links, i;

	*n = 0;
	for (i = entry; i != SCAN_NO_LINK; i = scan->entries[i].next_link)
		++*n;
	links = xmalloc(*n * sizeof(*links));
	*n = 0;
	for (i = entry; i != SCAN_NO_LINK; i = scan->entries[i].next_link)
		links[(*n)++] = i;
	return links;
}

void scan_chain(struct scan *scan, const size_t *links, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		scan->entries[links[i]].first = links[0];
		scan->entries[links[i]].next_link =
			i + 1 < n ? links[i + 1] : SCAN_NO_LINK;
	}
}

/* Returns why a file with device code is left alone; NULL: it is packed. */
static const char *left_alone(const struct input *in)
{
	const struct kp_fatbin *fat = &in->fat;

	if (fat->kind == KP_FATBIN_CONVERTED)
		return "is converted already";
	if (fat->kind == KP_FATBIN_NONE)
		return fat->unlisted;
	if (fat->containers.count == 0)
		return "its .hip_fatbin is empty";
	return NULL;
}

static void keep_input(struct scan *scan, struct input *in)
{
	xgrow(&scan->inputs, scan->n_inputs, &scan->inputs_cap, sizeof(struct input *));
	scan->inputs[scan->n_inputs++] = in;
}

static char *make_key(const char *prefix, const char *relative)
{
	return xasprintf("%s%s%s", prefix, *prefix ? "/" : "", relative);
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

void scan_report_left(const struct scan *scan, bool quiet)
{
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (!e->note || (quiet && e->left == SCAN_LEFT_AS_MEANT))
			continue;
		if (e->left == SCAN_LEFT_DAMAGED)
			report_error(e->path, "damaged, its device code stays in it: %s",
				     e->note);
		else
			report_error(e->path, "%s: %s%s",
				     e->left == SCAN_LEFT_UNSUPPORTED ? "warning"
								      : "note",
				     e->left == SCAN_LEFT_UNSUPPORTED && e->fault
					     ? "its device code stays in it: "
					     : "",
				     e->note);
	}
}

bool scan_damaged(const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].note && scan->entries[i].left == SCAN_LEFT_DAMAGED)
			return true;
	return false;
}

/*
 * Check that IN is the file that the walk found at E's path.  From then on E is the file
 * as IN was opened, because its content decides what is done with it.
 */
static kpack_error_t check_same(struct scan_entry *e, const struct input *in,
				struct kpackx_error *why)
{
	struct file_identity was;

	if (in->st.st_dev != e->id.dev || in->st.st_ino != e->id.ino)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	was = e->id;
	e->id = file_identity_of(&in->st);
	e->id.guarded = was.guarded;
	return KPACK_SUCCESS;
}

/* Whether bad content of a file in a tree is no fault. */
static bool is_tolerant(const struct scan *scan)
{
	return scan->code != SCAN_ALL_CODE;
}

/* Keep IN if it has device code to pack, else free it. */
static void take_input(struct scan *scan, size_t entry, struct input *in, bool alone)
{
	struct scan_entry *e = &scan->entries[entry];
	struct kpackx_error fault = {0};

	in->entry = entry;
	if (in->fat.kind != KP_FATBIN_NONE || in->fat.unlisted) {
		e->converted = in->fat.kind == KP_FATBIN_CONVERTED;
		e->note = left_alone(in);
		if (in->fat.unlisted && !e->converted)
			e->left = SCAN_LEFT_UNSUPPORTED;
		if (!e->note && kp_path_ok(kp_span_str(in->key))) {
			e->input = in;
			e->note = in->fat.unlisted;
			keep_input(scan, in);
			return;
		}
		if (!e->note) {
			kp_fail(&fault, KPACK_ERROR_INVALID_ARGUMENT,
				"its path cannot be a key");
			take_fault(scan, e, is_tolerant(scan) && !alone, true, &fault);
		}
	}
	input_fini(in);
	free(in);
}

/* Find out if PATH, which cannot be packed, is a linked host binary, and has device code. */
static void look_again(const char *path, bool *binary, bool *code)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_source file;
	struct kp_span head;
	struct stat st;
	int fd;

	*binary = *code = false;
	if (below_file_open_nofollow(path, &fd, &st, NULL))
		return;
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	*binary = !kp_source_head(&file, 0, bytes, sizeof(bytes), &head, NULL) &&
		  kp_fatbin_is_linked(head);
	*code = kp_fatbin_has_code(fd, file.size);
	close(fd);
}

/* Look for device code in one file, and keep it if there is some to pack. */
static void classify_file(struct scan *scan, size_t entry, const char *key, bool alone)
{
	struct scan_entry *e = &scan->entries[entry];
	const struct input_look look = {.in_tree = !alone,
					.guarded = e->id.guarded,
					.sections = scan->code != SCAN_CONVERTIBLE};
	struct input *in = xmalloc(sizeof(*in));
	struct kpackx_error fault = {0};
	bool binary, code;

	scan->n_files++;
	if (input_open(e->path, key, &look, in, &fault) == KPACK_SUCCESS) {
		if (check_same(e, in, &fault) == KPACK_SUCCESS) {
			take_input(scan, entry, in, alone);
			return;
		}
		input_fini(in);
	}
	free(in);
	/* a file that is no binary may only look like one of the formats */
	look_again(e->path, &binary, &code);
	take_fault(scan, e, !alone && (is_tolerant(scan) || !binary), code, &fault);
}

/* --- files of databases -------------------------------------------------------------- */

/* List the files that a library may own, under their keys. */
static void list_files(struct scan *scan, const char *prefix)
{
	scan->file_entries = xmalloc(scan->n_entries * sizeof(size_t));
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		struct file_tree_item item = {
			.disk = e->path, .size = e->id.size, .mode = e->mode};

		if (!S_ISREG(e->mode) || e->leftover || e->archive)
			continue;
		item.path = make_key(prefix, e->relative);
		scan->file_entries[scan->files.count] = i;
		file_tree_add(&scan->files, &item);
		free(item.path);
	}
	file_tree_sort(&scan->files);
}

static void report_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	struct scan *scan = arg;

	report_why(scan->files.items[file].disk, why);
	scan->entries[scan->file_entries[file]].faulty = true;
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

/* Add a file of a database, to be packed. */
static void take_database(struct scan *scan, size_t file)
{
	size_t entry = scan->file_entries[file];
	struct scan_entry *e = &scan->entries[entry];
	const struct scan_database d = {.path = e->path,
					.key = scan->files.items[file].path,
					.objects = scan->found.objects[file],
					.n_objects = 1};
	struct kpackx_error fault = {0};
	kpack_error_t err = scan_add_database(scan, entry, &d, &e->input, &fault);

	if (!err)
		err = check_same(e, e->input, &fault);
	if (err) {
		report_why(e->path, &fault);
		scan->n_faults++;
	}
	e->database = !err;
	e->faulty = err;
	scan->n_files++;
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

kpack_error_t scan_add_plain(struct scan *scan, size_t entry, struct kpackx_error *why)
{
	struct scan_entry *e = &scan->entries[entry];
	const struct scan_database d = {.path = e->path, .key = e->relative};

	KP_TRY(scan_add_database(scan, entry, &d, &e->input, why));
	return check_same(e, e->input, why);
}

/* Leave an archive alone that its loader opens by path: in ours, or merged, it is lost. */
static void keep_archive(struct scan *scan, size_t file)
{
	scan->entries[scan->file_entries[file]].note =
		"an archive that its library opens by path";
	scan->n_files++;
}

static void identify_database(struct scan *scan, size_t file)
{
	scan->entries[scan->file_entries[file]].database = true;
	scan->n_files++;
}

static kpack_error_t find_databases(struct scan *scan,
				    const struct library_set *libraries,
				    enum scan_databases databases,
				    struct kpackx_error *why)
{
	KP_TRY(library_find_all(libraries, &scan->files, report_fault, scan, &scan->found,
				&scan->n_faults, why));
	for (size_t i = 0; i < scan->files.count && databases != SCAN_FIND; i++) {
		if (!scan->found.objects[i])
			continue;
		if (databases == SCAN_PACK && scan->found.objects[i]->is_archive)
			keep_archive(scan, i);
		else if (databases == SCAN_PACK)
			take_database(scan, i);
		else
			identify_database(scan, i);
	}
	return KPACK_SUCCESS;
}

/* --- the rest ------------------------------------------------------------------------ */

bool scan_find(const struct scan *scan, struct kp_span path, size_t *entry)
{
	size_t low = 0, high = scan->n_entries;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = kp_span_cmp(path, kp_span_str(scan->entries[mid].relative));

		*entry = mid;
		if (c == 0)
			return true;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

static int by_input(const void *a, const void *b)
{
	return strcmp((*(struct input *const *)a)->key, (*(struct input *const *)b)->key);
}

void scan_sort(struct scan *scan)
{
	if (scan->n_inputs)
		qsort(scan->inputs, scan->n_inputs, sizeof(struct input *), by_input);
}

static bool is_known(const struct scan *scan, const struct scan_entry *e)
{
	return scan->skip.known && scan->skip.known(scan->skip.arg, e->relative, &e->id);
}

static void classify_all(struct scan *scan, const char *prefix)
{
	chain_links(scan);
	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		char *key;

		if (!S_ISREG(e->mode) || e->first != i || e->leftover || e->database ||
		    e->faulty || e->note || e->archive || is_known(scan, e))
			continue;
		key = make_key(prefix, e->relative);
		classify_file(scan, i, key, false);
		free(key);
	}
	scan_sort(scan);
}

static kpack_error_t scan_tree(struct scan *scan, const char *root, const char *prefix,
			       const struct library_set *libraries,
			       enum scan_databases databases, struct kpackx_error *why)
{
	struct walk w = {.scan = scan};

	walk_tree(root, &w);
	if (w.failed)
		scan->n_faults++;
	list_files(scan, prefix);
	if (libraries)
		KP_TRY(find_databases(scan, libraries, databases, why));
	classify_all(scan, prefix);
	return KPACK_SUCCESS;
}

static void scan_file(struct scan *scan, const char *path, const struct stat *st,
		      const char *prefix)
{
	char *key;

	add_entry(scan, path, kp_path_directory(path).size, st);
	scan->entries[0].leftover = false;
	key = make_key(prefix, scan->entries[0].relative);
	classify_file(scan, 0, key, true);
	free(key);
}

kpack_error_t scan_open(const char *root, const char *prefix, enum scan_code code,
			const struct library_set *libraries,
			enum scan_databases databases, struct scan *out,
			struct kpackx_error *why)
{
	struct stat st;
	kpack_error_t err;

	*out = (struct scan){.code = code,
			     .skip = out->skip,
			     .archives_dir = out->archives_dir ? out->archives_dir
							       : KP_ARCHIVES_DIR};
	if (below_stat(root, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (!S_ISDIR(st.st_mode)) {
		scan_file(out, root, &st, prefix);
		return KPACK_SUCCESS;
	}
	err = scan_tree(out, root, prefix, libraries, databases, why);
	if (err)
		scan_close(out);
	return err;
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
	if (scan->found.objects)
		library_found_fini(&scan->found);
	file_tree_fini(&scan->files);
	free(scan->file_entries);
	free(scan->inputs);
	free(scan->entries);
	*scan = (struct scan){0};
}
