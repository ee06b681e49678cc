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
 *
 * So some of what is found is judged in the end, when all binaries were looked at:
 *
 *	for each file      its kind; marker and layout; the archives that its search paths reach, each
 *	                   checked once; the GPUs of --arch; the objects of each wrapper
 *	in the end         all entries of these archives that nothing asked for are decoded; absent:
 *	                   architectures without an archive, which are right if no binary has one;
 *	                   unbuilt: GPUs of --arch, a fault if no binary was built for them
 *
 * What a GPU loads is decided as by HIP: of the objects that it can run, the one that states most of
 * what it has.  An object that a better one hides may be missing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "mark.h"
#include "packer/archives/arch_filter.h"
#include "packer/archives/reachable_archives.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "packer/trees/artifact.h"

#define NO_WRAPPER SIZE_MAX

/* An architecture that the binary FILE lacks. */
struct missing_arch {
	char *file, *arch;
	bool by_layout; /* its layout says so; else archives, which might have lost it */
	/*
	 * Decided in the end.  Code that is not installed: archives have code of other
	 * binaries for it; a GPU of --arch: another binary was built for it.
	 */
	bool elsewhere;
};

struct missing_arches {
	struct missing_arch *items;
	size_t count, cap;
};

struct check {
	struct arch_filter filter;
	bool verbose, json;
	struct installed set;
	/* Built without an archive for it: right if it is installed for no binary at all. */
	struct missing_arches absent;
	struct missing_arches unbuilt; /* GPUs of --arch */
	struct generic_tree generic;
	struct artifact_root artifact;
	size_t n_seen; /* host binaries of any kind */
	size_t n_binaries, n_fat, n_archives, n_objects, n_faults;
	json_t *faults; /* with JSON */
};

static const struct option_help options[] = {
	ARCH_FILTER_OPTIONS(struct check, filter),
	{0, "json", NULL, "print one JSON object", OPTION_PLACE(struct check, json)},
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

/* ---- what is found ---- */

/* Record a fault of FILE; ARCH may be NULL.  The caller has escaped names in the text. */
__attribute__((format(printf, 5, 6))) static void
add_fault(struct check *c, const char *file, size_t wrapper, const char *arch,
	  const char *fmt, ...)
{
	KP_AUTO_FREE char *text = NULL, *shown = NULL;
	char number[40] = "";
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	c->n_faults++;
	if (c->json) {
		json_array_append_new(
			c->faults,
			json_pack("{so so so so}", "file", report_json_text(file),
				  "wrapper",
				  wrapper == NO_WRAPPER
					  ? json_null()
					  : json_integer((json_int_t)wrapper),
				  "arch", arch ? report_json_text(arch) : json_null(),
				  "text", report_json_message(text)));
		return;
	}
	if (wrapper != NO_WRAPPER)
		snprintf(number, sizeof(number), "wrapper %zu: ", wrapper);
	shown = arch ? xescape(kp_span_str(arch)) : NULL;
	report_error(file, "%s%s%s%s", number, shown ? shown : "", shown ? ": " : "",
		     text);
}

static void add_why(struct check *c, const char *file, const struct kpackx_error *why)
{
	add_fault(c, file, NO_WRAPPER, NULL, "%s",
		  why->text[0] ? why->text : kpackx_error_name(why->code));
}

/* Print what is no fault, with --verbose. */
__attribute__((format(printf, 3, 4))) static void
print_note(const struct check *c, const char *path, const char *format, ...)
{
	char text[256];
	va_list args;

	if (!c->verbose || c->json)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	report_text(path);
	fputs(": ", stdout);
	report_message(text);
	putchar('\n');
}

static void add_missing(struct missing_arches *list, const struct binary *b,
			const char *arch)
{
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count++] = (struct missing_arch){
		xstrdup(b->path), xstrdup(arch), b->has_layout, false};
}

static void missing_arches_fini(struct missing_arches *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].file);
		free(list->items[i].arch);
	}
	free(list->items);
}

/* ---- what GPUs would load ---- */

/* An architecture of a binary, which GPUs may choose. */
struct candidate {
	struct kp_target target; /* no processor: no target ID, or the host's */
	unsigned rank;           /* how well it fits the GPU; 0: not at all */
	/* 1 + the number of the first GPU that would load it, and does not find it; or 0 */
	size_t lost;
};

