/* SPDX-License-Identifier: MIT */
/*
 * Which GPU a file is for.  The names of its directories and its own name have target IDs in many
 * spellings; its content states targets if it is a code object or a bundle of them, which is listed,
 * never decoded.  The content decides, and the names where it says nothing.
 */
#include "arch_name.h"
#include <elf.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/host/host_fatbin.h"

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
	struct kp_span rest = s;
	size_t n = 3 + count_digits(s, 3), minor, stepping;

	if (!kp_span_starts(s, "gfx", 3))
		return 0;
	/* gfx9-generic, gfx10-3-generic; or a processor */
	minor = n < s.size && s.data[n] == '-' ? count_digits(s, n + 1) : 0;
	if (n > 3 && n <= 3 + NUMBER_MAX)
		rest = kp_span_tail(s,
				    n + (minor && minor <= NUMBER_MAX ? 1 + minor : 0));
	if (kp_span_take(&rest, "-generic") && ends_at(rest, 0)) {
		n = (size_t)(rest.data - s.data);
		if (!format_target(kp_span_head(s, n), out))
			return 0;
	} else {
		n = number_size(s);
		stepping = n ? stepping_size(s, n) : 0;
		if (n == 0 || !(stepping || ends_at(s, n)) ||
		    !format_target(kp_span_head(s, n), out))
			return 0;
		if (stepping)
			return n + stepping;
	}
	/* -xnack+, :sramecc- */
	for (rest = kp_span_tail(s, n);
	     (kp_span_take(&rest, "-") || kp_span_take(&rest, ":")) &&
	     (kp_span_take(&rest, "xnack") || kp_span_take(&rest, "sramecc")) &&
	     (kp_span_take(&rest, "+") || kp_span_take(&rest, "-")) && ends_at(rest, 0) &&
	     format_target(kp_span_head(s, (size_t)(rest.data - s.data)), out);)
		n = (size_t)(rest.data - s.data);
	return n;
}

/* --- names ------------------------------------------------------------------------------ */

