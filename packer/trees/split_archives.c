/* SPDX-License-Identifier: MIT */
/*
 * kpack split of archives: one archive for each architecture, `<group>_<arch>.kpack`, or for
 * each family of --family, `<group>-<family>.kpack`, with frames copied as they are stored.
 * The entries of an architecture in several sources come together, in the order of the
 * sources.  Content that several archives need goes to each of them.  A volume
 * (`<group>.2_rdna.kpack`) gives volumes of the same number (`<group>.2_gfx1100.kpack`), so
 * that markers that name it stay true.
 *
 * Everything is checked before anything is written, and no archive gets its name before
 * all are written (if there are more than AT_ONCE: that many at a time).
 */
#include <inttypes.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/archives/merge.h"
#include "packer/archives/operands.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "split.h"

enum {
	/* Ten times all GPUs.  Each output costs a look at all entries. */
	OUTPUTS_MAX = 1024,
	/* Archives that wait for their names: each has two descriptors. */
	AT_ONCE = 200,
};

/* An archive to be written. */
struct arch_output {
	const struct families *families;
	const struct family *family; /* NULL: it is for one architecture */
	char *group, *file;          /* owned */
	char *place;                 /* its architecture, or its family's name; owned */
	unsigned volume;
	struct merge_source *sources;
	size_t n_sources, last; /* the number of the source that was added last */
	bool again; /* an earlier run's archive is there, or any: it is replaced */
	struct merge_plan *plan;
	struct kp_writer *writer;
};

/* The run. */
struct arch_split {
	struct merge_report report;
	const struct split_args *args;
	struct pack_args options; /* filter and families */
	struct archives set;
	struct arch_output *items; /* sorted by file name once all are known */
	size_t n, cap;
	json_t *written;
};

/* --- operands ---------------------------------------------------------------------- */

bool split_is_archives(const char *path)
{
	struct tree_list *list;
	bool only = true, any = false;
	struct tree_item e;
	char magic[4];
	struct stat st;
	int fd;

	if (!below_file_open(path, &fd, &st, NULL)) {
		any = kp_is_archive_name(path) ||
		      (!kp_file_pread(fd, 0, magic, sizeof(magic), NULL) &&
		       memcmp(magic, "KPAK", sizeof(magic)) == 0);
		close(fd);
		return any;
	}
	/* a directory has nothing but archives, as files: links would be lost */
	list = tree_list_open(path);
	while (only && tree_list_next(list, &e) && e.kind != TREE_DIR_END) {
		if (e.level == 0) {
			only = e.kind == TREE_DIR;
			continue;
		}
		any = true;
		only = e.kind == TREE_OTHER && S_ISREG(e.st.st_mode) &&
		       kp_is_archive_name(e.name);
	}
	tree_list_close(list);
	return only && any;
}

/* --- which archives there will be -------------------------------------------------- */

/* The family of --family that has the entry's architecture; NULL: none. */
static const struct family *family_of(const struct families *families,
				      const struct kp_entry_info *entry)
{
	char arch[KP_TARGET_TEXT_MAX];

	if (!families->count || entry->arch.size >= sizeof(arch))
		return NULL;
	kp_target_canonical(entry->arch, arch);
	return families_find(families, arch);
}

/* Whether OUT gets the entry: it is for its architecture, or for one of its family. */
static bool is_of_output(const void *arg, size_t source,
			 const struct kp_entry_info *entry)
{
	const struct arch_output *out = arg;

	(void)source;
	return family_of(out->families, entry) == out->family &&
	       (out->family || kp_span_is(entry->arch, out->place));
}

/*
 * Find out, from the tables of contents alone, which archives there will be, and which sources
 * each has entries of.
 */
