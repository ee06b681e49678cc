/* SPDX-License-Identifier: MIT */
/*
 * The texts of the files of .kpackfs. A text is made on request, and shared by all
 * readers as long as one of them holds it and it is true. Knows no FUSE. Thread-safe.
 */
#ifndef FS_CONTROL_TEXTS_H
#define FS_CONTROL_TEXTS_H

#include "control.h"

struct texts;
struct text;

/* What ABOUT points to is borrowed.  NULL: no memory. */
struct texts *texts_new(const struct control_subject *about);

/* All texts were let go of, and no read may begin; those that wait fail.  NULL is fine. */
void texts_free(struct texts *t);

/* Names of files by position; NULL after the last. */
const char *texts_name(size_t position);

/* What is shown is another edition now. */
void texts_renew(struct texts *t);

/* The text of the file at POSITION, with a reference; NULL: no memory. */
struct text *texts_get(struct texts *t, size_t position);
struct text *text_ref(struct text *text);
void text_unref(struct text *text);

size_t text_size(const struct text *text);

/*
 * Read LEN bytes, which lie in TEXT, at OFF, for TOKEN: answered by the subject's function,
 * exactly once.
 */
void text_read(struct text *text, uint64_t off, size_t len, void *token);

#endif
