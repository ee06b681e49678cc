/* SPDX-License-Identifier: MIT */
#include "report.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/scan/unrecognised.h"

/* --- notes --------------------------------------------------------------------------- */

/* Whether libraries were asked for their files. */
static bool libraries_looked(const struct pack_args *args)
{
	return databases_are_stored(args->databases) && args->libraries.count;
}

static void report_warnings(const struct scan *scan, const struct input *in)
{
	for (size_t i = 0; i < in->n_images; i++)
		if (in->kind == INPUT_DATABASE && in->objects[i].warning)
			report_error(scan->entries[in->entry].path, "warning: %s",
				     in->objects[i].warning);
}

void pack_report_notes(const struct pack_args *args, const struct scan *scan)
{
	for (size_t i = 0; i < scan->n_inputs && !args->quiet; i++)
		report_warnings(scan, scan->inputs[i]);
	scan_report_left(scan, args->quiet);
	if (libraries_looked(args) && !args->quiet)
		unrecognised_report(scan);
}

void pack_report_dispositions(const struct scan *scan,
			      const struct dispositions *dispositions, bool quiet)
{
	for (size_t i = 0; i < dispositions->count; i++) {
		const struct disposition *o = &dispositions->items[i];
		const char *path = scan->entries[i].path;

		if (o->fate == FATE_REFUSED)
			report_error(path,
				     "warning: not converted, its code stays in it: %s",
				     o->reason);
		else if (o->fate == FATE_LEFT_OUT && !quiet)
			report_error(path, "note: left out: %s", o->reason);
	}
}

/* --- a table ------------------------------------------------------------------------- */

static void print_row(const char *name, const struct arch_stats *row)
{
	printf("%-28s %10zu %16" PRIu64 " %16" PRIu64 " %12zu\n", name, row->objects,
	       row->bytes_in, row->bytes_out, row->deduplicated);
}

static void print_table(const struct archive_stats *stats)
{
	struct arch_stats all = {0};

	printf("%-28s %10s %16s %16s %12s\n", "arch", "objects", "bytes in", "bytes out",
	       "deduplicated");
	for (size_t i = 0; i < stats->count; i++) {
		const struct arch_stats *row = &stats->items[i];

		print_row(row->arch, row);
		all.objects += row->objects;
		all.bytes_in += row->bytes_in;
		all.bytes_out += row->bytes_out;
		all.deduplicated += row->deduplicated;
	}
	print_row("total", &all);
}

struct summary {
	size_t files, converted, packed, kept;
	uint64_t before, after; /* of the converted */
	size_t containers;      /* kept ones */
	uint64_t containers_size;
};

static struct summary sum_dispositions(const struct dispositions *dispositions)
{
	struct summary s = {0};

	for (size_t i = 0; i < dispositions->count; i++) {
		const struct disposition *o = &dispositions->items[i];

		s.files += o->fate != FATE_NOTHING && o->fate != FATE_LEFT_OUT &&
			   o->fate != FATE_NOT_WANTED;
		s.packed += o->fate == FATE_PACKED;
		s.kept += o->fate == FATE_KEPT;
		if (o->fate != FATE_CONVERTED)
			continue;
		s.converted++;
		s.before += o->before;
		s.after += o->after;
		s.containers += o->n_kept;
		s.containers_size += o->kept_size;
	}
	return s;
}

/* Sizes of all regular files, each counted once, and of the archives. */
struct totals {
	uint64_t before, after; /* without the archives */
	uint64_t archives;      /* those that were written */
	uint64_t code, stored;  /* device code, and what the archives have of it */
	bool twice;             /* the tree still has code that is in archives */
};

static void add_file(struct totals *t, const struct scan_entry *e,
		     const struct disposition *o)
{
	switch (o->fate) {
	case FATE_CONVERTED:
		t->before += o->before;
		t->after += o->after;
		break;
	case FATE_PACKED:
	case FATE_REMOVED:
	case FATE_NOT_WANTED:
		t->before += e->id.size;
		break;
	case FATE_NOTHING:
	case FATE_LEFT_OUT:
		break;
	default:
		t->before += e->id.size;
		t->after += e->id.size;
		t->twice |= e->input != NULL;
	}
}

