/* SPDX-License-Identifier: MIT */
/*
 * kpack mark check: check that converted binaries will find their objects in archives.
 *
 * A binary asks for NAME#index on a GPU.  The architectures that count are those of the
 * archives that its search paths lead to.  Its layout states which objects must exist,
 * and their hashes.  The archives may have more, from other builds that were joined, and
 * without a layout they alone say what there is: those objects must be decodable, and what
 * no archive has was not built.  GPUs of --arch that a binary was not built for are faults
 * only if no binary was built for them.  What no binary asks for must be decodable, too.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "mark_check.h"
#include "packer/archives/arch_filter.h"
#include "packer/cli/xalloc.h"
#include "packer/archives/reachable_archives.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "packer/trees/artifact.h"
#include "mark.h"
#include "packer/cli/report.h"
#include "core/base/text.h"

struct check {
	struct arch_filter filter;
	bool verbose;
	struct installed set;
	struct missing_arches absent;
	struct missing_arches unbuilt[2]; /* GPUs of --arch; 1: as a layout says */
	struct generic_tree generic;
	struct artifact_root artifact;
	size_t n_seen; /* host binaries of any kind */
	size_t n_binaries, n_fat, n_archives, n_objects;
	struct mark_faults faults;
};

static const struct option_help options[] = {
	ARCH_FILTER_OPTIONS(struct check, filter),
	{0, "json", NULL, "print one JSON object",
	 OPTION_PLACE(struct check, faults.json)},
	{'v', "verbose", NULL, "also report binaries without faults",
	 OPTION_PLACE(struct check, verbose)},
	{0},
};

const struct command_help mark_check_help = {
	"mark check",
	"[--arch LIST [--arch-exact]] [--json] [-v] ROOT...",
	"check that converted binaries find their objects",
	options,
	"ROOT is a tree or a file.  Binaries that are not converted are faults in the\n"
	"generic tree of a split, and in no other.",
};

/* The binary that is being checked. */
struct subject {
	struct check *check;
	struct binary b;
	struct reach reach;
	struct built_arches arches;
	struct losses losses;
};

/* --- architectures ---------------------------------------------------------------- */

/* Whether an archive of the binary has code, of any binary, for the GPU of --arch. */
static bool group_has(const struct subject *s, size_t gpu)
{
	struct kp_target code;

	for (size_t i = 0; i < s->reach.count; i++) {
		const struct kpack_archive *a = s->reach.items[i].archive->archive;
		size_t n = a ? kp_archive_arch_count(a) : 0;

		for (size_t k = 0; k < n; k++)
			if (!kp_target_parse(kp_span_str(kp_archive_arch(a, k)), &code,
					     NULL) &&
			    !kp_target_neutral(&code) &&
			    kp_choice_takes(&s->check->filter.chosen, gpu, &code))
				return true;
	}
	return false;
}

/*
 * Look at each GPU of --arch that the binary was not built for.  A layout says so.  Without
 * one, an archive that has code for it might have lost this binary's.
 */
static void check_unbuilt(struct subject *s)
{
	struct check *c = s->check;
	const struct kp_choice *chosen = &c->filter.chosen;
	char gpu[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < chosen->count && !chosen->all; i++) {
		if (s->losses.built[i])
			continue;
		kp_target_format(&chosen->gpus[i], gpu);
		if (s->b.has_layout || !group_has(s, i))
			missing_arches_add(&c->unbuilt[s->b.has_layout], s->b.path, gpu);
		else
			mark_fault(&c->faults, s->b.path, MARK_NO_WRAPPER, gpu,
				   "no archive has it");
	}
	for (size_t k = 0; k < s->arches.count; k++)
		arch_filter_match(&c->filter, kp_span_str(s->arches.items[k]));
}

/* Check that each GPU of --arch finds the code that the binary was built with for it. */
static void check_demanded(struct subject *s)
{
	const struct kp_choice *chosen = &s->check->filter.chosen;
	struct mark_faults *faults = &s->check->faults;
	char gpu[KP_TARGET_TEXT_MAX];

	for (size_t k = 0; k < s->arches.count; k++) {
		const char *arch = s->arches.items[k];

		if (!s->losses.lost[k])
			continue;
		kp_target_format(&chosen->gpus[s->losses.lost[k] - 1], gpu);
		if (strcmp(gpu, arch) == 0)
			mark_fault(faults, s->b.path, MARK_NO_WRAPPER, arch,
				   "no archive has it");
		else
			mark_fault(faults, s->b.path, MARK_NO_WRAPPER, arch,
				   "no archive has it, which %s would load", gpu);
	}
	check_unbuilt(s);
}

