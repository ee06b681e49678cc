/* SPDX-License-Identifier: MIT */
/*
 * Check Tensile's libraries as their loaders walk them: parent, children, code objects.
 *
 *   PREFIX of a placeholder    PREFIX.dat (or .dat.zlib) next to the parent
 *   its code                   PREFIX.co for assembly, PREFIX.hsaco for source; for a
 *                              fallback PREFIX_<gpu>.hsaco; also with -xnack- or -xnack+
 *   helpers                    Kernels.so-000-<gpu>.hsaco
 *   without placeholders       all *<gpu>*co of the directory
 */
#include <stdio.h>
#include <stdlib.h>
#include "closure_internal.h"
#include "core/base/path.h"
#include "packer/files/read_file.h"
#include "core/base/bounds.h"
#include "msgpack_names.h"
#include "tensile_index.h"
#include "packer/cli/xalloc.h"

/* In closure.kinds: the file was read; if that failed, the fault was added. */
#define KINDS_READ 128

/* Limit of code objects of one library: real ones have less than 65536. */
#define CODE_MAX (1 << 18)

static const char *const modes[] = {"", "-xnack-", "-xnack+"};

/* A library that is being checked. */
struct parent {
	size_t file;
	const char *path;
	const char *dat;              /* ending of its children */
	char gpu[KP_TARGET_TEXT_MAX]; /* the GPU in its name; or "" */
	struct tensile_index index;
	unsigned kinds; /* of all its children */
	size_t n_code;  /* code objects checked so far: children times GPUs */
};

/* --- reading ------------------------------------------------------------------------- */

/* OUT's spans point into BYTES. */
static kpack_error_t read_index(const struct closure *c, size_t file,
				struct read_file *bytes, struct tensile_index *out,
				struct kpackx_error *why)
{
	*out = (struct tensile_index){0};
	KP_TRY(read_file_read(c->tree, file, bytes, why));
	return tensile_index_read(read_file_span(bytes), out, why);
}

static unsigned all_kinds(const struct tensile_index *index)
{
	unsigned kinds = 0;

	for (size_t i = 0; i < index->n_kernels; i++)
		kinds |= index->kernels[i].kinds;
	return kinds;
}

/* The kinds of a child's solutions; it is read once, however many libraries name it. */
static kpack_error_t kinds_of(struct closure *c, size_t file, unsigned *kinds,
			      struct kpackx_error *why)
{
	struct read_file bytes = {0};
	struct tensile_index index;
	struct kpackx_error fault = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (!c->kinds[file]) {
		err = read_index(c, file, &bytes, &index, &fault);
		c->kinds[file] = (uint8_t)(KINDS_READ | all_kinds(&index));
		tensile_index_fini(&index);
		read_file_fini(&bytes);
	}
	*kinds = c->kinds[file] & ~(unsigned)KINDS_READ;
	return err ? closure_add_error(c, file, err, &fault, why) : KPACK_SUCCESS;
}

/* --- code objects -------------------------------------------------------------------- */

static bool find_code(const struct closure *c, const char *path, struct kp_span stem,
		      const char *ending, size_t *file)
{
	char text[32];

	for (size_t i = 0; i < KP_COUNT(modes); i++) {
		snprintf(text, sizeof(text), "%s%s", modes[i], ending);
		if (closure_find(c, path, stem, text, file))
			return true;
	}
	return false;
}

/* Whether both xnack modes are built for a processor. */
static bool has_modes(const char *gpu)
{
	const struct kp_processor *p = kp_processor_by_name(kp_span_str(gpu));

	return p && p->xnack;
}

/*
 * Add the fault that OF finds no code STEM+ENDING.  If the name may state an xnack mode,
 * the text also has those names.
 */
static void add_no_code(struct closure *c, size_t of, struct kp_span stem,
			const char *gpu, const char *ending)
{
	const char *path = c->tree->items[of].path;
	struct kp_span dir = kp_path_directory(path);
	bool either = has_modes(gpu) && (strcmp(ending, ".hsaco") == 0 ||
					 name_has(path_last(dir), "-xnack"));
	char *first = closure_beside(path, stem, ending);
	char *d = closure_escape(kp_span_str(first)), *s = closure_escape(stem);

	if (either)
		closure_add(c, path,
			    "needs %s, or %s-xnack-%s and %s-xnack+%s: all are missing",
			    d, s, ending, s, ending);
	else
		closure_add(c, path, "needs %s, which is missing", d);
	free(first);
	free(d);
	free(s);
}

