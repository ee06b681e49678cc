/* SPDX-License-Identifier: MIT */
#include "ck_name.h"

/* Take WORD from the start of the rest of the text. */
static bool take_word(struct kp_span *rest, const char *word)
{
	size_t n = strlen(word);

	if (!kp_span_starts(*rest, word, n))
		return false;
	rest->data += n;
	rest->size -= n;
	return true;
}

/* Take a separator and WORD after it. */
static bool take_part(struct kp_span *rest, const char *word)
{
	struct kp_span next = *rest;

	if (!take_word(&next, "-") && !take_word(&next, "_") && !take_word(&next, ":"))
		return false;
	if (!take_word(&next, word))
		return false;
	*rest = next;
	return true;
}

/*
 * Take the longest known processor at the start, with '_' read as '-': gfx9_4_generic.
 * An unknown processor is not accepted, because nothing says where its name would end.
 */
static const struct kp_processor *take_processor(struct kp_span *rest)
{
	char name[32];
	size_t n = rest->size < sizeof(name) ? rest->size : sizeof(name);
	const struct kp_processor *p = NULL;

	for (size_t i = 0; i < n; i++)
		name[i] = rest->data[i] == '_' ? '-' : (char)rest->data[i];
	if (!kp_span_starts(*rest, "gfx", 3))
		return NULL;
	for (; n > 3 && !p; n -= !p)
		p = kp_processor_by_name((struct kp_span){(const uint8_t *)name, n});
	if (!p)
		return NULL;
	rest->data += n;
	rest->size -= n;
	return p;
}

/* CMake replaces '+' by 'p', '-' and ':' by '_'.  Without a sign the feature is on. */
static enum kp_feature take_sign(struct kp_span *rest)
{
	if (take_word(rest, "-") || take_word(rest, "_"))
		return KP_FEATURE_OFF;
	if (!take_word(rest, "+"))
		take_word(rest, "p");
	return KP_FEATURE_ON;
}

static bool take_features(struct kp_span *rest, struct kp_target *t)
{
	while (rest->size) {
		if (t->sramecc == KP_FEATURE_ANY && take_part(rest, "sramecc"))
			t->sramecc = take_sign(rest);
		else if (t->xnack == KP_FEATURE_ANY && take_part(rest, "xnack"))
			t->xnack = take_sign(rest);
		else
			return false;
	}
	return (t->known->xnack || t->xnack == KP_FEATURE_ANY) &&
	       (t->known->sramecc || t->sramecc == KP_FEATURE_ANY);
}

bool ck_target(struct kp_span text, char out[KP_TARGET_TEXT_MAX], bool *variant)
{
	static const char strict[] = "-strict";
	const struct kp_processor *p = take_processor(&text);
	struct kp_target t = {.known = p};
	size_t n;

	if (!p)
		return false;
	n = strlen(p->name);
	*variant =
		n > strlen(strict) && strcmp(p->name + n - strlen(strict), strict) == 0;
	if (*variant)
		n -= strlen(strict);
	else
		*variant = take_part(&text, "strict");
	memcpy(t.processor, p->name, n);
	if (!take_features(&text, &t))
		return false;
	kp_target_format(&t, out);
	return true;
}
