/* SPDX-License-Identifier: MIT */
/*
 * Around fork(), which copies only the thread that calls it:
 *
 *	before, in the parent  take all locks, the outer ones first, as everybody takes them; the
 *	                       list has the last defined first, and a constructor with a higher
 *	                       priority number runs later
 *	after, in the parent   give them back
 *	after, in the child    renew the conditions, let each lock remove the marks of threads that
 *	                       are gone, and give the locks back
 *
 * A handler of a signal can fork while its own thread holds a lock: such a lock is not taken again,
 * which would wait for ever, and is still held afterwards, until the handler returns.
 */
#include "lock.h"
#include <stdatomic.h>

/* Written only while this code is loaded. */
static struct kp_lock *locks;
static int handlers_fault;

void kp_lock_take(struct kp_lock *l)
{
	pthread_mutex_lock(&l->mutex);
	atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}

void kp_lock_give(struct kp_lock *l)
{
	atomic_store_explicit(&l->holder, 0, memory_order_relaxed);
	pthread_mutex_unlock(&l->mutex);
}

void kp_lock_wait(struct kp_lock *l)
{
	atomic_store_explicit(&l->holder, 0, memory_order_relaxed);
	pthread_cond_wait(&l->changed, &l->mutex);
	atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}

void kp_lock_wake(struct kp_lock *l)
{
	pthread_cond_broadcast(&l->changed);
}

static void before_fork(void)
{
	for (struct kp_lock *l = locks; l; l = l->next) {
		bool inside = pthread_equal(
			atomic_load_explicit(&l->holder, memory_order_relaxed),
			pthread_self());

		if (!inside)
			kp_lock_take(l);
		l->forked_inside = inside;
	}
}

static void after_fork(void)
{
	for (struct kp_lock *l = locks; l; l = l->next)
		if (!l->forked_inside)
			kp_lock_give(l);
}

static void after_fork_in_child(void)
{
	for (struct kp_lock *l = locks; l; l = l->next) {
		/* initialise it: it counts waiting threads that do not exist here */
		pthread_cond_init(&l->changed, NULL);
		if (l->in_child)
			l->in_child();
	}
	after_fork();
}

/* The C library removes the handlers when it unloads the code that this is part of. */
void kp_lock_list(struct kp_lock *l)
{
	if (!locks)
		handlers_fault =
			pthread_atfork(before_fork, after_fork, after_fork_in_child);
	l->next = locks;
	locks = l;
}

kpack_error_t kp_locks_check(struct kpackx_error *why)
{
	return handlers_fault
		       ? kp_fail_memory(why, sizeof(*locks), "the handlers of fork()")
		       : KPACK_SUCCESS;
}