/* Whether the code object CODE has a kernel of that kind of the child's solutions. */
static kpack_error_t holds_kernel(struct closure *c, size_t child, size_t code,
				  unsigned kind, bool *holds, struct kpackx_error *why)
{
	struct read_file bytes = {0}, object = {0};
	struct tensile_index index;
	struct kpackx_error ignored = {0};
	kpack_error_t err = read_index(c, child, &bytes, &index, &ignored);

	*holds = false;
	if (!err)
		err = read_file_read(c->tree, code, &object, &ignored);
	for (size_t i = 0; !err && i < index.n_kernels && !*holds; i++) {
		struct kp_span name = kind == TENSILE_SOURCE ? index.kernels[i].source
							     : index.kernels[i].assembly;

		*holds = name.size &&
			 memmem(object.data, object.size, name.data, name.size);
	}
	tensile_index_fini(&index);
	read_file_fini(&bytes);
	read_file_fini(&object);
	return err == KPACK_ERROR_OUT_OF_MEMORY ? kp_fail_memory(why, 0, "a library")
						: KPACK_SUCCESS;
}

/* Require code of one kind, or an object of the other kind that has the kernels. */
static kpack_error_t need_kind(struct closure *c, size_t child, struct kp_span stem,
			       const char *gpu, unsigned kind, struct kpackx_error *why)
{
	const char *path = c->tree->items[child].path;
	const char *mine = kind == TENSILE_SOURCE ? ".hsaco" : ".co";
	const char *other = kind == TENSILE_SOURCE ? ".co" : ".hsaco";
	bool found = false;
	size_t file;

	if (find_code(c, path, stem, mine, NULL))
		return KPACK_SUCCESS;
	if (find_code(c, path, stem, other, &file))
		KP_TRY(holds_kernel(c, child, file, kind, &found, why));
	if (!found)
		add_no_code(c, child, stem, gpu, mine);
	return KPACK_SUCCESS;
}

/* If the library does not state the kinds of its kernels, any code object is enough. */
static void need_any(struct closure *c, size_t child, struct kp_span stem,
		     const char *gpu)
{
	const char *path = c->tree->items[child].path;

	if (!find_code(c, path, stem, ".co", NULL) &&
	    !find_code(c, path, stem, ".hsaco", NULL))
		add_no_code(c, child, stem, gpu, ".co");
}

/* A fallback's library may be for any GPU; its code is always for one GPU. */
static void need_fallback(struct closure *c, size_t child, struct kp_span stem,
			  const char *gpu)
{
	const char *path = c->tree->items[child].path;
	char own[KP_TARGET_TEXT_MAX], *text;
	bool named = tensile_gpu_of_name(stem, own);

	if ((named && find_code(c, path, stem, ".hsaco", NULL)) || !gpu[0])
		return;
	text = xasprintf("%.*s_%s", (int)stem.size, (const char *)stem.data, gpu);
	if (!find_code(c, path, kp_span_str(text), ".hsaco", NULL))
		add_no_code(c, child, named ? stem : kp_span_str(text), gpu, ".hsaco");
	free(text);
}

/* --- children ------------------------------------------------------------------------ */

/* The processor that a predicate names, without features. */
static void row_gpu(struct kp_span text, char out[KP_TARGET_TEXT_MAX])
{
	kp_target_canonical(text, out);
	out[strcspn(out, ":")] = '\0';
}

static bool find_child(const struct closure *c, const char *path, struct kp_span stem,
		       size_t *file)
{
	return closure_find(c, path, stem, ".dat.zlib", file) ||
	       closure_find(c, path, stem, ".dat", file);
}

static kpack_error_t need_code(struct closure *c, struct parent *p, size_t child,
			       struct kp_span stem, const char *gpu, unsigned kinds,
			       struct kpackx_error *why)
{
	if (p->n_code > CODE_MAX || !closure_wants(c, gpu))
		return KPACK_SUCCESS;
	if (p->n_code++ == CODE_MAX) {
		closure_add(c, p->path,
			    "leads to more than %d code objects; the rest is not checked",
			    CODE_MAX);
		return KPACK_SUCCESS;
	}
	if (name_has(stem, "fallback")) {
		need_fallback(c, child, stem, gpu);
		return KPACK_SUCCESS;
	}
	if (!(kinds & (TENSILE_ASSEMBLY | TENSILE_SOURCE)))
		need_any(c, child, stem, gpu);
	if (kinds & TENSILE_ASSEMBLY)
		KP_TRY(need_kind(c, child, stem, gpu, TENSILE_ASSEMBLY, why));
	if (kinds & TENSILE_SOURCE)
		KP_TRY(need_kind(c, child, stem, gpu, TENSILE_SOURCE, why));
	return KPACK_SUCCESS;
}

