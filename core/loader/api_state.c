/* SPDX-License-Identifier: MIT */
/*
 * An answer is made at the first request and published by one compare-and-swap; if several
 * threads make the same answer at once, one wins and the others return its answer.  No call waits.
 *
 * Each thread on which a call ever failed has a node with the reason.  Nodes are only ever added,
 * and only its own thread reads and writes a node's text, so no thread waits, and a fork at any
 * moment leaves the lists intact.  Threads are distinguished by numbers that are never reused,
 * because thread IDs and addresses of thread-local objects are reused.
 */
#include "api_state.h"

#include <stdio.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/archive/naming.h"
#include "core/archive/toc.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/json.h"

/* An answer, or NULL before the first request. */
typedef _Atomic(void *) answer_t;

struct api_state {
	struct kp_last_errors errors;
	size_t n_entries;
	answer_t arches; /* const char *[] */
	/* Arrays with an answer for each entry, made at the first request. */
	answer_t lists; /* chains of lists, by hash */
	answer_t texts; /* metadata of the entry */
};

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

static void *published(answer_t *answer)
{
	return atomic_load_explicit(answer, memory_order_acquire);
}

/*
 * Publish MADE, or free it if another thread was faster.  Returns the published answer.
 */
static void *publish_answer(answer_t *answer, void *made)
{
	void *there = NULL;

	if (atomic_compare_exchange_strong_explicit(
		    answer, &there, made, memory_order_acq_rel, memory_order_acquire))
		return made;
	free(made);
	return there;
}

/* Return answer NUMBER of a table of N answers; NULL: no memory for the table. */
static answer_t *find_answer(answer_t *table, size_t n, size_t number)
{
	answer_t *places = published(table);

	if (!places) {
		places = calloc(n, sizeof(*places));
		if (!places)
			return NULL;
		places = publish_answer(table, places);
	}
	return &places[number];
}

/* --- architectures ---------------------------------------------------------------- */

static struct api_state *state_of(const struct kpack_archive *a)
{
	return kp_archive_attached(a);
}

kpack_error_t kp_cached_arches(struct kpack_archive *a, const char ***arches,
			       struct kpackx_error *why)
{
	answer_t *answer = &state_of(a)->arches;
	size_t n = kp_archive_arch_count(a);
	const char **made = published(answer);

	if (!made) {
		KP_TRY(kp_new(&made, n + 1, "architectures", why));
		for (size_t i = 0; i < n; i++)
			made[i] = kp_archive_arch(a, i);
		made = publish_answer(answer, made);
	}
	*arches = made;
	return KPACK_SUCCESS;
}

/* --- the keys of a binary ------------------------------------------------------------- */

struct key_list {
	struct kp_span *keys; /* NULL: no keys */
	size_t n, cap;
};

/*
 * Add the keys number LOW to HIGH - 1 of TOC that have an entry for the architecture number
 * ARCH; with NUMBERED only those that are this name with a number.
 */
static kpack_error_t add_keys(struct key_list *list, const struct kp_toc *toc, size_t low,
			      size_t high, uint16_t arch, const struct kp_span *numbered,
			      struct kpackx_error *why)
{
	for (size_t i = low; i < high; i++) {
		struct kp_span key = kp_toc_key(toc, i);
		size_t at = toc->binaries[i].first, end = toc->binaries[i + 1].first;

		while (at < end && toc->entries[at].arch != arch)
			at++;
		if (at == end ||
		    (numbered && kp_key_split(key).binary.size != numbered->size))
			continue;
		KP_TRY(kp_room(&list->keys, list->n, &list->cap, "a list of kernels",
			       why));
		list->keys[list->n++] = key;
	}
	return KPACK_SUCCESS;
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

/*
 * List the keys that have an entry for architecture number ARCH and are NAME itself, NAME with
 * "#n", or below "NAME/"; with an empty NAME all keys that have such an entry.  They are sorted
 * bytewise, but numbers by value.  These are three ranges of the table, between which other keys
 * stand: in byte order "x-y" is between "x#0" and "x/y", and "x!" between "x" and "x#0".
 */
static kpack_error_t list_keys(const struct kp_toc *toc, struct kp_span name,
			       uint16_t arch, struct key_list *out,
			       struct kpackx_error *why)
{
	uint8_t prefix[KP_NAME_MAX + 1];
	struct kp_span from = {prefix, name.size + 1};
	size_t at = kp_toc_lower_bound(toc, name), low;
	bool is_key;

