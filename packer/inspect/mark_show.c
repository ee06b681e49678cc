/* SPDX-License-Identifier: MIT */
/*
 * kpack mark show: print the marker, the wrappers and the layout that files carry, if
 * any.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/order.h"
#include "packer/cli/xalloc.h"
#include "packer/archives/binary.h"
#include "mark.h"
#include "packer/cli/report.h"

static const struct option_help options[] = {
	{0, "json", NULL, "print one JSON array of objects", OPTION_FLAG_ALONE},
	{0},
};

const struct command_help mark_show_help = {
	"mark show",
	"[--json] FILE...",
	"print what files carry: marker, wrappers, layout",
	options,
	NULL,
};

struct show {
	struct binary b;
	const char **arches; /* of the layout, sorted, borrowed from it */
	size_t n_arches, n_objects;
	bool failed;
};

/* --- looking ---------------------------------------------------------------------- */

/*
 * Read the marker and the layout.  Parts that cannot be read are reported, the rest is
 * shown.
 */
static void read_binary(struct show *s)
{
	const struct kp_recipe *layout = &s->b.layout;
	struct kpackx_error why = {0};

	if (s->b.fat.kind != KP_FATBIN_CONVERTED)
		return;
	if (binary_read_marker(&s->b, &why) || binary_read_layout(&s->b, &why)) {
		report_why(s->b.path, &why);
		s->failed = true;
	}
	if (!s->b.has_layout)
		return;
	s->arches = xcalloc(layout->n_images, sizeof(*s->arches));
	for (size_t i = 0; i < layout->n_images; i++)
		if (!layout->images[i].host)
			s->arches[s->n_objects++] = layout->images[i].arch;
	kp_sort(s->arches, s->n_objects, KP_AS_TEXT);
	for (size_t i = 0; i < s->n_objects; i++)
		if (i == 0 || strcmp(s->arches[s->n_arches - 1], s->arches[i]) != 0)
			s->arches[s->n_arches++] = s->arches[i];
}

/* Bytes of device code that the file has, or had before it was converted. */
static uint64_t section_size(const struct binary *b)
{
	return b->has_layout ? b->layout.section_size : b->fat.source.size;
}

static const char *magic_name(const struct kp_elf_wrapper *w)
{
	return w->fields.magic == KP_WRAPPER_HIPK ? "HIPK" : "HIPF";
}

/* --- text ------------------------------------------------------------------------- */

static void print_line(const char *name, const char *value)
{
	printf("  %-13s  ", name);
	report_text(value);
	putchar('\n');
}

static void print_marker(const struct show *s)
{
	const struct kp_marker *marker = &s->b.marker;

	if (!marker->kernel_name)
		return;
	print_line("kernel_name", marker->kernel_name);
	for (size_t i = 0; i < marker->n_search_paths; i++)
		print_line("search path", marker->search_paths[i]);
	printf("  %-13s  %zu bytes\n", "marker", marker->size);
	if (!s->b.has_layout) {
		print_line("layout", "-");
		return;
	}
	printf("  %-13s  %zu containers, %zu objects for", "layout",
	       s->b.layout.n_containers, s->n_objects);
	for (size_t i = 0; i < s->n_arches; i++) {
		putchar(' ');
		report_text(s->arches[i]);
	}
	putchar('\n');
}

/* The container that wrapper I leads to, or -1. */
static ptrdiff_t container_of(const struct binary *b, size_t i)
{
	return b->fat.wrapper_container ? b->fat.wrapper_container[i] : -1;
}

/*
 * Print a row.  INDEX: the object it asks for at run time.  LEADS TO: an address, and its
 * content.
 */
static void print_wrapper(const struct binary *b, size_t i)
{
	const struct kp_elf_wrapper *w = &b->fat.elf.wrappers[i];
	ptrdiff_t container = container_of(b, i);

	printf("  %7zu  %-5s  %7" PRIu32 "  %7" PRIu64 "  %#14" PRIx64, i, magic_name(w),
	       w->fields.version, w->fields.index, w->vaddr);
	if (w->source == KP_POINTER_UNRESOLVED)
		puts("  outside the file");
	else if (container >= 0)
		printf("  %#" PRIx64 " container %td\n", w->target, container);
	else
		printf("  %#" PRIx64 "%s\n", w->target,
		       b->marker.kernel_name ? " marker" : "");
}