/* Whether the rows of the placeholder, or of all its library, are only for other GPUs. */
static bool is_for_others(const struct closure *c, const struct parent *p,
			  const struct tensile_placeholder *placeholder)
{
	size_t first = placeholder->n_gpus ? placeholder->gpu : 0;
	size_t n = placeholder->n_gpus ? placeholder->n_gpus : p->index.n_gpus;

	if (!closure_wants_name(c, placeholder->value))
		return true;
	for (size_t i = first; i < first + n; i++) {
		char gpu[KP_TARGET_TEXT_MAX];

		row_gpu(p->index.gpus[i], gpu);
		if (closure_wants(c, gpu))
			return false;
	}
	return n > 0;
}

static kpack_error_t check_placeholder(struct closure *c, struct parent *p,
				       const struct tensile_placeholder *placeholder,
				       struct kpackx_error *why)
{
	size_t child, first = placeholder->gpu, n = placeholder->n_gpus;
	unsigned kinds = 0;

	if (!p->gpu[0] && is_for_others(c, p, placeholder))
		return KPACK_SUCCESS;
	if (!find_child(c, p->path, placeholder->value, &child)) {
		closure_add_missing(c, p->file, p->path, placeholder->value, p->dat);
		return KPACK_SUCCESS;
	}
	KP_TRY(kinds_of(c, child, &kinds, why));
	p->kinds |= kinds;
	if (p->gpu[0])
		return need_code(c, p, child, placeholder->value, p->gpu, kinds, why);
	if (n == 0) {
		first = 0;
		n = p->index.n_gpus;
	}
	if (n == 0)
		return need_code(c, p, child, placeholder->value, "", kinds, why);
	for (size_t i = first; i < first + n && p->n_code <= CODE_MAX; i++) {
		char gpu[KP_TARGET_TEXT_MAX];

		row_gpu(p->index.gpus[i], gpu);
		KP_TRY(need_code(c, p, child, placeholder->value, gpu, kinds, why));
	}
	return KPACK_SUCCESS;
}

/* --- libraries without placeholders -------------------------------------------------- */

static unsigned merged_kinds(const struct tensile_index *index, const char *gpu)
{
	unsigned kinds = 0;

	for (size_t i = 0; i < index->n_kernels; i++) {
		char own[KP_TARGET_TEXT_MAX];

		row_gpu(index->kernels[i].gpu, own);
		if (index->kernels[i].gpu.size == 0 || strcmp(own, gpu) == 0)
			kinds |= index->kernels[i].kinds;
	}
	return kinds;
}

static void add_no_file(struct closure *c, const struct parent *p, const char *before,
			const char *gpu, const char *ending)
{
	char name[KP_TARGET_TEXT_MAX + 32];

	snprintf(name, sizeof(name), "%s%s", before, gpu);
	add_no_code(c, p->file, kp_span_str(name), gpu, ending);
}

/*
 * Loaders use all code that exists.  The kernels of all solutions are in one file, or
 * each kernel is in its own.  If another GPU has the one file, this GPU must have it,
 * too.
 */
static void check_merged(struct closure *c, const struct parent *p, const char *gpu)
{
	struct kp_span dir = kp_path_directory(p->path);
	unsigned here = tensile_places_get(&c->places, dir, gpu);
	unsigned all = tensile_places_get(&c->places, dir, "");
	unsigned kinds = merged_kinds(&p->index, gpu);
	bool any = here & (PLACE_CO | PLACE_HSACO), complete = true;

	if (kinds & TENSILE_ASSEMBLY)
		complete = (here & PLACE_CO) && !(all & PLACE_MERGED & ~here);
	if (!complete || ((kinds & TENSILE_UNSTATED) && !any))
		add_no_file(c, p, "TensileLibrary_", gpu, ".co");
	if ((kinds & TENSILE_SOURCE) && !(here & PLACE_HSACO))
		add_no_file(c, p, "Kernels.so-000-", gpu, ".hsaco");
}

