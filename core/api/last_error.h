/* SPDX-License-Identifier: MIT */
/*
 * Why calls on an archive failed: the last reason of every thread, without a lock.
 *
 * Each thread that ever failed has a node.  Nodes are only ever added, and a node's text
 * is written and read by its thread alone, so nobody waits and a fork at any moment
 * leaves a list that is whole.  Threads are told apart by numbers that are not given
 * again: thread IDs and the addresses of thread-local objects are.
 */
#ifndef KP_CORE_API_LAST_ERROR_H
#define KP_CORE_API_LAST_ERROR_H

#include <stdatomic.h>
#include <stdint.h>

struct kp_thread_error;

enum { KP_LAST_ERROR_LISTS = 16 };

struct kp_last_errors {
	uint64_t number; /* of these lists; not given again either */
	_Atomic(struct kp_thread_error *) lists[KP_LAST_ERROR_LISTS];
	atomic_uint count;
};

void kp_last_errors_init(struct kp_last_errors *l);
void kp_last_errors_fini(struct kp_last_errors *l);

/*
 * TEXT is why this thread's call failed.  L is NULL for calls that have no archive yet.
 * A thread that cannot have a node keeps the text itself, for the L it failed on last.
 */
void kp_last_errors_note(struct kp_last_errors *l, const char *text);

/* This thread's last text, "" when there is none; stays until its next note on L. */
const char *kp_last_errors_text(const struct kp_last_errors *l);

#endif
