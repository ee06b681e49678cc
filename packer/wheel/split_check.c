/* SPDX-License-Identifier: MIT */
#include "split_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/archive.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Limit of objects of one architecture and kind in one container. */
#define SAME_KIND_MAX 64

/* A member of an output wheel. */
struct written {
	const char *path, *file;
	uint64_t size;
	uint32_t crc;
	bool info; /* in the wheel's .dist-info */
};

struct check {
	const struct wheel_write *w;
	const struct wheel_files *files;
	const struct wheel_source *sources;
	size_t n_sources;
	struct wheel_in **wheels; /* per file */
	struct written *members;  /* by path */
	size_t n_members, cap;
	struct kpack_archive **archives;
	size_t n_archives;
	uint8_t (*known)[16]; /* hashes of the preferred wheel's objects, sorted */
	size_t n_known;
};

static void check_fini(struct check *c)
{
	for (size_t i = 0; i < c->files->count; i++)
		wheel_in_close(c->wheels[i]);
	for (size_t i = 0; i < c->n_archives; i++)
		kp_archive_close(c->archives[i]);
	free(c->wheels);
	free(c->members);
	free(c->archives);
	free(c->known);
}

/* --- reading the output wheels ----------------------------------------------------- */

static bool in_info(const char *path)
{
	static const char end[] = ".dist-info/";
	const char *at = strstr(path, end);

	return at && strchr(path, '/') == at + strlen(end) - 1;
}

static kpack_error_t read_wheel(struct check *c, size_t number, struct kpackx_error *why)
{
	const struct wheel_file *file = &c->files->items[number];
	const struct wheel_member *members;
	char *path = xasprintf("%s/%s", c->w->dir, file->name);
	kpack_error_t err = wheel_in_open(path, &c->wheels[number], why);
	size_t count;

	free(path);
	if (err)
		return kp_fail_prefix(why, err, "%s", file->name);
	members = wheel_in_members(c->wheels[number], &count);
	for (size_t i = 0; i < count; i++) {
		xgrow(&c->members, c->n_members, &c->cap, sizeof(*c->members));
		c->members[c->n_members++] = (struct written){
			.path = members[i].path,
			.file = file->name,
			.size = members[i].size,
			.crc = members[i].crc,
			.info = in_info(members[i].path),
		};
	}
	return KPACK_SUCCESS;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct written *)a)->path,
		      ((const struct written *)b)->path);
}

/* Skip the variant of the host wheel, which has the same members. */
static kpack_error_t read_wheels(struct check *c, struct kpackx_error *why)
{
	c->wheels = xcalloc(c->files->count, sizeof(struct wheel_in *));
	for (size_t i = 0; i < c->files->count; i++)
		if (c->files->items[i].kind == WHEEL_FILE_DEVICE ||
		    c->files->items[i].kind == WHEEL_FILE_HOST)
			KP_TRY(read_wheel(c, i, why));
	qsort(c->members, c->n_members, sizeof(*c->members), by_path);
	for (size_t i = 1; i < c->n_members; i++)
		if (strcmp(c->members[i - 1].path, c->members[i].path) == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s would be in two wheels: %s and %s",
				       c->members[i].path, c->members[i - 1].file,
				       c->members[i].file);
	return KPACK_SUCCESS;
}

static const struct written *find_written(const struct check *c, const char *path)
{
	const struct written key = {.path = path};

	return c->n_members ? bsearch(&key, c->members, c->n_members, sizeof(*c->members),
				      by_path)
			    : NULL;
}

/* --- members ----------------------------------------------------------------------- */

static int item_order(const void *key, const void *item)
{
	const struct wheel_item *a = key, *b = item;

	if (a->last != b->last)
		return KP_ORDER(a->last, b->last);
	return strcmp(a->path, b->path);
}

static const struct wheel_item *find_item(const struct check *c,
					  const struct wheel_source *s, const char *path)
{
	size_t n = strlen(s->info.dir);
	const struct wheel_item key = {
		.path = (char *)path,
		.last = strncmp(path, s->info.dir, n) == 0 && path[n] == '/',
	};
	const struct wheel_items *items = c->w->items;

	return items->count ? bsearch(&key, items->items, items->count,
				      sizeof(*items->items), item_order)
			    : NULL;
}

