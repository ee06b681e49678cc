/* SPDX-License-Identifier: MIT */
/* The words of PTX, without comments and blanks. */
#ifndef KP_CORE_FORMAT_CUDA_PTX_TOKENS_H
#define KP_CORE_FORMAT_CUDA_PTX_TOKENS_H

#include "core/base/file.h"
#include "core/base/bounds.h"

enum kp_ptx_kind {
	KP_PTX_END, /* of the text, or it cannot be read: see err */
	/* names, numbers, and what begins with a '.': ".entry", "%r1", "ld.param.u64" */
	KP_PTX_WORD,
	KP_PTX_STRING, /* in quotes; without its text */
	KP_PTX_SIGN,   /* any other character, word[0] */
};

struct kp_ptx_tokens {
	struct kp_window window;
	const uint8_t *next, *end; /* of what is in the window */
	uint64_t pos;              /* behind that */
	enum kp_ptx_kind kind;     /* of the token that was read last */
	bool touches_end;          /* nothing follows it: there may be more of it */
	size_t size;               /* of the word, which may be longer than is kept */
	char word[KP_NAME_MAX + 1];
	kpack_error_t err;
	struct kpackx_error why;
};

/* Blanks, whatever the locale. */
static inline bool kp_ptx_blank(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* SRC is text without NULs. */
void kp_ptx_tokens_init(struct kp_ptx_tokens *t, const struct kp_source *src);

/* Read the next token. */
enum kp_ptx_kind kp_ptx_next(struct kp_ptx_tokens *t);

/* Is the last token this word, this sign? */
bool kp_ptx_is(const struct kp_ptx_tokens *t, const char *word);
bool kp_ptx_is_sign(const struct kp_ptx_tokens *t, char sign);

#endif
