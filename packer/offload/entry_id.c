/* SPDX-License-Identifier: MIT */
#include "entry_id.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "core/target/target.h"

/* Feature texts ("xnack+") that we read from a target ID; further ones are ignored. */
#define FEATURES_MAX 16

struct features {
	struct kp_span processor;
	struct kp_span item[FEATURES_MAX];
	size_t n;
};

static size_t span_find(struct kp_span s, char c)
{
	const uint8_t *at = s.size ? memchr(s.data, c, s.size) : NULL;

	return at ? (size_t)(at - s.data) : s.size;
}

static unsigned dashes(struct kp_span s)
{
	unsigned n = 0;

	for (size_t i = 0; i < s.size; i++)
		n += s.data[i] == '-';
	return n;
}

/* Parse "openmp-amdgcn-amdhsa-gfx906": AMD's HSA implies the vendor. */
static bool parse_vendorless(struct kp_span text, struct entry_id *id)
{
	struct kp_span rest;

	id->kind = kp_span_head(text, span_find(text, '-'));
	if (id->kind.size == text.size)
		return false;
	rest = kp_span_tail(text, id->kind.size + 1);
	if (!kp_span_starts(rest, "amdgcn-amdhsa", 13) ||
	    (rest.size > 13 && rest.data[13] != '-'))
		return false;
	id->triple = (struct triple){{kp_span_str("amdgcn"),
				      kp_span_str("amd"),
				      kp_span_str("amdhsa"),
				      {NULL, 0}}};
	rest = kp_span_tail(rest, 13);
	while (rest.size && rest.data[0] == '-')
		rest = kp_span_tail(rest, 1);
	id->target = rest;
	return id->kind.size != 0 && kp_span_starts(rest, "gfx", 3);
}

bool entry_id_parse(struct kp_span text, struct entry_id *out)
{
	struct kp_entry_id parts;
	struct entry_id id = {.text = text};

	if (parse_vendorless(text, &id)) {
		*out = id;
		return true;
	}
	if (!kp_entry_id_parse(text, &parts) || dashes(parts.triple) < 2)
		return false;
	id.kind = parts.kind;
	id.triple = triple_split(parts.triple);
	id.no_environment = dashes(text) == 3;
	/* a host has no target ID, whatever the text has in its place */
	if (!kp_entry_id_is_host(&parts))
		id.target = parts.target;
	*out = id;
	return true;
}

char *entry_id_normal(const struct entry_id *id)
{
	char *triple = triple_normal(&id->triple);
	char *out = xasprintf("%.*s-%s-%.*s", (int)id->kind.size,
			      (const char *)id->kind.data, triple, (int)id->target.size,
			      id->target.size ? (const char *)id->target.data : "");

	free(triple);
	return out;
}

bool entry_id_is_host(const struct entry_id *id)
{
	return kp_span_is(id->kind, "host");
}

bool entry_id_is_hip(const struct entry_id *id)
{
	return kp_span_is(id->kind, "hip") || kp_span_is(id->kind, "hipv4");
}

bool entry_id_kind_known(const struct entry_id *id)
{
	return entry_id_is_host(id) || entry_id_is_hip(id) ||
	       kp_span_is(id->kind, "openmp");
}

/* ---- comparison ---- */

static bool kinds_compatible(const struct entry_id *a, const struct entry_id *b,
			     bool hip_openmp)
{
	if (kp_span_eq(a->kind, b->kind) || (entry_id_is_hip(a) && entry_id_is_hip(b)))
		return true;
	return hip_openmp && ((entry_id_is_hip(a) && kp_span_is(b->kind, "openmp")) ||
			      (entry_id_is_hip(b) && kp_span_is(a->kind, "openmp")));
}

static bool triples_compatible(const struct entry_id *code, const struct entry_id *want)
{
	struct triple t = code->triple;

	if (code->no_environment)
		t.part[TRIPLE_ENV] = want->triple.part[TRIPLE_ENV];
	return triple_compatible(&t, &want->triple);
}

static unsigned n_features(const struct kp_target *t)
{
	return (t->sramecc != KP_FEATURE_ANY) + (t->xnack != KP_FEATURE_ANY);
}