/* --- objects ---------------------------------------------------------------------- */

/* Check the object WANT, which must exist if MUST. */
static void check_object(struct subject *s, size_t wrapper,
			 const struct wanted_object *want, bool must)
{
	struct check *c = s->check;
	struct kpackx_error why = {0};
	struct found_object found;
	char *name, *archive;

	installed_find(&s->reach, want, &found);
	if (!found.archive && !must)
		return;
	c->n_objects++;
	name = kp_text_escape_new(kp_span_str(want->name));
	archive = found.archive ? kp_text_escape_new(kp_span_str(found.archive->path))
				: NULL;
	if (!found.archive)
		mark_fault(&c->faults, s->b.path, wrapper, want->arch,
			   "no archive has %s#%u", name ? name : "?", want->index);
	else if (found.differs)
		mark_fault(&c->faults, s->b.path, wrapper, want->arch,
			   "%s#%u in %s is from another build", name ? name : "?",
			   want->index, archive ? archive : "?");
	else if (installed_decode(found.archive, found.entry, NULL, &why))
		mark_fault(&c->faults, s->b.path, wrapper, want->arch, "%s#%u in %s: %s",
			   name ? name : "?", want->index, archive ? archive : "?",
			   why.text);
	free(name);
	free(archive);
}

static void check_image(struct subject *s, size_t wrapper,
			const struct kp_recipe_image *img)
{
	struct wanted_object want = {
		.name = s->b.marker.kernel_name,
		.index = binary_index(&s->b, wrapper),
		.arch = img->arch,
		.kind = wanted_kind(img),
		.xxh3 = img->has_xxh3 ? img->xxh3 : NULL,
		.size = &img->size,
	};

	if (built_arches_installed(&s->arches, img->arch))
		check_object(s, wrapper, &want, true);
}

static void check_by_layout(struct subject *s, size_t wrapper)
{
	const struct kp_recipe *layout = &s->b.layout;
	const struct kp_recipe_container *c =
		&layout->containers[layout->wrapper_container[wrapper]];

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		if (!layout->images[i].host)
			check_image(s, wrapper, &layout->images[i]);
}

/* Check the objects for architectures that the layout does not have, if there is one. */
static void check_by_archives(struct subject *s, size_t wrapper)
{
	struct wanted_object want = {
		.name = s->b.marker.kernel_name,
		.index = binary_index(&s->b, wrapper),
		.kind = kp_span_str("co"),
	};

	for (size_t i = 0; i < s->arches.count; i++) {
		want.arch = s->arches.items[i];
		if (!s->arches.in_layout[i])
			check_object(s, wrapper, &want, false);
	}
}

/* --- a binary --------------------------------------------------------------------- */

/*
 * Check each archive of REACH once over all binaries: whether it can be read, and has no entry
 * that the loader refuses.  Returns how many can be used.
 */
static size_t check_archives(struct check *c, const struct reach *reach)
{
	size_t usable = 0;

	for (size_t i = 0; i < reach->count; i++) {
		const struct reached *r = &reach->items[i];
		struct installed_archive *a = r->archive;
		const struct kp_fault *faults = NULL;
		size_t kept = 0, counted;

		usable += a->archive != NULL;
		if (a->reported)
			continue;
		a->reported = true;
		c->n_archives++;
		if (!a->archive)
			mark_fault_why(&c->faults, a->path, &a->why);
		else
			faults = kp_archive_faults(a->archive, &kept, &counted);
		for (size_t k = 0; k < kept; k++)
			if (faults[k].refused)
				mark_fault(&c->faults, a->path, MARK_NO_WRAPPER, NULL,
					   "%s", faults[k].text);
		/* it is found only by programs on GPUs that cannot use it */
		if (r->misnamed)
			mark_fault(&c->faults, a->path, MARK_NO_WRAPPER, r->arch,
				   "the archive is named for it, but has no code for it");
	}
	return usable;
}

/* The binary reaches no archive: in a generic tree none is expected, unless asked for. */
static void check_nowhere(const struct subject *s)
{
	struct check *c = s->check;
	char *path;

	if (s->reach.count == 0 && generic_tree_inside(&c->generic) &&
	    !arch_filter_given(&c->filter))
		return;
	path = kp_text_escape_new(kp_span_str(s->b.marker.search_paths[0]));
	mark_fault(&c->faults, s->b.path, MARK_NO_WRAPPER, NULL,
		   "no archive where it looks: %s%s", path ? path : "?",
		   s->b.marker.n_search_paths > 1 ? " and other places" : "");
	free(path);
}

