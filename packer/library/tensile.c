/* SPDX-License-Identifier: MIT */
/*
 * The files of rocBLAS, hipBLASLt and hipSPARSELt.  All files below a library's own directory are
 * its, and so are Tensile's files in any other directory, which is found by their names.  In a tree as
 * the paper draws it, with a directory for each GPU, code also gets a key: rocblas/gfx1100/kernel_1.
 */
#include "tensile.h"
#include <limits.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "packer/cli/xalloc.h"

/* Parents have at most some 500 KiB; larger merged libraries are not read. */
enum { PARENT_MAX = 16 << 20 };

/* --- Tensile's directories -------------------------------------------------------------- */

/*
 * Whether a file in DIR, or if GPUS in a directory of a GPU in it, has a name that begins with one of
 * PREFIXES, and that TAKES accepts.  The tree is sorted by paths: each prefix is looked up, and what is
 * below a directory is leapt over, so that the look at a large tree costs little.
 */
static bool has_name(const struct file_tree *tree, struct kp_span dir, bool gpus,
		     const char *const *prefixes, bool (*takes)(struct kp_span name))
{
	size_t before = dir.size + (dir.size > 0), k = 0;
	char arch[KP_TARGET_TEXT_MAX];

	do { /* the directories of GPUs last */
		KP_AUTO_FREE char *prefix =
			xasprintf("%.*s%s%s", (int)dir.size, (const char *)dir.data,
				  dir.size ? "/" : "", prefixes[k] ? prefixes[k] : "gfx");
		size_t i = file_tree_from(tree, prefix);

		while (i < tree->count &&
		       strncmp(tree->items[i].path, prefix, strlen(prefix)) == 0) {
			const char *path = tree->items[i].path;
			struct kp_span name = kp_span_str(path + before);
			KP_AUTO_FREE char *behind = NULL;

			name.size = strcspn(path + before, "/");
			if (!path[before + name.size]) {
				if (prefixes[k] && (!takes || takes(name)))
					return true;
				i++;
				continue;
			}
			if (!prefixes[k] && arch_of_directory(name, arch, NULL) &&
			    has_name(tree,
				     (struct kp_span){(const uint8_t *)path,
						      before + name.size},
				     false, prefixes, takes))
				return true;
			behind = xasprintf("%.*s%c", (int)(before + name.size), path,
					   '/' + 1);
			i = file_tree_from(tree, behind);
		}
	} while (prefixes[k] && (prefixes[++k] || gpus));
	return false;
}

static bool is_tensile(struct kp_span name)
{
	return strcmp(tensile_name_split(name).role, "file") != 0;
}

/* hipSPARSELt's problems say which matrix is sparse. */
static bool is_sparse(struct kp_span name)
{
	return kp_span_has(name, "_SPA_") || kp_span_has(name, "_SPB_");
}

/* The part of PATH before its last '/', or empty; LAST gets the component behind it. */
static struct kp_span parent_of(struct kp_span path, struct kp_span *last)
{
	const uint8_t *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
	size_t n = slash ? (size_t)(slash - path.data) : 0;

	*last = kp_span_tail(path, n + (slash != NULL));
	return kp_span_head(path, n);
}

const char *tensile_library_of(const struct file_tree *tree, const char *path,
			       struct kp_span *rest)
{
	static const char *const marks[] = {"TensileLibrary",  "TensileLiteLibrary",
					    "TensileManifest", "Kernels.so-",
					    "extop_",          NULL};
	static const char *const names[] = {"rocblas", "hipblaslt", "hipsparselt"};
	static const char *const lite[] = {"extop_", "hipblaslt", "hipsparselt",
					   "TensileLiteLibrary", NULL};
	static const char *const sparse[] = {"hipsparselt", NULL};
	static const char *const lazy[] = {"TensileLibrary_", NULL};
	struct kp_span name, last, dir = parent_of(kp_span_str(path), &name);
	struct kp_span above = parent_of(dir, &last);
	char arch[KP_TARGET_TEXT_MAX];
	const char *found = NULL;