/* The binary that is being checked. */
struct subject {
	struct check *check;
	struct binary b;
	struct reach reach;
	struct built_arches arches;

	bool *built;             /* per GPU of --arch: the binary was built for it */
	struct candidate *codes; /* per architecture, and one for the host */
	/* per image of the layout, or else per architecture: number of its architecture */
	size_t *numbers;
};

/*
 * Rank all architectures for GPU, one setting of number WHICH.  From each container, or without a
 * layout from all that archives have, it loads the best; one of the best must be in an archive.
 */
static void check_setting(struct subject *s, size_t which, const struct kp_target *gpu)
{
	const struct kp_recipe_image *images = s->b.layout.images;
	bool exact = s->check->filter.chosen.exact, layout = s->b.has_layout;
	size_t n = layout ? s->b.layout.n_images : s->arches.count, end;
	unsigned added = 0;

	for (size_t k = 0; k < s->arches.count; k++) {
		const struct kp_target *code = &s->codes[k].target;

		s->codes[k].rank = 0;
		if (!*code->processor || (exact && !kp_target_eq(gpu, code)))
			continue;
		/* of two objects for a processor, the one that states more features is loaded */
		s->codes[k].rank = 4 * (unsigned)kp_target_fit(gpu, code);
		if (kp_target_loadable(gpu, code))
			s->codes[k].rank += (code->xnack != KP_FEATURE_ANY) +
					    (code->sramecc != KP_FEATURE_ANY);
		/* what other builds added is surely in an archive, and may fit better */
		if (layout && !s->arches.in_layout[k] && s->codes[k].rank > added)
			added = s->codes[k].rank;
	}
	for (size_t first = 0; first < n; first = end) {
		unsigned best = added;
		bool found = false;

		for (end = first; end < n && (!layout || images[end].container ==
								 images[first].container);
		     end++)
			if (s->codes[s->numbers[end]].rank > best)
				best = s->codes[s->numbers[end]].rank;
		s->built[which] |= best > 0;
		if (best == added)
			continue;
		for (size_t i = first; i < end; i++)
			found |= s->codes[s->numbers[i]].rank == best &&
				 s->arches.installed[s->numbers[i]];
		for (size_t i = first; i < end && !found; i++)
			if (s->codes[s->numbers[i]].rank == best &&
			    !s->codes[s->numbers[i]].lost)
				s->codes[s->numbers[i]].lost = which + 1;
	}
}

/*
 * Check that each GPU of --arch finds the code that the binary was built with for it: of each
 * container the object that fits best.  A GPU whose unstated features may be on or off would load what
 * it would load in each of these settings; with --arch-exact, only code for the very target ID.
 * Without a layout, the binary is known to have only what archives have.
 */
