/* SPDX-License-Identifier: MIT */
/*
 * First everything that packing wrote is generic.  Then files of kernel databases and archives
 * of the input go to the tree of their GPU or family, by what they say about themselves, then
 * the archives that packing wrote, by the place of each object in the plan.  Directories are
 * decided in between, from what is still generic in them.  At last each tree lists what it gets.
 */
#include "partition.h"
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* --- names of output trees --------------------------------------------------------- */

/*
 * AOTriton's families have the names that TheRock's splitter gives their trees, and TheRock's
 * packages after them.
 */
static const char *tree_of_family(const char *family)
{
	return strcmp(family, "gfx11xx") == 0   ? "gfx11"
	       : strcmp(family, "gfx120x") == 0 ? "gfx12_0"
						: family;
}

/* The tree for code of ARCH, or of a family of that name. */
static const char *tree_of_code(const struct families *families, const char *arch)
{
	const struct family *family = families_find(families, arch);

	return family ? family->name : tree_of_family(arch);
}

/* Architecture I of O without features; unchanged if it is not a target ID. */
static void base_target(const struct library_object *o, size_t i,
			char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target target;

	library_object_target(o, i, out);
	if (kp_target_parse(kp_span_str(out), &target, NULL))
		return;
	target.sramecc = target.xnack = KP_FEATURE_ANY;
	kp_target_format(&target, out);
}

/* --- archives that exist ----------------------------------------------------------- */

bool old_archive_is(const struct scan_entry *e)
{
	return S_ISREG(e->mode) && !e->leftover && !e->database &&
	       (kp_is_archive_of_tree(e->relative) ||
		(e->archive && kp_is_archive_name(strrchr(e->path, '/') + 1)));
}

kpack_error_t old_archive_open(const char *path, const struct families *families,
			       struct old_archive *out, struct kpackx_error *why)
{
	struct kpack_archive *archive = NULL;
	const struct family *family = NULL;
	struct kp_span own;
	size_t n;
	kpack_error_t err;

	*out = (struct old_archive){.family = true};
	KP_TRY(below_archive_open(path, &archive, why));
	n = kp_archive_arch_count(archive);
	err = kp_new(&out->arches, n + 1, "architectures", why);
	if (err)
		goto out;
	for (size_t i = 0; i < n; i++) {
		char arch[KP_TARGET_TEXT_MAX];
		const struct family *its;

		kp_target_canonical(kp_span_str(kp_archive_arch(archive, i)), arch);
		out->arches[out->n_arches++] = xstrdup(arch);
		its = families_find(families, arch);
		family = i == 0 || its == family ? its : NULL;
	}
	own = kp_archive_toc(archive)->family;
	if (family) {
		out->part = xstrdup(family->name);
	} else if (own.size && kp_component_ok(own) && kp_text_ok(own) &&
		   !memchr(own.data, ':', own.size) && !kp_processor_by_name(own) &&
		   !(n == 1 && kp_span_is(own, out->arches[0]))) {
		/* it states a usable family, which is not the name of a target */
		KP_AUTO_FREE char *name = xstrndup((const char *)own.data, own.size);

		out->part = xstrdup(tree_of_code(families, name));
	} else {
		out->family = false;
		out->part = xstrdup(n == 1 ? tree_of_code(families, out->arches[0])
					   : KP_ARCH_GENERIC);
	}
out:
	kp_archive_close(archive);
	return err;
}

void old_archive_close(struct old_archive *archive)
{
	for (size_t i = 0; i < archive->n_arches; i++)
		free(archive->arches[i]);
	free(archive->arches);
	free(archive->part);
	*archive = (struct old_archive){0};
}

/* --- output trees ------------------------------------------------------------------ */

struct output_tree *partition_find(const struct partition *partition, const char *name)
{
	for (size_t i = 0; i < partition->count; i++)
		if (strcmp(partition->items[i].name, name) == 0)
			return &partition->items[i];
	return NULL;
}

/* Find the output tree NAME, or add it; NUMBER is its index. */
static kpack_error_t take_tree(struct partition *out, const char *name, bool family,
			       size_t *number, struct kpackx_error *why)
{
	struct output_tree *tree = partition_find(out, name);
	struct kp_span s = kp_span_str(name);

	*number = tree ? (size_t)(tree - out->items) : out->count;
	if (tree)
		return KPACK_SUCCESS;
	if (!kp_component_ok(s) || !kp_text_ok(s))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "architecture %s cannot be part of a file name", name);
	out->items = xrealloc(out->items, (out->count + 1) * sizeof(*out->items));
	out->items[out->count++] =
		(struct output_tree){.name = xstrdup(name), .family = family};
	return KPACK_SUCCESS;
}

