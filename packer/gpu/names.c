/* SPDX-License-Identifier: MIT */
/*
 * The table of AMD's families comes first, and all spellings of a family lead to its row; then
 * the names for a kind of GPU, which are printed for command lines, so that they are checked
 * and spelled to need no quotes; then the families that users define.
 */
#include "names.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/archive/naming.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"

/* --- AMD's families ------------------------------------------------------------- */

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

const struct gpu_subfamily *gpu_subfamily_of(struct kp_span target)
{
	const uint8_t *colon = target.size ? memchr(target.data, ':', target.size) : NULL;

	if (colon)
		target.size = (size_t)(colon - target.data);
	target = kp_processor_model(target);
	for (size_t i = 0; i < KP_COUNT(table); i++)
		for (const char *const *m = table[i].members; *m; m++)
			if (kp_span_is(target, *m))
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

const char *gpu_group_name(struct kp_span name)
{
	for (size_t i = 0; i < KP_COUNT(aliases); i++)
		if (kp_span_is(name, aliases[i].alias))
			name = kp_span_str(aliases[i].name);
	for (size_t i = 0; i < KP_COUNT(table); i++) {
		if (kp_span_is(name, table[i].name) || is_spelled(name, table[i].series))
			return table[i].name;
		/* the family's first row matches, so that equal names are one pointer */
		if (is_family(name, table[i].family))
			return table[i].family;
	}
	return NULL;
}

/* --- kinds of GPUs -------------------------------------------------------------- */

void gpu_kinds_add(struct gpu_kinds *kinds, const struct kp_target *t)
{
	struct gpu_kind *kind;

	for (size_t i = 0; i < kinds->count; i++)
		if (kp_target_eq(&kinds->items[i].target, t))
			return;
	xgrow(&kinds->items, kinds->count, &kinds->cap, sizeof(*kind));
	kind = &kinds->items[kinds->count++];
	*kind = (struct gpu_kind){.target = *t};
	kp_target_format(t, kind->arch);
	kind->subfamily = gpu_subfamily_of(kp_span_str(t->processor));
}

kpack_error_t gpu_kinds_parse(struct gpu_kinds *kinds, const char *list,
			      struct kpackx_error *why)
{
	struct kp_choice chosen = {0};
	kpack_error_t err = kp_choice_add(&chosen, list, why);

	if (!err && chosen.all)
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "all: name GPUs");
	for (size_t i = 0; i < chosen.count && !err; i++)
		gpu_kinds_add(kinds, &chosen.gpus[i]);
	kinds->find |= chosen.find;
	kp_choice_fini(&chosen);
	return err;
}

void gpu_kinds_fini(struct gpu_kinds *kinds)
{
	free(kinds->items);
	*kinds = (struct gpu_kinds){0};
}

const char *gpu_kind_generic(const struct gpu_kind *kind)
{
	return kp_processor_generic(kp_span_str(kind->target.processor));
}

/* --- names of archives, packages and wheels ------------------------------------- */

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Whether TEXT consists of characters in ALLOWED, and begins with one in FIRST. */
static bool made_of(const char *text, const char *first, const char *allowed)
{
	return *text && strchr(first, *text) && text[strspn(text, allowed)] == '\0';
}

static kpack_error_t refuse_name(struct kpackx_error *why, const char *option,
				 const char *name, const char *rule)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: \"%s\": a name is %s, and begins like one", option, name,
		       rule);
}

kpack_error_t gpu_names_check(const struct gpu_names *names, struct kpackx_error *why)
{
	const char *group = names->group, *package = names->package, *dist = names->dist;

	if (group &&
	    !(kp_component_ok(kp_span_str(group)) &&
	      made_of(group, LOWER UPPER DIGITS "._+:", LOWER UPPER DIGITS "._+:-")))
		return refuse_name(why, "--group", group, "[A-Za-z0-9._+:-]");
	if (package && !(package[0] && package[1] &&
			 made_of(package, LOWER DIGITS, LOWER DIGITS ".+-")))
		return refuse_name(why, "--package", package,
				   "two or more of [a-z0-9.+-]");
	if (dist && !(made_of(dist, LOWER UPPER DIGITS, LOWER UPPER DIGITS "._-") &&
		      strchr(LOWER UPPER DIGITS, dist[strlen(dist) - 1])))
		return refuse_name(why, "--dist", dist, "[A-Za-z0-9._-]");
	return KPACK_SUCCESS;
}

