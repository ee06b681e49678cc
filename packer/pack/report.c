/* SPDX-License-Identifier: MIT */
/*
 * What a run has done, as a table or as JSON: the objects of each architecture, the files, and the
 * sizes of the tree before and after.
 *
 * Sizes are of regular files, each counted once however many links it has, and the archives of this
 * run count as what comes after.  Users pack to save room, so an output that is larger than the
 * input is explained, with what would make it smaller (report_larger).
 */
#include "run.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/target/target.h"
#include "packer/cli/report.h"
#include "packer/cli/rows.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

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

/* --- sums ---------------------------------------------------------------------------- */

struct sums {
	uint64_t files, converted, packed, kept;
	uint64_t before, after; /* of the converted */
	/* of all regular files, each counted once; after: with the archives */
	uint64_t total_before, total_after;
	uint64_t archives;     /* those that were written */
	uint64_t code, stored; /* device code, and what the archives have of it */
	bool twice;            /* the tree still has code that is in archives */
	uint64_t containers;   /* kept ones */
	uint64_t containers_size;
};

static const struct row sum_rows[] = {
	ROW("files", ROW_JSON, struct sums, files),
	ROW("converted", ROW_JSON, struct sums, converted),
	ROW("packed", ROW_JSON, struct sums, packed),
	ROW("kept", ROW_JSON, struct sums, kept),
	ROW("bytes_before", ROW_JSON, struct sums, before),
	ROW("bytes_after", ROW_JSON, struct sums, after),
	ROW("total_before", ROW_JSON, struct sums, total_before),
	ROW("total_after", ROW_JSON, struct sums, total_after),
	ROW("archive_bytes", ROW_JSON, struct sums, archives),
	/* with --keep-containers */
	ROW("containers_kept", ROW_JSON, struct sums, containers),
	ROW("containers_bytes", ROW_JSON, struct sums, containers_size),
};

static struct sums sum_up(const struct packing *p)
{
	struct sums s = {.twice = p->args.keep_device_code ||
				  p->args.databases == DATABASES_BOTH};
	size_t n;
	const char *const *names = archive_set_names(p->set, &n);
	const struct arch_stats *stats;

	for (size_t i = 0; i < p->dispositions.count; i++) {
		const struct disposition *o = &p->dispositions.items[i];
		const struct scan_entry *e = &p->scan.entries[i];

		s.files += o->fate != FATE_NOTHING && o->fate != FATE_LEFT_OUT &&
			   o->fate != FATE_NOT_WANTED;
		s.packed += o->fate == FATE_PACKED;
		s.kept += o->fate == FATE_KEPT;
		if (o->fate == FATE_CONVERTED) {
			s.converted++;
			s.before += o->before;
			s.after += o->after;
			s.containers += o->n_kept;
			s.containers_size += o->kept_size;
		} else if (S_ISREG(e->mode) && e->first == i && o->fate != FATE_NOTHING &&
			   o->fate != FATE_LEFT_OUT) {
			bool gone = o->fate == FATE_PACKED || o->fate == FATE_REMOVED ||
				    o->fate == FATE_NOT_WANTED;

			s.total_before += e->id.size;
			s.total_after += gone ? 0 : e->id.size;
			s.twice |= !gone && e->input;
		}
	}
	s.total_before += s.before;
	s.total_after += s.after;
	for (size_t i = 0; i < n; i++) {
		KP_AUTO_FREE char *path = xasprintf("%s/%s", p->archives, names[i]);
		struct stat st;

		if (below_stat(path, &st) == 0)
			s.archives += (uint64_t)st.st_size;
		else
			report_error(path, "note: its size is missing in the sums: %s",
				     strerror(errno));
	}
	s.total_after += s.archives;
	stats = archive_set_stats(p->set, &n);
	for (size_t i = 0; i < n; i++) {
		s.code += stats[i].bytes_in;
		s.stored += stats[i].bytes_out;
	}
	return s;
}

/* --- an output that is larger -------------------------------------------------------- */

/* SIZE, of which so many DIGITS are known: what is estimated does not look as if it were exact. */
static uint64_t round_up(uint64_t size, uint64_t digits)
{
	uint64_t unit = 1, most = digits == 3 ? 999 : 99;

	while (size / unit > most)
		unit *= 10;
	return size / unit * unit + (size % unit ? unit : 0);
}

/*
 * Say why the output is larger, and what would make it smaller.  Compressed bundles hold the code
 * of all GPUs together, in which zstd finds what is equal.  An archive that has it for all GPUs,
 * in blocks that share what is equal, is not larger than the bundles.
 */
