/* SPDX-License-Identifier: MIT */
/*
 * Split archives by architecture: one archive for each, `<group>_<arch>.kpack`, with
 * frames copied as they are stored.  The entries of an architecture in several sources
 * come together, in the order of the sources.  Content that several architectures share
 * goes to each of their archives.  A volume (`<group>.2_rdna.kpack`) gives volumes of the
 * same number (`<group>.2_gfx1100.kpack`), so that markers that name it stay true.
 */
#include "merge.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/base/text.h"
#include "core/archive/naming.h"

/*
 * The maximum number of archives, ten times that of all GPUs.  Each costs a look at all
 * entries.
 */
#define OUTPUTS_MAX 1024

/* An archive to be written. */
struct arch_output {
	char *group, *arch, *file; /* owned */
	unsigned volume;
	size_t *numbers; /* of the sources */
	struct merge_source *sources;
	size_t n_sources;
	bool again; /* an earlier run's archive is there, or any: it is replaced */
	struct merge_plan *plan;
	struct kp_writer *writer;
};

struct arch_outputs {
	const struct merge_by_arch_options *options;
	const struct merge_source *sources;
	size_t n_sources;
	char **groups; /* per source, owned */
	unsigned *volumes;
	struct arch_output **items; /* sorted by file name once all are known */
	size_t n, cap;
};

static void free_part(struct arch_output *part)
{
	if (!part)
		return;
	kp_writer_close(part->writer);
	merge_plan_free(part->plan);
	free(part->group);
	free(part->arch);
	free(part->file);
	free(part->numbers);
	free(part->sources);
	free(part);
}

static void parts_fini(struct arch_outputs *p)
{
	for (size_t i = 0; i < p->n; i++)
		free_part(p->items[i]);
	for (size_t i = 0; p->groups && i < p->n_sources; i++)
		free(p->groups[i]);
	free(p->items);
	free(p->groups);
	free(p->volumes);
}

/* --- which archives there will be ----------------------------------------------------- */

static kpack_error_t name_sources(struct arch_outputs *p, struct kpackx_error *why)
{
	p->groups = xcalloc(p->n_sources, sizeof(*p->groups));
	p->volumes = xcalloc(p->n_sources, sizeof(*p->volumes));
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		struct kp_span group = kp_archive_group(a), stem;
		KP_AUTO_FREE char *own = xstrndup((const char *)group.data, group.size);

		if (!p->options->group && group.size == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: has no group_name: one must be given",
				       kp_archive_path(a));
		p->groups[i] = xstrdup(p->options->group ? p->options->group : own);
		/* by its name */
		if (!kp_archive_name_split(kp_path_name(kp_archive_path(a)), own,
					   &p->volumes[i], &stem))
			p->volumes[i] = 1;
	}
	return KPACK_SUCCESS;
}

static struct arch_output *find_part(const struct arch_outputs *p, size_t source,
				     struct kp_span arch)
{
	for (size_t i = p->n; i > 0; i--) {
		struct arch_output *part = p->items[i - 1];

		if (part->volume == p->volumes[source] && kp_span_is(arch, part->arch) &&
		    strcmp(part->group, p->groups[source]) == 0)
			return part;
	}
	return NULL;
}

static kpack_error_t add_part(struct arch_outputs *p, size_t source, struct kp_span arch,
			      struct arch_output **out, struct kpackx_error *why)
{
	KP_AUTO_FREE char *stem = NULL;
	struct arch_output *part;
	char shown[160];

	if (p->n == OUTPUTS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "more than %d architectures", OUTPUTS_MAX);
	xgrow(&p->items, p->n, &p->cap, sizeof(*p->items));
	part = p->items[p->n++] = *out = xcalloc(1, sizeof(*part));
	part->volume = p->volumes[source];
	part->group = xstrdup(p->groups[source]);
	part->arch = xstrndup((const char *)arch.data, arch.size);
	part->sources = xcalloc(p->n_sources, sizeof(*part->sources));
	part->numbers = xcalloc(p->n_sources, sizeof(*part->numbers));
	stem = xasprintf("_%s", part->arch);
	part->file = kp_archive_file_name(part->group, part->volume, stem);
	if (!part->file)
		xalloc_fail(0);
	if (!kp_component_ok(kp_span_str(part->file)))
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"group and architecture give no file name: %s",
			kp_text_escape(kp_span_str(part->file), shown, sizeof(shown)));
	return KPACK_SUCCESS;
}

static kpack_error_t add_entry(struct arch_outputs *p, size_t source, struct kp_span arch,
			       struct kpackx_error *why)
{
	struct arch_output *part;

	if (p->options->takes && !p->options->takes(p->options->takes_arg, arch))
		return KPACK_SUCCESS;
	part = find_part(p, source, arch);
	if (!part)
		KP_TRY(add_part(p, source, arch, &part, why));
	if (part->n_sources && part->numbers[part->n_sources - 1] == source)
		return KPACK_SUCCESS;
	part->numbers[part->n_sources] = source;
	part->sources[part->n_sources++] = p->sources[source];
	return KPACK_SUCCESS;
}

static int by_file(const void *a, const void *b)
{
	const struct arch_output *x = *(struct arch_output *const *)a,
				 *y = *(struct arch_output *const *)b;

	return strcmp(x->file, y->file);
}

/*
 * Sort the parts by file name, and check that no two have the same: group "a.2" and the
 * second volume of group "a" would.
 */
