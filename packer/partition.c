/* SPDX-License-Identifier: MIT */
#include "partition.h"
#include <stdio.h>
#include <stdlib.h>
#include "old_archive.h"
#include "part_name.h"
#include "text.h"
#include "volume.h"

struct builder {
	const struct packing *p;
	struct partition *out;
	size_t *part_of; /* before the parts are sorted */
};

/* --- parts --------------------------------------------------------------------------- */

size_t partition_find(const struct partition *partition, const char *name)
{
	for (size_t i = 0; i < partition->count; i++)
		if (strcmp(partition->items[i].name, name) == 0)
			return i;
	return PARTITION_NONE;
}

static kpack_error_t check_name(const char *name, struct kpackx_error *why)
{
	struct kp_span s = kp_span_str(name);

	if (kp_component_ok(s) && kp_text_ok(s))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "architecture %s gives no file name", name);
}

/* The part NAME, made when it is not there. */
static kpack_error_t take_part(struct partition *out, const char *name, bool family,
			       size_t *number, struct kpackx_error *why)
{
	struct part *bigger;

	*number = partition_find(out, name);
	if (*number != PARTITION_NONE)
		return KPACK_SUCCESS;
	KP_TRY(check_name(name, why));
	bigger = realloc(out->items, (out->count + 1) * sizeof(*bigger));
	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "parts");
	out->items = bigger;
	bigger[out->count] = (struct part){.name = strdup(name), .family = family};
	if (!bigger[out->count].name)
		return kp_fail_memory(why, strlen(name), "parts");
	*number = out->count++;
	return KPACK_SUCCESS;
}

static kpack_error_t add_arch(struct part *part, const char *arch,
			      struct kpackx_error *why)
{
	char **bigger;

	for (size_t i = 0; i < part->n_arches; i++)
		if (strcmp(part->arches[i], arch) == 0)
			return KPACK_SUCCESS;
	bigger = realloc(part->arches, (part->n_arches + 1) * sizeof(*bigger));
	if (!bigger)
		return kp_fail_memory(why, sizeof(*bigger), "architectures");
	part->arches = bigger;
	bigger[part->n_arches] = strdup(arch);
	if (!bigger[part->n_arches])
		return kp_fail_memory(why, strlen(arch), "architectures");
	part->n_arches++;
	return KPACK_SUCCESS;
}

/* --- files --------------------------------------------------------------------------- */

static kpack_error_t add_base_arches(struct part *part, const struct library_object *o,
				     struct kpackx_error *why)
{
	char base[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < o->n_arches; i++) {
		part_name_base(o, i, base);
		KP_TRY(add_arch(part, base, why));
	}
	return KPACK_SUCCESS;
}

/* The part of a database's file. */
static kpack_error_t place_file(struct builder *b, const struct library_object *o,
				size_t *number, struct kpackx_error *why)
{
	const struct family *family = part_name_family(&b->p->args.families, o);
	char base[KP_TARGET_TEXT_MAX];
	const char *name;

	*number = b->out->generic;
	if (strcmp(o->arches[0], LIBRARY_NEUTRAL) == 0)
		return KPACK_SUCCESS;
	if (family)
		name = family->name;
	else if (*o->family)
		name = part_name_known(o->family);
	else if (part_name_common(o, base))
		name = base;
	else
		return KPACK_SUCCESS;
	KP_TRY(take_part(b->out, name, family || *o->family, number, why));
	return add_base_arches(&b->out->items[*number], o, why);
}

/* Whose a file is, which is in the tree that was written; or NULL. */
static kpack_error_t place_files(struct builder *b, struct kpackx_error *why)
{
	const struct scan *scan = &b->p->scan;

	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];
		size_t entry = scan->file_entries[i];

		if (o && b->part_of[entry] != PARTITION_NONE)
			KP_TRY(place_file(b, o, &b->part_of[entry], why));
	}
	return KPACK_SUCCESS;
}

/* --- archives that were there -------------------------------------------------------- */

static kpack_error_t place_old(struct builder *b, const struct old_archive *a,
			       size_t *number, struct kpackx_error *why)
{
	if (strcmp(a->part, PARTITION_GENERIC) == 0)
		return KPACK_SUCCESS;
	KP_TRY(take_part(b->out, a->part, a->family, number, why));
	for (size_t i = 0; i < a->n_arches; i++)
		KP_TRY(add_arch(&b->out->items[*number], a->arches[i], why));
	return KPACK_SUCCESS;
}

