/* SPDX-License-Identifier: MIT */
#include "take_over.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "packer/archives/check_content.h"
#include "packer/cli/xalloc.h"

void entry_names_add(struct entry_names *names, struct kp_span key, const char *arch)
{
	size_t n = strlen(arch);
	char *name = xmalloc(key.size + n + 2);

	memcpy(name, key.data, key.size);
	name[key.size] = 0;
	memcpy(name + key.size + 1, arch, n + 1);
	xgrow(&names->items, names->n, &names->cap, sizeof(char *));
	names->items[names->n++] = name;
}

static int cmp_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int c = strcmp(x, y);

	return c ? c : strcmp(x + strlen(x) + 1, y + strlen(y) + 1);
}

void entry_names_sort(struct entry_names *names)
{
	if (names->n)
		qsort(names->items, names->n, sizeof(char *), cmp_name);
}

void entry_names_fini(struct entry_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
	*names = (struct entry_names){0};
}

/* Whether an entry of an existing archive is replaced by one of this run. */
static bool is_replaced(const struct entry_names *names, const struct kp_entry_info *info)
{
	char name[2 * (KP_NAME_MAX + 1)], *p = name;

	memcpy(name, info->key.data, info->key.size);
	name[info->key.size] = 0;
	memcpy(name + info->key.size + 1, info->arch.data, info->arch.size);
	name[info->key.size + 1 + info->arch.size] = 0;
	return names->n &&
	       bsearch(&p, names->items, names->n, sizeof(char *), cmp_name) != NULL;
}

static bool is_left(const struct carry_choice *choice, const struct kpack_archive *old,
		    size_t entry)
{
	struct kp_entry_info info;

	kp_archive_entry(old, entry, &info);
	return is_replaced(choice->names, &info) ||
	       choice->obsolete(choice->arg, old, entry);
}

/* Old entries in order of their frames. */
struct old_entry {
	uint32_t ordinal;
	uint32_t entry;
};

static int cmp_old(const void *a, const void *b)
{
	const struct old_entry *x = a, *y = b;

	if (x->ordinal != y->ordinal)
		return KP_ORDER(x->ordinal, y->ordinal);
	return KP_ORDER(x->entry, y->entry);
}

static kpack_error_t check_old(const struct volume *v, const struct kpack_archive *old,
			       struct kpackx_error *why)
{
	const char *scheme = kp_scheme_name(v->store.scheme);
	size_t kept, counted;

	if (strcmp(kp_archive_scheme(old), scheme) != 0)
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"its scheme is %s and this run's %s: give the same, or replace "
			"it with --force",
			kp_archive_scheme(old), scheme);
	kp_archive_faults(old, &kept, &counted);
	if (counted)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "it has faults and cannot be added to (kpack verify names "
			       "them); --force replaces it");
	return KPACK_SUCCESS;
}

/*
 * Read the bytes to store for an old entry, which decodes to SIZE bytes: its frame, or of
 * a shared archive all of them.  The caller frees *BYTES.
 */
static kpack_error_t read_old(const struct kpack_archive *old, size_t entry,
			      uint64_t size, uint8_t **bytes, struct kp_span *out,
			      struct kpackx_error *why)
{
	bool shared = kp_archive_shared(old);
	struct kp_source stored = {.size = size};
	kpack_error_t err;

	if (!shared)
		KP_TRY(kp_archive_source(old, entry, &stored, why));
	*bytes = malloc((size_t)stored.size + 1);
	if (!*bytes)
		return kp_fail_memory(why, stored.size, "a frame");
	*out = (struct kp_span){*bytes, (size_t)stored.size};
	err = shared ? kp_archive_read(old, entry, *bytes, why)
		     : kp_source_read(&stored, 0, *bytes, out->size, why);
	if (err)
		free(*bytes);
	return err;
}

/* Copy the frame of an old entry, unless this run stored the same content. */
static kpack_error_t carry_object(struct volume *v, const struct kpack_archive *old,
				  size_t entry, uint32_t *ordinal,
				  struct kpackx_error *why)
{
	struct kp_content content;
	struct kp_entry_info info;
	struct kp_meta meta;
	struct kp_span frame;
	uint8_t *bytes;
	kpack_error_t err;
	bool shared;

	kp_archive_entry(old, entry, &info);
	kp_archive_meta(old, entry, &meta);
	KP_TRY(read_old(old, entry, info.size, &bytes, &frame, why));
	content = (struct kp_content){.size = info.size, .chunk = meta.chunk};
	memcpy(content.hash, meta.xxh3, sizeof(content.hash));
	err = meta.has_xxh3
		      ? kp_store_add(&v->store, &content, frame, ordinal, &shared, why)
		      : kp_writer_add_stored(v->store.writer, frame, ordinal, why);
	free(bytes);
	return err;
}

static kpack_error_t carry_entries(const struct carry_choice *choice, struct volume *v,
				   const struct kpack_archive *old,
				   const struct old_entry *list, size_t n,
				   struct kpackx_error *why)
{
	uint32_t ordinal = 0;
	bool carried = false;

	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;

		if (i == 0 || list[i].ordinal != list[i - 1].ordinal)
			carried = false;
		if (is_left(choice, old, list[i].entry))
			continue;
		kp_archive_entry(old, list[i].entry, &info);
		if (!carried)
			KP_TRY(carry_object(v, old, list[i].entry, &ordinal, why));
		carried = true;
		KP_TRY(kp_writer_add_entry(
			v->store.writer, info.key, info.arch,
			&(struct kp_writer_entry){
				info.type, ordinal, info.size,
				kp_archive_meta_raw(old, list[i].entry),
				kp_archive_entry_more(old, list[i].entry)},
			why));
	}
	return KPACK_SUCCESS;
}

/* Check what is copied without being decoded. */
static kpack_error_t check_frames(const struct kpack_archive *old,
				  const struct carry_choice *choice,
				  struct kpackx_error *why)
{
	size_t n = kp_archive_entry_count(old);
	bool *entries = xcalloc(n + 1, sizeof(*entries)), fine;

	for (size_t i = 0; i < n; i++)
		entries[i] = !is_left(choice, old, i);
	fine = kp_archive_shared(old) || check_content(old, entries, CHECK_BYTES, 0);
	free(entries);
	return fine ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			      "is damaged and cannot be added to; --force replaces it");
}

kpack_error_t carry(struct volume *v, const struct kpack_archive *old,
		    const struct carry_choice *choice, struct kpackx_error *why)
{
	size_t n = kp_archive_entry_count(old);
	struct old_entry *list;
	kpack_error_t err;

	KP_TRY(check_old(v, old, why));
	KP_TRY(check_frames(old, choice, why));
	list = xmalloc(n * sizeof(*list));
	for (size_t i = 0; i < n; i++) {
		struct kp_entry_info info;
		kp_archive_entry(old, i, &info);
		list[i] = (struct old_entry){info.ordinal, (uint32_t)i};
	}
	qsort(list, n, sizeof(*list), cmp_old);
	err = carry_entries(choice, v, old, list, n, why);
	free(list);
	return err;
}

bool carry_any_left(const struct kpack_archive *old, const struct carry_choice *choice)
{
	for (size_t i = 0; i < kp_archive_entry_count(old); i++)
		if (is_left(choice, old, i))
			return true;
	return false;
}
