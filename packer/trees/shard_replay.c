/* SPDX-License-Identifier: MIT */
#include "shard_replay.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"

/* The name of an entry. */
struct replay_name {
	char *key;
	const char *arch; /* behind the key */
	char *place;
	size_t binary;
};

/* --- names --------------------------------------------------------------------------- */

/*
 * Write KEY without the "@kind" before its "#n"; returns the bytes written, 0 if it has
 * none.
 */
static size_t plain_key(struct kp_span key, char out[KP_NAME_MAX + 1])
{
	const uint8_t *hash = memrchr(key.data, '#', key.size);
	size_t path = hash ? (size_t)(hash - key.data) : 0, rest;
	const uint8_t *at = hash ? memrchr(key.data, '@', path) : NULL;

	if (!at || key.size > KP_NAME_MAX)
		return 0;
	rest = key.size - path;
	memcpy(out, key.data, (size_t)(at - key.data));
	memcpy(out + (at - key.data), hash, rest);
	out[(size_t)(at - key.data) + rest] = 0;
	return (size_t)(at - key.data) + rest;
}

static kpack_error_t add_name(struct replay *r, struct kp_span key, const char *arch,
			      const char *place, size_t binary, struct kpackx_error *why)
{
	size_t n = strlen(arch) + 1;
	struct replay_name *name;

	if (key.size > KP_NAME_MAX || memchr(key.data, 0, key.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "a key of %zu bytes, or with a NUL", key.size);
	xgrow(&r->names, r->n_names, &r->names_cap, sizeof(*name));
	name = &r->names[r->n_names++];
	*name = (struct replay_name){.key = xmalloc(key.size + 1 + n),
				     .place = xstrdup(place),
				     .binary = binary};
	memcpy(name->key, key.data, key.size);
	name->key[key.size] = 0;
	name->arch = memcpy(name->key + key.size + 1, arch, n);
	return KPACK_SUCCESS;
}

/* Add the name of an entry, and, if it has an "@kind", also the name without it. */
static kpack_error_t add_entry(struct replay *r, const struct shard_event *e,
			       const char *place, size_t binary, struct kpackx_error *why)
{
	const struct shard_binary *b = r->binaries[binary].binary;
	char plain[KP_NAME_MAX + 1];
	size_t n, size = strlen(b->key);

	KP_TRY(add_name(r, e->key, e->arch, place, binary, why));
	if (!kp_span_starts(e->key, b->key, size) || e->key.size <= size ||
	    e->key.data[size] != '@')
		return KPACK_SUCCESS;
	n = plain_key(e->key, plain);
	return n ? add_name(r, (struct kp_span){(uint8_t *)plain, n}, e->arch, place,
			    binary, why)
		 : KPACK_SUCCESS;
}

static kpack_error_t add_names(struct replay *r, size_t binary, struct kpackx_error *why)
{
	struct kp_mp events = kp_mp_over(r->binaries[binary].binary->events);
	char place[SHARD_NAME_MAX + 1] = "";
	struct shard_event e;

	while (shard_event_next(&events, &e)) {
		if (e.is_entry) {
			KP_TRY(add_entry(r, &e, place, binary, why));
			continue;
		}
		memcpy(place, e.place, sizeof(place));
		r->bytes += e.content.size;
	}
	return KPACK_SUCCESS;
}

static int by_name(const void *a, const void *b)
{
	const struct replay_name *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : strcmp(x->arch, y->arch);
}

static const struct replay_name *find_name(const struct replay *r, struct kp_span key,
					   struct kp_span arch)
{
	char text[KP_NAME_MAX + 1], name[SHARD_NAME_MAX + 1];
	struct replay_name want = {.key = text, .arch = name};

	if (key.size > KP_NAME_MAX || arch.size > SHARD_NAME_MAX || r->n_names == 0)
		return NULL;
	memcpy(text, key.data, key.size);
	text[key.size] = 0;
	memcpy(name, arch.data, arch.size);
	name[arch.size] = 0;
	return bsearch(&want, r->names, r->n_names, sizeof(want), by_name);
}

bool replay_stores(const void *arg, struct kp_span key, struct kp_span arch,
		   unsigned volume, const char **place)
{
	const struct replay *r = arg;
	const struct replay_name *name = find_name(r, key, arch);
	char plain[KP_NAME_MAX + 1];
	size_t n = name ? 0 : plain_key(key, plain);

	if (n)
		name = find_name(r, (struct kp_span){(uint8_t *)plain, n}, arch);
	if (!name)
		return false;
	if (r->binaries[name->binary].volume < volume)
		r->binaries[name->binary].volume = volume;
	*place = name->place;
	return true;
}

/* --- gathering ----------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct replayed *x = a, *y = b;

	return KP_ORDER(x->binary->number, y->binary->number);
}

static kpack_error_t check_numbers(const struct replay *r, struct kpackx_error *why)
{
	for (size_t i = 1; i < r->n_binaries; i++) {
		const struct replayed *a = &r->binaries[i - 1], *b = &r->binaries[i];

		if (a->binary->number == b->binary->number)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "%s and %s both have binary %u", a->part->dir,
				       b->part->dir, a->binary->number);
	}
	return KPACK_SUCCESS;
}

kpack_error_t replay_init(struct shard_part *parts, size_t n, struct replay *out,
			  struct kpackx_error *why)
{
	size_t count = 0;

	*out = (struct replay){0};
	for (size_t i = 0; i < n; i++)
		count += parts[i].record.n_binaries;
	out->binaries = xcalloc(count, sizeof(*out->binaries));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i].record.n_binaries; k++)
			out->binaries[out->n_binaries++] = (struct replayed){
				&parts[i], &parts[i].record.binaries[k], 1};
	qsort(out->binaries, count, sizeof(*out->binaries), by_number);
	KP_TRY(check_numbers(out, why));
	for (size_t i = 0; i < out->n_binaries; i++)
		KP_TRY(add_names(out, i, why));
	if (out->n_names)
		qsort(out->names, out->n_names, sizeof(*out->names), by_name);
	return KPACK_SUCCESS;
}

void replay_fini(struct replay *replay)
{
	for (size_t i = 0; i < replay->n_names; i++) {
		free(replay->names[i].key);
		free(replay->names[i].place);
	}
	free(replay->names);
	free(replay->binaries);
	*replay = (struct replay){0};
}

/* --- storing ------------------------------------------------------------------------- */

struct storing {
	struct archive_set *set;
	struct progress *progress;
	struct shard_frame frame;
	struct archive_object object; /* the last one */
	char place[SHARD_NAME_MAX + 1];
};

static kpack_error_t store_object(struct storing *s, const struct replayed *b,
				  const struct shard_event *e, struct kpackx_error *why)
{
	memcpy(s->place, e->place, sizeof(s->place));
	s->object = (struct archive_object){.place = s->place, .content = e->content};
	KP_TRY(part_read(b->part, s->place, b->binary->volume, e->ordinal, &s->frame,
			 &s->object.stored, why));
	KP_TRY(archive_set_store(s->set, &s->object, why));
	progress_add(s->progress, e->content.size);
	return KPACK_SUCCESS;
}

static kpack_error_t store_entry(struct storing *s, const struct shard_event *e,
				 struct kpackx_error *why)
{
	const struct kp_writer_entry entry = {
		.type = e->type,
		.ordinal = s->object.ordinal,
		.size = s->object.content.size,
		.metadata = e->metadata,
	};

	return archive_set_entry(s->set, s->place, e->arch, e->key, &entry, why);
}

static kpack_error_t store_binary(struct storing *s, struct replayed *b,
				  struct kpackx_error *why)
{
	struct kp_mp events = kp_mp_over(b->binary->events);
	struct shard_event e;

	b->volume = archive_set_begin_binary(s->set, b->volume, b->binary->needs,
					     b->binary->n_needs);
	while (shard_event_next(&events, &e))
		KP_TRY(e.is_entry ? store_entry(s, &e, why)
				  : store_object(s, b, &e, why));
	return KPACK_SUCCESS;
}

kpack_error_t replay_run(struct replay *replay, struct archive_set *set,
			 struct progress *progress, struct kpackx_error *why)
{
	struct storing s = {.set = set, .progress = progress};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < replay->n_binaries && !err; i++) {
		err = store_binary(&s, &replay->binaries[i], why);
		if (err)
			kp_fail_prefix(why, err, "%s", replay->binaries[i].part->dir);
	}
	free(s.frame.bytes);
	return err;
}