static struct totals sum_totals(const struct pack_args *args, const struct pack_result *r)
{
	struct totals t = {.twice = args->keep_device_code ||
				    args->databases == DATABASES_BOTH};
	size_t n = 0;
	const char *const *names = r->set ? archive_set_names(r->set, &n) : NULL;
	const struct scan *scan = r->scan;

	for (size_t i = 0; i < scan->n_entries; i++)
		if (S_ISREG(scan->entries[i].mode) && scan->entries[i].first == i)
			add_file(&t, &scan->entries[i], &r->dispositions->items[i]);
	for (size_t i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", r->archives, names[i]);
		struct stat st;

		if (below_stat(path, &st) == 0)
			t.archives += (uint64_t)st.st_size;
		else
			report_error(path, "note: its size is missing in the sums: %s",
				     strerror(errno));
		free(path);
	}
	for (size_t i = 0; r->set && i < archive_set_stats(r->set)->count; i++) {
		t.code += archive_set_stats(r->set)->items[i].bytes_in;
		t.stored += archive_set_stats(r->set)->items[i].bytes_out;
	}
	return t;
}

/* What the archives have for the objects of compressed bundles. */
static uint64_t archived_bundles(const struct totals *t, const struct bundle_sizes *sizes)
{
	double share = sizes->all ? (double)sizes->objects / (double)sizes->all : 0;

	return (uint64_t)((double)t->archives * share);
}

/* SIZE, of which so many DIGITS are known. */
static uint64_t round_up(uint64_t size, uint64_t digits)
{
	uint64_t unit = 1, most = digits == 3 ? 999 : 99;

	while (size / unit > most)
		unit *= 10;
	return size / unit * unit + (size % unit ? unit : 0);
}

/* The GPUs that have archives, separated by commas. */
static char *list_gpus(const struct archive_stats *stats)
{
	char *list = xstrdup("");

	for (size_t i = 0; i < stats->count; i++) {
		char *old = list;

		if (strcmp(stats->items[i].arch, KP_ARCH_GENERIC) == 0)
			continue;
		list = xasprintf("%s%s%s", old, *old ? "," : "", stats->items[i].arch);
		free(old);
	}
	return list;
}

/*
 * What would make the output of ALL bytes smaller, whose archives have BUNDLED bytes for the
 * objects of compressed bundles; on the heap.  An archive that has them for all GPUs, in
 * blocks that share what is equal, is not larger than the bundles, in which zstd found it.
 */
static char *name_remedies(const struct pack_args *args,
			   const struct archive_stats *stats, uint64_t all,
			   uint64_t bundled)
{
	const struct bundle_sizes *sizes = args->how.sizes;
	bool known = sizes->measured && sizes->pressed_debug;
	double debug = known ? (double)bundled / (double)sizes->measured *
				       (double)sizes->debug * (double)sizes->pressed /
				       (double)sizes->pressed_debug
			     : 0;
	char *gpus = list_gpus(stats), *out = xstrdup(""), *old = out;

	if (!args->families.count && strchr(gpus, ',')) {
		out = xasprintf("; with --scheme zstd-shared --level 9 --family all=%s, "
				"which AMD's "
				"readers refuse, it would be about %" PRIu64
				" bytes in all",
				gpus, round_up(all - bundled + sizes->bundles, 3));
		free(old);
		old = out;
	}
	/* of shared blocks it is not known how much of this is once in them */
	if (args->how.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL && debug >= 1 &&
	    debug < (double)bundled) {
		out = xasprintf("%s; without debugging information, after 'kpack thin "
				"--arch all --strip-debug', it would be about %" PRIu64
				" bytes in all",
				old, round_up(all - (uint64_t)debug, 2));
		free(old);
	}
	free(gpus);
	return out;
}