static void check_gpus(struct subject *s)
{
	struct check *c = s->check;
	const struct kp_choice *chosen = &c->filter.chosen;
	const struct kp_recipe *layout = &s->b.layout;
	size_t n = s->arches.count;
	char gpu[KP_TARGET_TEXT_MAX];

	s->built = xcalloc(chosen->count + 1, sizeof(*s->built));
	s->codes = xcalloc(n + 1, sizeof(*s->codes));
	s->numbers = xcalloc(layout->n_images + n + 1, sizeof(*s->numbers));
	for (size_t k = 0; k < n && !s->b.has_layout; k++)
		s->numbers[k] = k;
	for (size_t k = 0; k < n; k++)
		if (kp_target_parse(kp_span_str(s->arches.items[k]), &s->codes[k].target,
				    NULL))
			s->codes[k].target.processor[0] = '\0';
	for (size_t i = 0; i < layout->n_images; i++)
		if (layout->images[i].host ||
		    !built_arches_number(&s->arches, layout->images[i].arch,
					 &s->numbers[i]))
			s->numbers[i] = n; /* the host's */
	for (size_t i = 0; i < chosen->count && !kp_choice_is_all(chosen); i++) {
		struct kp_target settings[KP_TARGET_SETTINGS] = {chosen->gpus[i]};
		size_t n_settings =
			chosen->exact ? 1
				      : kp_target_settings(&chosen->gpus[i], settings);

		for (size_t k = 0; k < n_settings; k++)
			check_setting(s, i, &settings[k]);
	}
	for (size_t k = 0; k < s->arches.count; k++) {
		const char *arch = s->arches.items[k];

		if (!s->codes[k].lost)
			continue;
		kp_target_format(&chosen->gpus[s->codes[k].lost - 1], gpu);
		if (strcmp(gpu, arch) == 0)
			add_fault(c, s->b.path, NO_WRAPPER, arch, "no archive has it");
		else
			add_fault(c, s->b.path, NO_WRAPPER, arch,
				  "no archive has it, which %s would load", gpu);
	}
	/*
	 * What it was not built for.  A layout says so; without one, an archive that has code
	 * for the GPU might have lost this binary's.
	 */
	for (size_t i = 0; i < chosen->count && !chosen->all; i++) {
		bool others = false; /* an archive has code for it, of any binary */

		for (size_t r = 0; r < s->reach.count && !s->built[i]; r++) {
			const struct kpack_archive *a =
				s->reach.items[r].archive->archive;
			struct kp_target code;

			for (size_t k = 0; a && k < kp_archive_arch_count(a); k++)
				others |= !kp_target_parse(
						  kp_span_str(kp_archive_arch(a, k)),
						  &code, NULL) &&
					  !kp_target_neutral(&code) &&
					  kp_choice_takes(chosen, i, &code);
		}
		if (s->built[i])
			continue;
		kp_target_format(&chosen->gpus[i], gpu);
		if (s->b.has_layout || !others)
			add_missing(&c->unbuilt, &s->b, gpu);
		else
			add_fault(c, s->b.path, NO_WRAPPER, gpu, "no archive has it");
	}
	for (size_t k = 0; k < s->arches.count; k++)
		arch_filter_match(&c->filter, kp_span_str(s->arches.items[k]));
}

/* ---- objects ---- */

/* Check the object WANT of WRAPPER, which must exist if MUST. */
static void check_object(struct subject *s, size_t wrapper, struct wanted_object *want,
			 bool must)
{
	struct check *c = s->check;
	KP_AUTO_FREE char *name = NULL, *archive = NULL;
	struct kpackx_error why = {0};
	struct found_object found;

	want->name = s->b.marker.kernel_name;
	want->index = binary_index(&s->b, wrapper);
	installed_find(&s->reach, want, &found);
	if (!found.archive && !must)
		return;
	c->n_objects++;
	name = xescape(kp_span_str(want->name));
	archive = found.archive ? xescape(kp_span_str(found.archive->path)) : NULL;
	if (!found.archive)
		add_fault(c, s->b.path, wrapper, want->arch, "no archive has %s#%u", name,
			  want->index);
	else if (found.differs)
		add_fault(c, s->b.path, wrapper, want->arch,
			  "%s#%u in %s is from another build", name, want->index,
			  archive);
	else if (installed_decode(found.archive, found.entry, NULL, &why))
		add_fault(c, s->b.path, wrapper, want->arch, "%s#%u in %s: %s", name,
			  want->index, archive, why.text);
}

/*
 * Check the objects of a wrapper: those that the layout states, if their architecture is
 * installed; and those for architectures that the layout does not have, if there is one.
 */
static void check_wrapper(struct subject *s, size_t wrapper)
{
	const struct kp_recipe *layout = &s->b.layout;
	size_t number;
	const struct kp_recipe_container *c =
		s->b.has_layout ? &layout->containers[layout->wrapper_container[wrapper]]
				: &(const struct kp_recipe_container){0};

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_recipe_image *img = &layout->images[i];
		struct wanted_object want = {.arch = img->arch,
					     .kind = wanted_kind(img),
					     .xxh3 = img->has_xxh3 ? img->xxh3 : NULL,
					     .size = &img->size};

		if (!img->host && built_arches_number(&s->arches, img->arch, &number) &&
		    s->arches.installed[number])
			check_object(s, wrapper, &want, true);
	}
	for (size_t i = 0; i < s->arches.count; i++)
		if (!s->arches.in_layout[i])
			check_object(s, wrapper,
				     &(struct wanted_object){.arch = s->arches.items[i],
							     .kind = kp_span_str("co")},
				     false);
}