/* What cannot be read as an archive is a file like others. */
static kpack_error_t place_archives_there(struct builder *b, struct kpackx_error *why)
{
	const struct scan *scan = &b->p->scan;

	for (size_t i = 0; i < scan->n_entries; i++) {
		struct old_archive archive;
		kpack_error_t err;

		if (b->part_of[i] != b->out->generic ||
		    !old_archive_is(&scan->entries[i]) ||
		    old_archive_open(scan->entries[i].path, &b->p->args.families,
				     &archive, NULL))
			continue;
		err = place_old(b, &archive, &b->part_of[i], why);
		old_archive_close(&archive);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

static bool is_there(const struct packing *p, size_t entry)
{
	switch (p->outcomes.items[entry].fate) {
	case FATE_NOTHING: /* in place, archives are none of its business */
	case FATE_LEFT_OUT:
	case FATE_NOT_WANTED:
	case FATE_PACKED:
		return false;
	default:
		return true;
	}
}

/* --- directories --------------------------------------------------------------------- */

static bool is_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* What leaves a directory behind that is generic. */
static bool leaves_directory(const struct builder *b, size_t entry)
{
	enum fate fate = b->p->outcomes.items[entry].fate;

	return b->part_of[entry] == b->out->generic || fate == FATE_PACKED ||
	       fate == FATE_LEFT_OUT;
}

/* A directory is generic when it is empty or something in it is. */
static bool is_generic_dir(const struct builder *b, size_t dir)
{
	const struct scan *scan = &b->p->scan;
	size_t i = dir + 1, end = scan->n_entries;
	bool empty = true;

	for (; i < end && strncmp(scan->entries[i].relative, scan->entries[dir].relative,
				  strlen(scan->entries[dir].relative)) == 0;
	     i++) {
		if (!is_inside(scan->entries[i].relative, scan->entries[dir].relative))
			continue;
		empty = false;
		if (leaves_directory(b, i))
			return true;
	}
	return empty;
}

/* From the innermost, so that a directory in one is decided before it. */
static void place_directories(struct builder *b)
{
	for (size_t i = b->p->scan.n_entries; i-- > 0;)
		if (S_ISDIR(b->p->scan.entries[i].mode) && is_generic_dir(b, i))
			b->part_of[i] = b->out->generic;
}

/* --- archives ------------------------------------------------------------------------ */

/* As the set keeps it; NULL: it has none of that name. */
static const char *written_name(const struct packing *p, const char *file)
{
	size_t n;
	const char *const *names = archive_set_names(p->set, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], file) == 0)
			return names[i];
	return NULL;
}

