/* SPDX-License-Identifier: MIT */
#include "names.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/text.h"
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Whether TEXT consists of characters in ALLOWED, and begins with one in FIRST. */
static bool made_of(const char *text, const char *first, const char *allowed)
{
	return *text && strchr(first, *text) && text[strspn(text, allowed)] == '\0';
}

static bool group_ok(const char *s)
{
	return kp_component_ok(kp_span_str(s)) &&
	       made_of(s, LOWER UPPER DIGITS "._+:", LOWER UPPER DIGITS "._+:-");
}

static bool package_ok(const char *s)
{
	return s[0] && s[1] && made_of(s, LOWER DIGITS, LOWER DIGITS ".+-");
}

static bool dist_ok(const char *s)
{
	return made_of(s, LOWER UPPER DIGITS, LOWER UPPER DIGITS "._-") &&
	       strchr(LOWER UPPER DIGITS, s[strlen(s) - 1]);
}

static const struct {
	const char *option, *rule;
	size_t offset;
	bool (*ok)(const char *s);
} rules[] = {
	{"--group", "[A-Za-z0-9._+:-]", offsetof(struct gpu_names, group), group_ok},
	{"--package", "two or more of [a-z0-9.+-]", offsetof(struct gpu_names, package),
	 package_ok},
	{"--dist", "[A-Za-z0-9._-]", offsetof(struct gpu_names, dist), dist_ok},
};

kpack_error_t gpu_names_check(const struct gpu_names *names, struct kpackx_error *why)
{
	for (size_t i = 0; i < KP_COUNT(rules); i++) {
		const char *name;

		memcpy(&name, (const char *)names + rules[i].offset, sizeof(name));
		if (name && !rules[i].ok(name))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: \"%s\": a name is %s, and begins like one",
				       rules[i].option, name, rules[i].rule);
	}
	return KPACK_SUCCESS;
}

const char *gpu_names_label(const struct gpu_names *names, const struct gpu_kind *kind)
{
	if (!names->family)
		return kind->arch;
	return kind->subfamily ? kind->subfamily->series : NULL;
}

/* Whether SIGN is the sign of a feature, at the end of its part of LABEL. */
static bool is_sign(const char *label, const char *sign)
{
	return (sign[1] == '\0' || sign[1] == ':') && strchr(label, ':') &&
	       strchr(label, ':') < sign;
}

static void spell_label(const char *label, char out[GPU_NAME_PART_MAX])
{
	size_t n = 0;

	for (const char *s = label; *s && n + 5 < GPU_NAME_PART_MAX; s++) {
		if (strchr("+-", *s) && is_sign(label, s))
			n = (size_t)(stpcpy(out + n, *s == '+' ? "-on" : "-off") - out);
		else
			out[n++] = strchr("_:", *s) ? '-' : *s;
	}
	out[n] = '\0';
}

void gpu_package_part(const char *label, char out[GPU_NAME_PART_MAX])
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

	gpu_package_part(label, part);
	return xasprintf("%s-%s", names->package, part);
}

char *gpu_wheel_name(const struct gpu_names *names, const char *label)
{
	char part[GPU_NAME_PART_MAX];

	gpu_extra_part(label, part);
	return xasprintf("%s[device-%s]", names->dist, part);
}