/*
 * True for a packed file of a kernel database: check_objects finds its bytes in archives.
 */
static bool was_packed(const struct wheel_source *s, const char *path)
{
	const struct packing *p = &s->packing;
	const char *inside = wheel_source_inside(s, path);
	size_t entry;

	return inside && scan_find(&p->scan, kp_span_str(inside), &entry) &&
	       p->dispositions.items[entry].fate == FATE_PACKED;
}

static kpack_error_t check_member(const struct check *c, const struct wheel_source *s,
				  const struct wheel_member *m, struct kpackx_error *why)
{
	const struct written *found = find_written(c, m->path);
	const struct wheel_item *item = find_item(c, s, m->path);

	if (m->directory || wheel_items_made(&s->info, m->path))
		return KPACK_SUCCESS;
	if (!found)
		return was_packed(s, m->path)
			       ? KPACK_SUCCESS
			       : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					 "%s would be in no wheel", m->path);
	/* with several sources, another one's file may be preferred */
	if (!item || item->kind != WHEEL_ITEM_MEMBER || item->source != s)
		return KPACK_SUCCESS;
	if (found->size == m->size && found->crc == m->crc)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "%s would have different bytes in %s", m->path, found->file);
}

static kpack_error_t check_members(const struct check *c, struct kpackx_error *why)
{
	for (size_t i = 0; i < c->n_sources; i++) {
		size_t count;
		const struct wheel_member *members =
			wheel_in_members(c->sources[i].in, &count);

		for (size_t k = 0; k < count; k++)
			KP_TRY(check_member(c, &c->sources[i], &members[k], why));
	}
	return KPACK_SUCCESS;
}

/* Check that every output member comes from a source. */
static kpack_error_t check_origin(const struct check *c, struct kpackx_error *why)
{
	size_t member;

	for (size_t i = 0; i < c->n_members; i++) {
		const struct written *m = &c->members[i];
		const struct wheel_item *item = find_item(c, c->w->host, m->path);
		bool known = m->info || (item && item->kind == WHEEL_ITEM_ARCHIVE);

		for (size_t k = 0; !known && k < c->n_sources; k++)
			known = wheel_in_find(c->sources[k].in, m->path, &member);
		if (!known)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: no input has %s", m->file, m->path);
	}
	return KPACK_SUCCESS;
}

/* --- code objects ------------------------------------------------------------------ */

