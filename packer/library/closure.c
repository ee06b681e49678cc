/* SPDX-License-Identifier: MIT */
#include "closure.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "closure_internal.h"
#include "core/base/path.h"
#include "packer/files/read_file.h"
#include "arch_name.h"
#include "rocfft.h"
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "msgpack_names.h"
#include "core/base/text.h"

/* Limit of faults whose text is kept: a directory of kernels has some thousand files. */
#define FAULTS_MAX 65536

/* Smallest size of a kernel database: MIOpen ignores smaller ones. */
#define KDB_MIN 512

/* --- faults -------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
	const struct closure_fault *x = a, *y = b;
	int n = strcmp(x->path, y->path);

	return n ? n : strcmp(x->text, y->text);
}

static void free_fault(struct closure_fault *fault)
{
	free(fault->path);
	free(fault->text);
}

/* Take over FAULT.  A repetition of the last fault, as from repeated rows, is dropped. */
static void keep_fault(struct closure *c, struct closure_fault *fault)
{
	bool again = c->n_faults && by_path(&c->faults[c->n_faults - 1], fault) == 0;

	if (again || c->n_faults == FAULTS_MAX) {
		c->more_faults += !again;
		free_fault(fault);
		return;
	}
	xgrow(&c->faults, c->n_faults, &c->faults_cap, sizeof(*fault));
	c->faults[c->n_faults++] = *fault;
}

void closure_add(struct closure *c, const char *path, const char *fmt, ...)
{
	struct closure_fault fault = {xstrdup(path), NULL};
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&fault.text, fmt, ap) < 0)
		xalloc_fail(0);
	va_end(ap);
	keep_fault(c, &fault);
}

kpack_error_t closure_add_error(struct closure *c, size_t file, kpack_error_t err,
				const struct kpackx_error *fault,
				struct kpackx_error *why)
{
	const char *path = c->tree->items[file].path;
	const char *text = fault->text[0] ? fault->text : kpackx_error_name(err);

	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail(why, err, "%s: %s", path, text);
	closure_add(c, path, "%s", text);
	return KPACK_SUCCESS;
}

char *closure_escape(struct kp_span text)
{
	char *shown = kp_text_escape_new(text);

	if (!shown)
		xalloc_fail(0);
	return shown;
}

/* Report the faults, each once: several libraries may report the same one. */
static void report_all(struct closure *c, closure_report *report, void *arg,
		       size_t *faults)
{
	char more[64];

	if (c->n_faults)
		qsort(c->faults, c->n_faults, sizeof(*c->faults), by_path);
	for (size_t i = 0; i < c->n_faults; i++) {
		if (i && by_path(&c->faults[i - 1], &c->faults[i]) == 0)
			continue;
		report(arg, c->faults[i].path, c->faults[i].text);
		++*faults;
	}
	if (!c->more_faults)
		return;
	snprintf(more, sizeof(more), "and %zu faults more", c->more_faults);
	report(arg, c->faults[c->n_faults - 1].path, more);
	*faults += c->more_faults;
}

/* --- neighbouring files -------------------------------------------------------------- */

char *closure_beside(const char *path, struct kp_span name, const char *ending)
{
	struct kp_span dir = kp_path_directory(path);
	size_t n = dir.size ? dir.size + 1 : 0, end = strlen(ending);
	char *out = xmalloc(n + name.size + end + 1);

	if (n) {
		memcpy(out, path, n - 1);
		out[n - 1] = '/';
	}
	if (name.size)
		memcpy(out + n, name.data, name.size);
	memcpy(out + n + name.size, ending, end + 1);
	return out;
}

bool closure_find(const struct closure *c, const char *path, struct kp_span name,
		  const char *ending, size_t *file)
{
	char *wanted = closure_beside(path, name, ending);
	size_t ignored;
	bool found = !(name.size && memchr(name.data, 0, name.size)) &&
		     file_tree_find(c->tree, kp_span_str(wanted), file ? file : &ignored);

	free(wanted);
	return found;
}

void closure_add_missing(struct closure *c, size_t of, const char *path,
			 struct kp_span name, const char *ending)
{
	size_t dir = kp_path_directory(path).size;
	char *wanted = closure_beside(path, name, ending);
	char *shown = closure_escape(
		(struct kp_span){(const uint8_t *)wanted,
				 dir + (dir ? 1 : 0) + name.size + strlen(ending)});

	closure_add(c, c->tree->items[of].path, "needs %s, which is missing", shown);
	free(shown);
	free(wanted);
}

bool closure_is_stale(const struct closure *c, size_t file)
{
	const char *path = c->tree->items[file].path;
	char *packed;
	size_t other;
	bool stale;

	if (!name_ends(kp_span_str(path), ".dat"))
		return false;
	packed = xasprintf("%s.zlib", path);
	stale = file_tree_find(c->tree, kp_span_str(packed), &other);
	free(packed);
	return stale;
}

/* --- GPUs ---------------------------------------------------------------------------- */

bool closure_wants(const struct closure *c, const char *gpu)
{
	struct kp_target code;

	return !*gpu || kp_target_parse(kp_span_str(gpu), &code, NULL) ||
	       kp_choice_has(c->chosen, kp_span_str(gpu));
}

