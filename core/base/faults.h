/* SPDX-License-Identifier: MIT */
/* A growing list of faults as text: the first KP_FAULTS_MAX are kept, all are counted. */
#ifndef KP_CORE_BASE_FAULTS_H
#define KP_CORE_BASE_FAULTS_H

#include "span.h"

/* A fault of one entry, or a broken rule that does not prevent reading. */
struct kp_fault {
	char *text;               /* "toc: lib/x.so#0 gfx942: ordinal 9 of 4 frames" */
	bool refused;             /* the entry was dropped; false: only for `verify` */
	struct kp_span key, arch; /* of the entry; borrowed; empty: no entry */
};

struct kp_faults {
	struct kp_fault *items;
	size_t kept, counted;
};

/*
 * Add a fault; its text is escaped as a message (text.h).  If memory runs out, the text is
 * lost, but the fault is counted.
 */
void kp_faults_add(struct kp_faults *list, bool refused, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Add a fault of the entry KEY, ARCH; both are borrowed.  An empty ARCH stands for all
 * entries of the key.
 */
void kp_faults_add_entry(struct kp_faults *list, struct kp_span key, struct kp_span arch,
			 bool refused, const char *what);
void kp_faults_fini(struct kp_faults *list);

#endif