	if (name.size > KP_NAME_MAX) /* no key is so long */
		return KPACK_SUCCESS;
	if (name.size == 0) {
		KP_TRY(add_keys(out, toc, 0, toc->n_binaries, arch, NULL, why));
	} else {
		is_key = at < toc->n_binaries && kp_span_eq(kp_toc_key(toc, at), name);
		KP_TRY(add_keys(out, toc, at, at + is_key, arch, NULL, why));
		memcpy(prefix, name.data, name.size);
		for (const char *next = "#/"; *next; next++) {
			prefix[name.size] = (uint8_t)*next;
			low = kp_toc_lower_bound(toc, from);
			prefix[name.size]++; /* behind all that begin so */
			KP_TRY(add_keys(out, toc, low, kp_toc_lower_bound(toc, from),
					arch, *next == '#' ? &name : NULL, why));
		}
	}
	/* move "x#10" after "x#2": sort keys with the same beginning up to '#' by number */
	for (size_t i = 0, run; i < out->n; i += run) {
		struct kp_span *keys = out->keys + i;
		size_t begin = kp_key_split(keys[0]).binary.size + 1;

		run = 1;
		if (begin > keys[0].size)
			continue; /* it has no number */
		while (i + run < out->n && kp_span_starts(keys[run], keys[0].data, begin))
			run++;
		qsort(keys, run, sizeof(*keys), by_number);
	}
	return KPACK_SUCCESS;
}

static struct list *find_list(struct list *list, const struct list *end,
			      struct kp_span binary, uint16_t arch)
{
	for (; list != end; list = list->next)
		if (list->arch == arch && kp_span_eq(list->binary, binary))
			return list;
	return NULL;
}

kpack_error_t kp_cached_kernels(struct kpack_archive *a, struct kp_span name,
				struct kp_span arch, const char ***names, size_t *count,
				struct kpackx_error *why)
{
	static const char *const none[] = {NULL};
	const struct kp_toc *toc = kp_archive_toc(a);
	struct list *list, *seen = NULL, *there;
	struct key_list found = {0};
	kpack_error_t err;
	answer_t *chain;
	size_t number = 0;
	void *head;

