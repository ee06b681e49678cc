/* SPDX-License-Identifier: MIT */
/*
 * The texts of the files of .kpackfs.  A text is made on request, and all readers share
 * it as long as one of them holds it and it is up to date.  Knows no FUSE.  Thread-safe.
 */
#ifndef FS_CONTROL_TEXTS_H
#define FS_CONTROL_TEXTS_H

#include "control.h"

struct texts;
struct text;

/* The pointers in ABOUT are borrowed.  NULL: no memory. */
struct texts *texts_new(const struct control_subject *about);

/*
 * All references to texts must have been released, and no read may begin; reads that wait
 * fail.  NULL is fine.
 */
void texts_free(struct texts *t);

/* The name of the file at POSITION; NULL after the last. */
const char *texts_name(size_t position);

/* Call it when the mount shows another edition. */
void texts_renew(struct texts *t);

/* As control_seen and control_unwatched. */
void texts_seen(struct texts *t, bool fine);
void texts_unwatched(struct texts *t);

/*
 * The text of the file at POSITION about the edition E, with a reference; NULL: no
 * memory.
 */
struct text *texts_get(struct texts *t, struct edition *e, size_t position);
struct text *text_ref(struct text *text);
void text_unref(struct text *text);

size_t text_size(const struct text *text);

/*
 * Read LEN bytes of TEXT at OFF; the range must lie in TEXT.  The subject's `answer` is
 * called with TOKEN exactly once.
 */
void text_read(struct text *text, uint64_t off, size_t len, void *token);

#endif
