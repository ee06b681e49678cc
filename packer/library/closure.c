/* SPDX-License-Identifier: MIT */
/*
 * What the loaders of kernel databases ask for by name.  A file of the tree leads to others:
 *
 *   Tensile's parent           each PREFIX of a placeholder: PREFIX.dat.zlib or PREFIX.dat beside it,
 *   (rocBLAS, hipBLASLt,       and the child's code, PREFIX.co or PREFIX.hsaco; a fallback without a GPU
 *   hipSPARSELt)               in its name has PREFIX_<gpu> for each GPU of the parent.  A parent
 *                              without placeholders: code beside it for each GPU of its solutions
 *   TensileLibrary.yaml        each file that it names, beside it or in a GPU's directory there
 *   Tensile's child or code    a parent for its GPU, or for all GPUs
 *   extop_<gpu>.co             the index of external operations
 *   that index                 each co_path
 *   rocFFT's table of kernels  each kernel_path
 *
 * Names of code may state an xnack mode.  Other faults: a .dat beside its .dat.zlib, which no loader
 * reads, and a .kdb that MIOpen ignores because it is too small.  Whether children hold what their
 * parents need, or helper kernels are complete, is not looked into: a file that is there is fine.
 */
#include "closure.h"
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "file_tree.h"
#include "rocfft.h"
#include "tensile.h"

/* Limit of faults whose text is kept: a directory of kernels has some thousand files. */
#define FAULTS_MAX 65536

/* Limits of processors in the rows of one parent, and of look-ups of the code of fallbacks, which
 * are their product: real trees have some 20, and some 1000. */
#define ROWS_MAX 4096
#define CODE_MAX (1 << 20)

struct closure_fault {
	char *path, *text;
};

struct closure {
	const struct library_found *found;
	const struct file_tree *tree;
	const struct kp_choice *chosen; /* the GPUs to check for */
	size_t file;                    /* the file that is being checked */
	const char *path;
	struct closure_fault *faults;
	size_t n_faults, faults_cap;
	size_t more_faults; /* faults whose text is not kept */
	size_t n_code;      /* code of fallbacks that was looked for */
};

static void __attribute__((format(printf, 3, 4)))
add_fault(struct closure *c, const char *path, const char *fmt, ...)
{
	va_list ap;

	if (c->n_faults == FAULTS_MAX) {
		c->more_faults++;
		return;
	}
	xgrow(&c->faults, c->n_faults, &c->faults_cap, sizeof(*c->faults));
	va_start(ap, fmt);
	c->faults[c->n_faults].text = xvasprintf(fmt, ap);
	va_end(ap);
	c->faults[c->n_faults++].path = xstrdup(path);
}

static void add_missing(struct closure *c, const char *path, const char *wanted,
			const char *also)
{
	KP_AUTO_FREE char *shown = xescape(kp_span_str(wanted));

	add_fault(c, path, "needs %s%s, which is missing", shown, also);
}

/* A file that cannot be read is a fault; only OUT_OF_MEMORY is an error. */
static kpack_error_t add_unreadable(struct closure *c, kpack_error_t err,
				    const struct kpackx_error *fault,
				    struct kpackx_error *why)
{
	const char *text = fault->text[0] ? fault->text : kpackx_error_name(err);

	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail(why, err, "%s: %s", c->path, text);
	if (err)
		add_fault(c, c->path, "%s", text);
	return KPACK_SUCCESS;
}

/* --- names --------------------------------------------------------------------------- */

/* Whether the GPUs to check for can load code for GPU; true for what is no target ID. */
static bool is_wanted(const struct closure *c, const char *gpu)
{
	struct kp_target target;

	return kp_target_parse(kp_span_str(gpu), &target, NULL) ||
	       kp_choice_has(c->chosen, kp_span_str(gpu));
}

/* The same for the last target ID in NAME; true if there is none. */
static bool is_name_wanted(const struct closure *c, struct kp_span name)
{
	char gpu[KP_TARGET_TEXT_MAX];

	return !arch_of_name(name, gpu) || is_wanted(c, gpu);
}

/* The last processor in NAME, without its features; false: NAME has none. */
static bool processor_of(struct kp_span name, char out[KP_TARGET_TEXT_MAX])
{
	bool found = arch_of_name(name, out);

	out[found ? strcspn(out, ":") : 0] = '\0';
	return found;
}