	*names = (const char **)none;
	*count = 0;
	while (number < toc->n_strings && !kp_span_eq(toc->strings[number], arch))
		number++;
	if (!toc->n_entries || number == toc->n_strings)
		return KPACK_SUCCESS;
	/*
	 * A list begins at the first key that is not less than NAME; few other lists begin
	 * there too, so chains are short.
	 */
	chain = find_answer(&state_of(a)->lists, toc->n_entries,
			    (kp_toc_lower_bound(toc, name) + number) % toc->n_entries);
	if (!chain)
		return kp_fail_memory(why, toc->n_entries * sizeof(*chain), "lists");
	list = find_list(published(chain), NULL, name, (uint16_t)number);
	if (!list) {
		err = list_keys(toc, name, (uint16_t)number, &found, why);
		if (!err && found.n) {
			list = calloc(1, sizeof(*list) +
						 (found.n + 1) * sizeof(list->names[0]));
			if (!list)
				err = kp_fail_memory(why, sizeof(*list),
						     "a list of kernels");
		}
		if (!list) { /* an empty one is not kept */
			free(found.keys);
			return err;
		}
		list->binary = (struct kp_span){found.keys[0].data, name.size};
		list->arch = (uint16_t)number;
		list->count = found.n;
		for (size_t i = 0; i < found.n; i++)
			list->names[i] = (const char *)found.keys[i].data;
		free(found.keys);
		/* put it into its chain, or use the one that another thread has put there */
		head = published(chain);
		do {
			there = find_list(head, seen, name, list->arch);
			if (there) {
				free(list);
				list = there;
				break;
			}
			list->next = seen = head;
		} while (!atomic_compare_exchange_weak_explicit(
			chain, &head, list, memory_order_acq_rel, memory_order_acquire));
	}
	*names = list->names;
	*count = list->count;
	return KPACK_SUCCESS;
}

/* --- metadata --------------------------------------------------------------------- */

kpack_error_t kp_cached_metadata(struct kpack_archive *a, size_t entry, const char **json,
				 size_t *size, struct kpackx_error *why)
{
	size_t n = kp_archive_entry_count(a);
	answer_t *answer = find_answer(&state_of(a)->texts, n, entry);
	struct kp_entry_info info;
	struct kp_span meta, s;
	struct kp_json j = {.limit = KP_JSON_MAX};
	struct text *text;
	struct kp_mp c;
	kpack_error_t err;

	if (!answer)
		return kp_fail_memory(why, n * sizeof(*answer), "metadata");
	text = published(answer);
	if (!text) {
		meta = kp_archive_meta_raw(a, entry);
		kp_archive_entry(a, entry, &info);
		kp_json_print(&j, "{\"binary\":");
		kp_json_string(&j, info.key);
		kp_json_print(&j, ",\"arch\":");
		kp_json_string(&j, info.arch);
		kp_json_print(&j, ",\"type\":");
		kp_json_string(&j, info.type);
		kp_json_print(&j, ",\"ordinal\":%" PRIu32 ",\"original_size\":%" PRIu64,
			      info.ordinal, info.size);
		kp_json_print(&j, ",\"stored_size\":%" PRIu64, info.stored);
		if (meta.size) {
			kp_json_print(&j, ",\"metadata\":");
			c = kp_mp_over(meta);
			kp_json_value(&j, &c);
		}
		kp_json_print(&j, "}");
		err = kp_json_finish(&j, &s, why);
		if (!err) {
			text = calloc(1, sizeof(*text) + s.size + 1);
			if (!text)
				err = kp_fail_memory(why, s.size, "metadata");
		}
		if (!err) {
			text->size = s.size;
			memcpy(text->bytes, s.data, s.size);
		}
		kp_json_fini(&j);
		KP_TRY(err);
		text = publish_answer(answer, text);
	}
	*json = text->bytes;
	*size = text->size;
	return KPACK_SUCCESS;
}

/* --- reasons of failures -------------------------------------------------------------- */

#define TEXT_SIZE sizeof(((struct kpackx_error *)NULL)->text)

struct kp_thread_error {
	struct kp_thread_error *next;
	uint64_t thread;
	char text[TEXT_SIZE];
};

/* Thread-local state: the thread's number, and texts without a node. */
static _Thread_local struct {
	uint64_t number; /* 0: none yet */
	char open[TEXT_SIZE];
	uint64_t without_node; /* number of the lists that TEXT belongs to */
	char text[TEXT_SIZE];
} own;

static uint64_t next_number(void)
{
	static atomic_uint_fast64_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void kp_last_errors_init(struct kp_last_errors *l)
{
	l->number = next_number();
}

void kp_last_errors_fini(struct kp_last_errors *l)
{
	for (size_t i = 0; i < KP_LAST_ERROR_LISTS; i++) {
		struct kp_thread_error *e = atomic_load(&l->lists[i]), *next;

		for (; e; e = next) {
			next = e->next;
			free(e);
		}
		atomic_store(&l->lists[i], NULL);
	}
}

/* This thread's node, or NULL. */
static struct kp_thread_error *find_node(const struct kp_last_errors *l)
{
	struct kp_thread_error *e;

	if (!own.number)
		own.number = next_number();
	e = atomic_load_explicit(&l->lists[own.number % KP_LAST_ERROR_LISTS],
				 memory_order_acquire);
	while (e && e->thread != own.number)
		e = e->next;
	return e;
}

/*
 * A thread that fails for the first time gets a node.  Beyond KP_ERROR_THREADS_MAX nodes, or without
 * memory, the text is in the thread itself, which then remembers one list of nodes only.
 */
void kp_last_errors_note(struct kp_last_errors *l, const char *text)
{
	_Atomic(struct kp_thread_error *) *list;
	struct kp_thread_error *e;

	if (!l) {
		snprintf(own.open, sizeof(own.open), "%s", text);
		return;
	}
	e = find_node(l);
	if (!e) {
		if (atomic_fetch_add(&l->count, 1) < KP_ERROR_THREADS_MAX)
			e = malloc(sizeof(*e));
		if (!e) {
			atomic_fetch_sub(&l->count, 1);
			own.without_node = l->number;
		} else {
			list = &l->lists[own.number % KP_LAST_ERROR_LISTS];
			e->thread = own.number;
			e->next = atomic_load_explicit(list, memory_order_relaxed);
			while (!atomic_compare_exchange_weak_explicit(
				list, &e->next, e, memory_order_release,
				memory_order_relaxed))
				continue;
		}
	}
	snprintf(e ? e->text : own.text, TEXT_SIZE, "%s", text);
}

const char *kp_last_errors_text(const struct kp_last_errors *l)
{
	struct kp_thread_error *e;

	if (!l)
		return own.open;
	e = find_node(l);
	if (e)
		return e->text;
	return own.without_node == l->number ? own.text : "";
}

/* --- from opening to closing ------------------------------------------------------------ */

static void free_state(void *data)
{
	struct api_state *s = data;
	answer_t *lists = published(&s->lists), *texts = published(&s->texts);

	kp_last_errors_fini(&s->errors);
	for (size_t i = 0; lists && i < s->n_entries; i++)
		for (struct list *list = published(&lists[i]), *next; list; list = next) {
			next = list->next;
			free(list);
		}
	for (size_t i = 0; texts && i < s->n_entries; i++)
		free(published(&texts[i]));
	free(lists);
	free(texts);
	free(published(&s->arches));
	free(s);
}

kpack_error_t kp_api_attach(struct kpack_archive *a, struct kpackx_error *why)
{
	struct api_state *s;

	KP_TRY(kp_new(&s, 1, "an archive", why));
	s->n_entries = kp_archive_toc(a)->n_entries;
	kp_last_errors_init(&s->errors);
	kp_archive_attach(a, s, free_state);
	return KPACK_SUCCESS;
}

struct kp_last_errors *kp_api_errors(const struct kpack_archive *a)
{
	return &state_of(a)->errors;
}