bool closure_wants_name(const struct closure *c, struct kp_span name)
{
	char gpu[KP_TARGET_TEXT_MAX];

	return !arch_of_name(name, gpu) || closure_wants(c, gpu);
}

/* --- single files -------------------------------------------------------------------- */

/* Find "-xnack+" or "-xnack-" before the ending of the file's name; or NULL. */
static const char *find_mode(const char *path)
{
	const char *on = strstr(path, "-xnack+."), *off = strstr(path, "-xnack-.");
	const char *slash = strrchr(path, '/');

	on = on ? on : off;
	return on && (!slash || on > slash) ? on : NULL;
}

/* Whether the directory itself is for one mode. */
static bool in_mode_directory(const char *path)
{
	struct kp_span dir = path_last(kp_path_directory(path));

	return name_has(dir, "-xnack+") || name_has(dir, "-xnack-");
}

/*
 * Builds for gfx90a have both modes.  Builds for other GPUs may have only -xnack-, but
 * then none of their files is for -xnack+.
 */
static bool wants_pair(const struct closure *c, const char *path, const char *mode)
{
	char gpu[KP_TARGET_TEXT_MAX];
	unsigned flags;

	if (mode[6] == '+' || !tensile_gpu_of_name(path_last(kp_span_str(path)), gpu) ||
	    strcmp(gpu, "gfx90a") == 0)
		return true;
	flags = tensile_places_get(&c->places, kp_path_directory(path), gpu);
	return flags & PLACE_XNACK_ON;
}

static void check_pair(struct closure *c, size_t file)
{
	const char *path = c->tree->items[file].path, *mode = find_mode(path);
	char *other, *shown;
	size_t ignored;

	if (!mode || in_mode_directory(path) || !wants_pair(c, path, mode))
		return;
	other = xstrdup(path);
	other[mode - path + 6] = mode[6] == '+' ? '-' : '+';
	shown = closure_escape(kp_span_str(other));
	if (closure_wants_name(c, path_last(kp_span_str(other))) &&
	    !file_tree_find(c->tree, kp_span_str(other), &ignored))
		closure_add(c, path, "needs %s, the other xnack mode, which is missing",
			    shown);
	free(shown);
	free(other);
}

static void check_kdb(struct closure *c, size_t file)
{
	const struct file_tree_item *item = &c->tree->items[file];

	if (item->size < KDB_MIN)
		closure_add(c, item->path,
			    "%llu bytes: no database of kernels has less than %d",
			    (unsigned long long)item->size, KDB_MIN);
}

struct path_check {
	struct closure *c;
	size_t file;
};

static void check_kernel_path(void *arg, struct kernel_path *path)
{
	struct path_check *check = arg;
	char *shown;

	if (path->exists || !closure_wants_name(check->c, path->path))
		return;
	shown = closure_escape(path->path);
	closure_add(check->c, check->c->tree->items[check->file].path,
		    "row %llu: kernel_path: needs %s, which is missing",
		    (unsigned long long)path->row, shown);
	free(shown);
}

/* Kernel caches are excluded: they contain their kernels, and may be large. */
static bool is_kernel_table(struct kp_span name)
{
	return (name_ends(name, ".db") || name_ends(name, ".sqlite") ||
		name_ends(name, ".sqlite3")) &&
	       !kp_span_starts(name, "rocfft_kernel_cache", 19);
}

static kpack_error_t check_kernel_table(struct closure *c, size_t file,
					struct kpackx_error *why)
{
	struct path_check check = {c, file};
	struct kpackx_error fault = {0};
	kpack_error_t err =
		kernel_paths_each(c->tree, file, check_kernel_path, &check, &fault);

	return err ? closure_add_error(c, file, err, &fault, why) : KPACK_SUCCESS;
}

static bool find_dat(const struct closure *c, const char *path, const char *name)
{
	return closure_find(c, path, kp_span_str(name), ".dat", NULL) ||
	       closure_find(c, path, kp_span_str(name), ".dat.zlib", NULL);
}

/* An absolute path is that of the machine that built it: only its last part is used. */
static kpack_error_t check_extop(struct closure *c, size_t file, struct kpackx_error *why)
{
	const char *path = c->tree->items[file].path;
	struct read_file bytes = {0};
	struct msgpack_names names = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err = read_file_read(c->tree, file, &bytes, &fault);

	if (!err)
		err = msgpack_names_read(read_file_span(&bytes), "co_path", &names,
					 &fault);
	if (err)
		err = closure_add_error(c, file, err, &fault, why);
	for (size_t i = 0; i < names.count && !err; i++) {
		struct kp_span name = names.items[i];

		if (name.size && name.data[0] == '/')
			name = path_last(name);
		if (name.size > KP_NAME_MAX)
			name.size = KP_NAME_MAX;
		if (closure_wants_name(c, name) && !closure_find(c, path, name, "", NULL))
			closure_add_missing(c, file, path, name, "");
	}
	msgpack_names_fini(&names);
	read_file_fini(&bytes);
	return err;
}