/* ---- a binary ---- */

static kpack_error_t check_converted(struct subject *s, struct kpackx_error *why)
{
	struct check *c = s->check;
	const struct kp_marker *marker = &s->b.marker;
	const struct artifact_root *artifact = &c->artifact;
	KP_AUTO_FREE char *shown = NULL;
	const struct prefix *own;
	size_t usable = 0;
	const char *rest;

	KP_TRY(binary_read_marker(&s->b, why));
	KP_TRY(binary_read_layout(&s->b, why));
	KP_TRY(installed_reach(&c->set, marker, s->b.path, &s->reach, why));
	/* TheRock's tools leave archives of an artifact where another prefix is installed */
	own = artifact_root_prefix(artifact, s->b.path, marker->kernel_name, &rest);
	for (size_t i = 0; own && i < artifact->prefixes.count; i++) {
		const struct prefix *other = &artifact->prefixes.items[i];
		KP_AUTO_FREE char *path = NULL;

		if (other == own || other->absent)
			continue;
		path = xasprintf("%s/%s/%s", artifact->path, other->path, rest);
		KP_TRY(installed_reach(&c->set, marker, path, &s->reach, why));
	}
	/* each archive is checked once over all binaries, even if another one reached it before */
	for (size_t i = 0; i < s->reach.count; i++) {
		const struct reached *r = &s->reach.items[i];
		struct installed_archive *a = r->archive;
		const struct kp_fault *faults = NULL;
		size_t kept = 0, counted;

		usable += a->archive != NULL;
		if (a->reported)
			continue;
		a->reported = true;
		c->n_archives++;
		if (!a->archive)
			add_why(c, a->path, &a->why);
		else
			faults = kp_archive_faults(a->archive, &kept, &counted);
		for (size_t k = 0; k < kept; k++)
			if (faults[k].refused)
				add_fault(c, a->path, NO_WRAPPER, NULL, "%s",
					  faults[k].text);
		/* it is found only by programs on GPUs that cannot use it */
		if (r->misnamed)
			add_fault(c, a->path, NO_WRAPPER, r->arch,
				  "the archive is named for it, but has no code for it");
	}
	if (!usable) {
		/* in a generic tree none is expected, unless asked for */
		if (s->reach.count == 0 && c->generic.path && c->generic.certain &&
		    kp_choice_is_all(&c->filter.chosen))
			return KPACK_SUCCESS;
		shown = xescape(kp_span_str(marker->search_paths[0]));
		add_fault(c, s->b.path, NO_WRAPPER, NULL,
			  "no archive where it looks: %s%s", shown,
			  marker->n_search_paths > 1 ? " and other places" : "");
		return KPACK_SUCCESS;
	}
	built_arches_find(&s->b, &s->reach, &s->arches);
	/* without a layout, no architecture means no object */
	if (!s->arches.count && !s->b.has_layout) {
		shown = xescape(kp_span_str(marker->kernel_name));
		add_fault(c, s->b.path, NO_WRAPPER, NULL,
			  "no archive has an object of %s", shown);
	}
	check_gpus(s);
	for (size_t i = 0; i < s->b.fat.host.n_wrappers; i++)
		check_wrapper(s, i);
	/* what is not installed, and no check above reported; judge_rest judges it */
	for (size_t i = 0; i < s->arches.count; i++)
		if (!s->arches.installed[i] && !s->codes[i].lost &&
		    !reach_has_broken(&s->reach, s->arches.items[i]))
			add_missing(&c->absent, &s->b, s->arches.items[i]);
	return KPACK_SUCCESS;
}