/*
 * Find the archives of the binary.  In an artifact they may be where another prefix is
 * installed, as TheRock's tools leave them.
 */
static kpack_error_t find_reach(struct subject *s, struct kpackx_error *why)
{
	const struct artifact_root *a = &s->check->artifact;
	struct installed *set = &s->check->set;
	const char *rest;
	const struct prefix *own =
		artifact_root_prefix(a, s->b.path, s->b.marker.kernel_name, &rest);
	kpack_error_t err = installed_reach(set, &s->b.marker, s->b.path, &s->reach, why);

	for (size_t i = 0; own && i < a->prefixes.count && !err; i++) {
		const struct prefix *other = &a->prefixes.items[i];
		char *path;

		if (other == own || other->absent)
			continue;
		path = xasprintf("%s/%s/%s", a->path, other->path, rest);
		err = installed_reach(set, &s->b.marker, path, &s->reach, why);
		free(path);
	}
	return err;
}

static kpack_error_t check_converted(struct subject *s, struct kpackx_error *why)
{
	struct check *c = s->check;

	KP_TRY(binary_read_marker(&s->b, why));
	KP_TRY(binary_read_layout(&s->b, why));
	KP_TRY(find_reach(s, why));
	if (check_archives(c, &s->reach) == 0) {
		check_nowhere(s);
		return KPACK_SUCCESS;
	}
	built_arches_find(&s->b, &s->reach, &s->arches);
	/* without a layout, no architecture means no object */
	if (!s->arches.count && !s->b.has_layout) {
		KP_AUTO_FREE char *name =
			kp_text_escape_new(kp_span_str(s->b.marker.kernel_name));

		mark_fault(&c->faults, s->b.path, MARK_NO_WRAPPER, NULL,
			   "no archive has an object of %s", name ? name : "?");
	}
	losses_find(&s->b, &s->arches, &c->filter.chosen, &s->losses);
	check_demanded(s);
	for (size_t i = 0; i < s->b.fat.elf.n_wrappers; i++) {
		if (s->b.has_layout)
			check_by_layout(s, i);
		check_by_archives(s, i);
	}
	/* what is not installed, and no check above reported; check_absent judges it */
	for (size_t i = 0; i < s->arches.count; i++)
		if (!s->arches.installed[i] && !s->losses.lost[i] &&
		    !reach_has_broken(&s->reach, s->arches.items[i]))
			missing_arches_add(&c->absent, s->b.path, s->arches.items[i]);
	return KPACK_SUCCESS;
}

__attribute__((format(printf, 3, 4))) static void
print_note(const struct check *c, const char *path, const char *format, ...)
{
	char text[256];
	va_list args;

	if (!c->verbose || c->faults.json)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	report_text(path);
	fputs(": ", stdout);
	report_message(text);
	putchar('\n');
}

static void check_fat(struct check *c, const struct binary *b)
{
	size_t n = b->fat.elf.n_wrappers, i = 0;

	c->n_fat++;
	while (i < n && b->fat.elf.wrappers[i].fields.magic != KP_WRAPPER_HIPK)
		i++;
	if (i < n)
		mark_fault(&c->faults, b->path, i, NULL,
			   "is converted, other wrappers are not");
	else
		print_note(c, b->path, "note: not converted");
}

static void check_binary(struct check *c, struct subject *s)
{
	struct kpackx_error why = {0};
	size_t before = c->faults.count, objects = c->n_objects;

	c->n_binaries++;
	if (check_converted(s, &why))
		mark_fault_why(&c->faults, s->b.path, &why);
	if (c->faults.count == before)
		print_note(c, s->b.path, "ok, %zu objects", c->n_objects - objects);
	reach_fini(&s->reach);
	built_arches_fini(&s->arches);
	losses_fini(&s->losses);
}

static void check_file(struct check *c, const char *path)
{
	struct subject s = {.check = c};
	struct kpackx_error why = {0};
	const char *unlisted;
	kpack_error_t err = binary_open(path, &s.b, &why);

	if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
		/* kpack pack leaves it alone, too, with a warning */
		c->n_fat++;
		print_note(c, path, "note: not converted: %s", why.text);
		return;
	}
	if (err) {
		mark_fault_why(&c->faults, path, &why);
		return;
	}
	generic_tree_binary(&c->generic, &s.b);
	c->n_seen += s.b.fat.elf.type != 0;
	if (s.b.fat.kind == KP_FATBIN_CONVERTED) {
		check_binary(c, &s);
	} else if (s.b.fat.kind == KP_FATBIN_ELF) {
		check_fat(c, &s.b);
	} else if (binary_unlisted(&s.b, &unlisted, &why)) {
		mark_fault_why(&c->faults, path, &why);
	} else if (unlisted) {
		/* kpack pack leaves its device code alone */
		c->n_fat++;
		print_note(c, path, "note: not converted: %s", unlisted);
	}
	binary_close(&s.b);
}