static kpack_error_t sort_parts(struct arch_outputs *p, struct kpackx_error *why)
{
	if (p->n == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "no entries to take");
	qsort(p->items, p->n, sizeof(*p->items), by_file);
	for (size_t i = 1; i < p->n; i++)
		if (by_file(&p->items[i - 1], &p->items[i]) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: would be an archive of group %s and one of "
				       "group %s",
				       p->items[i]->file, p->items[i - 1]->group,
				       p->items[i]->group);
	return KPACK_SUCCESS;
}

static kpack_error_t list_parts(struct arch_outputs *p, struct kpackx_error *why)
{
	KP_TRY(name_sources(p, why));
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct kpack_archive *a = p->sources[i].archive;
		size_t n = kp_archive_entry_count(a);

		for (size_t k = 0; k < n; k++) {
			struct kp_entry_info info;

			kp_archive_entry(a, k, &info);
			KP_TRY(add_entry(p, i, info.arch, why));
		}
	}
	return sort_parts(p, why);
}

/* --- planning ------------------------------------------------------------------------- */

static bool is_of_part(const void *arg, size_t source, const struct kp_entry_info *entry)
{
	const struct arch_output *part = arg;

	(void)source;
	return kp_span_is(entry->arch, part->arch);
}

/*
 * Whether PART may have its name: with `force`, or if all entries of the archive that has it are
 * PART's, as those that an earlier run wrote.
 */
static kpack_error_t check_existing(const struct arch_outputs *p, const char *dir,
				    struct arch_output *part, struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", dir, part->file);
	struct kpack_archive *old = NULL;
	struct stat st;

	part->again = p->options->force;
	if (part->again || below_lstat(path, &st) < 0)
		return KPACK_SUCCESS;
	part->again = !below_archive_open(path, &old, NULL);
	for (size_t i = 0; part->again && i < kp_archive_entry_count(old); i++) {
		struct kp_entry_info info;
		bool found = false;
		size_t entry;

		kp_archive_entry(old, i, &info);
		for (size_t k = 0; k < part->n_sources && !found; k++)
			found = kp_span_is(info.arch, part->arch) &&
				kp_archive_find(part->sources[k].archive, info.key,
						info.arch, &entry);
		part->again = found;
	}
	kp_archive_close(old);
	return part->again ? KPACK_SUCCESS
			   : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				     "%s: already exists, and is not from these archives "
				     "(--force replaces it)",
				     part->file);
}

static kpack_error_t plan_part(const struct arch_outputs *p, struct arch_output *part,
			       struct kpackx_error *why)
{
	const struct merge_by_arch_options *o = p->options;
	struct merge_options options = {
		.group = part->group,
		.lazy = o->lazy,
		.keep = !part->again,
		.skip_faulty = o->skip_faulty,
		.faults_known = true,
		.takes = is_of_part,
		.takes_arg = part,
		.clash = o->clash,
		.clash_arg = o->clash_arg,
		.progress = o->progress,
	};

	return merge_plan_new(part->sources, part->n_sources, &options, &part->plan, why);
}

/* Plan every part, so that all clashes are reported. */
static kpack_error_t plan_parts(const struct arch_outputs *p, const char *dir,
				struct kpackx_error *why)
{
	/* they concern a whole source, not a part */
	kpack_error_t err = merge_check_faults(p->sources, p->n_sources,
					       p->options->skip_faulty, why);
	uint64_t bytes = 0;

	for (size_t i = 0; i < p->n && !err; i++)
		err = check_existing(p, dir, p->items[i], why);
	if (err)
		return err;
	for (size_t i = 0; i < p->n; i++) {
		struct kpackx_error fault = {0};
		struct merge_stats stats;
		kpack_error_t failed = plan_part(p, p->items[i], &fault);

		if (failed && !err) {
			*why = fault;
			err = failed;
		}
		if (failed)
			continue;
		merge_plan_stats(p->items[i]->plan, &stats);
		bytes += stats.bytes;
	}
	if (!err && p->options->begin)
		p->options->begin(p->options->arg, bytes);
	return err;
}

/* --- writing -------------------------------------------------------------------------- */

static kpack_error_t publish_part(const struct arch_outputs *p, struct arch_output *part,
				  struct kpackx_error *why)
{
	struct written_archive done = {
		part->file, part->group, part->arch, part->volume, {0}};
	kpack_error_t err = kp_writer_publish(part->writer, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", part->file);
	kp_writer_close(part->writer);
	part->writer = NULL;
	merge_plan_stats(part->plan, &done.stats);
	if (p->options->written)
		p->options->written(p->options->arg, &done);
	return KPACK_SUCCESS;
}

static kpack_error_t write_parts(const struct arch_outputs *p, const char *dir,
				 struct kpackx_error *why)
{
	KP_TRY(below_make_root(dir, 0777, why));
	for (size_t first = 0, end; first < p->n; first = end) {
		end = p->n - first < BY_ARCH_AT_ONCE ? p->n : first + BY_ARCH_AT_ONCE;
		for (size_t i = first; i < end; i++) {
			struct arch_output *part = p->items[i];
			kpack_error_t err = merge_plan_write(part->plan, dir, part->file,
							     &part->writer, why);

			if (err)
				return kp_fail_prefix(why, err, "%s", part->file);
		}
		for (size_t i = first; i < end; i++)
			KP_TRY(publish_part(p, p->items[i], why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t merge_by_arch(const struct merge_source *sources, size_t n, const char *dir,
			    const struct merge_by_arch_options *options,
			    struct kpackx_error *why)
{
	struct arch_outputs p = {.options = options, .sources = sources, .n_sources = n};
	kpack_error_t err = list_parts(&p, why);

	if (!err)
		err = plan_parts(&p, dir, why);
	if (!err)
		err = write_parts(&p, dir, why);
	parts_fini(&p);
	return err;
}