	if (arch_of_directory(last, arch, NULL)) {
		dir = above;
		parent_of(dir, &last);
	}
	if ((!is_tensile(name) && !kp_span_is(last, "library")) ||
	    !has_name(tree, dir, true, marks, is_tensile))
		return NULL;
	*rest = kp_span_str(path + dir.size + (dir.size > 0));
	/* the library that the last such component names, or else whose files these are */
	for (struct kp_span components = dir; components.size;) {
		struct kp_span component = kp_span_word(&components, "/");

		for (size_t k = 0; k < KP_COUNT(names); k++)
			if (kp_span_is(component, names[k]))
				found = names[k];
	}
	if (found)
		return found;
	if (!has_name(tree, dir, true, lite, NULL))
		return "rocblas";
	return has_name(tree, dir, true, sparse, NULL) ||
			       has_name(tree, dir, true, lazy, is_sparse)
		       ? "hipsparselt"
		       : "hipblaslt";
}

/* --- the libraries ---------------------------------------------------------------------- */

struct tensile {
	const char *directory; /* all files below it belong to the library */
	/*
	 * In a tree as the paper draws it: the path below DIRECTORY, with a '/' at its
	 * end, that holds the GPUs' directories; "": DIRECTORY itself.  NULL: the paper
	 * draws none.
	 */
	const char *drawn_in;
	const char *drawn_with; /* a file that such a tree must have; NULL: none */
};

/* Set REST to the part of the path after the library's directory; false: it is not in one. */
static bool find_rest(const struct library_question *q, struct kp_span *rest)
{
	const struct tensile *t = q->library->data;
	const char *library;

	if (path_below(q->path, t->directory, rest))
		return true;
	library = tensile_library_of(q->tree, q->path, rest);
	return library && strcmp(library, q->library->name) == 0;
}

static bool tensile_probe(const struct library_question *q)
{
	struct kp_span rest;

	return find_rest(q, &rest);
}

/*
 * Warn if the parent Q has rows for GPUs and none of them agrees with NAMED, the GPU that OUT is packed
 * for.  A parent that cannot be read gets no warning here.
 */
static kpack_error_t check_rows(struct library_question *q, const char *named,
				struct kpackx_error *why)
{
	bool zlib = strcmp(content_container(q), "zlib") == 0;
	KP_AUTO(tensile_index) index = {0};
	KP_AUTO(read_file) dat = {0};
	struct kp_span other = {NULL, 0};
	struct kpackx_error fault = {0};
	char arch[KP_TARGET_TEXT_MAX];
	kpack_error_t err;

	if (q->source->size > PARENT_MAX ||
	    (!zlib && strcmp(content_container(q), "msgpack") != 0))
		return KPACK_SUCCESS;
	err = read_file_unpack(q->source, zlib, &dat, &fault);
	if (library_ends_run(err, &fault, why))
		return err;
	if (err || tensile_index_read(read_file_span(&dat), &index, NULL))
		return KPACK_SUCCESS;
	for (size_t i = 0; i < index.n_gpus; i++) {
		/* rows may also name a device by a number or a word */
		if (!arch_of_directory(index.gpus[i], arch, NULL))
			continue;
		if (arch_agrees(named, arch))
			return KPACK_SUCCESS;
		if (!other.size)
			other = index.gpus[i];
	}
	if (other.size)
		library_warn(&q->out,
			     "named for %s, but its rows are for %.*s: packed as %s",
			     named, (int)other.size, (const char *)other.data, named);
	return KPACK_SUCCESS;
}

/* Whether a file exists whose path is the first SIZE bytes of Q's path, and NAME. */
static bool has_file(const struct library_question *q, size_t size, const char *name)
{
	KP_AUTO_FREE char *path = xasprintf("%.*s%s", (int)size, q->path, name);
	size_t ignored;

	return file_tree_find(q->tree, path, &ignored);
}

