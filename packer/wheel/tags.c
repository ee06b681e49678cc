/* SPDX-License-Identifier: MIT */
#include "tags.h"
#include <stdlib.h>
#include <strings.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

enum { PYTHON, ABI, PLATFORM, COMPONENTS };

/* The components of a name's tags; each is a list of choices separated by ".". */
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

/* Choice I of LIST. */
static struct kp_span choice_at(const char *list, size_t i)
{
	for (; i; i--)
		list += strcspn(list, ".") + 1;
	return (struct kp_span){(const uint8_t *)list, strcspn(list, ".")};
}

static bool same_text(struct kp_span a, struct kp_span b)
{
	return a.size == b.size &&
	       strncasecmp((const char *)a.data, (const char *)b.data, a.size) == 0;
}

/* The index of the first choice equal to ONE, or the number of choices. */
static size_t find_choice(const struct choices *c, size_t component, struct kp_span one)
{
	size_t i = 0;

	while (i < c->counts[component] &&
	       !same_text(choice_at(c->texts[component], i), one))
		i++;
	return i;
}

/* Tag AT of all combinations; the platform changes fastest. */
static void tag_at(const struct choices *c, size_t at, struct kp_span out[COMPONENTS])
{
	for (size_t i = COMPONENTS; i--; at /= c->counts[i])
		out[i] = choice_at(c->texts[i], at % c->counts[i]);
}

/*
 * Find the index of the tag with the components PARTS; false: the name has no such tag.
 */
static bool find_tag(const struct choices *c, const struct kp_span parts[COMPONENTS],
		     size_t *at)
{
	*at = 0;
	for (size_t i = 0; i < COMPONENTS; i++) {
		size_t k = find_choice(c, i, parts[i]);

		if (k == c->counts[i])
			return false;
		*at = *at * c->counts[i] + k;
	}
	return true;
}

/* Split TAG at its dashes; false: it does not have three components. */
static bool cut_tag(struct kp_span tag, struct kp_span out[COMPONENTS])
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

/* Mark the tags of WHEEL in SEEN; report the first one that the name does not have. */
static void check_wheel_tags(const struct metadata_text *wheel, const struct choices *c,
			     bool *seen, char fault[WHEEL_TAGS_FAULT])
{
	struct kp_span tag, parts[COMPONENTS];
	char shown[WHEEL_TAGS_FAULT / 2];
	size_t number;

	for (size_t at = 0; metadata_text_next(wheel, "Tag", &at, &tag);) {
		if (cut_tag(tag, parts) && find_tag(c, parts, &number)) {
			seen[number] = true;
			continue;
		}
		snprintf(fault, WHEEL_TAGS_FAULT,
			 "WHEEL has the tag %s, but the file name does not",
			 kp_text_escape(tag, shown, sizeof(shown)));
		return;
	}
}

/* Report the first tag of the name that is not in SEEN. */
static void check_name_tags(const struct choices *c, const bool *seen,
			    char fault[WHEEL_TAGS_FAULT])
{
	struct kp_span t[COMPONENTS];
	size_t first;

	for (size_t i = 0; i < c->product; i++) {
		tag_at(c, i, t);
		/* a duplicate tag of the name counts as the first one */
		if (!find_tag(c, t, &first) || seen[first])
			continue;
		snprintf(fault, WHEEL_TAGS_FAULT,
			 "the file name has the tag %.*s-%.*s-%.*s, but WHEEL does not",
			 (int)t[PYTHON].size, (const char *)t[PYTHON].data,
			 (int)t[ABI].size, (const char *)t[ABI].data,
			 (int)t[PLATFORM].size, (const char *)t[PLATFORM].data);
		return;
	}
}

void wheel_tags_compare(const struct metadata_text *wheel, const struct wheel_name *name,
			char fault[WHEEL_TAGS_FAULT])
{
	const struct choices c = choices_of(name);
	bool *seen = xcalloc(c.product, sizeof(*seen));

	fault[0] = '\0';
	check_wheel_tags(wheel, &c, seen, fault);
	if (!*fault)
		check_name_tags(&c, seen, fault);
	free(seen);
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
