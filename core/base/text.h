/* SPDX-License-Identifier: MIT */
/* Names: which are valid in an archive, which are valid file names, how to print them. */
#ifndef KP_CORE_BASE_TEXT_H
#define KP_CORE_BASE_TEXT_H

#include "errors.h"
#include "span.h"

/*
 * Whether S is valid UTF-8 without control bytes (below 0x20, 0x7f, and U+0080..U+009F).
 */
bool kp_text_ok(struct kp_span s);

/*
 * Decode the character at the start of S, which is not empty.  Returns its number of
 * bytes, or 0 when it is not valid: cut short, longer than needed, a surrogate, above
 * U+10FFFF.
 */
size_t kp_text_char(struct kp_span s, uint32_t *out);

/*
 * Whether S can be one component of a path: not empty, "." or "..", without '/' and NUL,
 * at most 255 bytes.
 */
bool kp_component_ok(struct kp_span s);

/*
 * Whether every component of PATH is kp_component_ok, so that it stays below the directory
 * where it begins; it may have any length and depth.
 */
bool kp_path_inside(const char *path);

/*
 * Why S cannot be a path inside a root, as static text, "it ...".  NULL: it can: it is relative,
 * every component kp_component_ok, kp_text_ok, at most KP_NAME_MAX bytes and KP_PATH_DEPTH_MAX
 * components.
 */
const char *kp_path_fault(struct kp_span s);

/* As kp_path_fault, for text that is known to be kp_text_ok. */
const char *kp_path_shape_fault(struct kp_span s);

static inline bool kp_path_ok(struct kp_span s)
{
	return !kp_path_fault(s);
}

/*
 * Whether C is shown as a character of its own: no control, and none that ends a line,
 * reorders the text around it, or is invisible.
 */
bool kp_text_visible(uint32_t c);

/*
 * The number of bytes at the start of S that kp_text_escape writes as they are: printable
 * ASCII without a backslash.  Other characters that it writes as they are end them, too.
 */
size_t kp_text_plain(struct kp_span s);

/*
 * Write S to OUT with every byte that could confuse a terminal or its reader - of
 * characters that are not kp_text_visible, of invalid UTF-8, and a backslash - as \ooo.
 * Writes at most CAP bytes, not 0, with the NUL and returns OUT; a longer text is cut between
 * characters.
 */
char *kp_text_escape(struct kp_span s, char *out, size_t cap);

/* As kp_text_escape, uncut, on the heap; the caller frees it.  NULL: out of memory. */
char *kp_text_escape_new(struct kp_span s);

/*
 * Replace every \ooo in TEXT, a backslash and three octal digits, by the byte with that
 * number, as kp_text_escape writes them, and the kernel in its tables of mounts.
 */
void kp_text_unescape(char *text);

/*
 * As kp_text_escape and kp_text_escape_new, for a message whose names are escaped
 * already: backslashes stay, and a message that went through here once is not changed
 * again.
 */
char *kp_message_escape(struct kp_span s, char *out, size_t cap);
char *kp_message_escape_new(struct kp_span s);

/* --- a text that grows -------------------------------------------------------------------- */

/* All zero is an empty text.  Sticky: after a fault nothing more is added. */
struct kp_compose {
	char *text; /* owned; a NUL follows */
	size_t size, cap;
	bool no_memory;
};

void kp_compose_span(struct kp_compose *c, struct kp_span s);
void kp_compose_str(struct kp_compose *c, const char *text);
void kp_compose_print(struct kp_compose *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Cut the text to SIZE bytes. */
void kp_compose_cut(struct kp_compose *c, size_t size);

/* Return the text, which the caller frees with free(); it is not NULL when empty. */
kpack_error_t kp_compose_take(struct kp_compose *c, char **text,
			      struct kpackx_error *why);
void kp_compose_fini(struct kp_compose *c);

/* Whether messages on a terminal are to have colour: it is not dumb, and there is no NO_COLOR. */
bool kp_text_colored(void);

#endif