static kpack_error_t tensile_check(struct library_question *q, struct kpackx_error *why)
{
	const struct tensile *t = q->library->data;
	struct library_object *out = &q->out;
	struct kp_span text = path_name(q->path), rest, drawn, directory = {0};
	struct tensile_name name = tensile_name_split(text);
	char arch[KP_TARGET_TEXT_MAX] = "", named[KP_TARGET_TEXT_MAX];
	struct kp_target target;
	bool variant = false;
	uint64_t kernels;
	size_t size;

	q->mine = find_rest(q, &rest) && strcmp(content_container(q), "host-elf") != 0;
	if (!q->mine)
		return KPACK_SUCCESS;
	/* the first directory that is named after a GPU */
	for (size_t i = 0; i + 1 < path_depth(rest); i++) {
		directory = path_component(rest, i);
		if (arch_of_directory(directory, arch, &variant))
			break;
		directory.size = 0;
		arch[0] = '\0';
		variant = false;
	}
	out->role = name.role;
	arch_named(q->path, arch, named, out);
	KP_TRY(arch_decide(q, named, why));
	if (*named && !out->warning && strcmp(out->role, "parent") == 0)
		KP_TRY(check_rows(q, named, why));
	if (!*named && strcmp(out->role, "transform") == 0) {
		/*
		 * A file that the library opens by the same name for every GPU is stored for all
		 * GPUs, even if a build has code for only one: builds that differ in this file
		 * must conflict.
		 */
		out->n_arches = 0;
		library_add_arch(out, KP_ARCH_GENERIC);
	}

	if (strcmp(out->role, "manifest") != 0 && strcmp(out->role, "file") != 0) {
		if (name.stem.size <= NAME_MAX)
			facts_text(&out->facts, "stem", name.stem);
		tensile_name_facts(name.stem, &out->facts);
	}
	if (out->n_arches == 1 &&
	    !kp_target_parse(kp_span_str(out->arches[0]), &target, NULL) &&
	    target.xnack != KP_FEATURE_ANY)
		facts_flag(&out->facts, "xnack", target.xnack == KP_FEATURE_ON);
	if (variant)
		facts_text(&out->facts, "variant", directory);
	if (kp_span_is(name.ending, "dat")) {
		kernels = tensile_kernel_count((struct kp_span){q->head, q->head_size});
		if (kernels)
			facts_number(&out->facts, "kernel_count", kernels);
	}

	/* a tree as the paper draws it: gfx1100/kernel_1.co */
	drawn = rest;
	if (!t->drawn_in || !*arch || !name.code || !kp_span_take(&drawn, t->drawn_in) ||
	    drawn.data != directory.data || path_depth(drawn) != 2)
		return KPACK_SUCCESS;
	size = strlen(q->path) - name.ending.size;
	if (t->drawn_with && !has_file(q, strlen(q->path) - rest.size, t->drawn_with))
		return KPACK_SUCCESS;
	/* the key has no ending: if x.co and x.hsaco both exist, only x.co gets it */
	if (!kp_span_is(name.ending, "hsaco") || !has_file(q, size, "co"))
		library_add_key(out, (struct facts){0}, "%s/%s/%.*s", q->library->name,
				arch, (int)(text.size - name.ending.size - 1),
				(const char *)text.data);
	return KPACK_SUCCESS;
}

const struct library library_rocblas = {
	"rocblas", tensile_probe, tensile_check, NULL,
	&(const struct tensile){"rocblas/library", "", "TensileLibrary.yaml"}};

const struct library library_hipblaslt = {
	"hipblaslt", tensile_probe, tensile_check, NULL,
	&(const struct tensile){"hipblaslt/library", "TensileLibrary/", NULL}};

const struct library library_hipsparselt = {
	"hipsparselt", tensile_probe, tensile_check, NULL,
	&(const struct tensile){"hipsparselt/library", NULL, NULL}};