bool arch_of_directory(struct kp_span name, char out[KP_TARGET_TEXT_MAX], bool *variant)
{
	size_t n = take_target(name, out), number = n ? number_size(name) : 0;
	bool other = n && (n < name.size || (number && stepping_size(name, number)));

	if (variant)
		*variant = other;
	/* "-strict": a word of lower-case letters and digits */
	if (n && n < name.size &&
	    (name.size < n + 2 || name.data[n] != '-' || !is_lower(name.data[n + 1])))
		return false;
	for (size_t i = n + 1; i < name.size; i++)
		if (!is_lower(name.data[i]) && !is_digit(name.data[i]))
			return false;
	return n > 0;
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

bool path_below(const char *path, const char *dir, struct kp_span *rest)
{
	char pattern[NAME_MAX + 1], name[NAME_MAX + 1];

	for (const char *from = path; from; from = strchr(from, '/')) {
		const char *p, *d = dir;

		from += *from == '/';
		for (p = from; *p && *d;) {
			size_t n = strcspn(p, "/"), m = strcspn(d, "/");

			/* most components are no patterns, and need no copies to be compared */
			if (m != n || memcmp(d, p, n) != 0) {
				if (strcspn(d, "*?[\\/") >= m || m > NAME_MAX ||
				    n > NAME_MAX)
					break;
				snprintf(pattern, sizeof(pattern), "%.*s", (int)m, d);
				snprintf(name, sizeof(name), "%.*s", (int)n, p);
				if (fnmatch(pattern, name, 0) != 0)
					break;
			}
			p += n + (p[n] == '/');
			d += m + (d[m] == '/');
		}
		if (*p && !*d) {
			*rest = kp_span_str(p);
			return true;
		}
	}
	return false;
}

struct kp_span path_component(struct kp_span rest, size_t n)
{
	struct kp_span component = {rest.data, 0};

	for (size_t i = 0; i <= n; i++)
		component = kp_span_word(&rest, "/");
	return component;
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

/* --- agreement of two IDs --------------------------------------------------------------- */

/* Whether PROCESSOR is a member of GENERIC, if that is a generic target. */
static bool generic_covers(const char *generic, const char *processor)
{
	const char *const *m = kp_generic_members(kp_span_str(generic));

	while (m && *m && strcmp(*m, processor) != 0)
		m++;
	return m && *m;
}

bool arch_agrees(const char *a, const char *b)
{
	struct kp_target both[2];

	if (kp_target_parse(kp_span_str(a), &both[0], NULL) ||
	    kp_target_parse(kp_span_str(b), &both[1], NULL))
		return strcmp(a, b) == 0;
	for (size_t i = 0; i < 2; i++) /* gfx1250-strict is gfx1250 */
		both[i].processor[kp_processor_model(kp_span_str(both[i].processor))
					  .size] = 0;
	return !kp_features_contradict(both[0].xnack, both[1].xnack) &&
	       !kp_features_contradict(both[0].sramecc, both[1].sramecc) &&
	       (strcmp(both[0].processor, both[1].processor) == 0 ||
		generic_covers(both[0].processor, both[1].processor) ||
		generic_covers(both[1].processor, both[0].processor));
}

/* How exact ID is: a processor of its own before a generic target, and each feature. */
static int exactness(const char *id)
{
	struct kp_target t;

	if (kp_target_parse(kp_span_str(id), &t, NULL))
		return 0;
	return (kp_generic_members(kp_span_str(t.processor)) ? 0 : 4) +
	       (t.xnack != KP_FEATURE_ANY) + (t.sramecc != KP_FEATURE_ANY);
}

/* --- content ---------------------------------------------------------------------------- */

/* Whether REST is the beginning of a UTF-8 character whose end is cut off. */
static bool is_cut_off(struct kp_span rest)
{
	uint8_t first = rest.data[0];
	size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	for (size_t i = 1; i < rest.size; i++)
		if ((rest.data[i] & 0xc0) != 0x80)
			return false;
	return first >= 0xc2 && first < 0xf5 && rest.size < size;
}

const char *content_container(const struct library_question *q)
{
	static const struct {
		const char *name, *magic;
		size_t size;
	} magics[] = {
		{"ccob", "CCOB", 4},  {"bundle", "__CLANG_OFFLOAD_BUNDLE__", 24},
		{"aks2", "AKS2", 4},  {"zip", "PK\3\4", 4},
		{"zip", "PK\5\6", 4}, {"sqlite", "SQLite format 3", 16},
		{"kpack", "KPAK", 4},
	};
	struct kp_span s = {q->head, q->head_size};
	uint8_t first = s.data[0], second = s.data[1];
	uint32_t c;
	size_t n;

	for (size_t i = 0; i < KP_COUNT(magics); i++)
		if (kp_span_starts(s, magics[i].magic, magics[i].size))
			return magics[i].name;
	/* a magic number alone must not decide: the header's fields are valid, too */
	if (kp_span_starts(s, ELFMAG, SELFMAG)) {
		if (s.size < 20 || s.data[EI_VERSION] != EV_CURRENT ||
		    (s.data[EI_CLASS] != ELFCLASS32 && s.data[EI_CLASS] != ELFCLASS64) ||
		    (s.data[EI_DATA] != ELFDATA2LSB && s.data[EI_DATA] != ELFDATA2MSB))
			return "";
		return kp_le16(s.data + offsetof(Elf64_Ehdr, e_machine)) == EM_AMDGPU
			       ? "elf"
			       : "host-elf";
	}
	/* text is UTF-8 without control bytes; the last character may be cut off */
	for (struct kp_span rest = s; s.size; rest = kp_span_tail(rest, n)) {
		n = rest.size ? kp_text_char(rest, &c) : 0;
		if (rest.size == 0 || (n == 0 && is_cut_off(rest)))
			return "text";
		if (n == 0 || c == 0x7f ||
		    (c < 0x20 && !memchr("\t\n\v\f\r\033", (int)c, 6)))
			break;
	}
	/* RFC 1950: deflate, a window of at most 32 KiB, a valid checksum, no dictionary */
	if (s.size > 2 && (first & 0x0f) == 8 && first >> 4 <= 7 &&
	    (first << 8 | second) % 31 == 0 && !(second & 0x20))
		return "zlib";
	/* MessagePack databases are a map or an array */
	if (s.size > 1 &&
	    ((first >= 0x80 && first <= 0x9f) || (first >= 0xdc && first <= 0xdf)))
		return "msgpack";
	return "";
}

/* Some 60 processors exist, some with features: no real bundle has more targets. */
enum { TARGETS_MAX = 256 };

/* LIST was read with ERR: add its targets to C, or note that it is damaged. */
static kpack_error_t take_targets(const struct kp_containers *list, kpack_error_t err,
				  struct content *c, struct kpackx_error *why)
{
	for (size_t i = 0; !err && i < list->n_images; i++) {
		const char *arch = list->images[i].arch;
		struct kp_target target;

		/* not SPIR-V, nor the mere number of a future processor */
		if (!list->images[i].host && strncmp(arch, "gfx", 3) == 0 &&
		    !kp_target_parse(kp_span_str(arch), &target, NULL))
			arches_add(&c->arches, &c->n_arches, arch);
		if (c->n_arches > TARGETS_MAX)
			err = kp_fail(&c->fault, KPACK_ERROR_INVALID_FORMAT,
				      "entries for more than %d GPUs", TARGETS_MAX);
	}
	if (library_ends_run(err, &c->fault, why))
		return err;
	/* a container that this build cannot read is not damaged */
	c->damaged = err && err != KPACK_ERROR_NOT_IMPLEMENTED;
	if (err)
		c->n_arches = 0;
	return KPACK_SUCCESS;
}

kpack_error_t content_look(const struct library_question *q, struct content *out,
			   struct kpackx_error *why)
{
	struct kp_container object = {.format = &kp_format_code_object};
	struct kp_containers list = {0};
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct content){.container = content_container(q)};
	/* bytes after a code object do no harm: only its own headers are read */
	if (strcmp(out->container, "elf") == 0)
		err = object.format->parse(q->source, &object, &list, &out->fault);
	else if (kp_span_is_one_of(kp_span_str(out->container), "ccob bundle"))
		err = kp_containers_scan(q->source, &list, &out->fault);
	err = take_targets(&list, err, out, why);
	kp_containers_fini(&list);
	if (err)
		content_fini(out);
	return err;
}

void content_fini(struct content *c)
{
	free(c->arches);
	c->arches = NULL;
	c->n_arches = 0;
}

/* --- the decision ----------------------------------------------------------------------- */

void arch_named(const char *path, const char *directory, char named[KP_TARGET_TEXT_MAX],
		struct library_object *out)
{
	char own[KP_TARGET_TEXT_MAX];
	const char *chosen = directory;

	if (arch_of_name(path_name(path), own)) {
		if (!*directory || (arch_agrees(directory, own) &&
				    exactness(own) > exactness(directory)))
			chosen = own;
		else if (!arch_agrees(directory, own))
			library_warn(out,
				     "named for %s in the directory of %s: packed as %s",
				     own, directory, directory);
	}
	snprintf(named, KP_TARGET_TEXT_MAX, "%s", chosen);
}

void arch_settle(const struct content *c, const char *named, struct library_object *out)
{
	const char *arch = KP_ARCH_GENERIC;
	size_t agreeing = 0;

	if (*c->container)
		facts_string(&out->facts, "container", c->container);
	for (size_t i = 0; *named && i < c->n_arches; i++)
		agreeing += arch_agrees(named, c->arches[i]);
	if (c->n_arches == 1)
		arch = c->arches[0];
	else if (*named && (c->n_arches == 0 || agreeing))
		arch = named;
	library_add_arch(out, arch);
	if (c->damaged)
		library_warn(out, "damaged, packed as it is: %s", c->fault.text);
	if (!*named || agreeing == c->n_arches)
		return;
	if (c->n_arches == 1)
		library_warn(out, "named for %s, but its code is for %s: packed as %s",
			     named, arch, arch);
	else
		library_warn(out,
			     "named for %s, but its code is for %s and %zu more: "
			     "packed as %s",
			     named, c->arches[0], c->n_arches - 1, arch);
}

kpack_error_t arch_decide(struct library_question *q, const char *named,
			  struct kpackx_error *why)
{
	KP_AUTO(content) c = {0};

	KP_TRY(content_look(q, &c, why));
	arch_settle(&c, named, &q->out);
	return KPACK_SUCCESS;
}

kpack_error_t arch_decide_fat(struct library_question *q, const char *named,
			      struct kpackx_error *why)
{
	KP_AUTO(content) c = {.container = content_container(q)};
	struct kp_fatbin fat = {0};
	kpack_error_t err = KPACK_SUCCESS;

	/* an archive's entry is not a file, and was checked when it was packed */
	if (q->source->fd >= 0 && q->source->offset == 0)
		err = kp_fatbin_open(q->source->fd, q->source->size, &fat, &c.fault);
	err = take_targets(&fat.containers, err, &c, why);
	kp_fatbin_fini(&fat);
	if (!err)
		arch_settle(&c, named, &q->out);
	return err;
}
