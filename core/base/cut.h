/* SPDX-License-Identifier: MIT */
/* Taking text in spans apart: what it begins and ends with, and what is around a mark. */
#ifndef KP_CORE_BASE_CUT_H
#define KP_CORE_BASE_CUT_H

#include "span.h"

static inline bool kp_span_begins(struct kp_span s, const char *text)
{
	return kp_span_starts(s, text, strlen(text));
}

/* Take TEXT off the beginning of *S; false: *S does not begin with it. */
static inline bool kp_span_take(struct kp_span *s, const char *text)
{
	if (!kp_span_begins(*s, text))
		return false;
	*s = kp_span_tail(*s, strlen(text));
	return true;
}

/* Take TEXT off the end of *S; false: *S does not end with it, or is nothing else. */
static inline bool kp_span_take_end(struct kp_span *s, const char *text)
{
	if (s->size <= strlen(text) || !kp_span_ends(*s, text))
		return false;
	s->size -= strlen(text);
	return true;
}

/* Whether TEXT is anywhere in S. */
static inline bool kp_span_has(struct kp_span s, const char *text)
{
	return s.size && memmem(s.data, s.size, text, strlen(text));
}

/* Set BEFORE and AFTER to what is around the first TEXT in S; false: it is not in S. */
static inline bool kp_span_split(struct kp_span s, const char *text,
				 struct kp_span *before, struct kp_span *after)
{
	const uint8_t *at = s.size ? memmem(s.data, s.size, text, strlen(text)) : NULL;

	if (!at)
		return false;
	*before = kp_span_head(s, (size_t)(at - s.data));
	*after = kp_span_tail(s, before->size + strlen(text));
	return true;
}

/* Take the next word off *REST, and the separator after it, any character of SEPARATORS. */
static inline struct kp_span kp_span_word(struct kp_span *rest, const char *separators)
{
	struct kp_span word = {rest->data, 0};

	while (word.size < rest->size &&
	       !(rest->data[word.size] && strchr(separators, rest->data[word.size])))
		word.size++;
	*rest = kp_span_tail(*rest, word.size + (word.size < rest->size));
	return word;
}

/* Whether S is one of the words of LIST, which blanks separate. */
static inline bool kp_span_is_one_of(struct kp_span s, const char *list)
{
	for (; *list; list += strcspn(list, " "), list += *list == ' ')
		if (s.size == strcspn(list, " ") && kp_span_starts(s, list, s.size))
			return true;
	return false;
}

#endif