/* The path NAME with the first of ENDINGS, which blanks separate, beside PATH, on the heap. */
static char *beside(const char *path, struct kp_span name, const char *endings)
{
	struct kp_span dir = kp_path_directory(path);

	return xasprintf("%.*s%s%.*s%.*s", (int)dir.size, (const char *)dir.data,
			 dir.size ? "/" : "", (int)name.size, (const char *)name.data,
			 (int)strcspn(endings, " "), endings);
}

/* The first file NAME+ENDING beside PATH, for any of ENDINGS; NULL: none. */
static const char *find_beside(const struct closure *c, const char *path,
			       struct kp_span name, const char *endings)
{
	for (; *endings; endings += strcspn(endings, " "), endings += *endings == ' ') {
		KP_AUTO_FREE char *wanted = beside(path, name, endings);
		size_t file;

		if (file_tree_find(c->tree, wanted, &file))
			return c->tree->items[file].path;
	}
	return NULL;
}

/* As find_beside; if there is none, that is a fault of OF.  ALSO is said after the first name. */
static const char *need_beside(struct closure *c, const char *of, struct kp_span name,
			       const char *endings, const char *also)
{
	const char *found = find_beside(c, of, name, endings);

	if (!found) {
		KP_AUTO_FREE char *wanted = beside(of, name, endings);

		add_missing(c, of, wanted, also);
	}
	return found;
}

/* Endings of a library's name, in the order of what stands beside NAME: packed, or not. */
static const char *library_endings(const char *name)
{
	return kp_span_ends(kp_span_str(name), ".zlib") ? ".dat.zlib .dat"
							: ".dat .dat.zlib";
}

/* --- Tensile's parents ----------------------------------------------------------------- */

/* Any name of a child's code STEM: of which kind its kernels are, only the child says. */
static void need_code(struct closure *c, const char *child, struct kp_span stem)
{
	need_beside(c, child, stem,
		    ".co .hsaco -xnack-.co -xnack+.co -xnack-.hsaco -xnack+.hsaco",
		    " or .hsaco");
}

/*
 * A parent without placeholders has all solutions, and its loader takes all code for the GPU that is
 * beside it.  Kernels from source are in Kernels.so-000-<gpu>.hsaco.  Those in assembly are in one file
 * for each GPU, TensileLibrary_<gpu>.co, or in one file each; an old library has some of both.
 */
static void need_merged(struct closure *c, const struct tensile_index *index,
			struct kp_span text)
{
	KP_AUTO_FREE char *dir = beside(c->path, (struct kp_span){0}, ""), *wanted = NULL;
	char gpu[KP_TARGET_TEXT_MAX], own[KP_TARGET_TEXT_MAX];
	bool has_code = false, has_whole = false, others_have_whole = false;
	bool solves = false, in_assembly = false;

	if (!processor_of(text, gpu) || !is_wanted(c, gpu))
		return;
	for (size_t i = 0; i < index->n_kernels; i++)
		if (!processor_of(index->kernels[i].gpu, own) || strcmp(own, gpu) == 0) {
			solves = true;
			in_assembly |= index->kernels[i].assembly;
		}
	for (size_t i = file_tree_from(c->tree, dir); i < c->tree->count; i++) {
		struct kp_span name = kp_span_str(c->tree->items[i].path);
		bool assembly = kp_span_ends(name, ".co"), whole, mine;

		if (!kp_span_take(&name, dir))
			break;
		if (memchr(name.data, '/', name.size) || !processor_of(name, own) ||
		    !(assembly || kp_span_ends(name, ".hsaco")))
			continue;
		mine = strcmp(own, gpu) == 0;
		whole = assembly && kp_span_begins(name, "TensileLibrary_");
		has_code |= mine && (assembly || !in_assembly);
		has_whole |= mine && whole;
		others_have_whole |= !mine && whole;
	}
	if (!solves || (has_code && (has_whole || !others_have_whole || !in_assembly)))
		return;
	wanted = xasprintf("%sTensileLibrary_%s.co", dir, gpu);
	add_missing(c, c->path, wanted, "");
}

