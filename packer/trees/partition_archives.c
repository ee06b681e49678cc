/* SPDX-License-Identifier: MIT */
#include "partition_internal.h"
#include <stdlib.h>
#include "output_name.h"
#include "packer/cli/xalloc.h"
#include "core/archive/naming.h"

/* The set's own copy of the name FILE; NULL: it wrote no such archive. */
static const char *written_name(const struct packing *p, const char *file)
{
	size_t n;
	const char *const *names = archive_set_names(p->set, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], file) == 0)
			return names[i];
	return NULL;
}

static void add_name(struct output_tree *part, const char *name)
{
	for (size_t i = 0; i < part->n_archives; i++)
		if (part->archives[i] == name)
			return;
	part->archives = xrealloc(part->archives,
				  (part->n_archives + 1) * sizeof(*part->archives));
	part->archives[part->n_archives++] = name;
}

/* The name of the archive with PLACE's code of VOLUME; the caller frees it. */
static char *archive_name(const struct packing *p, const char *place, unsigned volume)
{
	char *stem = families_stem(&p->args.families, place);
	char *name = stem ? kp_archive_file_name(p->args.group, volume, stem) : NULL;

	if (!name)
		xalloc_fail(0);
	free(stem);
	return name;
}

static kpack_error_t place_archive(const struct packing *p, struct partition *out,
				   const char *place, unsigned volume,
				   struct kpackx_error *why)
{
	const char *part = output_name_of_code(&p->args.families, place);
	char *file = archive_name(p, place, volume);
	const char *name = written_name(p, file);
	bool family = part != place;
	size_t number;

	free(file);
	if (!name)
		return KPACK_SUCCESS;
	KP_TRY(partition_take(out, part, family, &number, why));
	add_name(&out->items[number], name);
	return KPACK_SUCCESS;
}

static kpack_error_t place_archives(const struct packing *p, struct partition *out,
				    struct kpackx_error *why)
{
	const struct plan *plan = &p->plan;

	for (size_t i = 0; p->set && i < plan->n_binaries; i++)
		for (size_t k = 0; k < plan->binaries[i].n_needs; k++)
			KP_TRY(place_archive(p, out, plan->binaries[i].needs[k].place,
					     plan->binaries[i].volume, why));
	return KPACK_SUCCESS;
}

/* List ARCH in the output tree of PLACE, if that tree exists. */
static void list_member(const struct packing *p, struct partition *out, const char *place,
			const char *arch)
{
	const char *name = output_name_of_code(&p->args.families, place);
	size_t number = partition_find(out, name);

	if (number != PARTITION_NONE && number != out->generic)
		partition_add_arch(&out->items[number], arch);
}

static void list_members(const struct packing *p, struct partition *out)
{
	const struct plan *plan = &p->plan;

	for (size_t i = 0; i < plan->n_names; i++)
		list_member(p, out, plan->names[i].arch, plan->names[i].arch);
	for (size_t i = 0; i < plan->n_keys; i++) {
		const struct plan_key *key = &plan->keys[i];
		const struct plan_object *o = &plan->objects[key->object];

		list_member(p, out, o->input->images[o->image].arch, key->arch);
	}
}

kpack_error_t partition_archives(const struct packing *p, struct partition *out,
				 struct kpackx_error *why)
{
	KP_TRY(place_archives(p, out, why));
	list_members(p, out);
	return KPACK_SUCCESS;
}
