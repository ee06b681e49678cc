/* SPDX-License-Identifier: MIT */
/* What a misspelt name on a command line probably means. */
#ifndef KP_CORE_BASE_NEAREST_H
#define KP_CORE_BASE_NEAREST_H

/*
 * Set `word`, try each name that there is, and read `name`, which stays NULL if none is near.  Of both
 * only what is before a '=' counts.
 */
struct kp_nearest {
	const char *word, *name;
	unsigned distance;
};

void kp_nearest_try(struct kp_nearest *n, const char *name);

#endif