static void check_file(struct check *c, const char *path)
{
	struct subject s = {.check = c};
	struct kpackx_error why = {0};
	size_t before, objects = c->n_objects;
	const char *unlisted;
	kpack_error_t err = binary_open(path, &s.b, &why);

	if (err == KPACK_ERROR_NOT_IMPLEMENTED) {
		/* kpack pack leaves it alone, too, with a warning */
		c->n_fat++;
		print_note(c, path, "note: not converted: %s", why.text);
		return;
	}
	if (err) {
		add_why(c, path, &why);
		return;
	}
	generic_tree_binary(&c->generic, &s.b);
	c->n_seen += s.b.fat.host.type != 0;
	if (s.b.fat.kind == KP_FATBIN_CONVERTED) {
		before = c->n_faults;
		c->n_binaries++;
		if (check_converted(&s, &why))
			add_why(c, path, &why);
		if (c->n_faults == before)
			print_note(c, path, "ok, %zu object%s", c->n_objects - objects,
				   plural(c->n_objects - objects));
	} else if (s.b.fat.kind == KP_FATBIN_HOST) {
		/* what is not converted is right, unless some of its wrappers are */
		const struct kp_host *host = &s.b.fat.host;
		size_t i = 0;

		c->n_fat++;
		while (i < host->n_wrappers &&
		       host->wrappers[i].fields.magic != KP_WRAPPER_HIPK)
			i++;
		if (i < host->n_wrappers)
			add_fault(c, path, i, NULL,
				  "is converted, other wrappers are not");
		else
			print_note(c, path, "note: not converted");
	} else if (binary_unlisted(&s.b, &unlisted, &why)) {
		add_why(c, path, &why);
	} else if (unlisted) {
		/* kpack pack leaves its device code alone */
		c->n_fat++;
		print_note(c, path, "note: not converted: %s", unlisted);
	}
	free(s.built);
	free(s.codes);
	free(s.numbers);
	reach_fini(&s.reach);
	built_arches_fini(&s.arches);
	binary_close(&s.b);
}

/* ---- trees ---- */

static void report_left(void *arg, const char *file, const char *text)
{
	add_fault(arg, file, NO_WRAPPER, NULL, "%s", text);
}

static void check_root(struct check *c, const char *root)
{
	struct tree_list *list = tree_list_open(root);
	struct kpackx_error why = {0};
	struct tree_item item;
	bool empty = true; /* others may have only archives, or kernel databases */
	struct stat st;

	if (below_root_if_directory(root, &why)) {
		add_why(c, root, &why);
		goto out;
	}
	while (tree_list_next(list, &item)) {
		empty &= item.kind == TREE_DIR || item.kind == TREE_DIR_END;
		generic_tree_item(&c->generic, &item);
		artifact_root_item(&c->artifact, &item);
		if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode))
			check_file(c, item.path);
		/* links, also to nothing, devices and so on are a fault only as operands */
		else if (item.level == 0 &&
			 (item.kind == TREE_OTHER ||
			  (item.kind == TREE_FAULT && item.error == ENOENT &&
			   below_lstat(item.path, &st) == 0)))
			add_fault(c, item.path, NO_WRAPPER, NULL,
				  "leads to no file and no directory");
		else if (item.kind == TREE_FAULT)
			add_fault(c, item.path, NO_WRAPPER, NULL, "%s",
				  strerror(item.error));
	}
	if (empty)
		add_fault(c, root, NO_WRAPPER, NULL, "there is no binary to check");
out:
	tree_list_close(list);
}

/* ---- in the end ---- */

/* Whether item I of LIST, which is sorted, is the first of its architecture. */
static bool begins_arch(const struct missing_arches *list, size_t i)
{
	return i == 0 || strcmp(list->items[i - 1].arch, list->items[i].arch) != 0;
}

