/* SPDX-License-Identifier: MIT */
/* The tokens of PTX, without comments and blanks. */
#ifndef KP_CORE_FORMAT_CUDA_PTX_TOKENS_H
#define KP_CORE_FORMAT_CUDA_PTX_TOKENS_H

#include "core/base/file.h"
#include "core/base/bounds.h"

enum kp_ptx_kind {
	KP_PTX_END, /* end of the text, or a read error: see err */
	/*
	 * names, numbers, and words that begin with '.': ".entry", "%r1", "ld.param.u64"
	 */
	KP_PTX_WORD,
	KP_PTX_STRING, /* in quotes; its text is not kept */
	KP_PTX_SIGN,   /* any other character, word[0] */
};

struct kp_ptx_tokens {
	struct kp_window window;
	const uint8_t *next, *end; /* the unread bytes in the window */
	uint64_t pos;              /* offset of END in the source */
	enum kp_ptx_kind kind;     /* of the token that was read last */
	bool touches_end;          /* the source ends with that token, or cuts it off */
	size_t size;               /* of the whole word, of which WORD may lack the end */
	char word[KP_NAME_MAX + 1];
	kpack_error_t err;
	struct kpackx_error why;
};

/* True if C is a blank, independent of the locale. */
static inline bool kp_ptx_blank(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Begin to read SRC, which is text without NULs. */
void kp_ptx_tokens_init(struct kp_ptx_tokens *t, const struct kp_source *src);

/* Read the next token. */
enum kp_ptx_kind kp_ptx_next(struct kp_ptx_tokens *t);

/* True if the last token is this word or this sign. */
bool kp_ptx_is(const struct kp_ptx_tokens *t, const char *word);
bool kp_ptx_is_sign(const struct kp_ptx_tokens *t, char sign);

#endif
