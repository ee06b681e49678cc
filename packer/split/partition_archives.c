/* SPDX-License-Identifier: MIT */
#include "partition_internal.h"
#include <stdlib.h>
#include "output_name.h"
#include "packer/pack/archives/volume.h"
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

static kpack_error_t add_name(struct output_tree *part, const char *name,
			      struct kpackx_error *why)
{
	const char **bigger;

	for (size_t i = 0; i < part->n_archives; i++)
		if (part->archives[i] == name)
			return KPACK_SUCCESS;
	bigger = realloc(part->archives, (part->n_archives + 1) * sizeof(*bigger));
	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "archives");
	part->archives = bigger;
	bigger[part->n_archives++] = name;
	return KPACK_SUCCESS;
}

/* The name of the archive with PLACE's code of VOLUME.  On the heap. */
static kpack_error_t archive_name(const struct packing *p, const char *place,
				  unsigned volume, char **out, struct kpackx_error *why)
{
	char *stem = families_stem(&p->args.families, place);

	*out = NULL;
	if (stem)
		*out = kp_archive_file_name(p->args.group, volume, stem);
	free(stem);
	return *out ? KPACK_SUCCESS : kp_fail_memory(why, strlen(place), "a name");
}

static kpack_error_t place_archive(const struct packing *p, struct partition *out,
				   const char *place, unsigned volume,
				   struct kpackx_error *why)
{
	const char *part = output_name_of_code(&p->args.families, place), *name;
	bool family = part != place;
	size_t number;
	char *file;

	KP_TRY(archive_name(p, place, volume, &file, why));
	name = written_name(p, file);
	free(file);
	if (!name)
		return KPACK_SUCCESS;
	KP_TRY(partition_take(out, part, family, &number, why));
	return add_name(&out->items[number], name, why);
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
static kpack_error_t list_member(const struct packing *p, struct partition *out,
				 const char *place, const char *arch,
				 struct kpackx_error *why)
{
	const char *name = output_name_of_code(&p->args.families, place);
	size_t number = partition_find(out, name);

	if (number == PARTITION_NONE || number == out->generic)
		return KPACK_SUCCESS;
	return partition_add_arch(&out->items[number], arch, why);
}

static kpack_error_t list_members(const struct packing *p, struct partition *out,
				  struct kpackx_error *why)
{
	const struct plan *plan = &p->plan;

	for (size_t i = 0; i < plan->n_names; i++)
		KP_TRY(list_member(p, out, plan->names[i].arch, plan->names[i].arch,
				   why));
	for (size_t i = 0; i < plan->n_keys; i++) {
		const struct plan_key *key = &plan->keys[i];
		const struct plan_object *o = &plan->objects[key->object];

		KP_TRY(list_member(p, out, input_place(&o->input->objects[o->image]),
				   key->arch, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t partition_archives(const struct packing *p, struct partition *out,
				 struct kpackx_error *why)
{
	KP_TRY(place_archives(p, out, why));
	return list_members(p, out, why);
}
