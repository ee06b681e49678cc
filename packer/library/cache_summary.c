/* SPDX-License-Identifier: MIT */
#include "cache_summary.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"

/* Limit of arches whose rows are reported, to keep the metadata short. */
#define REPORTED_ARCHES_MAX 24

kpack_error_t cache_is_there(struct sqlite_file *f, bool *is, struct kpackx_error *why)
{
	static const char *const columns[] = {
		"kernel_name", "arch",      "hip_version", "generator_sum",
		"code",        "timestamp", NULL};

	return sqlite_file_has(f, "cache_v1", columns, is, why);
}

bool cache_arch_ok(struct kp_span text, char canonical[KP_TARGET_TEXT_MAX])
{
	struct kp_target target;

	if (!kp_span_starts(text, "gfx", 3) || text.size >= KP_TARGET_TEXT_MAX ||
	    kp_target_parse(text, &target, NULL) != KPACK_SUCCESS)
		return false;
	kp_target_format(&target, canonical);
	return true;
}

static void add_strange(struct cache_summary *s, struct kp_span text, bool null)
{
	if (s->n_strange++ > 0)
		return;
	kp_text_escape(null ? kp_span_str("NULL") : text, s->strange, sizeof(s->strange));
}

static struct cache_arch *find_arch(struct cache_summary *s, struct kp_span text)
{
	for (size_t i = 0; i < s->n_arches; i++)
		if (kp_span_is(text, s->arches[i].text))
			return &s->arches[i];
	return NULL;
}

static kpack_error_t add_arch(struct cache_summary *s, const struct sqlite_rows *rows,
			      struct kpackx_error *why)
{
	bool is_text = sqlite_rows_type(rows, 0) == SQLITE_TYPE_TEXT;
	struct kp_span text = sqlite_rows_bytes(rows, 0);
	struct cache_arch *arch = is_text ? find_arch(s, text) : NULL, made = {.rows = 1};

	if (arch) {
		arch->rows++;
		return KPACK_SUCCESS;
	}
	if (!is_text || !cache_arch_ok(text, made.canonical)) {
		add_strange(s, text, sqlite_rows_type(rows, 0) == SQLITE_TYPE_NULL);
		return KPACK_SUCCESS;
	}
	if (s->n_arches == CACHE_ARCHES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: arch: more than %d different ones",
			       CACHE_ARCHES_MAX);
	memcpy(made.text, text.data, text.size);
	s->arches[s->n_arches++] = made;
	return KPACK_SUCCESS;
}

static void add_hip_version(struct cache_summary *s, int64_t version)
{
	for (size_t i = 0; i < s->n_hip_versions; i++)
		if (s->hip_versions[i] == version)
			return;
	if (s->n_hip_versions < KP_COUNT(s->hip_versions))
		s->hip_versions[s->n_hip_versions++] = version;
	else
		s->more_hip_versions = true;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct cache_arch *)a)->text,
		      ((const struct cache_arch *)b)->text);
}

static int by_number(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return KP_ORDER(*x, *y);
}

/* Both columns are in the primary key's index, which is much smaller than the table. */
kpack_error_t cache_summary_read(struct sqlite_file *f, struct cache_summary *out,
				 struct kpackx_error *why)
{
	struct sqlite_rows *rows = NULL;
	bool more = true;
	kpack_error_t err;

	*out = (struct cache_summary){0};
	err = sqlite_rows_open(f, "SELECT arch, hip_version FROM main.cache_v1", &rows,
			       why);
	while (!err && more) {
		err = sqlite_rows_next(rows, &more, why);
		if (err || !more)
			break;
		out->rows++;
		add_hip_version(out, sqlite_rows_integer(rows, 1));
		err = add_arch(out, rows, why);
	}
	sqlite_rows_close(rows);
	qsort(out->arches, out->n_arches, sizeof(out->arches[0]), by_text);
	qsort(out->hip_versions, out->n_hip_versions, sizeof(out->hip_versions[0]),
	      by_number);
	return err;
}

void cache_summary_facts(const struct cache_summary *s, struct facts *facts)
{
	struct facts rows = {0};
	uint64_t versions[KP_COUNT(s->hip_versions)];
	bool negative = s->n_hip_versions && s->hip_versions[0] < 0;

	facts_number(facts, "kernel_count", s->rows);
	for (size_t i = 0; i < s->n_arches; i++)
		facts_number(&rows, s->arches[i].text, s->arches[i].rows);
	if (s->n_arches && s->n_arches <= REPORTED_ARCHES_MAX)
		facts_map(facts, "rows", &rows);
	facts_fini(&rows);
	for (size_t i = 0; i < s->n_hip_versions; i++)
		versions[i] = (uint64_t)s->hip_versions[i];
	if (s->n_hip_versions && !s->more_hip_versions && !negative)
		facts_numbers(facts, "hip_version", versions, s->n_hip_versions);
}