/* --- trees ------------------------------------------------------------------------ */

static void report_left(void *arg, const char *file, const char *text)
{
	mark_fault(arg, file, MARK_NO_WRAPPER, NULL, "%s", text);
}

static void check_item(struct check *c, const struct tree_item *item)
{
	bool operand = item->level == 0;
	struct stat st;

	generic_tree_item(&c->generic, item);
	artifact_root_item(&c->artifact, item);
	if (item->kind == TREE_OTHER && S_ISREG(item->st.st_mode))
		check_file(c, item->path);
	/* links, also to nothing, devices and so on are a fault only as operands */
	else if (operand && (item->kind == TREE_OTHER ||
			     (item->kind == TREE_FAULT && item->error == ENOENT &&
			      below_lstat(item->path, &st) == 0)))
		mark_fault(&c->faults, item->path, MARK_NO_WRAPPER, NULL,
			   "leads to no file and no directory");
	else if (item->kind == TREE_FAULT)
		mark_fault(&c->faults, item->path, MARK_NO_WRAPPER, NULL, "%s",
			   strerror(item->error));
}

static void check_root(struct check *c, const char *root)
{
	struct tree_list *list = tree_list_open(root);
	struct kpackx_error why = {0};
	struct tree_item item;
	bool empty = true; /* others may have only archives, or kernel databases */

	if (below_root_if_directory(root, &why)) {
		mark_fault_why(&c->faults, root, &why);
	} else {
		while (tree_list_next(list, &item)) {
			empty &= item.kind == TREE_DIR || item.kind == TREE_DIR_END;
			check_item(c, &item);
		}
		if (empty)
			mark_fault(&c->faults, root, MARK_NO_WRAPPER, NULL,
				   "there is no binary to check");
	}
	tree_list_close(list);
}

/* --- in the end ------------------------------------------------------------------- */

/* Decode what no binary asked for: code of libraries that are elsewhere, database files. */
static void check_rest(struct check *c)
{
	for (size_t i = 0; i < c->set.count; i++) {
		struct installed_archive *a = c->set.archives[i];
		size_t n =
			a->reached && a->archive ? kp_archive_entry_count(a->archive) : 0;

		for (size_t e = 0; e < n; e++) {
			KP_AUTO_FREE char *key = NULL, *arch = NULL;
			struct kpackx_error why = {0};
			struct kp_entry_info info;

			if (installed_was_decoded(a, e) ||
			    !installed_decode(a, e, NULL, &why))
				continue;
			kp_archive_entry(a->archive, e, &info);
			key = kp_text_escape_new(info.key);
			arch = xstrndup((const char *)info.arch.data, info.arch.size);
			mark_fault(&c->faults, a->path, MARK_NO_WRAPPER, arch, "%s: %s",
				   key ? key : "?", why.text);
		}
	}
}

static void check_absent(struct check *c)
{
	struct missing_arches *list = &c->absent;

	missing_arches_sort(list);
	for (size_t i = 0; i < list->count; i++) {
		struct missing_arches_item *item = &list->items[i];

		item->elsewhere = missing_arches_begins(list, i)
					  ? installed_has_arch(&c->set, item->arch)
					  : item[-1].elsewhere;
		if (item->elsewhere)
			mark_fault(
				&c->faults, item->file, MARK_NO_WRAPPER, item->arch,
				"no archive has its code for this GPU, but archives have "
				"code of other binaries for it");
	}
}

/* Whether a binary was built for the GPU of --arch. */
static bool any_built(const struct check *c, const char *gpu)
{
	char text[KP_TARGET_TEXT_MAX];
	bool any = false;

	for (size_t i = 0; i < c->filter.chosen.count; i++) {
		kp_target_format(&c->filter.chosen.gpus[i], text);
		any |= c->filter.matched[i] && strcmp(text, gpu) == 0;
	}
	return any;
}