/*
 * A placeholder of a parent names a child, which must be there with its code, unless only other GPUs
 * need it.
 */
static kpack_error_t check_parent(struct closure *c, struct kpackx_error *why)
{
	struct kp_span name = kp_span_str(kp_path_name(c->path)), named;
	char gpu[KP_TARGET_TEXT_MAX], own[KP_TARGET_TEXT_MAX];
	bool has_gpu = processor_of(name, gpu);
	KP_AUTO(read_file) bytes = {0};
	KP_AUTO(tensile_index) index = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err;

	if (!is_name_wanted(c, name))
		return KPACK_SUCCESS;
	err = read_file_read(c->tree, c->file, &bytes, &fault);
	if (!err)
		err = tensile_index_read(read_file_span(&bytes), &index, &fault);
	if (err)
		return add_unreadable(c, err, &fault, why);
	if (!index.has_library) {
		add_fault(c, c->path, "library: missing, or no map");
		return KPACK_SUCCESS;
	}
	if (index.n_gpus > ROWS_MAX) {
		add_fault(c, c->path,
			  "library: names %zu processors, at most %d are checked",
			  index.n_gpus, ROWS_MAX);
		return KPACK_SUCCESS;
	}
	if (!index.n_placeholders && has_gpu) {
		need_merged(c, &index, kp_span_str(gpu));
	} else if (!index.n_placeholders) {
		for (size_t i = 0; i < index.n_gpus; i++)
			need_merged(c, &index, index.gpus[i]);
		for (size_t i = 0; i < index.n_kernels; i++)
			need_merged(c, &index, index.kernels[i].gpu);
	}
	named = kp_span_str(gpu);
	for (size_t p = 0; p < index.n_placeholders; p++) {
		const struct tensile_placeholder *placeholder = &index.placeholders[p];
		struct kp_span stem = placeholder->value;
		/* the parent's name is right, whatever its rows say: the loader goes by the name */
		const struct kp_span *gpus = has_gpu ? &named
					     : placeholder->n_gpus
						     ? &index.gpus[placeholder->gpu]
						     : index.gpus;
		size_t n = has_gpu               ? 1
			   : placeholder->n_gpus ? placeholder->n_gpus
						 : index.n_gpus;
		/* without a processor in any row it is for every GPU */
		bool wanted = !placeholder->n_gpus && !index.n_gpus;
		const char *child = NULL;

		for (size_t i = 0; i < n && !wanted; i++)
			wanted = is_name_wanted(c, gpus[i]);
		if (wanted && is_name_wanted(c, stem))
			child = need_beside(c, c->path, stem, library_endings(c->path),
					    "");
		if (!child)
			continue;
		if (!kp_span_has(stem, "fallback") || arch_of_name(stem, own)) {
			need_code(c, child, stem);
			continue;
		}
		/* the code of a fallback is in one file for each GPU */
		for (size_t i = 0; i < n && c->n_code <= CODE_MAX; i++) {
			KP_AUTO_FREE char *code = NULL;

			if (c->n_code++ == CODE_MAX)
				add_fault(c, c->path,
					  "leads to more than %d code objects; "
					  "the rest is not checked",
					  CODE_MAX);
			if (!processor_of(gpus[i], own) || !is_wanted(c, own))
				continue;
			code = xasprintf("%.*s_%s", (int)stem.size,
					 (const char *)stem.data, own);
			need_code(c, child, kp_span_str(code));
		}
	}
	return KPACK_SUCCESS;
}

/* --- files that list names -------------------------------------------------------------- */

/*
 * Require the files that TensileLibrary.yaml or an index of external operations names.  In YAML, a name
 * without a GPU is for all GPUs that the file mentions, which may have it in directories of their own:
 * it must be in one of them, or beside the file.  Where GPUs are mentioned that are not checked for, it
 * may be for these, and is not required.
 */