/* --- a library ----------------------------------------------------------------------- */

/*
 * Loaders open helpers, but go on without them.  That a helper is missing is a fault if a
 * kernel needs it, if rocBLAS has kernels from source, which are built together with it,
 * or if another GPU of the library has it.
 */
static void check_helper(struct closure *c, const struct parent *p, const char *gpu)
{
	struct kp_span dir = kp_path_directory(p->path);
	unsigned here = tensile_places_get(&c->places, dir, gpu), needs = TENSILE_HELPER;
	bool wanted = tensile_places_all(&c->places, dir) & PLACE_HELPER;

	if (strcmp(tensile_library_of(c->found, p->file), "rocblas") == 0)
		needs |= TENSILE_SOURCE;
	if (!(here & PLACE_HELPERS))
		wanted |= ((p->kinds | all_kinds(&p->index)) & needs) != 0;
	if (wanted && !(here & PLACE_HELPER))
		add_no_file(c, p, "Kernels.so-000-", gpu, ".hsaco");
}

static void check_gpu(struct closure *c, const struct parent *p, const char *gpu)
{
	if (!closure_wants(c, gpu))
		return;
	if (p->index.n_placeholders == 0)
		check_merged(c, p, gpu);
	check_helper(c, p, gpu);
}

static bool is_generic(const char *gpu)
{
	return kp_generic_members(kp_span_str(gpu)) != NULL;
}

/* Check that some row is for the processor in the library's name. */
static void check_rows(struct closure *c, const struct parent *p)
{
	char gpu[KP_TARGET_TEXT_MAX] = "";

	for (size_t i = 0; i < p->index.n_gpus; i++) {
		row_gpu(p->index.gpus[i], gpu);
		if (strcmp(gpu, p->gpu) == 0 || is_generic(gpu) || is_generic(p->gpu))
			return;
	}
	if (p->index.n_gpus)
		closure_add(c, p->path,
			    "library: no row is for %s, which the name says, but for %s",
			    p->gpu, gpu);
}

/* A library whose solutions name no GPU: code for some GPU must exist. */
static void check_any_code(struct closure *c, const struct parent *p)
{
	unsigned here = tensile_places_get(&c->places, kp_path_directory(p->path), "");

	if (p->index.n_solutions && !(here & (PLACE_CO | PLACE_HSACO)))
		closure_add(c, p->path,
			    "needs code objects like TensileLibrary_<gpu>.co: "
			    "none is beside it");
}

/* A library without a GPU in its name: check the GPUs that its rows or solutions name. */
static void check_named(struct closure *c, const struct parent *p)
{
	char gpu[KP_TARGET_TEXT_MAX];
	bool any = p->index.n_gpus > 0;

	for (size_t i = 0; i < p->index.n_gpus; i++) {
		row_gpu(p->index.gpus[i], gpu);
		check_gpu(c, p, gpu);
	}
	for (size_t i = 0; i < p->index.n_kernels; i++) {
		if (p->index.kernels[i].gpu.size == 0)
			continue;
		row_gpu(p->index.kernels[i].gpu, gpu);
		check_gpu(c, p, gpu);
		any = true;
	}
	if (!any)
		check_any_code(c, p);
}

static kpack_error_t check_index(struct closure *c, struct parent *p,
				 struct kpackx_error *why)
{
	if (!p->index.has_library) {
		closure_add(c, p->path, "library: missing, or no map");
		return KPACK_SUCCESS;
	}
	for (size_t i = 0; i < p->index.n_placeholders; i++)
		KP_TRY(check_placeholder(c, p, &p->index.placeholders[i], why));
	if (p->gpu[0]) {
		check_rows(c, p);
		check_gpu(c, p, p->gpu);
	} else {
		check_named(c, p);
	}
	return KPACK_SUCCESS;
}

kpack_error_t closure_parent(struct closure *c, size_t file, struct kpackx_error *why)
{
	struct parent p = {.file = file, .path = c->tree->items[file].path};
	struct kp_span path = kp_span_str(p.path);
	struct read_file bytes = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err;

	p.dat = name_ends(path, ".zlib") ? ".dat.zlib" : ".dat";
	tensile_is_parent(path_last(path), p.gpu);
	if (!closure_wants(c, p.gpu))
		return KPACK_SUCCESS;
	err = read_index(c, file, &bytes, &p.index, &fault);
	err = err ? closure_add_error(c, file, err, &fault, why)
		  : check_index(c, &p, why);
	tensile_index_fini(&p.index);
	read_file_fini(&bytes);
	return err;
}

