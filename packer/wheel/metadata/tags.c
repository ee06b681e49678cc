/* SPDX-License-Identifier: MIT */
#include "tags.h"
#include <stdlib.h>
#include <strings.h>
#include "core/base/text.h"

enum { PYTHON, ABI, PLATFORM, COMPONENTS };

/* What the tags of a name are made of, each "." between its choices. */
struct choices {
	const char *texts[COMPONENTS];
	size_t counts[COMPONENTS];
	size_t product;
};

static struct choices choices_of(const struct wheel_name *name)
{
	struct choices c = {.texts = {name->python, name->abi, name->platform},
			    .product = 1};

	for (size_t i = 0; i < COMPONENTS; i++) {
		c.counts[i] = 1;
		for (const char *p = c.texts[i]; *p; p++)
			c.counts[i] += *p == '.';
		c.product *= c.counts[i];
	}
	return c;
}

/* Number I of LIST. */
static struct kp_span choice(const char *list, size_t i)
{
	for (; i; i--)
		list += strcspn(list, ".") + 1;
	return (struct kp_span){(const uint8_t *)list, strcspn(list, ".")};
}

static bool same(struct kp_span a, struct kp_span b)
{
	return a.size == b.size &&
	       strncasecmp((const char *)a.data, (const char *)b.data, a.size) == 0;
}

/* The first that is ONE; as many as there are: none is. */
static size_t place(const struct choices *c, size_t component, struct kp_span one)
{
	size_t i = 0;

	while (i < c->counts[component] && !same(choice(c->texts[component], i), one))
		i++;
	return i;
}

/* Tag number AT of all that can be made: the platform changes fastest. */
static void tag_at(const struct choices *c, size_t at, struct kp_span out[COMPONENTS])
{
	for (size_t i = COMPONENTS; i--; at /= c->counts[i])
		out[i] = choice(c->texts[i], at % c->counts[i]);
}

/* The number of the tag that is made of PARTS; false: the name has none. */
static bool find(const struct choices *c, const struct kp_span parts[COMPONENTS],
		 size_t *at)
{
	*at = 0;
	for (size_t i = 0; i < COMPONENTS; i++) {
		size_t k = place(c, i, parts[i]);

		if (k == c->counts[i])
			return false;
		*at = *at * c->counts[i] + k;
	}
	return true;
}

/* TAG at its dashes; false: it has not three parts. */
static bool cut(struct kp_span tag, struct kp_span out[COMPONENTS])
{
	for (size_t i = 0; i < COMPONENTS; i++) {
		const uint8_t *dash = tag.size ? memchr(tag.data, '-', tag.size) : NULL;

		if ((dash != NULL) != (i < COMPONENTS - 1))
			return false;
		out[i] = kp_span_head(tag, dash ? (size_t)(dash - tag.data) : tag.size);
		if (dash)
			tag = kp_span_tail(tag, out[i].size + 1);
	}
	return true;
}

/* Mark the tags of WHEEL in SEEN; a tag that the name does not have is the fault. */
static void look(const struct metadata_text *wheel, const struct choices *c, bool *seen,
		 char fault[WHEEL_TAGS_FAULT])
{
	struct kp_span tag, parts[COMPONENTS];
	char shown[WHEEL_TAGS_FAULT / 2];
	size_t number;

	for (size_t at = 0; metadata_text_next(wheel, "Tag", &at, &tag);) {
		if (cut(tag, parts) && find(c, parts, &number)) {
			seen[number] = true;
			continue;
		}
		snprintf(fault, WHEEL_TAGS_FAULT,
			 "WHEEL has the tag %s, and the file's name has not",
			 kp_text_escape(tag, shown, sizeof(shown)));
		return;
	}
}

/* One of the name's that is not in SEEN is the fault. */
static void look_back(const struct choices *c, const bool *seen,
		      char fault[WHEEL_TAGS_FAULT])
{
	struct kp_span t[COMPONENTS];
	size_t first;

	for (size_t i = 0; i < c->product; i++) {
		tag_at(c, i, t);
		/* what the name says twice is its first one */
		if (!find(c, t, &first) || seen[first])
			continue;
		snprintf(fault, WHEEL_TAGS_FAULT,
			 "the file's name has the tag %.*s-%.*s-%.*s, and WHEEL has not",
			 (int)t[PYTHON].size, (const char *)t[PYTHON].data,
			 (int)t[ABI].size, (const char *)t[ABI].data,
			 (int)t[PLATFORM].size, (const char *)t[PLATFORM].data);
		return;
	}
}

kpack_error_t wheel_tags_compare(const struct metadata_text *wheel,
				 const struct wheel_name *name,
				 char fault[WHEEL_TAGS_FAULT], struct kpackx_error *why)
{
	const struct choices c = choices_of(name);
	bool *seen = calloc(c.product, sizeof(*seen));

	fault[0] = '\0';
	if (!seen)
		return kp_fail_memory(why, c.product, "tags");
	look(wheel, &c, seen, fault);
	if (!*fault)
		look_back(&c, seen, fault);
	free(seen);
	return KPACK_SUCCESS;
}

void wheel_tags_print(FILE *f, const struct wheel_name *name)
{
	const struct choices c = choices_of(name);
	struct kp_span t[COMPONENTS];

	for (size_t i = 0; i < c.product; i++) {
		tag_at(&c, i, t);
		fprintf(f, "Tag: %.*s-%.*s-%.*s\n", (int)t[PYTHON].size,
			(const char *)t[PYTHON].data, (int)t[ABI].size,
			(const char *)t[ABI].data, (int)t[PLATFORM].size,
			(const char *)t[PLATFORM].data);
	}
}