static kpack_error_t check_list(struct closure *c, struct kpackx_error *why)
{
	bool yaml = kp_span_ends(kp_span_str(c->path), ".yaml"), others = false;
	KP_AUTO_FREE char *below = beside(c->path, kp_span_str("gfx"), "");
	KP_AUTO_FREE const char **places = NULL;
	KP_AUTO(read_file) bytes = {0};
	KP_AUTO(file_names) names = {0};
	struct kpackx_error fault = {0};
	size_t n_places = 0, cap = 0, end = strlen(below) - strlen("gfx");
	char gpu[KP_TARGET_TEXT_MAX];
	kpack_error_t err = read_file_read(c->tree, c->file, &bytes, &fault);

	if (!err && yaml)
		err = file_names_of_yaml(read_file_span(&bytes), &names, &fault);
	else if (!err)
		err = file_names_of_msgpack(read_file_span(&bytes), "co_path", &names,
					    &fault);
	if (err)
		return add_unreadable(c, err, &fault, why);
	for (size_t i = 0; i < names.n_gpus; i++)
		others |= !is_wanted(c, names.gpus[i]);
	/* the list itself, and for YAML one file of each GPU's directory */
	xgrow(&places, n_places, &cap, sizeof(*places));
	places[n_places++] = c->path;
	for (size_t i = file_tree_from(c->tree, below); yaml && i < c->tree->count; i++) {
		const char *at = c->tree->items[i].path;
		size_t dir = end + strcspn(at + end, "/");

		if (strncmp(at, below, strlen(below)) != 0)
			break;
		if (!at[dir] || strncmp(at, places[n_places - 1], dir + 1) == 0)
			continue;
		xgrow(&places, n_places, &cap, sizeof(*places));
		places[n_places++] = at;
	}
	for (size_t i = 0; i < names.count; i++) {
		struct kp_span name = kp_span_str(names.items[i]);
		bool found = arch_of_name(name, gpu) ? !is_wanted(c, gpu) : others;
		KP_AUTO_FREE char *wanted = NULL;
		size_t file;

		for (size_t k = 0; k < n_places && !found; k++)
			found = kernel_path_find(c->tree, places[k], name, &file);
		if (found)
			continue;
		wanted = name.size && name.data[0] == '/' ? xstrdup(names.items[i])
							  : beside(c->path, name, "");
		add_missing(c, c->path, wanted, "");
	}
	return KPACK_SUCCESS;
}

/* --- Tensile's other files --------------------------------------------------------------- */

/*
 * The checked file is for a GPU: no loader gets to it without a library or index beside it, one of
 * STEMS, which blanks separate.  The GPU's name follows those that end with "_".
 */
static void check_reached(struct closure *c, const char *stems)
{
	const char *endings = library_endings(c->path);
	struct kp_span name = kp_span_str(kp_path_name(c->path));
	KP_AUTO_FREE char *first = NULL;
	char gpu[KP_TARGET_TEXT_MAX];

	if (!processor_of(name, gpu) || !is_name_wanted(c, name))
		return;
	for (struct kp_span rest = kp_span_str(stems); rest.size;) {
		struct kp_span word = kp_span_word(&rest, " ");
		KP_AUTO_FREE char *stem =
			xasprintf("%.*s%s", (int)word.size, (const char *)word.data,
				  kp_span_ends(word, "_") ? gpu : "");

		if (find_beside(c, c->path, kp_span_str(stem), endings) ||
		    find_beside(c, c->path, kp_span_str(stem), ".yaml"))
			return;
		if (!first)
			first = beside(c->path, kp_span_str(stem), endings);
	}
	add_fault(c, first, "is missing, but files that it must lead to exist");
}