static kpack_error_t list_outputs(struct arch_split *s, struct kpackx_error *why)
{
	char shown[160];

	for (size_t i = 0; i < s->set.count; i++) {
		const struct kpack_archive *a = s->set.items[i];
		struct kp_span own = kp_archive_group(a), rest;
		KP_AUTO_FREE char *its =
			xstrndup(own.size ? (const char *)own.data : "", own.size);
		const char *group = s->args->name ? s->args->name : its;
		unsigned volume;

		if (!*group)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: has no group_name: one must be given",
				       kp_archive_path(a));
		if (!kp_archive_name_split(kp_path_name(kp_archive_path(a)), its, &volume,
					   &rest))
			volume = 1;
		for (size_t k = 0; k < kp_archive_entry_count(a); k++) {
			KP_AUTO_FREE char *stated = NULL, *stem = NULL;
			const struct family *family;
			struct arch_output *out = NULL;
			struct kp_entry_info info;

			kp_archive_entry(a, k, &info);
			if (!arch_filter_match(&s->options.filter, info.arch))
				continue;
			/* most entries are of the output that was added last */
			for (size_t n = s->n; n-- > 0 && !out;)
				if (s->items[n].volume == volume &&
				    strcmp(s->items[n].group, group) == 0 &&
				    is_of_output(&s->items[n], i, &info))
					out = &s->items[n];
			if (out && out->last != i)
				out->sources[out->n_sources++].archive = a;
			if (out) {
				out->last = i;
				continue;
			}
			if (s->n == OUTPUTS_MAX)
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "more than %d architectures", OUTPUTS_MAX);
			/* without a family the archive keeps the spelling of its source */
			family = family_of(&s->options.families, &info);
			stated = xstrndup((const char *)info.arch.data, info.arch.size);
			stem = family ? xasprintf("-%s", family->name)
				      : xasprintf("_%s", stated);
			xgrow(&s->items, s->n, &s->cap, sizeof(*s->items));
			out = &s->items[s->n++];
			*out = (struct arch_output){
				.families = &s->options.families,
				.family = family,
				.place = xstrdup(family ? family->name : stated),
				.group = xstrdup(group),
				.file = kp_archive_file_name(group, volume, stem),
				.volume = volume,
				.sources = xcalloc(s->set.count, sizeof(*out->sources)),
				.n_sources = 1,
				.last = i,
			};
			out->sources[0].archive = a;
			if (!out->file)
				xalloc_fail(0);
			if (!kp_component_ok(kp_span_str(out->file)))
				return kp_fail(
					why, KPACK_ERROR_INVALID_ARGUMENT,
					"group and architecture give no file name: "
					"%s",
					kp_text_escape(kp_span_str(out->file), shown,
						       sizeof(shown)));
		}
	}
	if (s->n == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "no entries to take");
	kp_sort(s->items, s->n, KP_BY_TEXT(struct arch_output, file));
	/* sources of several groups: "a.2" and the second volume of "a" have the same names */
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->items[i - 1].file, s->items[i].file) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: would be an archive of group %s and one of "
				       "group %s",
				       s->items[i].file, s->items[i - 1].group,
				       s->items[i].group);
	return KPACK_SUCCESS;
}

/* --- planning ---------------------------------------------------------------------- */

/*
 * Check what is in the way, then plan every output, which decodes all entries; clashes of all
 * are reported, and WHY is of the first one.
 */
static kpack_error_t plan_outputs(struct arch_split *s, struct kpackx_error *why)
{
	KP_AUTO_FREE struct merge_source *all = xcalloc(s->set.count, sizeof(*all));
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t bytes = 0;

	/* faults concern a whole source, not an output */
	for (size_t i = 0; i < s->set.count; i++)
		all[i].archive = s->set.items[i];
	KP_TRY(merge_check_faults(all, s->set.count, false, why));
	for (size_t i = 0; i < s->n; i++) {
		struct arch_output *out = &s->items[i];
		KP_AUTO_FREE char *path = xasprintf("%s/%s", s->args->output, out->file);
		struct kpack_archive *old = NULL;
		struct stat st;
		bool there = below_lstat(path, &st) == 0, ours;

		/* an archive that has only entries of ours is an earlier run's */
		ours = there && !s->args->force && !below_archive_open(path, &old, NULL);
		for (size_t k = 0; ours && k < kp_archive_entry_count(old); k++) {
			struct kp_entry_info info;
			bool found = false;
			size_t entry;

			kp_archive_entry(old, k, &info);
			for (size_t n = 0; n < out->n_sources && !found; n++)
				found = is_of_output(out, n, &info) &&
					kp_archive_find(out->sources[n].archive, info.key,
							info.arch, &entry);
			ours = found;
		}
		kp_archive_close(old);
		out->again = s->args->force || ours;
		if (there && !out->again)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: already exists, and is not from these "
				       "archives (--force replaces it)",
				       out->file);
	}
	for (size_t i = 0; i < s->n; i++) {
		struct arch_output *out = &s->items[i];
		const struct merge_options options = {
			.group = out->group,
			.family =
				out->file[strlen(out->group)] == '-' ? out->place : NULL,
			.keep = !out->again,
			.takes = is_of_output,
			.takes_arg = out,
			.faults_known = true,
			.clash = merge_report_clash,
			.clash_arg = &s->report,
		};
		struct kpackx_error fault = {0};
		struct merge_stats stats;
		kpack_error_t failed = merge_plan_new(out->sources, out->n_sources,
						      &options, &out->plan, &fault);

		if (failed && !err) {
			*why = fault;
			err = failed;
		}
		if (failed)
			continue;
		merge_plan_stats(out->plan, &stats);
		bytes += stats.bytes;
	}
	if (!err)
		progress_begin("splitting", bytes, !s->args->quiet && !s->args->json);
	return err;
}