const char *gpu_names_label(const struct gpu_names *names, const struct gpu_kind *kind)
{
	if (!names->family)
		return kind->arch;
	return kind->subfamily ? kind->subfamily->series : NULL;
}

/* A "+" or "-" is a feature's sign at the end of a part after a colon; it becomes a word. */
static void spell_label(const char *label, char out[GPU_NAME_PART_MAX])
{
	bool feature = false;
	size_t n = 0;

	for (const char *s = label; *s && n + 5 < GPU_NAME_PART_MAX; s++) {
		if (feature && strchr("+-", *s) && (s[1] == '\0' || s[1] == ':'))
			n = (size_t)(stpcpy(out + n, *s == '+' ? "-on" : "-off") - out);
		else
			out[n++] = strchr("_:", *s) ? '-' : *s;
		feature |= *s == ':';
	}
	out[n] = '\0';
}

/*
 * LABEL as a part of a package's name: lower case, "_" and ":" are "-", a feature's "+"
 * is "-on" and its "-" is "-off": "gfx90a-xnack-on", "gfx12-0", "gfx110x".
 */
static void package_part(const char *label, char out[GPU_NAME_PART_MAX])
{
	spell_label(label, out);
	for (char *s = out; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

void gpu_extra_part(const char *label, char out[GPU_NAME_PART_MAX])
{
	struct kp_span model = kp_processor_model(
		(struct kp_span){(const uint8_t *)label, strcspn(label, ":")});
	char text[KP_TARGET_TEXT_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)model.size, (const char *)model.data);
	spell_label(text, out);
}

char *gpu_archive_name(const struct gpu_names *names, const char *label)
{
	return xasprintf("%s%c%s" KP_ARCHIVE_SUFFIX, names->group,
			 names->family ? '-' : '_', label);
}

char *gpu_package_name(const struct gpu_names *names, const char *label)
{
	char part[GPU_NAME_PART_MAX];

	package_part(label, part);
	return xasprintf("%s-%s", names->package, part);
}

char *gpu_wheel_name(const struct gpu_names *names, const char *label)
{
	char part[GPU_NAME_PART_MAX];

	gpu_extra_part(label, part);
	return xasprintf("%s[device-%s]", names->dist, part);
}

/* --- families of an archive ----------------------------------------------------- */

const struct family *families_find(const struct families *families, const char *arch)
{
	for (size_t i = 0; i < families->count; i++) {
		const struct family *f = &families->items[i];

		for (size_t k = 0; k < f->n_arches; k++)
			if (strcmp(f->arches[k], arch) == 0)
				return f;
	}
	return NULL;
}

kpack_error_t families_add(struct families *families, struct kp_span name,
			   const char *list, struct kpackx_error *why)
{
	struct family *f;

	if (!kp_component_ok(name) || !kp_text_ok(name))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "its name gives no file name");
	families->items = xrealloc(families->items, (families->count + 1) * sizeof(*f));
	f = &families->items[families->count++];
	*f = (struct family){.name = xstrndup((const char *)name.data, name.size)};
	for (const char *item = list, *end; item; item = *end ? end + 1 : NULL) {
		char arch[KP_TARGET_TEXT_MAX];
		struct kp_target target;

		end = strchrnul(item, ',');
		KP_TRY(kp_target_parse(
			(struct kp_span){(const uint8_t *)item, (size_t)(end - item)},
			&target, why));
		kp_target_format(&target, arch);
		/* words of --arch, which say nothing about what the family holds */
		if (strcmp(arch, "auto") == 0 || strcmp(arch, "all") == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: name the targets of a family", arch);
		if (families_find(families, arch))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s is in a family already", arch);
		f->arches = xrealloc(f->arches, (f->n_arches + 1) * sizeof(char *));
		f->arches[f->n_arches++] = xstrdup(arch);
	}
	return KPACK_SUCCESS;
}

void families_fini(struct families *families)
{
	for (size_t i = 0; i < families->count; i++) {
		struct family *f = &families->items[i];

		for (size_t k = 0; k < f->n_arches; k++)
			free(f->arches[k]);
		free(f->arches);
		free(f->name);
	}
	free(families->items);
	*families = (struct families){0};
}

char *families_stem(const struct families *families, const char *arch)
{
	const struct family *family = families_find(families, arch);

	return xasprintf("%c%s", family ? '-' : '_', family ? family->name : arch);
}