static kpack_error_t add_name(struct part *part, const char *name,
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

/* The name of the archive that PLACE's code is in, in that volume, on the heap. */
static kpack_error_t archive_name(const struct packing *p, const char *place,
				  unsigned volume, char **out, struct kpackx_error *why)
{
	const struct family *family = families_find(&p->args.families, place);
	char *stem;

	if (asprintf(&stem, "%c%s", family ? '-' : '_', family ? family->name : place) <
	    0)
		return kp_fail_memory(why, strlen(place), "a name");
	*out = volume_file_name(p->args.group, volume, stem);
	free(stem);
	return *out ? KPACK_SUCCESS : kp_fail_memory(why, strlen(place), "a name");
}

static kpack_error_t place_archive(struct builder *b, const char *place, unsigned volume,
				   struct kpackx_error *why)
{
	const char *part = part_name_of_code(&b->p->args.families, place), *name;
	bool family = part != place;
	size_t number;
	char *file;

	KP_TRY(archive_name(b->p, place, volume, &file, why));
	name = written_name(b->p, file);
	free(file);
	if (!name)
		return KPACK_SUCCESS;
	KP_TRY(take_part(b->out, part, family, &number, why));
	return add_name(&b->out->items[number], name, why);
}

static kpack_error_t place_archives(struct builder *b, struct kpackx_error *why)
{
	const struct plan *plan = &b->p->plan;

	for (size_t i = 0; b->p->set && i < plan->n_binaries; i++)
		for (size_t k = 0; k < plan->binaries[i].n_needs; k++)
			KP_TRY(place_archive(b, plan->binaries[i].needs[k].place,
					     plan->binaries[i].volume, why));
	return KPACK_SUCCESS;
}

/* ARCH is one that the part of PLACE, if there is one, has code of. */
static kpack_error_t list_member(struct builder *b, const char *place, const char *arch,
				 struct kpackx_error *why)
{
	const char *name = part_name_of_code(&b->p->args.families, place);
	size_t number = partition_find(b->out, name);

	if (number == PARTITION_NONE || number == b->out->generic)
		return KPACK_SUCCESS;
	return add_arch(&b->out->items[number], arch, why);
}

static kpack_error_t list_members(struct builder *b, struct kpackx_error *why)
{
	const struct plan *plan = &b->p->plan;

	for (size_t i = 0; i < plan->n_names; i++)
		KP_TRY(list_member(b, plan->names[i].arch, plan->names[i].arch, why));
	for (size_t i = 0; i < plan->n_keys; i++) {
		const struct plan_key *key = &plan->keys[i];
		const struct plan_object *o = &plan->objects[key->object];

		KP_TRY(list_member(b, input_place(&o->input->objects[o->image]),
				   key->arch, why));
	}
	return KPACK_SUCCESS;
}

/* --- all of it ----------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct part *)a)->name, ((const struct part *)b)->name);
}

/* Sort what each part lists. */
static void sort_lists(struct partition *out)
{
	for (size_t i = 0; i < out->count; i++) {
		struct part *part = &out->items[i];

		if (part->n_arches)
			qsort(part->arches, part->n_arches, sizeof(char *), by_text);
		if (part->n_archives)
			qsort(part->archives, part->n_archives, sizeof(char *), by_text);
	}
}

/* Entries were placed by the number a part had before. */
static kpack_error_t sort_parts(struct builder *b, struct kpackx_error *why)
{
	struct partition *out = b->out;
	const char **before = malloc(out->count * sizeof(*before));
	size_t *now = malloc(out->count * sizeof(*now)), n = b->p->scan.n_entries;
	bool ok = before && now;

	for (size_t i = 0; ok && i < out->count; i++)
		before[i] = out->items[i].name;
	qsort(out->items, out->count, sizeof(*out->items), by_name);
	for (size_t i = 0; ok && i < out->count; i++)
		now[i] = partition_find(out, before[i]);
	for (size_t i = 0; ok && i < n; i++)
		if (b->part_of[i] != PARTITION_NONE)
			b->part_of[i] = now[b->part_of[i]];
	free(before);
	free(now);
	out->generic = partition_find(out, PARTITION_GENERIC);
	sort_lists(out);
	return ok ? KPACK_SUCCESS : kp_fail_memory(why, out->count, "parts");
}

/* The part that lists ENTRY; or NULL. */
static struct part *part_with(const struct builder *b, size_t entry)
{
	size_t number = b->part_of[entry];

	return number == PARTITION_NONE || S_ISDIR(b->p->scan.entries[entry].mode)
		       ? NULL
		       : &b->out->items[number];
}

static kpack_error_t list_entries(struct builder *b, struct kpackx_error *why)
{
	size_t n = b->p->scan.n_entries;
	struct part *part;

	for (size_t i = 0; i < n; i++)
		if ((part = part_with(b, i)))
			part->n_entries++;
	for (size_t i = 0; i < b->out->count; i++) {
		part = &b->out->items[i];
		part->entries = malloc((part->n_entries + 1) * sizeof(*part->entries));
		if (!part->entries)
			return kp_fail_memory(why, part->n_entries, "files");
		part->n_entries = 0;
	}
	for (size_t i = 0; i < n; i++)
		if ((part = part_with(b, i)))
			part->entries[part->n_entries++] = i;
	return KPACK_SUCCESS;
}

static kpack_error_t build(struct builder *b, struct kpackx_error *why)
{
	const struct scan *scan = &b->p->scan;

	b->part_of = malloc((scan->n_entries + 1) * sizeof(*b->part_of));
	b->out->part_of = b->part_of;
	if (!b->part_of)
		return kp_fail_memory(why, scan->n_entries, "files");
	KP_TRY(take_part(b->out, PARTITION_GENERIC, false, &b->out->generic, why));
	for (size_t i = 0; i < scan->n_entries; i++)
		b->part_of[i] = is_there(b->p, i) ? b->out->generic : PARTITION_NONE;
	KP_TRY(place_files(b, why));
	KP_TRY(place_archives_there(b, why));
	place_directories(b);
	KP_TRY(place_archives(b, why));
	KP_TRY(list_members(b, why));
	KP_TRY(sort_parts(b, why));
	return list_entries(b, why);
}

kpack_error_t partition_open(const struct packing *p, struct partition *out,
			     struct kpackx_error *why)
{
	struct builder b = {.p = p, .out = out};
	kpack_error_t err;

	*out = (struct partition){0};
	err = build(&b, why);
	if (err)
		partition_close(out);
	return err;
}

static void part_fini(struct part *part)
{
	for (size_t i = 0; i < part->n_arches; i++)
		free(part->arches[i]);
	free(part->arches);
	free(part->entries);
	free(part->archives);
	free(part->name);
}

void partition_close(struct partition *partition)
{
	for (size_t i = 0; i < partition->count; i++)
		part_fini(&partition->items[i]);
	free(partition->items);
	free(partition->part_of);
	*partition = (struct partition){0};
}
