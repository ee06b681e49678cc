/* SPDX-License-Identifier: MIT */
#include "cached_results.h"

#include <stdlib.h>

#include "core/archive/archive.h"
#include "core/archive/naming.h"
#include "core/archive/toc.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/json.h"

/* --- the keys of a binary ------------------------------------------------------------- */

struct key_list {
	struct kp_span *keys; /* NULL: no keys */
	size_t n, cap;
};

/*
 * Add the keys number LOW to HIGH - 1 of TOC that have an entry for the architecture number
 * ARCH; with NUMBERED only those that are this name with a number.  false: out of memory.
 */
static bool add_keys(struct key_list *list, const struct kp_toc *toc, size_t low,
		     size_t high, uint16_t arch, const struct kp_span *numbered)
{
	for (size_t i = low; i < high; i++) {
		struct kp_span key = kp_toc_key(toc, i);
		size_t at = toc->binaries[i].first, end = toc->binaries[i + 1].first;

		while (at < end && toc->entries[at].arch != arch)
			at++;
		if (at == end ||
		    (numbered && kp_key_split(key).binary.size != numbered->size))
			continue;
		if (!kp_grow(&list->keys, list->n, &list->cap, sizeof(*list->keys)))
			return false;
		list->keys[list->n++] = key;
	}
	return true;
}

static int by_number(const void *a, const void *b)
{
	struct kp_span x = *(const struct kp_span *)a, y = *(const struct kp_span *)b;
	struct kp_key kx = kp_key_split(x), ky = kp_key_split(y);
	int c = kp_span_cmp(kx.binary, ky.binary);

	if (c == 0)
		c = KP_ORDER(kx.index, ky.index);
	return c ? c : KP_ORDER(x.size, y.size);
}

/* Move "x#10" after "x#2": sort keys with the same beginning up to '#' by number. */
static void order_numbers(struct kp_span *keys, size_t n)
{
	for (size_t i = 0, run; i < n; i += run) {
		size_t prefix = kp_key_split(keys[i]).binary.size + 1;

		run = 1;
		if (prefix > keys[i].size)
			continue; /* it has no number */
		while (i + run < n && kp_span_starts(keys[i + run], keys[i].data, prefix))
			run++;
		qsort(keys + i, run, sizeof(*keys), by_number);
	}
}

/*
 * List the keys that have an entry for architecture number ARCH and are NAME itself, NAME with
 * "#n", or below "NAME/"; with an empty NAME all keys that have such an entry.  They are sorted
 * bytewise, but numbers by value.  These are three ranges of the table, between which other keys
 * stand: in byte order "x-y" is between "x#0" and "x/y", and "x!" between "x" and "x#0".
 * false: out of memory.
 */
static bool list_keys(const struct kp_toc *toc, struct kp_span name, uint16_t arch,
		      struct key_list *out)
{
	uint8_t prefix[KP_NAME_MAX + 1];
	struct kp_span from = {prefix, name.size + 1};
	size_t at = kp_toc_lower_bound(toc, name);
	bool is_key, done;

	*out = (struct key_list){0};
	if (name.size > KP_NAME_MAX) /* no key is so long */
		return true;
	if (name.size == 0) {
		done = add_keys(out, toc, 0, toc->n_binaries, arch, NULL);
	} else {
		is_key = at < toc->n_binaries && kp_span_eq(kp_toc_key(toc, at), name);
		done = add_keys(out, toc, at, at + is_key, arch, NULL);
		memcpy(prefix, name.data, name.size);
		for (const char *next = "#/"; done && *next; next++) {
			size_t low;

			prefix[name.size] = (uint8_t)*next;
			low = kp_toc_lower_bound(toc, from);
			prefix[name.size]++; /* behind all that begin so */
			done = add_keys(out, toc, low, kp_toc_lower_bound(toc, from),
					arch, *next == '#' ? &name : NULL);
		}
	}
	if (done)
		order_numbers(out->keys, out->n);
	else
		free(out->keys);
	return done;
}

/* The names of one binary for one architecture, at least one. */
struct list {
	struct list *next;
	struct kp_span binary; /* as requested; borrowed from a key that begins with it */
	uint16_t arch;
	size_t count;
	const char *names[]; /* COUNT names and a NULL */
};

struct text {
	size_t size;
	char bytes[]; /* SIZE bytes and a NUL */
};

/* --- publishing ------------------------------------------------------------------- */

static void *published(kp_cached *answer)
{
	return atomic_load_explicit(answer, memory_order_acquire);
}

/*
 * Publish MADE, or free it if another thread was faster.  Returns the published answer.
 */
