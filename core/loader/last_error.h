/* SPDX-License-Identifier: MIT */
/*
 * The reasons of failed calls on an archive: the last one of every thread, without a
 * lock.
 *
 * Each thread on which a call ever failed has a node.  Nodes are only ever added, and
 * only its own thread reads and writes a node's text, so no thread waits, and a fork at
 * any moment leaves the lists intact.  Threads are distinguished by numbers that are
 * never reused, because thread IDs and addresses of thread-local objects are reused.
 */
#ifndef KP_CORE_API_LAST_ERROR_H
#define KP_CORE_API_LAST_ERROR_H

#include <stdatomic.h>
#include <stdint.h>

struct kp_thread_error;

enum { KP_LAST_ERROR_LISTS = 16 };

struct kp_last_errors {
	uint64_t number; /* of these lists; never reused either */
	_Atomic(struct kp_thread_error *) lists[KP_LAST_ERROR_LISTS];
	atomic_uint count;
};

void kp_last_errors_init(struct kp_last_errors *l);
void kp_last_errors_fini(struct kp_last_errors *l);

/*
 * Keep TEXT as the reason why this thread's call failed.  L is NULL for calls that have
 * no archive yet.  If no node can be made, thread-local memory keeps the text, only for
 * the L of the thread's last such failure.
 */
void kp_last_errors_note(struct kp_last_errors *l, const char *text);

/* Return this thread's last text, or ""; valid until the thread's next note on L. */
const char *kp_last_errors_text(const struct kp_last_errors *l);

#endif