/* A GPU of --arch that one binary was not built for is a fault if no other was either. */
static void check_unbuilt_anywhere(struct check *c, bool by_layout)
{
	const struct missing_arches *list = &c->unbuilt[by_layout];

	for (size_t i = 0; i < list->count; i++) {
		struct missing_arches_item *item = &list->items[i];

		item->elsewhere = any_built(c, item->arch);
		if (!item->elsewhere)
			mark_fault(&c->faults, item->file, MARK_NO_WRAPPER, item->arch,
				   "%s",
				   by_layout ? "no object was built for it"
					     : "no archive has it");
		else
			print_note(c, item->file, "note: not built for %s", item->arch);
	}
}

/* Whether item I is the first of an architecture that is installed for no binary. */
static bool is_absent(const struct missing_arches *list, size_t i)
{
	return !list->items[i].elsewhere && missing_arches_begins(list, i);
}

static bool print_json(const struct check *c)
{
	json_t *absent = json_array(), *unbuilt = json_array();

	for (size_t i = 0; i < c->absent.count; i++)
		if (is_absent(&c->absent, i))
			json_array_append_new(absent,
					      report_json_text(c->absent.items[i].arch));
	/* the binaries that were not built for GPUs of --arch for which others were */
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < c->unbuilt[k].count; i++) {
			const struct missing_arches_item *item = &c->unbuilt[k].items[i];

			if (item->elsewhere)
				json_array_append_new(
					unbuilt, json_pack("{so ss}", "file",
							   report_json_text(item->file),
							   "arch", item->arch));
		}
	return report_json(json_pack(
		"{sI sI sI sI so so so}", "converted", (json_int_t)c->n_binaries, "fat",
		(json_int_t)c->n_fat, "objects", (json_int_t)c->n_objects, "archives",
		(json_int_t)c->n_archives, "not_installed", absent, "not_built", unbuilt,
		"faults", json_incref(c->faults.list)));
}

static void print_summary(const struct check *c)
{
	const char *lead = "not installed:";

	for (size_t i = 0; i < c->absent.count; i++) {
		if (!is_absent(&c->absent, i))
			continue;
		printf("%s ", lead);
		report_text(c->absent.items[i].arch);
		lead = "";
	}
	if (!*lead)
		putchar('\n');
	for (size_t g = 0; g < c->filter.chosen.count; g++) {
		char gpu[KP_TARGET_TEXT_MAX];
		size_t n = 0;

		kp_target_format(&c->filter.chosen.gpus[g], gpu);
		for (size_t k = 0; k < 2; k++)
			for (size_t i = 0; i < c->unbuilt[k].count; i++)
				n += c->unbuilt[k].items[i].elsewhere &&
				     strcmp(c->unbuilt[k].items[i].arch, gpu) == 0;
		if (n)
			printf("not built for %s: %zu of %zu\n", gpu, n, c->n_binaries);
	}
	printf("%zu converted, %zu not converted, %zu objects in %zu archives, "
	       "%zu faults\n",
	       c->n_binaries, c->n_fat, c->n_objects, c->n_archives, c->faults.count);
}

/* --- the command ------------------------------------------------------------------ */

static bool check_all(struct check *c, int n, char **roots)
{
	bool printed = true;

	installed_init(&c->set);
	c->generic = (struct generic_tree){.fault = report_left, .arg = &c->faults};
	c->faults.list = json_array();
	for (int i = 0; i < n; i++)
		check_root(c, roots[i]);
	if (c->n_seen == 0 && c->faults.count == 0)
		mark_fault(&c->faults, roots[0], MARK_NO_WRAPPER, NULL,
			   n == 1 ? "there is no binary to check"
				  : "there is no binary to check, nor in the others");
	check_rest(c);
	check_absent(c);
	check_unbuilt_anywhere(c, false);
	check_unbuilt_anywhere(c, true);
	if (!c->faults.json)
		print_summary(c);
	else
		printed = print_json(c);
	json_decref(c->faults.list);
	missing_arches_fini(&c->absent);
	missing_arches_fini(&c->unbuilt[0]);
	missing_arches_fini(&c->unbuilt[1]);
	generic_tree_fini(&c->generic);
	artifact_root_fini(&c->artifact);
	installed_fini(&c->set);
	return printed && c->faults.count == 0;
}

int mark_check(int argc, char **argv)
{
	struct options o = {.help = &mark_check_help, .argc = argc, .argv = argv};
	struct check c = {0};
	int status = arch_filter_read(&o, &c, &c.filter);

	if (status < 0 && optind == argc)
		status = options_usage(o.help, "a tree or a file is missing");
	else if (status < 0)
		status = report_finish(check_all(&c, argc - optind, argv + optind)
					       ? EXIT_OK
					       : EXIT_FAULT);
	arch_filter_fini(&c.filter);
	return status;
}