static void *publish_answer(kp_cached *answer, void *made)
{
	void *there = NULL;

	if (atomic_compare_exchange_strong_explicit(
		    answer, &there, made, memory_order_acq_rel, memory_order_acquire))
		return made;
	free(made);
	return there;
}

/* Return answer NUMBER of a table of N answers; NULL: no memory for the table. */
static kp_cached *find_answer(kp_cached *table, size_t n, size_t number)
{
	kp_cached *places = published(table);

	if (!places) {
		places = calloc(n, sizeof(*places));
		if (!places)
			return NULL;
		places = publish_answer(table, places);
	}
	return &places[number];
}

/* --- architectures ---------------------------------------------------------------- */

kpack_error_t kp_cached_arches(struct kpack_archive *a, const char ***arches,
			       struct kpackx_error *why)
{
	kp_cached *answer = &kp_api_answers(a)->arches;
	size_t n = kp_archive_arch_count(a);
	const char **made = published(answer);

	if (!made) {
		made = calloc(n + 1, sizeof(*made));
		if (!made)
			return kp_fail_memory(why, n * sizeof(*made), "architectures");
		for (size_t i = 0; i < n; i++)
			made[i] = kp_archive_arch(a, i);
		made = publish_answer(answer, made);
	}
	*arches = made;
	return KPACK_SUCCESS;
}

/* --- kernels ---------------------------------------------------------------------- */

static struct list *find_list(struct list *list, const struct list *end,
			      struct kp_span binary, uint16_t arch)
{
	for (; list != end; list = list->next)
		if (list->arch == arch && kp_span_eq(list->binary, binary))
			return list;
	return NULL;
}

/* Make a list; *OUT becomes NULL if it would be empty.  false: out of memory. */
static bool make_list(const struct kp_toc *toc, struct kp_span binary, uint16_t arch,
		      struct list **out)
{
	struct key_list found = {0};
	struct list *list = NULL;

	if (!list_keys(toc, binary, arch, &found))
		return false;
	if (found.n)
		list = calloc(1, sizeof(*list) + (found.n + 1) * sizeof(list->names[0]));
	if (list) {
		list->binary = (struct kp_span){found.keys[0].data, binary.size};
		list->arch = arch;
		list->count = found.n;
		for (size_t i = 0; i < found.n; i++)
			list->names[i] = (const char *)found.keys[i].data;
	}
	*out = list;
	free(found.keys);
	return list || !found.n;
}

/*
 * Put LIST into its chain, or free it if the chain has an equal list.  Returns the
 * list in the chain.
 */
static struct list *publish_list(kp_cached *chain, struct list *list)
{
	void *head = published(chain);
	struct list *seen = NULL, *there;

	do {
		there = find_list(head, seen, list->binary, list->arch);
		if (there) {
			free(list);
			return there;
		}
		list->next = seen = head;
	} while (!atomic_compare_exchange_weak_explicit(
		chain, &head, list, memory_order_acq_rel, memory_order_acquire));
	return list;
}

/*
 * Return the number of the chain for a list.  A list begins at the first key that is not
 * less than BINARY; few other lists begin there too, so chains are short.
 */
static size_t list_place(const struct kp_toc *toc, struct kp_span binary, uint16_t arch)
{
	return (kp_toc_lower_bound(toc, binary) + arch) % toc->n_entries;
}

static bool arch_number(const struct kp_toc *toc, struct kp_span arch, uint16_t *number)
{
	for (size_t i = 0; i < toc->n_strings; i++) {
		if (!kp_span_eq(toc->strings[i], arch))
			continue;
		*number = (uint16_t)i;
		return true;
	}
	return false;
}

/* Get the list, making it if necessary; *OUT becomes NULL if it would be empty. */
static kpack_error_t get_list(struct kpack_archive *a, struct kp_span binary,
			      uint16_t arch, struct list **out, struct kpackx_error *why)
{
	const struct kp_toc *toc = kp_archive_toc(a);
	kp_cached *chain = find_answer(&kp_api_answers(a)->lists, toc->n_entries,
				       list_place(toc, binary, arch));

	if (!chain)
		return kp_fail_memory(why, toc->n_entries * sizeof(*chain), "lists");
	*out = find_list(published(chain), NULL, binary, arch);
	if (*out)
		return KPACK_SUCCESS;
	if (!make_list(toc, binary, arch, out))
		return kp_fail_memory(why, sizeof(**out), "a list of kernels");
	if (*out)
		*out = publish_list(chain, *out);
	return KPACK_SUCCESS;
}