static void report_larger(const struct packing *p, const struct sums *s)
{
	const struct bundle_sizes *sizes = p->args.how.sizes;
	kpack_compression_t scheme = p->args.how.scheme;
	double share = sizes->all ? (double)sizes->objects / (double)sizes->all : 0;
	/* what the archives have for the objects of compressed bundles */
	uint64_t bundled = (uint64_t)((double)s->archives * share), all = s->total_after;
	bool compressed = bundled > sizes->bundles;
	KP_AUTO_FREE char *remedies = NULL, *gpus = NULL;
	const struct arch_stats *stats;
	size_t size, n = 0, n_gpus = 0;
	double debug;
	FILE *f;

	if (all <= s->total_before)
		return;
	stats = archive_set_stats(p->set, &n);
	f = xmemstream(&gpus, &size);
	for (size_t i = 0; i < n; i++)
		if (strcmp(stats[i].arch, KP_ARCH_GENERIC) != 0)
			fprintf(f, "%s%s", n_gpus++ ? "," : "", stats[i].arch);
	fclose(f);
	f = xmemstream(&remedies, &size);
	if (compressed && scheme != KPACK_COMPRESSION_NOOP && !p->args.families.count &&
	    n_gpus > 1)
		fprintf(f,
			"; with --scheme zstd-shared --level 9 --family all=%s, which "
			"AMD's readers refuse, it would be about %" PRIu64
			" bytes in all",
			gpus, round_up(all - bundled + sizes->bundles, 3));
	/* of shared blocks it is not known how much debugging information is once in them */
	if (compressed && scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL &&
	    sizes->measured && sizes->pressed_debug) {
		debug = (double)bundled / (double)sizes->measured * (double)sizes->debug *
			(double)sizes->pressed / (double)sizes->pressed_debug;
		if (debug >= 1 && debug < (double)bundled)
			fprintf(f,
				"; without debugging information, after 'kpack thin "
				"--arch all --strip-debug', it would be about %" PRIu64
				" bytes in all",
				round_up(all - (uint64_t)debug, 2));
	}
	fclose(f);
	report_error(p->args.output, "note: %" PRIu64 " bytes more than the input: %s%s",
		     all - s->total_before,
		     compressed ? "a compressed bundle holds the code of all GPUs "
				  "together, which an archive holds by itself"
		     : s->twice ? "files stay in the tree whose code is in archives, too"
		     : s->stored >= s->code ? "the code does not compress"
		     : s->archives >= s->code
			     ? "the tables of archives are larger than what compressing "
			       "so little code saves"
			     : "files keep their length, with holes where the code was, "
			       "for what is appended to them or fills their pages",
		     remedies);
}

/* --- a table ------------------------------------------------------------------------- */

static const struct row arch_rows[] = {
	ROW("arch", ROW_JSON, struct arch_stats, arch),
	ROW("objects", ROW_JSON, struct arch_stats, objects),
	ROW("bytes_in", ROW_JSON, struct arch_stats, bytes_in),
	ROW("bytes_out", ROW_JSON, struct arch_stats, bytes_out),
	ROW("deduplicated", ROW_JSON, struct arch_stats, deduplicated),
};

static void print_arch(const struct arch_stats *row)
{
	printf("%-28s %10zu %16" PRIu64 " %16" PRIu64 " %12zu\n", row->arch, row->objects,
	       row->bytes_in, row->bytes_out, row->deduplicated);
}

static void print_table(const struct packing *p)
{
	struct arch_stats all = {.arch = "total"};
	const struct arch_stats *stats;
	struct sums s;
	size_t n;

	if (p->set) {
		stats = archive_set_stats(p->set, &n);
		printf("%-28s %10s %16s %16s %12s\n", "arch", "objects", "bytes in",
		       "bytes out", "deduplicated");
		for (size_t i = 0; i < n; i++) {
			print_arch(&stats[i]);
			all.objects += stats[i].objects;
			all.bytes_in += stats[i].bytes_in;
			all.bytes_out += stats[i].bytes_out;
			all.deduplicated += stats[i].deduplicated;
		}
		print_arch(&all);
	}
	/* no tree was written, so there is nothing to compare */
	if (p->args.mode == PACK_ARCHIVES)
		return;
	s = sum_up(p);
	printf("%" PRIu64 " file%s, %" PRIu64 " converted, %" PRIu64 " -> %" PRIu64
	       " bytes",
	       s.files, plural(s.files), s.converted, s.before, s.after);
	if (s.packed)
		printf(", %" PRIu64 " packed", s.packed);
	if (s.kept)
		printf(", %" PRIu64 " packed and kept", s.kept);
	putchar('\n');
	if (p->args.keep_containers)
		printf("%" PRIu64 " compressed bundle%s kept, for which the converted "
		       "files have %" PRIu64 " bytes\n",
		       s.containers, plural(s.containers), s.containers_size);
	printf("in all: %" PRIu64 " -> %" PRIu64 " bytes, %" PRIu64
	       " of them in archives\n",
	       s.total_before, s.total_after, s.archives);
	report_larger(p, &s);
}