static void add_arch(struct output_tree *tree, const char *arch)
{
	for (size_t i = 0; i < tree->n_arches; i++)
		if (strcmp(tree->arches[i], arch) == 0)
			return;
	tree->arches =
		xrealloc(tree->arches, (tree->n_arches + 1) * sizeof(*tree->arches));
	tree->arches[tree->n_arches++] = xstrdup(arch);
}

/*
 * Assign the files of kernel databases that were written, and the input's archives, by what they
 * say about themselves; an archive that cannot be read is an ordinary file.
 */
static kpack_error_t place_files(const struct packing *p, struct partition *out,
				 struct kpackx_error *why)
{
	const struct families *families = &p->args.families;
	kpack_error_t err = KPACK_SUCCESS;

	/*
	 * A file of a database goes to the tree of the --family that contains all its architectures,
	 * or their bases; of the family that its library gives it; or of the only GPU, with whatever
	 * features, that it is for.  Else it has to be where each GPU finds it.  The user names GPUs,
	 * files also state features and steppings.
	 */
	for (size_t i = 0; p->scan.found.objects && i < p->scan.files.count; i++) {
		const struct library_object *o = p->scan.found.objects[i];
		size_t *number = &out->tree_of[p->scan.file_entries[i]];
		char base[KP_TARGET_TEXT_MAX], other[KP_TARGET_TEXT_MAX];
		bool same = true; /* all architectures have one family, or none has one */
		bool one = true;
		const struct family *common = NULL;
		const char *name;

		if (!o || *number == PARTITION_NONE ||
		    strcmp(o->arches[0], KP_ARCH_GENERIC) == 0)
			continue;
		base_target(o, 0, base);
		for (size_t k = 0; k < o->n_arches; k++) {
			const struct family *family;

			library_object_target(o, k, other);
			family = families_find(families, other);
			base_target(o, k, other);
			family = family ? family : families_find(families, other);
			same &= family && (k == 0 || family == common);
			common = family;
			one &= strcmp(base, other) == 0;
		}
		if (same)
			name = common->name;
		else if (*o->family)
			name = tree_of_family(o->family);
		else if (one && strcmp(base, KP_ARCH_GENERIC) != 0 &&
			 !kp_generic_members(kp_span_str(base)))
			name = base;
		else
			continue;
		KP_TRY(take_tree(out, name, same || *o->family, number, why));
		for (size_t k = 0; k < o->n_arches; k++) {
			base_target(o, k, other);
			add_arch(&out->items[*number], other);
		}
	}
	for (size_t i = 0; i < p->scan.n_entries && !err; i++) {
		struct old_archive a;

		if (out->tree_of[i] != PARTITION_GENERIC ||
		    !old_archive_is(&p->scan.entries[i]) ||
		    old_archive_open(p->scan.entries[i].path, families, &a, NULL))
			continue;
		if (strcmp(a.part, KP_ARCH_GENERIC) != 0) {
			err = take_tree(out, a.part, a.family, &out->tree_of[i], why);
			for (size_t k = 0; k < a.n_arches && !err; k++)
				add_arch(&out->items[out->tree_of[i]], a.arches[k]);
		}
		old_archive_close(&a);
	}
	return err;
}

/* List ARCH in the tree for code of PLACE, if there is one. */
static void list_arch(const struct packing *p, struct partition *out, const char *place,
		      const char *arch)
{
	struct output_tree *tree =
		partition_find(out, tree_of_code(&p->args.families, place));

	if (tree && tree != &out->items[PARTITION_GENERIC])
		add_arch(tree, arch);
}

/*
 * Assign the archives that packing wrote, and list the architectures of each tree.  Each
 * binary of the plan says in which archives, by place and volume, it has code.
 */
static kpack_error_t place_archives(const struct packing *p, struct partition *out,
				    struct kpackx_error *why)
{
	const struct families *families = &p->args.families;
	const struct plan *plan = &p->plan;
	size_t n_written;
	const char *const *written = archive_set_names(p->set, &n_written);

