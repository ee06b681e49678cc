/* SPDX-License-Identifier: MIT */
/*
 * The processor tables: numbers, features, aliases, generic targets.  A new processor
 * needs only new rows here.
 */
#include "target.h"

/*
 * Features that a target ID can state, because each setting needs other code: xnack (page faults
 * of the GPU are retried) and sramecc (its memory is checked, which changes what writing a part of a
 * register does).
 */
#define NONE false, false
#define XNACK true, false
#define BOTH true, true

/*
 * By number.  gfx125x and gfx12-5-generic set the feature bits of e_flags, but no
 * compiler accepts a feature for them: NONE.  0x27, 0x4d, 0x56, 0x60, 0x61 are reserved.
 */
static const struct kp_processor processors[] = {
	{"r600", 0x01, NONE},
	{"r630", 0x02, NONE},
	{"rs880", 0x03, NONE},
	{"rv670", 0x04, NONE},
	{"rv710", 0x05, NONE},
	{"rv730", 0x06, NONE},
	{"rv770", 0x07, NONE},
	{"cedar", 0x08, NONE},
	{"cypress", 0x09, NONE},
	{"juniper", 0x0a, NONE},
	{"redwood", 0x0b, NONE},
	{"sumo", 0x0c, NONE},
	{"barts", 0x0d, NONE},
	{"caicos", 0x0e, NONE},
	{"cayman", 0x0f, NONE},
	{"turks", 0x10, NONE},
	{"gfx600", 0x20, NONE},
	{"gfx601", 0x21, NONE},
	{"gfx700", 0x22, NONE},
	{"gfx701", 0x23, NONE},
	{"gfx702", 0x24, NONE},
	{"gfx703", 0x25, NONE},
	{"gfx704", 0x26, NONE},
	{"gfx801", 0x28, XNACK},
	{"gfx802", 0x29, NONE},
	{"gfx803", 0x2a, NONE},
	{"gfx810", 0x2b, XNACK},
	{"gfx900", 0x2c, XNACK},
	{"gfx902", 0x2d, XNACK},
	{"gfx904", 0x2e, XNACK},
	{"gfx906", 0x2f, BOTH},
	{"gfx908", 0x30, BOTH},
	{"gfx909", 0x31, XNACK},
	{"gfx90c", 0x32, XNACK},
	{"gfx1010", 0x33, XNACK},
	{"gfx1011", 0x34, XNACK},
	{"gfx1012", 0x35, XNACK},
	{"gfx1030", 0x36, NONE},
	{"gfx1031", 0x37, NONE},
	{"gfx1032", 0x38, NONE},
	{"gfx1033", 0x39, NONE},
	{"gfx602", 0x3a, NONE},
	{"gfx705", 0x3b, NONE},
	{"gfx805", 0x3c, NONE},
	{"gfx1035", 0x3d, NONE},
	{"gfx1034", 0x3e, NONE},
	{"gfx90a", 0x3f, BOTH},
	{"gfx940", 0x40, BOTH},
	{"gfx1100", 0x41, NONE},
	{"gfx1013", 0x42, XNACK},
	{"gfx1150", 0x43, NONE},
	{"gfx1103", 0x44, NONE},
	{"gfx1036", 0x45, NONE},
	{"gfx1101", 0x46, NONE},
	{"gfx1102", 0x47, NONE},
	{"gfx1200", 0x48, NONE},
	{"gfx1250", 0x49, NONE},
	{"gfx1151", 0x4a, NONE},
	{"gfx941", 0x4b, BOTH},
	{"gfx942", 0x4c, BOTH},
	{"gfx1201", 0x4e, NONE},
	{"gfx950", 0x4f, BOTH},
	{"gfx1310", 0x50, NONE},
	{"gfx9-generic", 0x51, XNACK},
	{"gfx10-1-generic", 0x52, XNACK},
	{"gfx10-3-generic", 0x53, NONE},
	{"gfx11-generic", 0x54, NONE},
	{"gfx1152", 0x55, NONE},
	{"gfx1154", 0x57, NONE},
	{"gfx1153", 0x58, NONE},
	{"gfx12-generic", 0x59, NONE},
	{"gfx1251", 0x5a, NONE},
	{"gfx12-5-generic", 0x5b, NONE},
	{"gfx1172", 0x5c, NONE},
	{"gfx1170", 0x5d, NONE},
	{"gfx1171", 0x5e, NONE},
	{"gfx9-4-generic", 0x5f, BOTH},
	{"gfx11-7-generic", 0x62, NONE},
	{"gfx13-generic", 0x63, NONE},
	{"gfx1250-strict", 0xeb, NONE},
};

/* Other names that LLVM accepts for a processor; we never write them. */
static const struct {
	const char *alias;
	const char *name;
} aliases[] = {
	{"tahiti", "gfx600"},    {"pitcairn", "gfx601"}, {"verde", "gfx601"},
	{"hainan", "gfx602"},    {"oland", "gfx602"},    {"kaveri", "gfx700"},
	{"hawaii", "gfx701"},    {"kabini", "gfx703"},   {"mullins", "gfx703"},
	{"bonaire", "gfx704"},   {"carrizo", "gfx801"},  {"iceland", "gfx802"},
	{"tonga", "gfx802"},     {"fiji", "gfx803"},     {"polaris10", "gfx803"},
	{"polaris11", "gfx803"}, {"tongapro", "gfx805"}, {"stoney", "gfx810"},
};

/*
 * Code for a generic target runs on each of its members.  Only LLVM's list tells them: gfx90c is one
 * of gfx9-generic, and gfx908 is not.
 */
static const struct {
	const char *name;
	const char *members[12]; /* NULL-terminated */
} generics[] = {
	{"gfx9-generic", {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"}},
	{"gfx9-4-generic", {"gfx940", "gfx941", "gfx942", "gfx950"}},
	{"gfx10-1-generic", {"gfx1010", "gfx1011", "gfx1012", "gfx1013"}},
	{"gfx10-3-generic",
	 {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}},
	{"gfx11-generic",
	 {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152",
	  "gfx1153", "gfx1154"}},
	{"gfx11-7-generic", {"gfx1170", "gfx1171", "gfx1172"}},
	{"gfx12-generic", {"gfx1200", "gfx1201"}},
	{"gfx12-5-generic", {"gfx1250", "gfx1251"}},
	{"gfx13-generic", {"gfx1310"}},
};

const struct kp_processor *kp_processor_by_name(struct kp_span name)
{
	for (size_t i = 0; i < KP_COUNT(aliases); i++)
		if (kp_span_is(name, aliases[i].alias))
			name = kp_span_str(aliases[i].name);
	for (size_t i = 0; i < KP_COUNT(processors); i++)
		if (kp_span_is(name, processors[i].name))
			return &processors[i];
	return NULL;
}

const struct kp_processor *kp_processor_table(size_t *count)
{
	*count = KP_COUNT(processors);
	return processors;
}

const char *kp_processor_generic(struct kp_span processor)
{
	for (size_t i = 0; i < KP_COUNT(generics); i++)
		for (const char *const *m = generics[i].members; *m; m++)
			if (kp_span_is(processor, *m))
				return generics[i].name;
	return NULL;
}

const char *const *kp_generic_members(struct kp_span name)
{
	for (size_t i = 0; i < KP_COUNT(generics); i++)
		if (kp_span_is(name, generics[i].name))
			return generics[i].members;
	return NULL;
}
