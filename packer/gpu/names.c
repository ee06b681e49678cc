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
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"

/* --- AMD's families ------------------------------------------------------------- */

/* AMD's packages have gfx9 to gfx12; other ones, and gfx117x, follow the same rule. */
static const struct gpu_subfamily table[] = {
	{"gfx8_0", "gfx8", "gfx80X"},    {"gfx8_1", "gfx8", "gfx81X"},
	{"gfx9_0", "gfx9", "gfx90X"},    {"gfx9_4", "gfx9", "gfx94X"},
	{"gfx9_5", "gfx9", "gfx95X"},    {"gfx10_1", "gfx10", "gfx101X"},
	{"gfx10_3", "gfx10", "gfx103X"}, {"gfx110x", "gfx11", "gfx110X"},
	{"gfx115x", "gfx11", "gfx115X"}, {"gfx117x", "gfx11", "gfx117X"},
	{"gfx12_0", "gfx12", "gfx120X"}, {"gfx12_5", "gfx12", "gfx125X"},
	{"gfx13_1", "gfx13", "gfx131X"},
};

/* Only known processors have a sub-family: the rule for names alone would take any digit. */
const struct gpu_subfamily *gpu_subfamily_of(struct kp_span target)
{
	const uint8_t *colon = target.size ? memchr(target.data, ':', target.size) : NULL;

	if (colon)
		target.size = (size_t)(colon - target.data);
	target = kp_processor_model(target);
	if (!kp_processor_by_name(target))
		return NULL;
	for (size_t i = 0; i < KP_COUNT(table); i++)
		if (target.size == strlen(table[i].series) &&
		    memcmp(target.data, table[i].series, target.size - 1) == 0)
			return &table[i];
	return NULL;
}

/* Whether NAME equals TEXT, ignoring case: "gfx120x" equals "gfx120X". */
static bool is_spelled(struct kp_span name, const char *text)
{
	return name.size == strlen(text) &&
	       strncasecmp((const char *)name.data, text, name.size) == 0;
}

const char *gpu_group_name(struct kp_span name)
{
	/* former names */
	if (kp_span_is(name, "gfx11_0"))
		return gpu_group_name(kp_span_str("gfx110x"));
	if (kp_span_is(name, "gfx11_5"))
		return gpu_group_name(kp_span_str("gfx115x"));
	for (size_t i = 0; i < KP_COUNT(table); i++) {
		const char *family = table[i].family;
		size_t n = strlen(family);

		if (kp_span_is(name, table[i].name) || is_spelled(name, table[i].series))
			return table[i].name;
		/* "gfx11", "gfx11xx"; the family's first row matches, so that equal names are
		 * one pointer */
		if (kp_span_starts(name, family, n) &&
		    (name.size == n || is_spelled(kp_span_tail(name, n), "xx")))
			return family;
	}
	return NULL;
}

/* --- names of archives, packages and wheels ------------------------------------- */

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/*
 * Refuse NAME, of OPTION, unless it consists of ALLOWED characters, begins with one of FIRST, and
 * has MORE as well.
 */
static kpack_error_t check_name(const char *option, const char *name, const char *first,
				const char *allowed, bool more, const char *rule,
				struct kpackx_error *why)
{
	if (!name || (more && *name && strchr(first, *name) &&
		      name[strspn(name, allowed)] == '\0'))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: \"%s\": a name is %s, and begins like one", option, name,
		       rule);
}

kpack_error_t gpu_names_check(const struct gpu_names *names, struct kpackx_error *why)
{
	const char *group = names->group, *package = names->package, *dist = names->dist;
	size_t n = dist ? strlen(dist) : 0;

	KP_TRY(check_name(
		"--group", group, LOWER UPPER DIGITS "._+:", LOWER UPPER DIGITS "._+:-",
		group && kp_component_ok(kp_span_str(group)), "[A-Za-z0-9._+:-]", why));
	KP_TRY(check_name("--package", package, LOWER DIGITS, LOWER DIGITS ".+-",
			  package && strlen(package) > 1, "two or more of [a-z0-9.+-]",
			  why));
	return check_name("--dist", dist, LOWER UPPER DIGITS, LOWER UPPER DIGITS "._-",
			  n && strchr(LOWER UPPER DIGITS, dist[n - 1]), "[A-Za-z0-9._-]",
			  why);
}

/*
 * LABEL as a part of a name: "_" and ":" become "-"; a "+" or "-" at the end of a part after a colon
 * is a feature's sign, which becomes a word: "gfx90a-xnack-on".
 */
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

void gpu_extra_part(const char *label, char out[GPU_NAME_PART_MAX])
{
	struct kp_span model = kp_processor_model(
		(struct kp_span){(const uint8_t *)label, strcspn(label, ":")});
	char text[KP_TARGET_TEXT_MAX];

	snprintf(text, sizeof(text), "%.*s", (int)model.size, (const char *)model.data);
	spell_label(text, out);
}

/* The label in lower case: "gfx90a-xnack-on", "gfx12-0", "gfx110x". */
char *gpu_package_name(const char *package, const char *label)
{
	char part[GPU_NAME_PART_MAX];

	spell_label(label, part);
	for (char *s = part; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
	return xasprintf("%s-%s", package, part);
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

kpack_error_t families_parse(struct families *families, const char *text,
			     struct kpackx_error *why)
{
	size_t n = strcspn(text, "=");

	if (!text[n])
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "not NAME=ARCH,...");
	return families_add(families, (struct kp_span){(const uint8_t *)text, n},
			    text + n + 1, why);
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