	for (size_t i = 0; p->set && i < plan->n_binaries; i++) {
		const struct plan_binary *b = &plan->binaries[i];

		for (size_t k = 0; k < b->n_needs; k++) {
			const char *place = b->needs[k].place;
			const char *name = tree_of_code(families, place);
			KP_AUTO_FREE char *stem = families_stem(families, place);
			KP_AUTO_FREE char *file =
				kp_archive_file_name(p->args.group, b->volume, stem);
			size_t number, n = 0, has = 0;
			struct output_tree *tree;

			if (!file)
				xalloc_fail(0);
			while (n < n_written && strcmp(written[n], file) != 0)
				n++;
			if (n == n_written)
				continue;
			KP_TRY(take_tree(out, name, name != place, &number, why));
			tree = &out->items[number];
			while (has < tree->n_archives &&
			       tree->archives[has] != written[n])
				has++;
			if (has < tree->n_archives)
				continue;
			tree->archives = xrealloc(tree->archives,
						  (has + 1) * sizeof(*tree->archives));
			tree->archives[tree->n_archives++] = written[n];
		}
	}
	for (size_t i = 0; i < plan->n_names; i++)
		list_arch(p, out, plan->names[i].arch, plan->names[i].arch);
	for (size_t i = 0; i < plan->n_keys; i++) {
		const struct plan_object *o = &plan->objects[plan->keys[i].object];

		list_arch(p, out, o->input->images[o->image].arch, plan->keys[i].arch);
	}
	return KPACK_SUCCESS;
}

/* --- all of it --------------------------------------------------------------------- */

kpack_error_t partition_open(const struct packing *p, struct partition *out,
			     struct kpackx_error *why)
{
	bool packed = p->args.databases == DATABASES_PACKED;
	size_t n = p->scan.n_entries, first;
	kpack_error_t err;

	*out = (struct partition){.tree_of = xmalloc(n * sizeof(*out->tree_of))};
	err = take_tree(out, KP_ARCH_GENERIC, false, &first, why);
	for (size_t i = 0; i < n; i++) {
		enum fate fate = p->dispositions.items[i].fate;
		bool there = fate != FATE_LEFT_OUT && fate != FATE_NOT_WANTED &&
			     fate != FATE_PACKED &&
			     fate != FATE_NOTHING; /* in place: archives stay */

		out->tree_of[i] = there ? PARTITION_GENERIC : PARTITION_NONE;
	}
	if (!err)
		err = place_files(p, out, why);
	/*
	 * A directory is generic if it is empty, or contains something that is generic, or would
	 * be for all GPUs, so that the generic tree does not depend on --gpu-targets: a packed
	 * file leaves its directory in the generic tree, whether its GPU is wanted or not.  The
	 * scan lists a directory before its subdirectories, which must be decided first.
	 */
	for (size_t i = n; i-- > 0 && !err;) {
		const struct scan_entry *dir = &p->scan.entries[i], *e = dir + 1;
		bool generic = false, empty = true;

		for (; S_ISDIR(dir->mode) && e < p->scan.entries + n && !generic &&
		       strncmp(e->relative, dir->relative, strlen(dir->relative)) == 0;
		     e++) {
			size_t k = (size_t)(e - p->scan.entries);
			enum fate fate = p->dispositions.items[k].fate;

			if (!kp_path_below(e->relative, dir->relative))
				continue;
			empty = false;
			generic =
				out->tree_of[k] == PARTITION_GENERIC ||
				fate == FATE_PACKED || fate == FATE_LEFT_OUT ||
				(fate == FATE_NOT_WANTED && packed && !old_archive_is(e));
		}
		if (S_ISDIR(dir->mode))
			out->tree_of[i] =
				generic || empty ? PARTITION_GENERIC : PARTITION_NONE;
	}
	if (!err)
		err = place_archives(p, out, why);
	if (err) {
		partition_close(out);
		return err;
	}
	for (size_t i = 0; i < out->count; i++) {
		struct output_tree *tree = &out->items[i];
		size_t cap = 0;

		kp_sort(tree->arches, tree->n_arches, KP_AS_TEXT);
		kp_sort(tree->archives, tree->n_archives, KP_AS_TEXT);
		for (size_t k = 0; k < n; k++) {
			if (out->tree_of[k] != i || S_ISDIR(p->scan.entries[k].mode))
				continue;
			xgrow(&tree->entries, tree->n_entries, &cap,
			      sizeof(*tree->entries));
			tree->entries[tree->n_entries++] = k;
		}
	}
	return KPACK_SUCCESS;
}

void partition_close(struct partition *partition)
{
	for (size_t i = 0; i < partition->count; i++) {
		struct output_tree *tree = &partition->items[i];

		for (size_t k = 0; k < tree->n_arches; k++)
			free(tree->arches[k]);
		free(tree->arches);
		free(tree->entries);
		free(tree->archives);
		free(tree->name);
	}
	free(partition->items);
	free(partition->tree_of);
	*partition = (struct partition){0};
}
