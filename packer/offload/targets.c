/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "bundler.h"

static struct kp_span cut_at(struct kp_span s, char c)
{
	const uint8_t *at = s.size ? memchr(s.data, c, s.size) : NULL;

	return at ? kp_span_head(s, (size_t)(at - s.data)) : s;
}

/*
 * Whether TEXT has five fields, as in today's bundles, or is an older form with a target
 * ID.
 */
static bool has_fields(const char *text, const struct entry_id *id)
{
	unsigned dashes = 0;

	for (const char *p = text; *p; p++)
		dashes += *p == '-';
	return dashes >= 4 || (id->target.size && dashes >= 3);
}

static int fail_format(const struct bundler *b)
{
	return llvm_error(b->tool,
			  "Targets need to follow the format '<offload kind>-<target "
			  "triple>', where '<target triple>' follows the format "
			  "'<kind>-<arch>-<vendor>-<os>-<env>[-<target id>[:target "
			  "features]]'.");
}

static int fail_invalid(const struct bundler *b, const char *text,
			const struct entry_id *id)
{
	/* the triple as written: four fields behind the kind */
	struct kp_span triple = kp_span_tail(kp_span_str(text), id->kind.size + 1);
	struct triple t = triple_split(triple);
	size_t size = triple.size - t.part[TRIPLE_ENV].size +
		      cut_at(t.part[TRIPLE_ENV], '-').size;
	bool kind = entry_id_kind_known(id), known = triple_known(&id->triple);

	return llvm_error(b->tool, "invalid target '%s'%s%.*s%s%s%.*s%s", text,
			  kind ? "" : ", unknown offloading kind '",
			  kind ? 0 : (int)id->kind.size, (const char *)id->kind.data,
			  kind ? "" : "'", known ? "" : ", unknown target triple '",
			  known ? 0 : (int)size, (const char *)triple.data,
			  known ? "" : "'");
}

static bool is_repeated(const struct bundler *b, const struct bundler_target *t)
{
	/* check_hosts() reports repeated hosts */
	bool host = entry_id_is_host(&t->id);

	for (size_t i = 0; i < b->n_targets; i++)
		if (strcmp(b->targets[i].text, t->text) == 0 ||
		    (!host && strcmp(b->targets[i].name, t->name) == 0))
			return true;
	return false;
}

/* Add the target TEXT.  Another spelling of an existing target is a duplicate, too. */
static int add_target(struct bundler *b, const char *text)
{
	struct bundler_target *t = &b->targets[b->n_targets];

	t->text = text;
	if (!entry_id_parse(kp_span_str(text), &t->id) || !has_fields(text, &t->id))
		return fail_format(b);
	if (!entry_id_kind_known(&t->id) || !triple_known(&t->id.triple))
		return fail_invalid(b, text, &t->id);
	t->name = entry_id_normal(&t->id);
	if (!entry_id_parse(kp_span_str(t->name), &t->id)) {
		free(t->name);
		return fail_format(b);
	}
	if (is_repeated(b, t)) {
		free(t->name);
		return llvm_error(b->tool, "Duplicate targets are not allowed");
	}
	b->n_targets++;
	return 0;
}

static bool target_precedes(const struct bundler_target *a,
			    const struct bundler_target *b)
{
	return kp_span_cmp(a->id.target, b->id.target) < 0;
}

/* The target to compare T with: of the targets for its processor, the first by text. */
static const struct bundler_target *first_akin(const struct bundler *b,
					       const struct bundler_target *t)
{
	const struct bundler_target *first = t;

	for (size_t i = 0; i < b->n_targets; i++)
		if (entry_ids_akin(&b->targets[i].id, &t->id) &&
		    target_precedes(&b->targets[i], first))
			first = &b->targets[i];
	return first;
}

static int check_conflicts(const struct bundler *b)
{
	for (size_t i = 0; i < b->n_targets; i++) {
		const struct bundler_target *t = &b->targets[i], *f = first_akin(b, t);

		if (f != t && entry_id_states_more(&t->id, &f->id))
			return llvm_error(b->tool,
					  "Cannot bundle inputs with conflicting "
					  "targets: '%s' and '%s'",
					  f->name, t->name);
	}
	return 0;
}

static int check_hosts(struct bundler *b)
{
	bool hip_only = true;
	size_t hosts = 0;

	for (size_t i = 0; i < b->n_targets; i++) {
		if (entry_id_is_host(&b->targets[i].id)) {
			hosts++;
			b->host = i;
		}
		hip_only = hip_only && entry_id_is_hip(&b->targets[i].id);
	}
	/*
	 * HIP's device code may be bundled without a host, and anything be unbundled
	 * without one
	 */
	if (hosts > 1 || (hosts == 0 && !hip_only && !b->unbundle))
		return llvm_error(b->tool,
				  "expecting exactly one host target but got %zu", hosts);
	return 0;
}

int bundler_targets_read(struct bundler *b, const char *const *texts, size_t n)
{
	int status;

	b->host = SIZE_MAX;
	b->targets = xcalloc(n, sizeof(*b->targets));
	for (size_t i = 0; i < n; i++) {
		status = add_target(b, texts[i]);
		if (status)
			return status;
	}
	status = check_conflicts(b);
	return status ? status : check_hosts(b);
}

void bundler_targets_free(struct bundler *b)
{
	for (size_t i = 0; i < b->n_targets; i++)
		free(b->targets[i].name);
	free(b->targets);
	b->targets = NULL;
	b->n_targets = 0;
}

enum entry_verdict bundler_compare(const struct bundler *b, const struct entry_id *code,
				   const struct bundler_target *target)
{
	enum entry_verdict verdict = entry_id_compare(code, &target->id, b->hip_openmp);
	char *name;

	if (!b->debug)
		return verdict;
	name = entry_id_normal(code);
	fflush(stdout);
	fprintf(stderr, "%s\t[CodeObject: ", entry_verdict_text(verdict));
	report_text_to(stderr, name);
	fputs("]\t:\t[Target: ", stderr);
	report_text_to(stderr, target->name);
	fputs("]\n", stderr);
	free(name);
	return verdict;
}