/* --- files that a library must lead to ----------------------------------------------- */

/* Whether a library for all GPUs exists in the directory of PATH. */
static bool has_whole(const struct closure *c, const char *path)
{
	static const char *const endings[] = {".dat", ".dat.zlib", ".yaml"};

	for (size_t i = 0; i < KP_COUNT(endings); i++)
		if (closure_find(c, path, kp_span_str("TensileLibrary"), endings[i],
				 NULL))
			return true;
	return false;
}

/*
 * Whether no library leads to the file; GPU is the GPU that it is for.  rocBLAS ends the
 * program if it finds no library.  For other libraries it is only certain that one is
 * missing if another GPU has one.
 */
static bool is_orphan(const struct closure *c, size_t file, char gpu[KP_TARGET_TEXT_MAX])
{
	const char *path = c->tree->items[file].path;
	struct kp_span dir = kp_path_directory(path);
	bool rocblas = strcmp(tensile_library_of(c->found, file), "rocblas") == 0;

	return tensile_gpu_of_name(path_last(kp_span_str(path)), gpu) &&
	       closure_wants(c, gpu) &&
	       !(tensile_places_get(&c->places, dir, gpu) & PLACE_PARENT) &&
	       (rocblas || (tensile_places_all(&c->places, dir) & PLACE_PARENT)) &&
	       !has_whole(c, path);
}

kpack_error_t closure_child(struct closure *c, size_t file, struct kpackx_error *why)
{
	const char *path = c->tree->items[file].path;
	const char *ending = name_ends(kp_span_str(path), ".zlib") ? ".dat.zlib" : ".dat";
	char gpu[KP_TARGET_TEXT_MAX], lazy[KP_TARGET_TEXT_MAX + 32], *missing;

	(void)why;
	if (!is_orphan(c, file, gpu))
		return KPACK_SUCCESS;
	snprintf(lazy, sizeof(lazy), "TensileLibrary_lazy_%s", gpu);
	missing = closure_beside(path, kp_span_str(lazy), ending);
	closure_add(c, missing, "is missing, but files that it must lead to exist");
	free(missing);
	return KPACK_SUCCESS;
}

kpack_error_t closure_merged(struct closure *c, size_t file, struct kpackx_error *why)
{
	char gpu[KP_TARGET_TEXT_MAX];

	(void)why;
	if (is_orphan(c, file, gpu))
		closure_add_missing(c, file, c->tree->items[file].path,
				    kp_span_str("TensileLibrary"), ".dat");
	return KPACK_SUCCESS;
}

/* Require a child only if its GPU's library is here: the file may come from another
 * build, with more GPUs. */
static void check_prefix(struct closure *c, size_t file, struct kp_span prefix)
{
	const char *path = c->tree->items[file].path;
	char gpu[KP_TARGET_TEXT_MAX];

	if (prefix.size > KP_NAME_MAX || !kp_span_starts(prefix, "TensileLibrary", 14) ||
	    !tensile_gpu_of_name(prefix, gpu) || !closure_wants(c, gpu) ||
	    !(tensile_places_get(&c->places, kp_path_directory(path), gpu) &
	      PLACE_PARENT))
		return;
	if (!find_child(c, path, prefix, NULL))
		closure_add_missing(c, file, path, prefix,
				    name_ends(kp_span_str(path), ".zlib") ? ".dat.zlib"
									  : ".dat");
}

kpack_error_t closure_mapping(struct closure *c, size_t file, struct kpackx_error *why)
{
	struct read_file bytes = {0};
	struct msgpack_names names = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err = read_file_read(c->tree, file, &bytes, &fault);

	if (!err)
		err = msgpack_names_read(read_file_span(&bytes), NULL, &names, &fault);
	if (err)
		err = closure_add_error(c, file, err, &fault, why);
	for (size_t i = 0; i < names.count && !err; i++)
		check_prefix(c, file, names.items[i]);
	msgpack_names_fini(&names);
	read_file_fini(&bytes);
	return err;
}
