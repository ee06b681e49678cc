/* SPDX-License-Identifier: MIT */
/* Editions of archives whose TOCs the test writes as text. */
#ifndef EDITION_BUILDER_H
#define EDITION_BUILDER_H

#include "archive_builder.h"
#include "fs/tree/edition.h"

static struct kpackx_error eb_why;

/* An archive with blobs "aaaa", "bbbb" and "cc" and this TOC, known by PATH. */
static inline struct origin *eb_archive(const char *path, const char *toc)
{
	struct ab a = ab_new(64);
	struct origin *o = NULL;
	char file[32];

	ab_put(&a, "aaaabbbbcc", 10);
	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 4}, "
	       "{'offset': 72, 'size': 2}], 'toc': %s}",
	       toc);
	if (origin_new(ab_memfd(a.bytes, a.size, file), path, &o, &eb_why))
		abort();
	ab_free(&a);
	return o;
}

/* An edition of ONE and OTHER, which may be NULL, for ARCHES. */
static inline struct edition *eb_edition(struct origin *one, struct origin *other,
					 const struct kp_choice *arches,
					 const char *subdir)
{
	struct edition_options options = {
		.arches = arches,
		.subdir = subdir,
		.look = {.uid = (uid_t)-1, .gid = (gid_t)-1},
	};
	struct holdings h = {0};
	struct edition *e;

	if (!holdings_add(&h, one) || (other && !holdings_add(&h, other)) ||
	    !holdings_refuse(&h, "/z.kpack", "made\tup", no_readers))
		abort();
	e = edition_new(&h, &options, NULL);
	if (!e)
		abort();
	return e;
}

#endif
