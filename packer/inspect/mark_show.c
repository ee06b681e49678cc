/* SPDX-License-Identifier: MIT */
/*
 * kpack mark show prints the marker, the wrappers and the layout that files carry, if any; kpack mark
 * set changes the marker, in place.
 *
 * show prints what a file carries, not whether it is right (that is mark check): of a damaged file
 * the parts that can be read are shown, and the others reported.  set writes the file anew, because another
 * marker has another size; the recipe in the file follows what moves by that.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "mark.h"
#include "packer/archives/binary.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

/* ---- show ---- */

static const struct option_help show_options[] = {
	{0, "json", NULL, "print one JSON array of objects", OPTION_FLAG_ALONE},
	{0},
};

const struct command_help mark_show_help = {
	"mark show",
	"[--json] FILE...",
	"print what files carry: marker, wrappers, layout",
	show_options,
	NULL,
};

struct shown {
	struct binary b;
	const char **arches; /* of the layout, sorted, borrowed from it */
	size_t n_arches, n_objects;
	uint64_t
		size; /* of the device code that it has, or had before it was converted */
};

static const char *magic_name(const struct kp_host_wrapper *w)
{
	return w->fields.magic == KP_WRAPPER_HIPK ? "HIPK" : "HIPF";
}

/* The container that wrapper I leads to, or -1. */
static ptrdiff_t container_of(const struct binary *b, size_t i)
{
	return b->fat.wrapper_container ? b->fat.wrapper_container[i] : -1;
}

static void print_line(const char *name, const char *value)
{
	printf("  %-13s  ", name);
	report_text(value);
	putchar('\n');
}

static void print_shown(const struct shown *s)
{
	const struct binary *b = &s->b;
	const struct kp_marker *marker = &b->marker;
	const char *unlisted = NULL;

	binary_unlisted(b, &unlisted, NULL);
	report_text(b->path);
	printf(": %s\n", unlisted ? unlisted : binary_kind(b));
	if (b->fat.kind == KP_FATBIN_NONE)
		return;
	if (marker->kernel_name) {
		print_line("kernel_name", marker->kernel_name);
		for (size_t i = 0; i < marker->n_search_paths; i++)
			print_line("search path", marker->search_paths[i]);
		printf("  %-13s  %zu bytes\n", "marker", marker->size);
	}
	if (marker->kernel_name && !s->b.has_layout) {
		print_line("layout", "-");
	} else if (marker->kernel_name) {
		printf("  %-13s  %zu container%s, %zu object%s for", "layout",
		       b->layout.n_containers, plural(b->layout.n_containers),
		       s->n_objects, plural(s->n_objects));
		for (size_t i = 0; i < s->n_arches; i++) {
			putchar(' ');
			report_text(s->arches[i]);
		}
		putchar('\n');
	}
	if (s->size)
		printf("  %-13s  %" PRIu64 " bytes\n", "device code", s->size);
	/* INDEX: the object it asks for at run time.  LEADS TO: an address, and its content. */
	if (b->fat.host.n_wrappers)
		printf("  %7s  %-5s  %7s  %7s  %14s  %s\n", "WRAPPER", "MAGIC", "VERSION",
		       "INDEX", "ADDRESS", "LEADS TO");
	for (size_t i = 0; i < b->fat.host.n_wrappers; i++) {
		const struct kp_host_wrapper *w = &b->fat.host.wrappers[i];
		ptrdiff_t container = container_of(b, i);

		printf("  %7zu  %-5s  %7" PRIu32 "  %7" PRIu64 "  %#14" PRIx64, i,
		       magic_name(w), w->fields.version, w->fields.index, w->vaddr);
		if (w->source == KP_POINTER_UNRESOLVED)
			puts("  outside the file");
		else if (container >= 0)
			printf("  %#" PRIx64 " container %td\n", w->target, container);
		else
			printf("  %#" PRIx64 "%s\n", w->target,
			       b->marker.kernel_name ? " marker" : "");
	}
}

static json_t *shown_json(const struct shown *s)
{
	const struct binary *b = &s->b;
	json_t *wrappers = json_array(), *paths = json_array(), *arches = json_array();
	json_t *layout;

	for (size_t i = 0; i < b->fat.host.n_wrappers; i++) {
		const struct kp_host_wrapper *w = &b->fat.host.wrappers[i];
		ptrdiff_t container = container_of(b, i);

		json_array_append_new(
			wrappers,
			json_pack("{ss sI sI sI so so}", "magic", magic_name(w),
				  "version", (json_int_t)w->fields.version, "index",
				  (json_int_t)w->fields.index, "address",
				  (json_int_t)w->vaddr, "target",
				  w->source != KP_POINTER_UNRESOLVED
					  ? json_integer((json_int_t)w->target)
					  : json_null(),
				  "container",
				  container < 0 ? json_null() : json_integer(container)));
	}
	for (size_t i = 0; i < b->marker.n_search_paths; i++)
		json_array_append_new(paths, report_json_text(b->marker.search_paths[i]));
	for (size_t i = 0; i < s->n_arches; i++)
		json_array_append_new(arches, report_json_text(s->arches[i]));
	layout = json_pack("{sI sI so sI}", "containers",
			   (json_int_t)b->layout.n_containers, "objects",
			   (json_int_t)s->n_objects, "arches", arches, "size",
			   (json_int_t)b->layout.section_size);
	if (!b->has_layout) {
		json_decref(layout);
		layout = json_null();
	}
	return json_pack("{so ss so so sI so sI so}", "file", report_json_text(b->path),
			 "kind", binary_kind(b), "kernel_name",
			 b->marker.kernel_name ? report_json_text(b->marker.kernel_name)
					       : json_null(),
			 "search_paths", paths, "marker_size", (json_int_t)b->marker.size,
			 "layout", layout, "size", (json_int_t)s->size, "wrappers",
			 wrappers);
}