static int by_hash(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

/* List the hashes of the preferred wheel's objects. */
static void read_known(struct check *c, const struct plan *plan)
{
	c->known = xcalloc(plan->n_objects, sizeof(*c->known));
	for (size_t i = 0; i < plan->n_objects; i++) {
		const struct plan_object *o = &plan->objects[i];

		if (o->input->known[o->image])
			memcpy(c->known[c->n_known++], o->input->xxh3[o->image],
			       sizeof(*c->known));
	}
	if (c->n_known)
		qsort(c->known, c->n_known, sizeof(*c->known), by_hash);
}

static kpack_error_t open_archives(struct check *c, struct kpackx_error *why)
{
	const struct wheel_items *items = c->w->items;

	c->archives = xcalloc(items->count, sizeof(struct kpack_archive *));
	for (size_t i = 0; i < items->count; i++) {
		if (items->items[i].kind != WHEEL_ITEM_ARCHIVE)
			continue;
		KP_TRY(below_archive_open(items->items[i].disk,
					  &c->archives[c->n_archives], why));
		c->n_archives++;
	}
	return KPACK_SUCCESS;
}

/* True if HASH is that of an object of the preferred wheel. */
static bool is_anothers(const struct check *c, const uint8_t hash[16])
{
	const uint8_t(*known)[16] = c->known;

	return c->w->args->prefer && c->n_known &&
	       bsearch(hash, known, c->n_known, sizeof(*known), by_hash);
}

/*
 * Count the archives that have KEY of ARCH.  SAME: one has it with HASH, or with a hash
 * of the preferred wheel.
 */
static size_t count_entries(const struct check *c, const char *key, const char *arch,
			    const uint8_t hash[16], bool *same)
{
	struct kp_meta meta;
	size_t entry, n = 0;

	for (size_t i = 0; i < c->n_archives; i++) {
		if (!kp_archive_find(c->archives[i], kp_span_str(key), kp_span_str(arch),
				     &entry))
			continue;
		n++;
		kp_archive_meta(c->archives[i], entry, &meta);
		*same = !meta.has_xxh3 ||
			memcmp(meta.xxh3, hash, sizeof(meta.xxh3)) == 0 ||
			is_anothers(c, meta.xxh3);
	}
	return n;
}

/* The kind as spelled in keys, which distinguishes objects for the same architecture. */
static void kind_text(const char *kind, char out[32])
{
	size_t i = 0;

	for (; i < 31 && kind[i]; i++) {
		bool plain = isalnum((unsigned char)kind[i]) || kind[i] == '+' ||
			     kind[i] == '-';

		out[i] = plain ? kind[i] : '_';
	}
	out[i] = '\0';
}

/* The key KEY#INDEX, KEY@kind#INDEX, KEY@kind.2#INDEX ... for NUMBER 0, 1, 2 ... */
static char *key_text(const char *key, const char *kind, unsigned number, uint32_t index)
{
	return number == 0   ? xasprintf("%s#%u", key, index)
	       : number == 1 ? xasprintf("%s@%s#%u", key, kind, index)
			     : xasprintf("%s@%s.%u#%u", key, kind, number, index);
}

static kpack_error_t check_image(const struct check *c, const struct plan_object *o,
				 uint32_t index, struct kpackx_error *why)
{
	const struct kp_image *image = &o->input->images[o->image];
	char kind[32];
	bool same = false;

	kind_text(image->kind, kind);
	for (unsigned i = 0; i <= SAME_KIND_MAX && !same; i++) {
		char *key = key_text(o->input->key, kind, i, index);
		size_t n;

		n = count_entries(c, key, image->arch, o->input->xxh3[o->image], &same);
		free(key);
		if (n > 1)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s#%u: the code for %s is in %zu archives",
				       o->input->key, index, image->arch, n);
	}
	return same ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "%s#%u: no archive has its code for %s", o->input->key,
			      index, image->arch);
}

static kpack_error_t check_keys(const struct check *c, const struct plan *plan,
				const struct plan_object *o, struct kpackx_error *why)
{
	for (uint32_t i = o->first_key; i < o->first_key + o->n_keys; i++) {
		const struct plan_key *key = &plan->keys[i];
		bool same = false;

		if (!count_entries(c, key->key, key->arch, o->input->xxh3[o->image],
				   &same) ||
		    !same)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s: no archive has it for %s", key->key,
				       key->arch);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_object(const struct check *c, const struct plan *plan,
				  const struct plan_object *o, struct kpackx_error *why)
{
	const struct plan_container *places = &plan->containers[o->container];

	if (!o->input->known[o->image])
		return KPACK_SUCCESS;
	KP_TRY(check_keys(c, plan, o, why));
	for (size_t i = 0; i < places->n_indices; i++)
		KP_TRY(check_image(c, o, places->indices[i], why));
	return KPACK_SUCCESS;
}

static kpack_error_t check_objects(struct check *c, struct kpackx_error *why)
{
	if (c->w->args->prefer)
		read_known(c, &c->w->host->packing.plan);
	for (size_t i = 0; i < c->n_sources; i++) {
		const struct plan *plan = &c->sources[i].packing.plan;

		for (size_t k = 0; k < plan->n_objects; k++)
			KP_TRY(check_object(c, plan, &plan->objects[k], why));
	}
	return KPACK_SUCCESS;
}

/* --- all --------------------------------------------------------------------------- */

static kpack_error_t check_all(struct check *c, struct kpackx_error *why)
{
	KP_TRY(read_wheels(c, why));
	KP_TRY(check_members(c, why));
	KP_TRY(check_origin(c, why));
	KP_TRY(open_archives(c, why));
	return check_objects(c, why);
}

kpack_error_t wheel_check(const struct wheel_write *w, const struct wheel_files *files,
			  const struct wheel_source *sources, size_t n,
			  struct kpackx_error *why)
{
	struct check c = {.w = w, .files = files, .sources = sources, .n_sources = n};
	kpack_error_t err = check_all(&c, why);

	check_fini(&c);
	return err;
}