/* --- writing ----------------------------------------------------------------------- */

/* Write the outputs, AT_ONCE of them at a time, and give these their names. */
static kpack_error_t write_outputs(struct arch_split *s, struct kpackx_error *why)
{
	const char *dir = s->args->output;
	struct merge_stats stats;

	KP_TRY(below_make_root(dir, 0777, why));
	for (size_t first = 0, end; first < s->n; first = end) {
		end = s->n - first < AT_ONCE ? s->n : first + AT_ONCE;
		for (size_t i = first; i < end; i++) {
			struct arch_output *out = &s->items[i];
			kpack_error_t err = merge_plan_write(out->plan, dir, out->file,
							     &out->writer, why);

			if (err)
				return kp_fail_prefix(why, err, "%s", out->file);
		}
		for (size_t i = first; i < end; i++) {
			struct arch_output *out = &s->items[i];
			kpack_error_t err = kp_writer_publish(out->writer, why);

			if (err)
				return kp_fail_prefix(why, err, "%s", out->file);
			kp_writer_close(out->writer);
			out->writer = NULL;
			merge_plan_stats(out->plan, &stats);
			if (s->args->json)
				json_array_append_new(
					s->written,
					json_pack("{so so so sI sI sI sI}", "archive",
						  report_json_text(out->file), "group",
						  report_json_text(out->group), "arch",
						  report_json_text(out->place), "entries",
						  (json_int_t)stats.entries, "bytes",
						  (json_int_t)stats.bytes,
						  "blocks_copied",
						  (json_int_t)stats.blocks_copied,
						  "blocks_encoded",
						  (json_int_t)stats.blocks_encoded));
			if (s->args->json || s->args->quiet)
				continue;
			report_text(out->file);
			printf(": %" PRIu64 " entr%s, %" PRIu64 " bytes", stats.entries,
			       plural_y(stats.entries), stats.bytes);
			if (stats.blocks_copied || stats.blocks_encoded)
				printf("; %" PRIu64 " block%s copied, %" PRIu64
				       " compressed",
				       stats.blocks_copied, plural(stats.blocks_copied),
				       stats.blocks_encoded);
			putchar('\n');
		}
	}
	return KPACK_SUCCESS;
}

int split_archives(const struct split_args *args)
{
	struct arch_split s = {.args = args, .written = json_array()};
	char *only = (char *)args->input;
	struct kpackx_error why = {0};
	int status = EXIT_FAULT;
	kpack_error_t err;

	archives_open(&s.set, args->n_operands ? (int)args->n_operands : 1,
		      args->n_operands ? args->operands : &only);
	if (s.set.failed)
		goto out;
	/* only filter and families are used; parsing has checked them */
	err = split_args_pack(args, "", "", &s.options, &why);
	if (!err)
		err = list_outputs(&s, &why);
	if (!err)
		err = plan_outputs(&s, &why);
	if (!err)
		err = write_outputs(&s, &why);
	progress_end();
	merge_report_end(&s.report);
	if (err) {
		report_why(args->output, &why);
		goto out;
	}
	if (!args->quiet)
		arch_filter_unmatched(&s.options.filter, "entry");
	if (args->json)
		report_json(json_pack("{ss sO}", "output", args->output, "archives",
				      s.written));
	status = EXIT_OK;
out:
	for (size_t i = 0; i < s.n; i++) {
		kp_writer_close(s.items[i].writer);
		merge_plan_free(s.items[i].plan);
		free(s.items[i].group);
		free(s.items[i].place);
		free(s.items[i].file);
		free(s.items[i].sources);
	}
	free(s.items);
	json_decref(s.written);
	pack_args_fini(&s.options);
	archives_close(&s.set);
	return status;
}
