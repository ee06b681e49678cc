/* SPDX-License-Identifier: MIT */
/* Names: what may stand in an archive, what may be a file name, how to print one. */
#ifndef KP_CORE_BASE_TEXT_H
#define KP_CORE_BASE_TEXT_H

#include "span.h"

/* Valid UTF-8 without control bytes (below 0x20, 0x7f, and U+0080..U+009F). */
bool kp_text_ok(struct kp_span s);

/*
 * Decode the character at the start of S, which is not empty.  Returns its bytes, or 0
 * when it is not valid: cut short, longer than needed, a surrogate, above U+10FFFF.
 */
size_t kp_text_char(struct kp_span s, uint32_t *out);

/* May S be one component of a path?  Not empty, ".", "..", no '/' or NUL, <= 255 bytes. */
bool kp_component_ok(struct kp_span s);

/*
 * May S be a path inside a root?  Relative, every component ok, kp_text_ok, at most
 * KP_NAME_MAX bytes and KP_PATH_DEPTH_MAX components.
 */
bool kp_path_ok(struct kp_span s);

/* The same for text that is known to be kp_text_ok. */
bool kp_path_shape_ok(struct kp_span s);

/* Why S is not kp_path_ok: "it ...", static text; NULL: it is. */
const char *kp_path_fault(struct kp_span s);

/*
 * S with every byte that could confuse a terminal - controls, a backslash, invalid UTF-8,
 * characters that reorder or end lines - as \ooo.  Writes at most CAP bytes with the
 * final NUL and returns OUT; what does not fit is cut at a character.
 */
char *kp_text_escape(struct kp_span s, char *out, size_t cap);

/* The same on the heap, whole; NULL when out of memory. */
char *kp_text_escape_new(struct kp_span s);

#endif