/* Judge what only shows when all binaries were looked at. */
static void judge_rest(struct check *c)
{
	struct missing_arches *absent = &c->absent;
	char text[KP_TARGET_TEXT_MAX];

	/* what no binary asked for: code of libraries that are elsewhere, database files */
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
			key = xescape(info.key);
			arch = xstrndup((const char *)info.arch.data, info.arch.size);
			add_fault(c, a->path, NO_WRAPPER, arch, "%s: %s", key, why.text);
		}
	}
	kp_sort(absent->items, absent->count, KP_BY_TEXT(struct missing_arch, arch),
		KP_BY_TEXT(struct missing_arch, file));
	for (size_t i = 0; i < absent->count; i++) {
		struct missing_arch *item = &absent->items[i];

		item->elsewhere = begins_arch(absent, i)
					  ? installed_has_arch(&c->set, item->arch)
					  : item[-1].elsewhere;
		if (item->elsewhere)
			add_fault(c, item->file, NO_WRAPPER, item->arch,
				  "no archive has its code for this GPU, but archives "
				  "have "
				  "code of other binaries for it");
	}
	/* a GPU of --arch that one binary was not built for is a fault if no other was either */
	for (size_t i = 0; i < c->unbuilt.count; i++) {
		struct missing_arch *item = &c->unbuilt.items[i];

		for (size_t k = 0; k < c->filter.chosen.count; k++) {
			kp_target_format(&c->filter.chosen.gpus[k], text);
			item->elsewhere |=
				c->filter.matched[k] && strcmp(text, item->arch) == 0;
		}
		if (item->elsewhere)
			print_note(c, item->file, "note: not built for %s", item->arch);
		else
			add_fault(c, item->file, NO_WRAPPER, item->arch, "%s",
				  item->by_layout ? "no object was built for it"
						  : "no archive has it");
	}
}

static void print_json(const struct check *c)
{
	json_t *absent = json_array(), *unbuilt = json_array();

	for (size_t i = 0; i < c->absent.count; i++)
		if (begins_arch(&c->absent, i) && !c->absent.items[i].elsewhere)
			json_array_append_new(absent,
					      report_json_text(c->absent.items[i].arch));
	/* the binaries that were not built for GPUs of --arch for which others were */
	for (size_t i = 0; i < c->unbuilt.count; i++) {
		const struct missing_arch *item = &c->unbuilt.items[i];

		if (item->elsewhere)
			json_array_append_new(unbuilt,
					      json_pack("{so ss}", "file",
							report_json_text(item->file),
							"arch", item->arch));
	}
	report_json(json_pack("{sI sI sI sI so so so}", "converted",
			      (json_int_t)c->n_binaries, "fat", (json_int_t)c->n_fat,
			      "objects", (json_int_t)c->n_objects, "archives",
			      (json_int_t)c->n_archives, "not_installed", absent,
			      "not_built", unbuilt, "faults", json_incref(c->faults)));
}

static void print_summary(const struct check *c)
{
	const char *lead = "not installed:";

	for (size_t i = 0; i < c->absent.count; i++) {
		if (!begins_arch(&c->absent, i) || c->absent.items[i].elsewhere)
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
		for (size_t i = 0; i < c->unbuilt.count; i++)
			n += c->unbuilt.items[i].elsewhere &&
			     strcmp(c->unbuilt.items[i].arch, gpu) == 0;
		if (n)
			printf("not built for %s: %zu of %zu\n", gpu, n, c->n_binaries);
	}
	printf("%zu converted, %zu not converted, %zu object%s in %zu archive%s, "
	       "%zu fault%s\n",
	       c->n_binaries, c->n_fat, c->n_objects, plural(c->n_objects), c->n_archives,
	       plural(c->n_archives), c->n_faults, plural(c->n_faults));
}

int mark_check(int argc, char **argv)
{
	struct options o = {.help = &mark_check_help, .argc = argc, .argv = argv};
	struct check c = {.generic = {.fault = report_left, .arg = &c}};

	options_read(&o, &c);
	arch_filter_check(&c.filter, o.help);
	if (optind == argc)
		options_usage(o.help, "a tree or a file is missing");
	c.faults = json_array();
	for (int i = optind; i < argc; i++)
		check_root(&c, argv[i]);
	if (c.n_seen == 0 && c.n_faults == 0)
		add_fault(&c, argv[optind], NO_WRAPPER, NULL,
			  argc - optind == 1
				  ? "there is no binary to check"
				  : "there is no binary to check, nor in the others");
	judge_rest(&c);
	if (!c.json)
		print_summary(&c);
	else
		print_json(&c);
	json_decref(c.faults);
	missing_arches_fini(&c.absent);
	missing_arches_fini(&c.unbuilt);
	generic_tree_fini(&c.generic);
	artifact_root_fini(&c.artifact);
	installed_fini(&c.set);
	arch_filter_fini(&c.filter);
	return report_finish(c.n_faults == 0 ? EXIT_OK : EXIT_FAULT);
}