/* By the role of the file's name; a stale file is not even looked into. */
static kpack_error_t check_tensile(struct closure *c, struct kpackx_error *why)
{
	/* the lazy ones have children, the others may also have all kernels of a GPU in one file */
	static const char with_kernels[] =
		"TensileLibrary TensileLibrary_ TensileLiteLibrary_lazy_";
	static const char parents[] =
		"TensileLibrary_lazy_ TensileLibrary TensileLibrary_ "
		"TensileLiteLibrary_lazy_";
	static const char indexes[] = "hipblasltExtOpLibrary hipblasltExtOpLibrary_ "
				      "hipsparseltExtOpLibrary hipsparseltExtOpLibrary_";
	struct kp_span text = kp_span_str(kp_path_name(c->path));
	struct tensile_name name = tensile_name_split(text);
	bool dat = kp_span_is(name.ending, "dat"), yaml = kp_span_is(name.ending, "yaml");
	bool parent = strcmp(name.role, "parent") == 0;
	bool extop = strcmp(name.role, "extop") == 0;
	char gpu[KP_TARGET_TEXT_MAX];

	if (dat && !name.compressed && find_beside(c, c->path, text, ".zlib"))
		add_fault(c, c->path, "is stale: its .dat.zlib stands beside it");
	else if (parent && dat)
		return check_parent(c, why);
	else if ((parent && yaml) || (extop && dat))
		return check_list(c, why);
	else if (extop)
		check_reached(c, indexes);
	else if (!kp_span_begins(text, "TensileLibrary_"))
		return KPACK_SUCCESS;
	else if (dat && strcmp(name.role, "mapping") != 0)
		check_reached(c, parents);
	else if (name.code && kp_span_take(&name.stem, "TensileLibrary_") &&
		 arch_of_directory(name.stem, gpu, NULL))
		check_reached(c, with_kernels);
	return KPACK_SUCCESS;
}

/* --- all files ----------------------------------------------------------------------- */

static void check_row(void *arg, struct kernel_path *row)
{
	struct closure *c = arg;
	char shown[KP_NAME_MAX];

	if (!row->exists && is_name_wanted(c, row->path))
		add_fault(c, c->path, "row %llu: kernel_path: needs %s, which is missing",
			  (unsigned long long)row->row,
			  kp_text_escape(row->path, shown, sizeof(shown)));
}

kpack_error_t closure_check(const struct library_found *found,
			    const struct kp_choice *chosen, closure_report *report,
			    void *arg, size_t *faults, struct kpackx_error *why)
{
	struct closure c = {.found = found, .tree = found->tree, .chosen = chosen};
	const struct closure_fault *last = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	char more[64];

	for (; c.file < c.tree->count && !err; c.file++) {
		const struct library_object *object = found->objects[c.file];
		const struct file_tree_item *item = &c.tree->items[c.file];
		struct kp_span name = kp_span_str(kp_path_name(item->path)), rest;
		struct kpackx_error fault = {0};

		c.path = item->path;
		if (!object)
			continue;
		/* rules may have given the file to another library: then the names of its
		 * directory tell */
		if (kp_span_is_one_of(kp_span_str(object->library),
				      "rocblas hipblaslt hipsparselt") ||
		    tensile_library_of(c.tree, c.path, &rest)) {
			err = check_tensile(&c, why);
			continue;
		}
		if (strcmp(object->library, "miopen") == 0 &&
		    kp_span_ends(name, ".kdb") && item->size < MIOPEN_KDB_MIN)
			add_fault(&c, c.path,
				  "%llu bytes: no database of kernels has less than %d",
				  (unsigned long long)item->size, MIOPEN_KDB_MIN);
		/* kernel caches are no tables of paths: they contain their kernels, and may be
		 * large */
		if (strcmp(object->library, "rocfft") == 0 &&
		    !kp_span_begins(name, "rocfft_kernel_cache") &&
		    (kp_span_ends(name, ".db") || kp_span_ends(name, ".sqlite") ||
		     kp_span_ends(name, ".sqlite3")))
			err = kernel_paths_each(c.tree, c.file, check_row, &c, &fault);
		err = add_unreadable(&c, err, &fault, why);
	}
	/*
	 * In order of paths, each once: several parents lead to the same child.  Also those that
	 * were found before an error.
	 */
	kp_sort(c.faults, c.n_faults, KP_BY_TEXT(struct closure_fault, path),
		KP_BY_TEXT(struct closure_fault, text));
	for (size_t i = 0; i < c.n_faults; i++) {
		const struct closure_fault *f = &c.faults[i];

		if (last && strcmp(last->path, f->path) == 0 &&
		    strcmp(last->text, f->text) == 0)
			continue;
		report(arg, f->path, f->text);
		++*faults;
		last = f;
	}
	if (c.more_faults) {
		snprintf(more, sizeof(more), "and %zu more", c.more_faults);
		report(arg, last->path, more);
		*faults += c.more_faults;
	}
	for (size_t i = 0; i < c.n_faults; i++) {
		free(c.faults[i].path);
		free(c.faults[i].text);
	}
	free(c.faults);
	return err;
}