static void print_text(const struct show *s)
{
	const struct binary *b = &s->b;
	const char *unlisted = NULL;

	binary_unlisted(b, &unlisted, NULL);
	report_text(b->path);
	printf(": %s\n", unlisted ? unlisted : binary_kind(b));
	if (b->fat.kind == KP_FATBIN_NONE)
		return;
	print_marker(s);
	if (section_size(b))
		printf("  %-13s  %" PRIu64 " bytes\n", "device code", section_size(b));
	if (b->fat.elf.n_wrappers)
		printf("  %7s  %-5s  %7s  %7s  %14s  %s\n", "WRAPPER", "MAGIC", "VERSION",
		       "INDEX", "ADDRESS", "LEADS TO");
	for (size_t i = 0; i < b->fat.elf.n_wrappers; i++)
		print_wrapper(b, i);
}

/* --- JSON ------------------------------------------------------------------------- */

static json_t *wrapper_json(const struct binary *b, size_t i)
{
	const struct kp_elf_wrapper *w = &b->fat.elf.wrappers[i];
	ptrdiff_t container = container_of(b, i);
	bool known = w->source != KP_POINTER_UNRESOLVED;

	return json_pack(
		"{ss sI sI sI so so}", "magic", magic_name(w), "version",
		(json_int_t)w->fields.version, "index", (json_int_t)w->fields.index,
		"address", (json_int_t)w->vaddr, "target",
		known ? json_integer((json_int_t)w->target) : json_null(), "container",
		container < 0 ? json_null() : json_integer(container));
}

static json_t *show_json(const struct show *s)
{
	const struct binary *b = &s->b;
	json_t *wrappers = json_array(), *paths = json_array(), *layout = json_null();

	for (size_t i = 0; i < b->fat.elf.n_wrappers; i++)
		json_array_append_new(wrappers, wrapper_json(b, i));
	for (size_t i = 0; i < b->marker.n_search_paths; i++)
		json_array_append_new(paths, report_json_text(b->marker.search_paths[i]));
	if (b->has_layout) {
		json_t *arches = json_array();

		for (size_t i = 0; i < s->n_arches; i++)
			json_array_append_new(arches, report_json_text(s->arches[i]));
		layout = json_pack("{sI sI so sI}", "containers",
				   (json_int_t)b->layout.n_containers, "objects",
				   (json_int_t)s->n_objects, "arches", arches, "size",
				   (json_int_t)b->layout.section_size);
	}
	return json_pack("{so ss so so sI so sI so}", "file", report_json_text(b->path),
			 "kind", binary_kind(b), "kernel_name",
			 b->marker.kernel_name ? report_json_text(b->marker.kernel_name)
					       : json_null(),
			 "search_paths", paths, "marker_size", (json_int_t)b->marker.size,
			 "layout", layout, "size", (json_int_t)section_size(b),
			 "wrappers", wrappers);
}

/* --- the command ------------------------------------------------------------------ */

int mark_show(int argc, char **argv)
{
	struct options o = {.help = &mark_show_help, .argc = argc, .argv = argv};
	struct report_array array = {0};
	bool json = false;
	int status = options_read(&o, &json);

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_usage(o.help, "a file is missing");
	status = EXIT_OK;
	for (int i = optind; i < argc; i++) {
		struct kpackx_error why = {0};
		struct show s = {.b = {.fd = -1}};

		if (binary_open(argv[i], &s.b, &why)) {
			report_why(argv[i], &why);
			s.failed = true;
		} else {
			read_binary(&s);
			if (!json)
				print_text(&s);
			else
				report_array_add(&array, show_json(&s));
		}
		status = s.failed ? EXIT_FAULT : status;
		free(s.arches);
		binary_close(&s.b);
	}
	if (json && !report_array_end(&array))
		status = EXIT_FAULT;
	return report_finish(status);
}