kpack_error_t kp_cached_kernels(struct kpack_archive *a, struct kp_span name,
				struct kp_span arch, const char ***names, size_t *count,
				struct kpackx_error *why)
{
	static const char *const none[] = {NULL};
	const struct kp_toc *toc = kp_archive_toc(a);
	struct list *list = NULL;
	uint16_t number;

	if (toc->n_entries && arch_number(toc, arch, &number))
		KP_TRY(get_list(a, name, number, &list, why));
	*names = list ? list->names : (const char **)none;
	*count = list ? list->count : 0;
	return KPACK_SUCCESS;
}

/* --- metadata --------------------------------------------------------------------- */

static void put_member(struct kp_json *j, const char *before, struct kp_span text)
{
	kp_json_raw(j, before);
	kp_json_string(j, text);
}

static void put_number(struct kp_json *j, const char *before, uint64_t n)
{
	kp_json_raw(j, before);
	kp_json_uint(j, n);
}

static void put_entry(struct kp_json *j, const struct kpack_archive *a, size_t entry)
{
	struct kp_span meta = kp_archive_meta_raw(a, entry);
	struct kp_entry_info info;
	struct kp_mp c;

	kp_archive_entry(a, entry, &info);
	put_member(j, "{\"binary\":", info.key);
	put_member(j, ",\"arch\":", info.arch);
	put_member(j, ",\"type\":", info.type);
	put_number(j, ",\"ordinal\":", info.ordinal);
	put_number(j, ",\"original_size\":", info.size);
	put_number(j, ",\"stored_size\":", info.stored);
	if (meta.size) {
		kp_json_raw(j, ",\"metadata\":");
		c = kp_mp_over(meta);
		kp_json_value(j, &c);
	}
	kp_json_raw(j, "}");
}

static kpack_error_t make_text(const struct kpack_archive *a, size_t entry,
			       struct text **out, struct kpackx_error *why)
{
	struct kp_json j;
	struct kp_span s;
	kpack_error_t err;

	kp_json_init(&j, KP_JSON_MAX);
	put_entry(&j, a, entry);
	err = kp_json_finish(&j, &s, why);
	if (!err) {
		*out = calloc(1, sizeof(**out) + s.size + 1);
		if (!*out)
			err = kp_fail_memory(why, s.size, "metadata");
	}
	if (!err) {
		(*out)->size = s.size;
		memcpy((*out)->bytes, s.data, s.size);
	}
	kp_json_fini(&j);
	return err;
}

kpack_error_t kp_cached_metadata(struct kpack_archive *a, size_t entry, const char **json,
				 size_t *size, struct kpackx_error *why)
{
	size_t n = kp_archive_entry_count(a);
	kp_cached *answer = find_answer(&kp_api_answers(a)->texts, n, entry);
	struct text *text;

	if (!answer)
		return kp_fail_memory(why, n * sizeof(*answer), "metadata");
	text = published(answer);
	if (!text) {
		KP_TRY(make_text(a, entry, &text, why));
		text = publish_answer(answer, text);
	}
	*json = text->bytes;
	*size = text->size;
	return KPACK_SUCCESS;
}

/* --- the end ---------------------------------------------------------------------- */

static void free_chain(struct list *list)
{
	struct list *next;

	for (; list; list = next) {
		next = list->next;
		free(list);
	}
}

void kp_cached_results_fini(struct kp_cached_results *answers, size_t entries)
{
	kp_cached *lists = published(&answers->lists);
	kp_cached *texts = published(&answers->texts);

	for (size_t i = 0; lists && i < entries; i++)
		free_chain(published(&lists[i]));
	for (size_t i = 0; texts && i < entries; i++)
		free(published(&texts[i]));
	free(lists);
	free(texts);
	free(published(&answers->arches));
}

struct state {
	struct kp_last_errors errors;
	struct kp_cached_results answers;
	size_t n_entries;
};

static void free_state(void *data)
{
	struct state *s = data;

	kp_last_errors_fini(&s->errors);
	kp_cached_results_fini(&s->answers, s->n_entries);
	free(s);
}

kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return kp_fail_memory(why, sizeof(*s), "an archive");
	s->n_entries = kp_archive_toc(a)->n_entries;
	kp_last_errors_init(&s->errors);
	kp_archive_attach(a, s, free_state);
	return KPACK_SUCCESS;
}

struct kp_last_errors *kp_api_errors(const struct kpack_archive *a)
{
	struct state *s = kp_archive_attached(a);

	return &s->errors;
}

struct kp_cached_results *kp_api_answers(const struct kpack_archive *a)
{
	struct state *s = kp_archive_attached(a);

	return &s->answers;
}