/* Compare one feature.  ENTRY_SERVES: the code leaves it open, or both state the same. */
static enum entry_verdict compare_feature(enum kp_feature code, enum kp_feature want)
{
	if (code == KP_FEATURE_ANY || code == want)
		return ENTRY_SERVES;
	return want == KP_FEATURE_ANY ? ENTRY_FEATURE_ANY : ENTRY_FEATURE_VALUE;
}

static enum entry_verdict compare_targets(struct kp_span code, struct kp_span want)
{
	struct kp_target c, w;
	enum entry_verdict verdict;

	if (kp_target_parse(code, &c, NULL) || kp_target_parse(want, &w, NULL) ||
	    strcmp(c.processor, w.processor) != 0)
		return ENTRY_OTHER_PROCESSOR;
	if (n_features(&c) > n_features(&w))
		return ENTRY_MORE_FEATURES;
	verdict = compare_feature(c.sramecc, w.sramecc);
	return verdict == ENTRY_SERVES ? compare_feature(c.xnack, w.xnack) : verdict;
}

enum entry_verdict entry_id_compare(const struct entry_id *code,
				    const struct entry_id *want, bool hip_openmp)
{
	bool triples = triples_compatible(code, want);

	if (kp_span_eq(code->kind, want->kind) && triples &&
	    kp_span_eq(code->target, want->target))
		return ENTRY_SAME;
	if (!triples || !kinds_compatible(code, want, hip_openmp))
		return ENTRY_OTHER_KIND;
	/* if both sides have no target ID, there is nothing else to compare */
	if (code->target.size == 0 && want->target.size == 0)
		return ENTRY_SERVES;
	return compare_targets(code->target, want->target);
}

const char *entry_verdict_text(enum entry_verdict verdict)
{
	static const char *const texts[] = {
		[ENTRY_SAME] = "Compatible: Exact match: ",
		[ENTRY_SERVES] = "Compatible: Target IDs are compatible ",
		[ENTRY_OTHER_KIND] = "Incompatible: Kind/Triple mismatch ",
		[ENTRY_OTHER_PROCESSOR] = "Incompatible: Processor mismatch ",
		[ENTRY_MORE_FEATURES] =
			"Incompatible: CodeObject has more features than target ",
		[ENTRY_FEATURE_ANY] =
			"Incompatible: Value of CodeObject's non-ANY feature is not "
			"matching with Target feature's ANY value ",
		[ENTRY_FEATURE_VALUE] =
			"Incompatible: Value of CodeObject's non-ANY feature is not "
			"matching with Target feature's non-ANY value ",
	};

	return texts[verdict];
}

/* ---- conflicts ---- */

/* Split TARGET into processor and features, known or not; false: it is no target ID. */
static bool split_target(struct kp_span target, struct features *out)
{
	size_t n = span_find(target, ':');

	*out = (struct features){.processor = kp_span_head(target, n)};
	while (n < target.size && out->n < FEATURES_MAX) {
		target = kp_span_tail(target, n + 1);
		n = span_find(target, ':');
		if (n == 0) /* not a feature: no sign */
			return false;
		out->item[out->n++] = kp_span_head(target, n - 1);
	}
	return out->processor.size != 0;
}

static bool has_feature(const struct features *f, struct kp_span name)
{
	for (size_t i = 0; i < f->n; i++)
		if (kp_span_eq(f->item[i], name))
			return true;
	return false;
}

bool entry_ids_akin(const struct entry_id *a, const struct entry_id *b)
{
	struct features fa, fb;

	return kp_span_eq(a->kind, b->kind) &&
	       triple_compatible(&a->triple, &b->triple) &&
	       split_target(a->target, &fa) && split_target(b->target, &fb) &&
	       kp_span_eq(fa.processor, fb.processor);
}

bool entry_id_states_more(const struct entry_id *a, const struct entry_id *b)
{
	struct features fa, fb;

	if (!split_target(a->target, &fa) || !split_target(b->target, &fb))
		return false;
	for (size_t i = 0; i < fa.n; i++)
		if (!has_feature(&fb, fa.item[i]))
			return true;
	return false;
}
