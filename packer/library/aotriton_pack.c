/* SPDX-License-Identifier: MIT */
#include "aotriton_pack.h"
#include <stdio.h>
#include "arch_name.h"

/*
 * The GPUs that AOTriton builds each family for.  The x's in a name do not say that:
 * gfx11xx is older than gfx1154 and gfx117x, and does not include them.
 */
static const struct {
	const char *name;
	const char *members[9]; /* NULL-terminated */
} families[] = {
	{"gfx11xx",
	 {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152",
	  "gfx1153"}},
	{"gfx110x", {"gfx1100", "gfx1101", "gfx1102", "gfx1103"}},
	{"gfx115x", {"gfx1150", "gfx1151", "gfx1152", "gfx1153"}},
	{"gfx120x", {"gfx1200", "gfx1201"}},
};

static void add_arch(struct aotriton_pack *p, const char *arch)
{
	if (p->n_arches < PACK_MEMBERS_MAX)
		snprintf(p->arches[p->n_arches++], sizeof(p->arches[0]), "%s", arch);
}

static bool add_known_family(struct aotriton_pack *p, struct kp_span name)
{
	for (size_t i = 0; i < KP_COUNT(families); i++) {
		const char *const *m = families[i].members;

		if (!kp_span_is(name, families[i].name))
			continue;
		for (; *m; m++)
			add_arch(p, *m);
		return true;
	}
	return false;
}

/* Whether PROCESSOR matches FAMILY, in which an x stands for any character. */
static bool fits_family(const char *processor, struct kp_span family)
{
	if (strlen(processor) != family.size || strchr(processor, '-'))
		return false;
	for (size_t i = 0; i < family.size; i++)
		if (i < 3 || family.data[i] != 'x')
			if (family.data[i] != (uint8_t)processor[i])
				return false;
	return true;
}

/* For a family that the table above does not have: add the GPUs whose names match. */
static void add_fitting(struct aotriton_pack *p, struct kp_span name)
{
	size_t n;
	const struct kp_processor *table = kp_processor_table(&n);

	for (size_t i = 0; i < n; i++)
		if (fits_family(table[i].name, name))
			add_arch(p, table[i].name);
}

static bool has_x(struct kp_span name)
{
	return name.size > 3 && name.size < KP_TARGET_TEXT_MAX &&
	       memchr(name.data + 3, 'x', name.size - 3);
}

static void name_members(struct aotriton_pack *p, struct kp_span name)
{
	char arch[KP_TARGET_TEXT_MAX];

	if (arch_of_directory(name, arch, NULL)) {
		add_arch(p, arch);
		return;
	}
	if (has_x(name) && !add_known_family(p, name))
		add_fitting(p, name);
	if (p->n_arches)
		snprintf(p->family, sizeof(p->family), "%.*s", (int)name.size,
			 (const char *)name.data);
}

/* Strip the suffix for a part of a GPU's compute units: gfx942_mod0 is for gfx942. */
static struct kp_span without_mod(struct kp_span name)
{
	const uint8_t *mod = memmem(name.data, name.size, "_mod", 4);

	return mod ? (struct kp_span){name.data, (size_t)(mod - name.data)} : name;
}

struct aotriton_pack aotriton_pack_named(struct kp_span name)
{
	struct aotriton_pack p = {0};

	if (!kp_span_starts(name, "gfx", 3))
		return p;
	name_members(&p, without_mod(name));
	p.unknown = p.n_arches == 0;
	return p;
}

struct aotriton_pack aotriton_pack(struct kp_span directory)
{
	if (!kp_span_starts(directory, "amd-", 4))
		return (struct aotriton_pack){0};
	return aotriton_pack_named(
		(struct kp_span){directory.data + 4, directory.size - 4});
}

bool aotriton_packs_agree(const struct aotriton_pack *a, const struct aotriton_pack *b)
{
	for (size_t i = 0; i < a->n_arches; i++)
		for (size_t k = 0; k < b->n_arches; k++)
			if (arch_agrees(a->arches[i], b->arches[k]))
				return true;
	return a->n_arches == 0 || b->n_arches == 0;
}