/* Report an output that is larger than the input, with the reason. */
static void report_larger(const struct pack_args *args, const struct pack_result *r,
			  const struct totals *t)
{
	const struct bundle_sizes *sizes = args->how.sizes;
	uint64_t bundled = archived_bundles(t, sizes);
	bool compressed = bundled > sizes->bundles;
	char *remedies;

	if (t->after + t->archives <= t->before)
		return;
	remedies = compressed && args->how.scheme != KPACK_COMPRESSION_NOOP
			   ? name_remedies(args, archive_set_stats(r->set),
					   t->after + t->archives, bundled)
			   : xstrdup("");
	report_error(args->output, "note: %" PRIu64 " bytes more than the input: %s%s",
		     t->after + t->archives - t->before,
		     compressed ? "a compressed bundle holds the code of all GPUs "
				  "together, which an archive holds by itself"
		     : t->twice ? "files stay in the tree whose code is in archives, too"
		     : t->stored >= t->code ? "the code does not compress"
		     : t->archives >= t->code
			     ? "the tables of archives are larger than what compressing "
			       "so little code saves"
			     : "files keep their length, with holes where the code was, "
			       "for what is appended to them or fills their pages",
		     remedies);
	free(remedies);
}

static void print_totals(const struct pack_args *args, const struct pack_result *r)
{
	struct totals t = sum_totals(args, r);

	printf("in all: %" PRIu64 " -> %" PRIu64 " bytes, %" PRIu64
	       " of them in archives\n",
	       t.before, t.after + t.archives, t.archives);
	report_larger(args, r, &t);
}

static void print_summary(const struct pack_args *args,
			  const struct dispositions *dispositions)
{
	struct summary s = sum_dispositions(dispositions);

	printf("%zu files, %zu converted, %" PRIu64 " -> %" PRIu64 " bytes", s.files,
	       s.converted, s.before, s.after);
	if (s.packed)
		printf(", %zu packed", s.packed);
	if (s.kept)
		printf(", %zu packed and kept", s.kept);
	putchar('\n');
	if (args->keep_containers)
		printf("%zu compressed bundles kept, for which the converted files have "
		       "%" PRIu64 " bytes\n",
		       s.containers, s.containers_size);
}

/* --- JSON ---------------------------------------------------------------------------- */

static json_t *json_stats(const struct archive_set *set)
{
	const struct archive_stats *stats = set ? archive_set_stats(set) : NULL;
	json_t *list = json_array();

	for (size_t i = 0; stats && i < stats->count; i++) {
		const struct arch_stats *row = &stats->items[i];

		json_array_append_new(
			list,
			json_pack("{so sI sI sI sI}", "arch", report_json_text(row->arch),
				  "objects", (json_int_t)row->objects, "bytes_in",
				  (json_int_t)row->bytes_in, "bytes_out",
				  (json_int_t)row->bytes_out, "deduplicated",
				  (json_int_t)row->deduplicated));
	}
	return list;
}

static json_t *json_names(const struct archive_set *set)
{
	json_t *list = json_array();
	size_t n = 0;
	const char *const *names = set ? archive_set_names(set, &n) : NULL;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, report_json_text(names[i]));
	return list;
}

/* Add what archives say about the file of a database. */
static void json_add_database(json_t *file, const struct input *in)
{
	const struct library_object *o = in->objects;
	json_t *arches = json_array();

	for (size_t i = 0; i < o->n_arches; i++)
		json_array_append_new(arches, report_json_text(o->arches[i]));
	json_object_set_new(file, "library", report_json_text(o->library));
	json_object_set_new(file, "role", report_json_text(o->role));
	json_object_set_new(file, "arches", arches);
}

static json_t *json_input(const struct scan *scan, const struct input *in)
{
	json_t *file = json_pack("{so so ss}", "path",
				 report_json_text(scan->entries[in->entry].path), "key",
				 report_json_text(in->key), "status", "packed");

	if (in->kind == INPUT_DATABASE)
		json_add_database(file, in);
	return file;
}

static json_t *json_packed(const struct scan *scan)
{
	json_t *list = json_array();

	for (size_t i = 0; i < scan->n_inputs; i++)
		json_array_append_new(list, json_input(scan, scan->inputs[i]));
	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].note)
			json_array_append_new(
				list, json_pack("{so sn ss}", "path",
						report_json_text(scan->entries[i].path),
						"key", "status", scan->entries[i].note));
	return list;
}

