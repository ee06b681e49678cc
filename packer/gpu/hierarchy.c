/* SPDX-License-Identifier: MIT */
#include "hierarchy.h"
#include <strings.h>
#include "core/target/target.h"

/* AMD's packages have gfx9 to gfx12; other ones, and gfx117x, follow the same rule. */
static const struct gpu_subfamily table[] = {
	{"gfx8_0", "gfx8", "gfx80X", {"gfx801", "gfx802", "gfx803", "gfx805"}},
	{"gfx8_1", "gfx8", "gfx81X", {"gfx810"}},
	{"gfx9_0",
	 "gfx9",
	 "gfx90X",
	 {"gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a",
	  "gfx90c"}},
	{"gfx9_4", "gfx9", "gfx94X", {"gfx940", "gfx941", "gfx942"}},
	{"gfx9_5", "gfx9", "gfx95X", {"gfx950"}},
	{"gfx10_1", "gfx10", "gfx101X", {"gfx1010", "gfx1011", "gfx1012", "gfx1013"}},
	{"gfx10_3",
	 "gfx10",
	 "gfx103X",
	 {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}},
	{"gfx110x", "gfx11", "gfx110X", {"gfx1100", "gfx1101", "gfx1102", "gfx1103"}},
	{"gfx115x",
	 "gfx11",
	 "gfx115X",
	 {"gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154"}},
	{"gfx117x", "gfx11", "gfx117X", {"gfx1170", "gfx1171", "gfx1172"}},
	{"gfx12_0", "gfx12", "gfx120X", {"gfx1200", "gfx1201"}},
	{"gfx12_5", "gfx12", "gfx125X", {"gfx1250", "gfx1251"}},
	{"gfx13_1", "gfx13", "gfx131X", {"gfx1310"}},
};

/* Former names. */
static const struct {
	const char *alias;
	const char *name;
} aliases[] = {
	{"gfx11_0", "gfx110x"},
	{"gfx11_5", "gfx115x"},
};

const struct gpu_subfamily *gpu_subfamily_table(size_t *count)
{
	*count = KP_COUNT(table);
	return table;
}

/* TARGET without features and stepping. */
static struct kp_span processor_of(struct kp_span target)
{
	const uint8_t *colon = target.size ? memchr(target.data, ':', target.size) : NULL;

	if (colon)
		target.size = (size_t)(colon - target.data);
	return kp_processor_model(target);
}

static bool is_member(const struct gpu_subfamily *s, struct kp_span processor)
{
	for (const char *const *m = s->members; *m; m++)
		if (kp_span_is(processor, *m))
			return true;
	return false;
}

const struct gpu_subfamily *gpu_subfamily_of(struct kp_span target)
{
	struct kp_span processor = processor_of(target);

	for (size_t i = 0; i < KP_COUNT(table); i++)
		if (is_member(&table[i], processor))
			return &table[i];
	return NULL;
}

/* Whether NAME equals TEXT, ignoring case: "gfx120x" equals "gfx120X". */
static bool is_spelled(struct kp_span name, const char *text)
{
	return name.size == strlen(text) &&
	       strncasecmp((const char *)name.data, text, name.size) == 0;
}

/* Whether NAME is FAMILY, or FAMILY and "xx": "gfx11xx". */
static bool is_family(struct kp_span name, const char *family)
{
	size_t n = strlen(family);

	if (kp_span_is(name, family))
		return true;
	return name.size == n + 2 && memcmp(name.data, family, n) == 0 &&
	       is_spelled((struct kp_span){name.data + n, 2}, "xx");
}

/* The family's name in the first row that has it, so that equal names are one pointer. */
static const char *same_family(const char *family)
{
	for (size_t i = 0; i < KP_COUNT(table); i++)
		if (strcmp(table[i].family, family) == 0)
			return table[i].family;
	return NULL;
}

const char *gpu_group_name(struct kp_span name)
{
	for (size_t i = 0; i < KP_COUNT(aliases); i++)
		if (kp_span_is(name, aliases[i].alias))
			name = kp_span_str(aliases[i].name);
	for (size_t i = 0; i < KP_COUNT(table); i++) {
		if (kp_span_is(name, table[i].name) || is_spelled(name, table[i].series))
			return table[i].name;
		if (is_family(name, table[i].family))
			return same_family(table[i].family);
	}
	return NULL;
}

bool gpu_group_has(const char *group, struct kp_span target)
{
	const struct gpu_subfamily *s = gpu_subfamily_of(target);

	return s && (strcmp(s->name, group) == 0 || strcmp(s->family, group) == 0);
}
