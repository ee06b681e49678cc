/* SPDX-License-Identifier: MIT */
#include "merge_report.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

static void list_clash(struct merge_report *r, const struct merge_clash *clash)
{
	if (r->list)
		json_array_append_new(r->list,
				      json_pack("{s:o, s:o, s:s, s:o, s:o}", "key",
						report_json_span(clash->key), "arch",
						report_json_span(clash->arch),
						"difference", clash->what, "first",
						report_json_text(clash->first), "second",
						report_json_text(clash->second)));
}

void merge_report_clash(void *arg, const struct merge_clash *clash)
{
	struct merge_report *r = arg;
	char key[512], arch[160];

	if (r->clashes++ >= MERGE_CLASHES_REPORTED)
		return;
	report_error(clash->second, "%s %s: %s than in %s",
		     kp_text_escape(clash->key, key, sizeof(key)),
		     kp_text_escape(clash->arch, arch, sizeof(arch)), clash->what,
		     clash->first);
	list_clash(r, clash);
}

void merge_report_faulty(void *arg, const struct kpack_archive *archive)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(archive, &kept, &counted);

	(void)arg;
	for (size_t i = 0; i < kept; i++)
		report_error(kp_archive_path(archive), "%s", faults[i].text);
	if (counted > kept)
		report_error(kp_archive_path(archive), "and %zu faults more",
			     counted - kept);
}

void merge_report_mismatch(void *arg, const struct merge_mismatch *m)
{
	char has[160], other[160];

	(void)arg;
	report_error(m->second, "its %s is \"%s\", that of %s is \"%s\"", m->what,
		     kp_text_escape(m->other, other, sizeof(other)), m->first,
		     kp_text_escape(m->has, has, sizeof(has)));
}

void merge_report_progress(void *arg, uint64_t bytes)
{
	struct merge_report *r = arg;

	progress_add(&r->progress, bytes);
}

void merge_report_end(struct merge_report *r)
{
	progress_end(&r->progress);
	if (r->clashes > MERGE_CLASHES_REPORTED)
		report_error(NULL, "and %zu entries more that differ",
			     r->clashes - MERGE_CLASHES_REPORTED);
}

void merge_stats_json(const struct merge_stats *stats, json_t *object)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{"entries", stats->entries},
		{"frames", stats->frames},
		{"bytes", stats->bytes},
		{"duplicates", stats->duplicates},
		{"settled", stats->settled},
		{"shared", stats->shared},
		{"unused", stats->unused},
		{"blocks_copied", stats->blocks_copied},
		{"blocks_encoded", stats->blocks_encoded},
	};

	for (size_t i = 0; i < KP_COUNT(rows); i++)
		if (json_object_set_new(object, rows[i].name,
					json_integer((json_int_t)rows[i].value)))
			xalloc_fail(0);
}