/* --- JSON ---------------------------------------------------------------------------- */

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

static void print_json(const struct packing *p, const struct pack_result *r)
{
	const struct scan *scan = &p->scan;
	json_t *all, *file, *others = json_array(), *files = json_array();
	size_t n_names, n_stats;
	const char *const *names = archive_set_names(p->set, &n_names);
	const struct arch_stats *stats = archive_set_stats(p->set, &n_stats);
	bool archives = p->args.mode == PACK_ARCHIVES;
	struct sums s;

	/* of a tree each path and what became of it */
	for (size_t i = 0; i < p->dispositions.count && !r->done; i++) {
		const struct disposition *o = &p->dispositions.items[i];
		const struct scan_entry *e = &scan->entries[i];

		if (o->fate == FATE_NOTHING)
			continue;
		file = json_pack("{so ss}", "path", report_json_text(e->relative),
				 "status", disposition_name(o->fate));
		if (e->input)
			json_object_set_new(file, "key", report_json_text(e->input->key));
		if (e->database && e->input)
			json_add_database(file, e->input);
		if (o->reason)
			json_object_set_new(file, "reason",
					    report_json_message(o->reason));
		if (o->fate == FATE_LINKED)
			json_object_set_new(
				file, "link_to",
				report_json_text(scan->entries[e->first].relative));
		if (o->fate == FATE_CONVERTED) {
			json_object_set_new(file, "size_before",
					    json_integer((json_int_t)o->before));
			json_object_set_new(file, "size_after",
					    json_integer((json_int_t)o->after));
		}
		json_array_append_new(files, file);
	}
	/* of a run that writes archives only, those with code */
	for (size_t i = 0; i < scan->n_inputs && archives && !r->done; i++) {
		const struct input *in = scan->inputs[i];

		file = json_pack("{so so ss}", "path",
				 report_json_text(scan->entries[in->entry].path), "key",
				 report_json_text(in->key), "status", "packed");
		if (in->kind == INPUT_DATABASE)
			json_add_database(file, in);
		json_array_append_new(files, file);
	}
	for (size_t i = 0; i < scan->n_entries && archives && !r->done; i++)
		if (scan->entries[i].note)
			json_array_append_new(
				files, json_pack("{so sn ss}", "path",
						 report_json_text(scan->entries[i].path),
						 "key", "status", scan->entries[i].note));
	for (size_t i = 0; pack_args_take_databases(&p->args) && i < scan->n_entries; i++)
		if (p->args.libraries.count && scan_unrecognised(scan, i, NULL))
			json_array_append_new(
				others, report_json_text(scan->entries[i].relative));
	all = json_pack("{so so so so so so ss? ss? ss?}", "output",
			report_json_text(p->args.output), "group",
			report_json_text(p->args.group), "archives",
			report_json_list(names, n_names), "arches",
			rows_array(ROWS(arch_rows), stats, n_stats, sizeof(*stats)),
			"files", files, "unrecognised", others, "mount", r->mount, "boot",
			r->boot, "undo", r->undo);
	if (!archives && !r->done) {
		s = sum_up(p);
		json_object_set_new(all, "summary",
				    rows_object(sum_rows,
						KP_COUNT(sum_rows) -
							(p->args.keep_containers ? 0 : 2),
						&s));
	}
	if (p->args.shard.count)
		json_object_set_new(all, "finished_already", json_boolean(r->done));
	report_json(all);
}

void pack_report(const struct packing *p, const struct pack_result *r)
{
	if (p->args.json) {
		print_json(p, r);
	} else if (p->args.quiet) {
		return;
	} else if (r->done) {
		report_text(p->args.output);
		printf(": shard %u/%u is finished already\n", p->args.shard.index,
		       p->args.shard.count);
	} else {
		print_table(p);
		if (r->mount)
			printf("the packed files are at their old places while they are "
			       "mounted:\n  %s\n",
			       r->mount);
		if (r->mount && r->boot)
			printf("at every boot this has to be done again; root arranges "
			       "that by\n  %s\n",
			       r->boot);
		else if (r->mount)
			puts("at every boot this has to be done again");
		if (r->undo)
			printf("undo: %s\n", r->undo);
		if (r->undo && p->args.filter.chosen.count)
			puts("  and then reinstall what its files belong to, if --arch "
			     "left code out");
	}
}