int mark_show(int argc, char **argv)
{
	struct options o = {.help = &mark_show_help, .argc = argc, .argv = argv};
	struct report_array array = {0};
	bool json = false;
	int status = EXIT_OK;

	options_read(&o, &json);
	if (optind == argc)
		options_usage(o.help, "a file is missing");
	for (int i = optind; i < argc; i++) {
		struct kpackx_error why = {0};
		struct shown s = {.b = {.fd = -1}};
		const struct kp_recipe *layout;

		if (binary_open(argv[i], &s.b, &why)) {
			report_why(argv[i], &why);
			status = EXIT_FAULT;
			continue;
		}
		/* parts that cannot be read are reported, the rest is shown */
		if (s.b.fat.kind == KP_FATBIN_CONVERTED &&
		    (binary_read_marker(&s.b, &why) || binary_read_layout(&s.b, &why))) {
			report_why(argv[i], &why);
			status = EXIT_FAULT;
		}
		layout = &s.b.layout;
		s.size = s.b.has_layout ? layout->section_size : s.b.fat.source.size;
		s.arches = xcalloc(layout->n_images + 1, sizeof(*s.arches));
		for (size_t k = 0; k < layout->n_images; k++)
			if (!layout->images[k].host)
				s.arches[s.n_objects++] = layout->images[k].arch;
		kp_sort(s.arches, s.n_objects, KP_AS_TEXT);
		for (size_t k = 0; k < s.n_objects; k++)
			if (k == 0 || strcmp(s.arches[s.n_arches - 1], s.arches[k]) != 0)
				s.arches[s.n_arches++] = s.arches[k];
		if (json)
			report_array_add(&array, shown_json(&s));
		else
			print_shown(&s);
		free(s.arches);
		binary_close(&s.b);
	}
	if (json)
		report_array_end(&array);
	return report_finish(status);
}

/* ---- set ---- */

/* Names and paths are for archives, and MessagePack's UTF-8. */
static void check_text(const struct options *o, const struct option_help *row)
{
	if (!*o->arg || !kp_text_ok(kp_span_str(o->arg)))
		options_usage(o->help,
			      "--%s: is empty, or not UTF-8 without control bytes",
			      row->long_name);
}

int mark_take_name(const struct options *o, const struct option_help *row, void *slot)
{
	check_text(o, row);
	marker_set_name(slot, o->arg);
	return EXIT_OK;
}

int mark_take_path(const struct options *o, const struct option_help *row, void *slot)
{
	check_text(o, row);
	marker_add_path(slot, o->arg);
	return EXIT_OK;
}

struct mark_set {
	struct kp_marker changes;
	bool drop_signature;
};

static const struct option_help set_options[] = {
	{0, "kernel-name", "NAME", "the new name",
	 OPTION_TAKE(struct mark_set, changes, mark_take_name)},
	{0, "search-path", "PATH",
	 "a new path, in place of all old ones; may be repeated",
	 OPTION_TAKE(struct mark_set, changes, mark_take_path)},
	OPTION_DROP_SIGNATURE(struct mark_set, drop_signature),
	{0},
};

const struct command_help mark_set_help = {
	"mark set",
	"[--kernel-name NAME] [--search-path PATH]... [--drop-signature] FILE...",
	"change the marker of converted binaries",
	set_options,
	"A file that already has the name and the paths is not touched.",
};

/* Apply the changes of SET to the marker of the file PATH, unless it has them already. */
static kpack_error_t set_marker(const char *path, const struct mark_set *set,
				struct kpackx_error *why)
{
	const struct kp_marker *changes = &set->changes;
	KP_AUTO_FREE uint8_t *bytes = NULL;
	struct kp_marker marker = {0};
	const struct kp_marker *paths;
	struct rewrite r = {0};
	struct binary b;
	size_t size;
	kpack_error_t err = binary_open(path, &b, why);

	if (!err)
		err = binary_read_marker(&b, why);
	if (err)
		goto out;
	marker_set_name(&marker, changes->kernel_name ? changes->kernel_name
						      : b.marker.kernel_name);
	paths = changes->n_search_paths ? changes : &b.marker;
	for (size_t i = 0; i < paths->n_search_paths; i++)
		marker_add_path(&marker, paths->search_paths[i]);
	if (kp_marker_same(&b.marker, &marker))
		goto out;
	b.drop_signature = set->drop_signature;
	err = rewrite_open(&r, &b, path, why);
	if (!err)
		err = kp_marker_write(&marker, &bytes, &size, why);
	if (!err)
		err = binary_set_marker(&b, (struct kp_span){bytes, size}, &r.out, why);
	if (!err)
		err = rewrite_publish(&r, why);
out:
	rewrite_close(&r);
	kp_marker_fini(&marker);
	binary_close(&b);
	return err;
}

int mark_set(int argc, char **argv)
{
	struct options o = {.help = &mark_set_help, .argc = argc, .argv = argv};
	struct mark_set set = {0};
	int status = EXIT_OK;

	options_read(&o, &set);
	if (!set.changes.kernel_name && set.changes.n_search_paths == 0)
		return options_usage(o.help, "nothing to set");
	if (optind == argc)
		options_usage(o.help, "a file is missing");
	for (int i = optind; i < argc; i++) {
		struct kpackx_error why = {0};

		if (set_marker(argv[i], &set, &why)) {
			report_why(argv[i], &why);
			status = EXIT_FAULT;
		}
	}
	kp_marker_fini(&set.changes);
	return report_finish(status);
}
