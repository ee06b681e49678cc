/* SPDX-License-Identifier: MIT */
/*
 * Locks that a child of fork() can take, whatever threads of its parent were doing: all of
 * this library's code, in a program or a library, that is to be used in such a child.
 *
 * A fork waits until each lock is free, so its data are whole in the child.  No thread of the
 * child will finish what other threads of the parent had begun and not locked, such as a
 * block that is marked as being decoded: what waits for it would wait for ever.  Each lock
 * has a function that takes such marks away; it compares the thread that a mark is of with
 * the only thread of the child, because even that one can be in the middle of something: the
 * handler of a signal can fork.
 */
#ifndef KP_CORE_BASE_LOCK_H
#define KP_CORE_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include "errors.h"

struct kp_lock {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* Called in the child, with the lock held.  It frees nothing: not every allocator works
	 * there.  NULL: nothing is to be done. */
	void (*in_child)(void);
	_Atomic(pthread_t) holder; /* 0: nobody */
	bool forked_inside;        /* the thread that forks held it before */
	struct kp_lock *next;
};

/*
 * Define the static lock NAME.  It is listed when this code is loaded, before any thread can
 * fork.  Locks are taken before a fork in the opposite order: one that is held while others
 * are taken is defined with a higher PRIORITY.
 */
#define KP_LOCK(name, priority, child)                                                   \
	static struct kp_lock name = {.mutex = PTHREAD_MUTEX_INITIALIZER,                \
				      .changed = PTHREAD_COND_INITIALIZER,               \
				      .in_child = (child)};                              \
	__attribute__((constructor(priority))) static void list_##name(void)             \
	{                                                                                \
		kp_lock_list(&name);                                                     \
	}
enum { KP_LOCK_INNER = 1000, KP_LOCK_OUTER = 2000 };
void kp_lock_list(struct kp_lock *l);

void kp_lock_take(struct kp_lock *l);
void kp_lock_give(struct kp_lock *l);
/* Wait, with L held, until another thread has changed something; it wakes all that wait. */
void kp_lock_wait(struct kp_lock *l);
void kp_lock_wake(struct kp_lock *l);

/* OUT_OF_MEMORY: there was none for what fork() has to call. */
kpack_error_t kp_locks_check(struct kpackx_error *why);

#endif
