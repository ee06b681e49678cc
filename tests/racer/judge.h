/* SPDX-License-Identifier: MIT */
/*
 * What has become of a tree of canaries, and where their secrets are.
 */
#ifndef RACER_JUDGE_H
#define RACER_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All that can be seen of a tree, one line per file. */
struct listing {
	char *state; /* kind, mode, owner, time, attributes, content */
	char *times; /* of the last change, whatever it was */
};

void listing_take(struct listing *l, const char *dir);
void listing_fini(struct listing *l);

/* The lines that BEFORE and AFTER do not have in common, for a message: static.
 * NULL: they are equal. */
const char *listing_difference(const char *before, const char *after);

/* Texts that only root may read. */
struct secrets {
	size_t count;
	struct secret {
		char *bytes;
		size_t size;
	} * items;
};

/* FILE has a secret per line, in hexadecimal digits. */
void secrets_read(struct secrets *s, const char *file);

/* The first file below DIR that the user can read and that has a secret: static.  NULL:
 * none. */
const char *secrets_find(const struct secrets *s, const char *dir, uid_t user);

#endif
