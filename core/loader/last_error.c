/* SPDX-License-Identifier: MIT */
#include "last_error.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/errors.h"
#include "core/base/bounds.h"

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

static uint64_t this_thread(void)
{
	if (!own.number)
		own.number = next_number();
	return own.number;
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

static struct kp_thread_error *find_node(const struct kp_last_errors *l, uint64_t thread)
{
	struct kp_thread_error *e = atomic_load_explicit(
		&l->lists[thread % KP_LAST_ERROR_LISTS], memory_order_acquire);

	while (e && e->thread != thread)
		e = e->next;
	return e;
}

/* Add a node for this thread, which has none; NULL: too many nodes, or out of memory. */
static struct kp_thread_error *add_node(struct kp_last_errors *l, uint64_t thread)
{
	_Atomic(struct kp_thread_error *) *list = &l->lists[thread % KP_LAST_ERROR_LISTS];
	struct kp_thread_error *e = NULL;

	if (atomic_fetch_add(&l->count, 1) < KP_ERROR_THREADS_MAX)
		e = malloc(sizeof(*e));
	if (!e) {
		atomic_fetch_sub(&l->count, 1);
		return NULL;
	}
	e->thread = thread;
	e->next = atomic_load_explicit(list, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(
		list, &e->next, e, memory_order_release, memory_order_relaxed))
		;
	return e;
}

void kp_last_errors_note(struct kp_last_errors *l, const char *text)
{
	struct kp_thread_error *e;

	if (!l) {
		snprintf(own.open, sizeof(own.open), "%s", text);
		return;
	}
	e = find_node(l, this_thread());
	if (!e)
		e = add_node(l, this_thread());
	if (!e)
		own.without_node = l->number;
	snprintf(e ? e->text : own.text, TEXT_SIZE, "%s", text);
}

const char *kp_last_errors_text(const struct kp_last_errors *l)
{
	struct kp_thread_error *e;

	if (!l)
		return own.open;
	e = find_node(l, this_thread());
	if (e)
		return e->text;
	return own.without_node == l->number ? own.text : "";
}
