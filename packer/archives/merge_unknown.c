/* SPDX-License-Identifier: MIT */
/*
 * The unknown map fields at the top of tables of contents: each field of all sources,
 * once.
 */
#include "packer/cli/xalloc.h"
#include "merge_internal.h"
#include "core/base/msgpack_read.h"
#include "core/base/text.h"

/*
 * The maximum number of unknown fields.  A real table has a few, and each is compared
 * with all others.
 */
enum { FIELDS_MAX = 1000 };

/* The name and the value of a PAIR, as they are stored. */
static struct kp_span name_of(struct kp_span pair)
{
	struct kp_mp c = kp_mp_over(pair);

	kp_mp_skip(&c);
	return (struct kp_span){pair.data, kp_mp_offset(&c)};
}

static struct kp_span value_of(struct kp_span pair)
{
	size_t name = name_of(pair).size;

	return (struct kp_span){pair.data + name, pair.size - name};
}

/* Returns a value for messages: text as it is, or the bytes of anything else. */
static const char *value_text(struct kp_span stored, char text[80])
{
	struct kp_mp c = kp_mp_over(stored);
	struct kp_span s;

	if (kp_mp_peek(&c) == KP_MP_STR && kp_mp_str(&c, &s))
		stored = s;
	return kp_text_escape(stored, text, 80);
}

static kpack_error_t fail_differing(const struct merge_plan *p, size_t i, size_t source,
				    struct kp_span pair, struct kpackx_error *why)
{
	char name[80], has[80], other[80];

	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%.150s: its \"%s\" is \"%s\", that of %.150s is \"%s\"",
		       merge_source_name(p, source), value_text(name_of(pair), name),
		       value_text(value_of(pair), other),
		       merge_source_name(p, p->more_sources[i]),
		       value_text(value_of(p->more[i]), has));
}

static kpack_error_t fail_too_many(const struct merge_plan *p, size_t source,
				   struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: more than %d fields that are not known",
		       merge_source_name(p, source), FIELDS_MAX);
}

static kpack_error_t append_field(struct merge_plan *p, size_t source,
				  struct kp_span pair, struct kpackx_error *why)
{
	if (p->n_more >= FIELDS_MAX)
		return fail_too_many(p, source, why);
	xgrow(&p->more, p->n_more, &p->more_cap, sizeof(*p->more));
	xgrow(&p->more_sources, p->n_more, &p->more_sources_cap,
	      sizeof(*p->more_sources));
	p->more[p->n_more] = pair;
	p->more_sources[p->n_more++] = source;
	return KPACK_SUCCESS;
}

/* PAIR of SOURCE has the name of field I and another value: the preferred source wins. */
static kpack_error_t settle_field(struct merge_plan *p, size_t i, size_t source,
				  struct kp_span pair, struct kpackx_error *why)
{
	unsigned has = p->sources[p->more_sources[i]].prefer;
	unsigned other = p->sources[source].prefer;

	if (other > has) {
		p->more[i] = pair;
		p->more_sources[i] = source;
	}
	if (other != has)
		return KPACK_SUCCESS;
	return fail_differing(p, i, source, pair, why);
}

static kpack_error_t add_pair(struct merge_plan *p, size_t source, struct kp_span pair,
			      struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_more; i++) {
		if (!kp_span_eq(name_of(p->more[i]), name_of(pair)))
			continue;
		return kp_span_eq(p->more[i], pair)
			       ? KPACK_SUCCESS
			       : settle_field(p, i, source, pair, why);
	}
	return append_field(p, source, pair, why);
}

static kpack_error_t add_run(struct merge_plan *p, size_t source, struct kp_span run,
			     struct kpackx_error *why)
{
	struct kp_mp c = kp_mp_over(run);

	while (c.pos < c.end) {
		const uint8_t *start = c.pos;

		if (!kp_mp_skip(&c) || !kp_mp_skip(&c))
			return kp_mp_fail(&c, "toc", why);
		KP_TRY(add_pair(p, source,
				(struct kp_span){start, (size_t)(c.pos - start)}, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t merge_more(struct merge_plan *p, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		struct kp_more more = kp_archive_more(p->sources[i].archive);

		if (p->options.takes && p->first_item[i] == p->first_item[i + 1])
			continue; /* no entry of it is taken */
		if (kp_more_count(&more) > FIELDS_MAX)
			return fail_too_many(p, i, why);
		for (size_t run = 0; run < more.n_runs; run++)
			KP_TRY(add_run(p, i, kp_more_run(&more, run), why));
	}
	return KPACK_SUCCESS;
}
