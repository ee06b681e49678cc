/* SPDX-License-Identifier: MIT */
#include "miopen_name.h"

static const struct {
	const char *end, *role, *backend;
} kinds[] = {
	{".HIP.fdb.txt", "find", "HIP"}, {".OpenCL.fdb.txt", "find", "OpenCL"},
	{".fdb.txt", "find", NULL},      {".db.txt", "perf", NULL},
	{".db", "perf", NULL},           {".kdb", "kernels", NULL},
	{".model", "model", NULL},
};

/*
 * The words of a DbId.  MIOpen adds "_nosramecc" if sramecc is on by default for the
 * processor but off, "_sramecc" if it is off by default but on, and "_xnack" if xnack is
 * on.  Without a word the feature has its default, for which a target ID states nothing.
 */
static const struct {
	const char *word;
	bool sramecc; /* else xnack */
	enum kp_feature state;
} words[] = {
	{"_nosramecc", true, KP_FEATURE_OFF},
	{"_sramecc", true, KP_FEATURE_ON},
	{"_noxnack", false, KP_FEATURE_OFF},
	{"_xnack", false, KP_FEATURE_ON},
};

enum { DIGITS_MAX = 4 };

/* Size of the longest processor at the start of S, or 0; without a stepping. */
static size_t processor_size(struct kp_span s)
{
	size_t best = 0, n;
	const struct kp_processor *table = kp_processor_table(&n);

	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(table[i].name);

		if (size > best && strncmp(table[i].name, "gfx", 3) == 0 &&
		    !strstr(table[i].name, "-strict") &&
		    kp_span_starts(s, table[i].name, size))
			best = size;
	}
	return best;
}

static bool take_feature(struct kp_span *rest, struct kp_target *t)
{
	for (size_t i = 0; i < KP_COUNT(words); i++) {
		enum kp_feature *f = words[i].sramecc ? &t->sramecc : &t->xnack;
		size_t n = strlen(words[i].word);

		if (*f != KP_FEATURE_ANY || !kp_span_starts(*rest, words[i].word, n))
			continue;
		*f = words[i].state;
		*rest = kp_span_tail(*rest, n);
		return true;
	}
	return false;
}

static int digit_value(uint8_t c, unsigned base)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "_60" is decimal, "130" right after the DbId is hexadecimal; then '.' or the end. */
static unsigned parse_cu_count(struct kp_span rest)
{
	bool decimal = rest.size && rest.data[0] == '_';
	unsigned base = decimal ? 10 : 16, count = 0;
	size_t n = 0;

	if (decimal)
		rest = kp_span_tail(rest, 1);
	for (; n < rest.size && digit_value(rest.data[n], base) >= 0; n++) {
		if (n == DIGITS_MAX)
			return 0;
		count = count * base + (unsigned)digit_value(rest.data[n], base);
	}
	return n < rest.size && rest.data[n] != '.' ? 0 : count;
}

/* Leave out a feature that the processor's target IDs cannot state; the DbId keeps it. */
static void format_arch(struct kp_target *t, char out[KP_TARGET_TEXT_MAX])
{
	if (!t->known->sramecc)
		t->sramecc = KP_FEATURE_ANY;
	if (!t->known->xnack)
		t->xnack = KP_FEATURE_ANY;
	kp_target_format(t, out);
}

static void take_base(struct kp_span base, struct miopen_name *out)
{
	static const char strict[] = "-strict";
	size_t n = processor_size(base);
	struct kp_target t = {.known = NULL};
	struct kp_span rest;

	if (!n)
		return;
	t.known = kp_processor_by_name((struct kp_span){base.data, n});
	memcpy(t.processor, base.data, n);
	rest = kp_span_tail(base, n);
	if (kp_span_starts(rest, strict, sizeof(strict) - 1)) {
		rest = kp_span_tail(rest, sizeof(strict) - 1);
		out->variant =
			(struct kp_span){base.data, (size_t)(rest.data - base.data)};
	}
	while (take_feature(&rest, &t))
		continue;
	format_arch(&t, out->arch);
	out->db_id = (struct kp_span){base.data, (size_t)(rest.data - base.data)};
	out->cu_count = parse_cu_count(rest);
}

struct miopen_name miopen_name(struct kp_span name)
{
	struct miopen_name out = {.role = "file"};

	for (size_t i = 0; i < KP_COUNT(kinds); i++) {
		size_t n = strlen(kinds[i].end);

		if (name.size <= n ||
		    memcmp(name.data + name.size - n, kinds[i].end, n) != 0)
			continue;
		out.role = kinds[i].role;
		out.backend = kinds[i].backend;
		break;
	}
	take_base(name, &out);
	return out;
}
