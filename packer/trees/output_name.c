/* SPDX-License-Identifier: MIT */
#include "output_name.h"
#include "core/target/target.h"
#include <string.h>

/* AOTriton's families, with the names that other splitters give their trees. */
static const struct {
	const char *family, *part;
} renamed[] = {
	{"gfx11xx", "gfx11"},
	{"gfx120x", "gfx12_0"},
};

const char *output_name_known(const char *family)
{
	for (size_t i = 0; i < KP_COUNT(renamed); i++)
		if (strcmp(family, renamed[i].family) == 0)
			return renamed[i].part;
	return family;
}

const char *output_name_of_code(const struct families *families, const char *arch)
{
	const struct family *family = families_find(families, arch);

	return family ? family->name : output_name_known(arch);
}

void output_name_base(const struct library_object *o, size_t i,
		      char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target target;

	library_object_target(o, i, out);
	if (kp_target_parse(kp_span_str(out), &target, NULL))
		return;
	target.sramecc = target.xnack = KP_FEATURE_ANY;
	kp_target_format(&target, out);
}

/* The --family that contains architecture I of O, or its base; or NULL. */
static const struct family *chosen_family(const struct families *families,
					  const struct library_object *o, size_t i)
{
	char target[KP_TARGET_TEXT_MAX], base[KP_TARGET_TEXT_MAX];
	const struct family *family;

	library_object_target(o, i, target);
	output_name_base(o, i, base);
	family = families_find(families, target);
	return family ? family : families_find(families, base);
}

const struct family *output_name_family(const struct families *families,
					const struct library_object *o)
{
	const struct family *family = chosen_family(families, o, 0);

	for (size_t i = 1; i < o->n_arches; i++)
		if (chosen_family(families, o, i) != family)
			return NULL;
	return family;
}

bool output_name_common(const struct library_object *o, char out[KP_TARGET_TEXT_MAX])
{
	char other[KP_TARGET_TEXT_MAX];

	output_name_base(o, 0, out);
	if (strcmp(out, KP_ARCH_GENERIC) == 0 || kp_generic_members(kp_span_str(out)))
		return false;
	for (size_t i = 1; i < o->n_arches; i++) {
		output_name_base(o, i, other);
		if (strcmp(out, other) != 0)
			return false;
	}
	return true;
}
