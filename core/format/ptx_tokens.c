/* SPDX-License-Identifier: MIT */
#include "ptx_tokens.h"

#define NO_MORE (-1)

void kp_ptx_tokens_init(struct kp_ptx_tokens *t, const struct kp_source *src)
{
	kp_window_init(&t->window, src);
	t->next = t->end = NULL;
	t->pos = 0;
	t->kind = KP_PTX_END;
	t->touches_end = false;
	t->size = 0;
	t->word[0] = '\0';
	t->err = KPACK_SUCCESS;
}

/* Return the next character without taking it. */
static int peek_char(struct kp_ptx_tokens *t)
{
	uint64_t left = t->window.src.size - t->pos;
	size_t n = left < sizeof(t->window.buf) ? (size_t)left : sizeof(t->window.buf);

	if (t->next != t->end)
		return *t->next;
	if (n == 0 || t->err)
		return NO_MORE;
	t->err = kp_window_get(&t->window, t->pos, n, &t->next, &t->why);
	if (t->err) {
		t->next = t->end = NULL;
		return NO_MORE;
	}
	t->end = t->next + n;
	t->pos += n;
	return *t->next;
}

static int take_char(struct kp_ptx_tokens *t)
{
	int c = peek_char(t);

	if (c != NO_MORE)
		t->next++;
	return c;
}

static bool in_word(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%' || c == '.';
}

static void skip_line(struct kp_ptx_tokens *t)
{
	int c = take_char(t);

	while (c != '\n' && c != NO_MORE)
		c = take_char(t);
}

static void skip_comment(struct kp_ptx_tokens *t)
{
	int before = 0, c;

	take_char(t); /* the first '*', which cannot also end the comment */
	while ((c = take_char(t)) != NO_MORE && !(before == '*' && c == '/'))
		before = c;
}

static void read_string(struct kp_ptx_tokens *t)
{
	int c = take_char(t);

	while (c != '"' && c != NO_MORE) {
		if (c == '\\')
			take_char(t);
		c = take_char(t);
	}
	t->kind = KP_PTX_STRING;
}

static void read_word(struct kp_ptx_tokens *t)
{
	t->kind = KP_PTX_WORD;
	while (in_word(peek_char(t))) {
		int c = take_char(t);

		if (t->size < KP_NAME_MAX)
			t->word[t->size] = (char)c;
		t->size++;
	}
	t->word[t->size < KP_NAME_MAX ? t->size : KP_NAME_MAX] = '\0';
}

static void read_sign(struct kp_ptx_tokens *t, int c)
{
	t->kind = KP_PTX_SIGN;
	t->word[0] = (char)c;
	t->word[1] = '\0';
	t->size = 1;
}

/*
 * Skip blanks and comments; take and return the next character, but do not take it if a
 * word begins.
 */
static int skip_blanks(struct kp_ptx_tokens *t)
{
	int c;

	for (;;) {
		c = peek_char(t);
		if (c == NO_MORE || in_word(c))
			return c;
		take_char(t);
		if (kp_ptx_blank(c))
			continue;
		if (c != '/')
			return c;
		if (peek_char(t) == '/')
			skip_line(t);
		else if (peek_char(t) == '*')
			skip_comment(t);
		else
			return c;
	}
}

enum kp_ptx_kind kp_ptx_next(struct kp_ptx_tokens *t)
{
	int c = skip_blanks(t);

	t->size = 0;
	t->word[0] = '\0';
	if (c == NO_MORE)
		t->kind = KP_PTX_END;
	else if (in_word(c))
		read_word(t);
	else if (c == '"')
		read_string(t);
	else
		read_sign(t, c);
	t->touches_end = peek_char(t) == NO_MORE;
	return t->kind;
}

bool kp_ptx_is(const struct kp_ptx_tokens *t, const char *word)
{
	return t->kind == KP_PTX_WORD && strcmp(t->word, word) == 0;
}

bool kp_ptx_is_sign(const struct kp_ptx_tokens *t, char sign)
{
	return t->kind == KP_PTX_SIGN && t->word[0] == sign;
}
