/* SPDX-License-Identifier: MIT */
/* Builds of one binary for different GPUs, made one that finds the code of all. */
#ifndef PACKER_BINARY_JOIN_H
#define PACKER_BINARY_JOIN_H

#include "core/binary/marker.h"

enum join_relation {
	JOIN_NOTHING,  /* none has code for GPUs: they are files like others */
	JOIN_SAME,     /* converted, with the same host */
	JOIN_DIFFERS,  /* converted; the hosts differ: one must be preferred */
	JOIN_WRAPPERS, /* converted; with other wrappers or names: impossible */
	JOIN_KINDS,    /* one is converted, another is not */
};

struct join {
	enum join_relation relation;
	size_t other;     /* the source that does not fit to the chosen one */
	char text[240];   /* in which way */
	bool same_marker; /* the chosen one has it already */
	struct kp_marker
		marker; /* SAME, DIFFERS: with the search paths of all, in order */
};

/*
 * Look at the N files PATHS, of which CHOSEN is to stand for all.  What does not fit is no
 * error.  INVALID_FORMAT and the like: one lies about itself; text names it.  IO_ERROR,
 * OUT_OF_MEMORY.  OUT must be finished in any case.
 */
kpack_error_t join_look(char *const *paths, size_t n, size_t chosen, struct join *out,
			struct kpackx_error *why);
void join_fini(struct join *join);

/* Write TO, which is not there, from the converted FROM, with MARKER and FROM's attributes. */
kpack_error_t join_write(const char *from, const char *to, const struct kp_marker *marker,
			 struct kpackx_error *why);

#endif
