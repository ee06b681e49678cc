/* SPDX-License-Identifier: MIT */
#include "arch_name.h"
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include "core/base/path.h"

/* Digits of a processor's number: gfx600 ... gfx1310, with a letter gfx90a. */
enum { NUMBER_MIN = 3, NUMBER_MAX = 4 };

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(uint8_t c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_word(uint8_t c)
{
	return is_digit(c) || is_lower(c) || (c >= 'A' && c <= 'Z');
}

static size_t count_digits(struct kp_span s, size_t from)
{
	size_t n = 0;

	while (from + n < s.size && is_digit(s.data[from + n]))
		n++;
	return n;
}

/* Whether a word ends at byte N of S. */
static bool ends_at(struct kp_span s, size_t n)
{
	return n == s.size || (n < s.size && !is_word(s.data[n]));
}

/* --- a target ID at the start of a text ------------------------------------------------ */

/* Size of "gfx9-generic" or "gfx10-3-generic" at the start of S, or 0. */
static size_t generic_size(struct kp_span s)
{
	static const char word[] = "-generic";
	size_t n = 3 + count_digits(s, 3), minor;

	if (n == 3 || n > 3 + NUMBER_MAX)
		return 0;
	if (n < s.size && s.data[n] == '-') {
		minor = count_digits(s, n + 1);
		if (minor && minor <= NUMBER_MAX)
			n += 1 + minor;
	}
	if (!kp_span_starts(kp_span_tail(s, n), word, sizeof(word) - 1))
		return 0;
	n += sizeof(word) - 1;
	return ends_at(s, n) ? n : 0;
}

/* Size of "gfx1100" or "gfx90a" at the start of S, whatever follows it; or 0. */
static size_t number_size(struct kp_span s)
{
	size_t digits = count_digits(s, 3), n = 3 + digits;
	bool letter = n < s.size && s.data[n] >= 'a' && s.data[n] <= 'f';

	n += letter;
	if (kp_processor_by_name(kp_span_head(s, n)))
		return n;
	return digits + letter >= NUMBER_MIN && digits <= NUMBER_MAX ? n : 0;
}

/* Size of a stepping's name, such as "v0", after N bytes of S; or 0. */
static size_t stepping_size(struct kp_span s, size_t n)
{
	size_t digits = n < s.size && s.data[n] == 'v' ? count_digits(s, n + 1) : 0;

	return digits && ends_at(s, n + 1 + digits) ? 1 + digits : 0;
}

/* Size of "-xnack+" or ":sramecc-" after N bytes of S; or 0. */
static size_t feature_size(struct kp_span s, size_t n)
{
	static const char *const names[] = {"xnack", "sramecc"};
	struct kp_span rest;

	if (n >= s.size || (s.data[n] != '-' && s.data[n] != ':'))
		return 0;
	rest = kp_span_tail(s, n + 1);
	for (size_t i = 0; i < KP_COUNT(names); i++) {
		size_t size = strlen(names[i]);

		if (kp_span_starts(rest, names[i], size) && rest.size > size &&
		    (rest.data[size] == '+' || rest.data[size] == '-') &&
		    ends_at(rest, size + 1))
			return 2 + size;
	}
	return 0;
}

static bool format_target(struct kp_span id, char out[KP_TARGET_TEXT_MAX])
{
	struct kp_target target;

	if (kp_target_parse(id, &target, NULL) != KPACK_SUCCESS)
		return false;
	kp_target_format(&target, out);
	return true;
}

/*
 * Read the target ID at the start of S: returns its size, or 0.  It ends before a feature
 * that the processor does not have, or that is repeated.
 */
static size_t take_target(struct kp_span s, char out[KP_TARGET_TEXT_MAX])
{
	size_t n, more, stepping;

	if (!kp_span_starts(s, "gfx", 3))
		return 0;
	n = generic_size(s);
	if (n == 0) {
		n = number_size(s);
		stepping = n ? stepping_size(s, n) : 0;
		if (n == 0 || !(stepping || ends_at(s, n)) ||
		    !format_target(kp_span_head(s, n), out))
			return 0;
		if (stepping)
			return n + stepping;
	} else if (!format_target(kp_span_head(s, n), out)) {
		return 0;
	}
	while ((more = feature_size(s, n)) &&
	       format_target(kp_span_head(s, n + more), out))
		n += more;
	return n;
}

/* --- names ------------------------------------------------------------------------------ */

/* Whether S is like "-strict": '-' and a word of lower-case letters and digits. */
static bool is_variant_word(struct kp_span s)
{
	if (s.size < 2 || s.data[0] != '-' || !is_lower(s.data[1]))
		return false;
	for (size_t i = 1; i < s.size; i++)
		if (!is_lower(s.data[i]) && !is_digit(s.data[i]))
			return false;
	return true;
}

bool arch_of_directory(struct kp_span name, char out[KP_TARGET_TEXT_MAX], bool *variant)
{
	size_t n = take_target(name, out), number = n ? number_size(name) : 0;
	bool other = n && (n < name.size || (number && stepping_size(name, number)));

	if (variant)
		*variant = other;
	return n && (n == name.size || is_variant_word(kp_span_tail(name, n)));
}

bool arch_of_name(struct kp_span name, char out[KP_TARGET_TEXT_MAX])
{
	char found[KP_TARGET_TEXT_MAX];
	bool any = false;

	for (size_t i = 0; i < name.size; i++) {
		if (name.data[i] != 'g' || (i && is_word(name.data[i - 1])) ||
		    !take_target(kp_span_tail(name, i), found))
			continue;
		memcpy(out, found, sizeof(found));
		any = true;
	}
	return any;
}

bool arch_in_path(const char *path)
{
	for (const char *p = path; (p = strstr(p, "gfx")); p += 3)
		if (is_digit((uint8_t)p[3]))
			return true;
	return false;
}

/* --- paths ------------------------------------------------------------------------------ */

/* Whether NAME, a component of a path, matches PATTERN. */
static bool name_matches(struct kp_span pattern, struct kp_span name)
{
	char p[NAME_MAX + 1], n[NAME_MAX + 1];

	if (kp_span_eq(pattern, name))
		return true;
	if (pattern.size >= sizeof(p) || name.size >= sizeof(n))
		return false;
	snprintf(p, sizeof(p), "%.*s", (int)pattern.size, (const char *)pattern.data);
	if (!strpbrk(p, "*?[\\"))
		return false;
	snprintf(n, sizeof(n), "%.*s", (int)name.size, (const char *)name.data);
	return fnmatch(p, n, 0) == 0;
}

/* Cut the first component off PATH, and the '/' after it. */
static struct kp_span cut_component(struct kp_span *path)
{
	struct kp_span first = path_component(*path, 0);

	*path = kp_span_tail(*path, first.size + (first.size < path->size));
	return first;
}

/* Whether PATH begins with components that match those of DIR, and then goes on. */
static bool begins_with(struct kp_span path, struct kp_span dir, struct kp_span *rest)
{
	while (dir.size && path.size) {
		struct kp_span pattern = cut_component(&dir);

		if (!name_matches(pattern, cut_component(&path)))
			return false;
	}
	*rest = path;
	return path.size > 0;
}

bool path_below(const char *path, const char *dir, struct kp_span *rest)
{
	for (struct kp_span at = kp_span_str(path); at.size; cut_component(&at))
		if (begins_with(at, kp_span_str(dir), rest))
			return true;
	return false;
}

struct kp_span path_component(struct kp_span rest, size_t n)
{
	for (;; n--) {
		const uint8_t *end = rest.size ? memchr(rest.data, '/', rest.size) : NULL;
		size_t size = end ? (size_t)(end - rest.data) : rest.size;

		if (n == 0)
			return kp_span_head(rest, size);
		if (!end)
			return (struct kp_span){rest.data, 0};
		rest = kp_span_tail(rest, size + 1);
	}
}

size_t path_depth(struct kp_span rest)
{
	size_t depth = rest.size ? 1 : 0;

	for (size_t i = 0; i < rest.size; i++)
		depth += rest.data[i] == '/';
	return depth;
}

struct kp_span path_name(const char *path)
{
	return kp_span_str(kp_path_name(path));
}

/* --- agreement of two IDs ----------------------------------------------------------------- */

/* Remove the stepping's word from the processor: gfx1250-strict becomes gfx1250. */
static void drop_stepping(struct kp_target *t)
{
	char *dash = strchr(t->processor, '-');

	if (dash && !strstr(t->processor, "-generic"))
		*dash = '\0';
}

static bool generic_covers(const char *generic, const char *processor)
{
	const char *const *m = kp_generic_members(kp_span_str(generic));

	for (; m && *m; m++)
		if (strcmp(*m, processor) == 0)
			return true;
	return false;
}

bool arch_agrees(const char *a, const char *b)
{
	struct kp_target x, y;

	if (kp_target_parse(kp_span_str(a), &x, NULL) != KPACK_SUCCESS ||
	    kp_target_parse(kp_span_str(b), &y, NULL) != KPACK_SUCCESS)
		return strcmp(a, b) == 0;
	drop_stepping(&x);
	drop_stepping(&y);
	if (kp_features_contradict(x.xnack, y.xnack) ||
	    kp_features_contradict(x.sramecc, y.sramecc))
		return false;
	return strcmp(x.processor, y.processor) == 0 ||
	       generic_covers(x.processor, y.processor) ||
	       generic_covers(y.processor, x.processor);
}

static int exactness(const char *id)
{
	struct kp_target t;

	if (kp_target_parse(kp_span_str(id), &t, NULL) != KPACK_SUCCESS)
		return 0;
	return (kp_generic_members(kp_span_str(t.processor)) ? 0 : 4) +
	       (t.xnack != KP_FEATURE_ANY) + (t.sramecc != KP_FEATURE_ANY);
}

const char *arch_more_exact(const char *a, const char *b)
{
	return exactness(b) > exactness(a) ? b : a;
}