/* hipBLASLt finds the code of external operations by an index that GPUs may share. */
static kpack_error_t check_operations(struct closure *c, size_t file,
				      struct kpackx_error *why)
{
	static const char *const starts[] = {"hipblasltExtOpLibrary",
					     "hipsparseltExtOpLibrary"};
	const char *path = c->tree->items[file].path;
	char gpu[KP_TARGET_TEXT_MAX], own[KP_TARGET_TEXT_MAX + 32];

	(void)why;
	if (!tensile_gpu_of_name(path_last(kp_span_str(path)), gpu) ||
	    !closure_wants(c, gpu))
		return KPACK_SUCCESS;
	for (size_t i = 0; i < KP_COUNT(starts); i++) {
		snprintf(own, sizeof(own), "%s_%s", starts[i], gpu);
		if (find_dat(c, path, starts[i]) || find_dat(c, path, own))
			return KPACK_SUCCESS;
	}
	closure_add_missing(c, file, path, kp_span_str(starts[0]), ".dat");
	return KPACK_SUCCESS;
}

/* --- all files ----------------------------------------------------------------------- */

static bool is_dat(struct kp_span name)
{
	return name_ends(name, ".dat") || name_ends(name, ".dat.zlib");
}

static bool is_parent(struct kp_span name)
{
	char gpu[KP_TARGET_TEXT_MAX];

	return is_dat(name) && tensile_is_parent(name, gpu);
}

static bool is_yaml(struct kp_span name)
{
	char gpu[KP_TARGET_TEXT_MAX];

	return name_ends(name, ".yaml") && tensile_is_parent(name, gpu);
}

static bool is_mapping(struct kp_span name)
{
	return is_dat(name) && name_has(name, "_Mapping.dat");
}

static bool is_extop(struct kp_span name)
{
	return is_dat(name) && name_has(name, "ExtOpLibrary");
}

static bool is_operations(struct kp_span name)
{
	return kp_span_starts(name, "extop_", 6) && name_ends(name, ".co");
}

static bool is_child(struct kp_span name)
{
	return is_dat(name) && kp_span_starts(name, "TensileLibrary_", 15) &&
	       !is_parent(name);
}

/* The code of all kernels for one GPU. */
static bool is_merged(struct kp_span name)
{
	char gpu[KP_TARGET_TEXT_MAX];

	return tensile_merged_gpu(name, gpu);
}

/* The checks of a file: the first one whose name matches applies. */
static const struct {
	bool (*fits)(struct kp_span name);
	kpack_error_t (*check)(struct closure *c, size_t file, struct kpackx_error *why);
} tensile_checks[] = {
	{is_mapping, closure_mapping},     {is_extop, check_extop},
	{is_yaml, closure_yaml},           {is_parent, closure_parent},
	{is_child, closure_child},         {is_merged, closure_merged},
	{is_operations, check_operations},
};

static kpack_error_t check_tensile(struct closure *c, size_t file,
				   struct kpackx_error *why)
{
	const char *path = c->tree->items[file].path;
	struct kp_span name = path_last(kp_span_str(path));

	if (closure_is_stale(c, file)) {
		closure_add(c, path, "is stale: its .dat.zlib stands beside it");
		return KPACK_SUCCESS;
	}
	check_pair(c, file);
	for (size_t i = 0; i < KP_COUNT(tensile_checks); i++)
		if (tensile_checks[i].fits(name))
			return tensile_checks[i].check(c, file, why);
	return KPACK_SUCCESS;
}

static bool is_of(const struct library_object *object, const char *library)
{
	return object && strcmp(object->library, library) == 0;
}

static kpack_error_t check_file(struct closure *c, size_t file, struct kpackx_error *why)
{
	const struct library_object *object = c->found->objects[file];
	struct kp_span name = path_last(kp_span_str(c->tree->items[file].path));

	if (tensile_library_of(c->found, file))
		return check_tensile(c, file, why);
	if (is_of(object, "miopen") && name_ends(name, ".kdb"))
		check_kdb(c, file);
	if (is_of(object, "rocfft") && is_kernel_table(name))
		return check_kernel_table(c, file, why);
	return KPACK_SUCCESS;
}

static kpack_error_t check_files(struct closure *c, struct kpackx_error *why)
{
	for (size_t i = 0; i < c->tree->count; i++)
		KP_TRY(check_file(c, i, why));
	return KPACK_SUCCESS;
}

kpack_error_t closure_check(const struct library_found *found,
			    const struct kp_choice *chosen, closure_report *report,
			    void *arg, size_t *faults, struct kpackx_error *why)
{
	struct closure c = {.found = found,
			    .tree = found->tree,
			    .chosen = chosen,
			    .kinds = xcalloc(found->tree->count, sizeof(*c.kinds))};
	kpack_error_t err;

	tensile_places_read(found->tree, &c.places);
	err = check_files(&c, why);
	/* also report the faults that were found before an error */
	report_all(&c, report, arg, faults);
	for (size_t i = 0; i < c.n_faults; i++)
		free_fault(&c.faults[i]);
	free(c.faults);
	free(c.kinds);
	tensile_places_fini(&c.places);
	return err;
}