static json_t *json_disposition(const struct scan *scan, const struct disposition *o,
				size_t i)
{
	const struct scan_entry *e = &scan->entries[i];
	json_t *file = json_pack("{so ss}", "path", report_json_text(e->relative),
				 "status", disposition_name(o->fate));

	if (e->input)
		json_object_set_new(file, "key", report_json_text(e->input->key));
	if (e->database && e->input)
		json_add_database(file, e->input);
	if (o->reason)
		json_object_set_new(file, "reason", report_json_message(o->reason));
	if (o->fate == FATE_LINKED)
		json_object_set_new(file, "link_to",
				    report_json_text(scan->entries[e->first].relative));
	if (o->fate == FATE_CONVERTED) {
		json_object_set_new(file, "size_before",
				    json_integer((json_int_t)o->before));
		json_object_set_new(file, "size_after",
				    json_integer((json_int_t)o->after));
	}
	return file;
}

static json_t *json_dispositions(const struct scan *scan,
				 const struct dispositions *dispositions)
{
	json_t *list = json_array();

	for (size_t i = 0; i < dispositions->count; i++)
		if (dispositions->items[i].fate != FATE_NOTHING)
			json_array_append_new(
				list, json_disposition(scan, &dispositions->items[i], i));
	return list;
}

static json_t *json_summary(const struct pack_args *args, const struct pack_result *r)
{
	struct summary s = sum_dispositions(r->dispositions);
	struct totals t = sum_totals(args, r);
	json_t *all = json_pack(
		"{sI sI sI sI sI sI sI sI sI}", "files", (json_int_t)s.files, "converted",
		(json_int_t)s.converted, "packed", (json_int_t)s.packed, "kept",
		(json_int_t)s.kept, "bytes_before", (json_int_t)s.before, "bytes_after",
		(json_int_t)s.after, "total_before", (json_int_t)t.before, "total_after",
		(json_int_t)(t.after + t.archives), "archive_bytes",
		(json_int_t)t.archives);

	if (!args->keep_containers)
		return all;
	json_object_set_new(all, "containers_kept",
			    json_integer((json_int_t)s.containers));
	json_object_set_new(all, "containers_bytes",
			    json_integer((json_int_t)s.containers_size));
	return all;
}

static json_t *json_unrecognised(const struct pack_args *args, const struct scan *scan)
{
	char arch[KP_TARGET_TEXT_MAX];
	json_t *list = json_array();

	for (size_t i = 0; libraries_looked(args) && i < scan->n_entries; i++)
		if (unrecognised(scan, i, arch))
			json_array_append_new(
				list, report_json_text(scan->entries[i].relative));
	return list;
}

static json_t *json_files(const struct pack_result *r)
{
	if (r->done)
		return json_array();
	return r->dispositions ? json_dispositions(r->scan, r->dispositions)
			       : json_packed(r->scan);
}

static int print_json(const struct pack_args *args, const struct pack_result *r)
{
	json_t *all = json_pack(
		"{so so so so so so so}", "output", report_json_text(args->output),
		"group", report_json_text(args->group), "archives", json_names(r->set),
		"arches", json_stats(r->set), "files", json_files(r), "unrecognised",
		json_unrecognised(args, r->scan), "mount",
		r->mount ? json_string(r->mount) : json_null());

	if (r->dispositions && !r->done)
		json_object_set_new(all, "summary", json_summary(args, r));
	if (args->shard.count)
		json_object_set_new(all, "finished_already", json_boolean(r->done));
	report_json(all);
	return EXIT_OK;
}

int pack_report(const struct pack_args *args, const struct pack_result *r)
{
	if (args->json)
		return print_json(args, r);
	if (args->quiet)
		return EXIT_OK;
	if (r->done) {
		report_text(args->output);
		printf(": shard %u/%u is finished already\n", args->shard.index,
		       args->shard.count);
		return EXIT_OK;
	}
	if (r->set)
		print_table(archive_set_stats(r->set));
	if (r->dispositions) {
		print_summary(args, r->dispositions);
		print_totals(args, r);
	}
	if (r->mount)
		puts(r->mount);
	return EXIT_OK;
}
