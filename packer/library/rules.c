/* SPDX-License-Identifier: MIT */
/*
 * Match rules against files, and read them from a rules file.  Small databases of our own table that
 * are recognised by their directories alone are rules, too: the engines of hipDNN, aiter's
 * assembly kernels, and rocjitsu's translations.
 */
#include "rules.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

enum rule_where {
	RULE_DIRECTORY,
	RULE_BELOW,
	RULE_NAME,
	RULE_CONTENT,
	RULE_GENERIC,
	RULE_TARGET,
};

struct rule {
	const char *library;
	const char *directory; /* "" is the root */
	const char *name;
	enum rule_where where;
	const char *target; /* canonical; for RULE_TARGET */
	const char *role;
};

/* --- kpack's own rules ------------------------------------------------------------------ */

#define ENGINES "hipkernelprovider"
#define AITER "aiter"
#define TRANSLATIONS "hotswap_cache"

static struct rule own_items[] = {
	/*
	 * Engines keep the files of each GPU in a directory of its own, some levels below the
	 * engine's directory.  Files that GPUs share are next to these directories, and are not
	 * part of the database.
	 */
	{ENGINES, "engines/arch_content", "*", RULE_BELOW, NULL, "provider"},
	{ENGINES, "engines/test_arch_content", "*", RULE_BELOW, NULL, "provider"},
	{ENGINES, "engines/hip_kernel_provider/asm_kernels", "*", RULE_BELOW, NULL,
	 "provider"},
	{ENGINES, "hipdnn_plugins/engines", "*", RULE_BELOW, NULL, "provider"},
	{AITER, "aiter_meta/hsa", "*.co", RULE_BELOW, NULL, "code"},
	{AITER, "aiter_meta/hsa", "*", RULE_BELOW, NULL, "file"},
	/* the directory names a pair of steppings; the GPU is stated nowhere else */
	{TRANSLATIONS, "share/rocjitsu/translations/gfx1250-b0-a0/v1", "*.man",
	 RULE_TARGET, "gfx1250", "manifest"},
	{TRANSLATIONS, "share/rocjitsu/translations/gfx1250-b0-a0/v1", "*.obj",
	 RULE_TARGET, "gfx1250", "code"},
};

static const struct rules own = {.items = own_items, .count = KP_COUNT(own_items)};

/* --- matching --------------------------------------------------------------------------- */

/* Whether the rule's directory and name match Q, and the GPU is named where it says. */
static bool match_rule(const struct rule *r, const struct library_question *q,
		       char arch[KP_TARGET_TEXT_MAX], struct kp_span *variant)
{
	struct kp_span rest = kp_span_str(q->path), name = path_name(q->path);
	size_t n;

	arch[0] = 0;
	*variant = (struct kp_span){0};
	if (fnmatch(r->name, (const char *)name.data, 0) != 0 ||
	    (*r->directory && !path_below(q->path, r->directory, &rest)))
		return false;
	switch (r->where) {
	case RULE_DIRECTORY:
	case RULE_BELOW:
		/* the last component is the file itself */
		n = path_depth(rest) - 1;
		if (r->where == RULE_DIRECTORY && n > 1)
			n = 1;
		for (size_t i = 0; i < n; i++) {
			struct kp_span component = path_component(rest, i);
			bool is_variant;

			if (!arch_of_directory(component, arch, &is_variant))
				continue;
			if (is_variant)
				*variant = component;
			return true;
		}
		return false;
	case RULE_NAME:
		return arch_of_name(name, arch);
	case RULE_TARGET:
		snprintf(arch, KP_TARGET_TEXT_MAX, "%s", r->target);
		return true;
	case RULE_CONTENT:
	case RULE_GENERIC:
		return true;
	}
	return false;
}

/* The first rule of Q's library, from number I on, that matches; NULL: none. */
static const struct rule *first_match(const struct library_question *q, size_t i,
				      char arch[KP_TARGET_TEXT_MAX],
				      struct kp_span *variant)
{
	const struct rules *rules = q->library->data;

	for (; i < rules->count; i++)
		if (strcmp(rules->items[i].library, q->library->name) == 0 &&
		    match_rule(&rules->items[i], q, arch, variant))
			return &rules->items[i];
	return NULL;
}

static bool rules_probe(const struct library_question *q)
{
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_span variant;

	return first_match(q, 0, arch, &variant);
}

static kpack_error_t rules_check(struct library_question *q, struct kpackx_error *why)
{
	const struct rules *rules = q->library->data;
	const char *container = content_container(q);
	struct library_object *out = &q->out;
	char arch[KP_TARGET_TEXT_MAX], named[KP_TARGET_TEXT_MAX];
	const struct rule *r = NULL;
	struct kp_span variant;

	/* a host library is of a database only if a user wrote a rule for it */
	if (rules == &own && strcmp(container, "host-elf") == 0)
		return KPACK_SUCCESS;
	for (size_t i = 0; !q->mine; i = (size_t)(r - rules->items) + 1) {
		r = first_match(q, i, arch, &variant);
		if (!r)
			return KPACK_SUCCESS;
		q->mine = true;
		if (r->where == RULE_CONTENT) {
			KP_AUTO(content) c = {0};

			KP_TRY(content_look(q, &c, why));
			q->mine = c.n_arches > 0;
		}
	}
	out->role = r->role;
	out->at_random =
		strcmp(container, "sqlite") == 0 || strcmp(container, "zip") == 0;
	if (r->where == RULE_GENERIC) {
		if (*container)
			facts_string(&out->facts, "container", container);
		library_add_arch(out, KP_ARCH_GENERIC);
		return KPACK_SUCCESS;
	}
	snprintf(named, sizeof(named), "%s", arch);
	if (r->where == RULE_DIRECTORY || r->where == RULE_BELOW)
		arch_named(q->path, arch, named, out);
	KP_TRY(arch_decide(q, named, why));
	if (variant.size)
		facts_text(&out->facts, "variant", variant);
	return KPACK_SUCCESS;
}

const struct library library_hipkernelprovider = {ENGINES, rules_probe, rules_check, NULL,
						  &own};
const struct library library_aiter = {AITER, rules_probe, rules_check, NULL, &own};
const struct library library_hotswap_cache = {TRANSLATIONS, rules_probe, rules_check,
					      NULL, &own};

/* --- a rules file ----------------------------------------------------------------------- */

/* Limits of a file written by hand; all libraries that kpack knows need 30 lines. */
enum { TEXT_MAX = 1 << 20, RULES_MAX = 1000 };

/* Limits of bytes in one word: names of files have at most 255. */
enum { WORD_MAX = 64, PATTERN_MAX = 255 };

enum { LIBRARY, DIRECTORY, NAME, ARCH, ROLE, WORDS };

static bool is_of(const char *word, const char *characters)
{
	size_t n = strlen(word);

	return n > 0 && n <= WORD_MAX && strspn(word, characters) == n;
}

/* Turn the words of a line, of which there are enough, into a rule. */
static kpack_error_t parse_rule(char *const *words, struct rule *r,
				struct kpackx_error *why)
{
#define LOWER "0123456789abcdefghijklmnopqrstuvwxyz"
	static const char *const places[] = {
		[RULE_DIRECTORY] = "directory", [RULE_BELOW] = "below",
		[RULE_NAME] = "name",           [RULE_CONTENT] = "content",
		[RULE_GENERIC] = "generic",
	};
	const char *wrong = NULL, *is = NULL;
	bool known = false;
	char shown[200], canonical[KP_TARGET_TEXT_MAX], *directory = words[DIRECTORY];
	size_t n = strlen(directory);
	struct kp_target target;

	*r = (struct rule){words[LIBRARY], directory,
			   words[NAME],    RULE_TARGET,
			   words[ARCH],    words[ROLE] ? words[ROLE] : "file"};
	if (n > 1 && directory[n - 1] == '/')
		directory[n - 1] = '\0';
	for (size_t i = 0; i < KP_COUNT(places); i++)
		if (strcmp(r->target, places[i]) == 0)
			r->where = (enum rule_where)i;
	/* a target ID is replaced by its canonical spelling, which must not be longer */
	if (r->where == RULE_TARGET && strncmp(r->target, "gfx", 3) == 0 &&
	    !kp_target_parse(kp_span_str(r->target), &target, NULL) && target.known) {
		kp_target_format(&target, canonical);
		if (strlen(canonical) <= strlen(words[ARCH])) {
			strcpy(words[ARCH], canonical);
			known = true;
		}
	}

	if (!is_of(r->library, LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ_.-") ||
	    strcmp(r->library, "none") == 0) {
		wrong = r->library;
		is = "is no name of a library: [A-Za-z0-9_.-], at most 64, not none";
	} else if (strcmp(directory, ".") != 0 && !kp_path_ok(kp_span_str(directory))) {
		wrong = directory;
		is = "is no directory relative to the root";
	} else if (strchr(r->name, '/') || strlen(r->name) > PATTERN_MAX) {
		wrong = r->name;
		is = "is no pattern of a file's name: no '/', at most 255 bytes";
	} else if (r->where == RULE_TARGET && !known) {
		wrong = words[ARCH];
		is = "is none of directory, below, name, content, generic, nor a target "
		     "ID";
	} else if (!is_of(r->role, LOWER "_-")) {
		wrong = r->role;
		is = "is no role: [a-z0-9_-], at most 64";
	}
	if (strcmp(directory, ".") == 0)
		r->directory = "";
	return wrong ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "'%s' %s",
			       kp_text_escape(kp_span_str(wrong), shown, sizeof(shown)),
			       is)
		     : KPACK_SUCCESS;
}

/* Add the rule in LINE, which is SIZE bytes long, if there is one. */
static kpack_error_t read_line(struct rules *rules, char *line, size_t size,
			       struct kpackx_error *why)
{
	char *words[WORDS + 1] = {NULL}, *save = NULL, shown[200];
	size_t n = 0, from = 0, library = 0;
	struct rule rule;

	/* like names of files, a line is UTF-8 without control bytes; it may also have tabs */
	for (size_t i = 0; i <= size; i++) {
		if (i < size && line[i] != '\t' && line[i] != '\r')
			continue;
		if (!kp_text_ok((struct kp_span){(uint8_t *)line + from, i - from}))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "not UTF-8, or control bytes are in it");
		from = i + 1;
	}
	for (char *word = strtok_r(line, " \t\r", &save);
	     word && *word != '#' && n <= WORDS; word = strtok_r(NULL, " \t\r", &save))
		words[n++] = word;
	if (n == 0)
		return KPACK_SUCCESS;
	kp_text_escape(kp_span_str(words[n - 1]), shown, sizeof(shown));
	if (n > WORDS)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' is one word too many", shown);
	if (n < ROLE)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' is the last word, but "
			       "LIBRARY DIRECTORY NAME ARCH are needed",
			       shown);
	if (rules->count == RULES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "more than %d rules",
			       RULES_MAX);
	KP_TRY(parse_rule(words, &rule, why));
	rules->items = xrealloc(rules->items, (rules->count + 1) * sizeof(*rules->items));
	rules->items[rules->count++] = rule;
	/* the first line of a library makes it known */
	while (library < rules->n_libraries &&
	       strcmp(rules->libraries[library].name, rule.library) != 0)
		library++;
	if (library < rules->n_libraries)
		return KPACK_SUCCESS;
	rules->libraries =
		xrealloc(rules->libraries, (library + 1) * sizeof(*rules->libraries));
	rules->libraries[rules->n_libraries++] =
		(struct library){rule.library, rules_probe, rules_check, NULL, rules};
	return KPACK_SUCCESS;
}

kpack_error_t rules_parse(const struct kp_source *source, struct rules **out,
			  struct kpackx_error *why)
{
	struct rules *rules;
	char *line, *end, *stop;
	kpack_error_t err;
	uint8_t *text;

	if (source->size > TEXT_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%llu bytes of rules, limit %d",
			       (unsigned long long)source->size, TEXT_MAX);
	KP_TRY(kp_source_load(source, TEXT_MAX, "rules", &text, why));
	rules = xcalloc(1, sizeof(*rules));
	rules->text = line = (char *)text;
	end = line + source->size;
	for (unsigned number = 1; line < end; number++, line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		*stop = '\0';
		err = read_line(rules, line, (size_t)(stop - line), why);
		if (err) {
			rules_free(rules);
			return kp_fail_prefix(why, err, "line %u", number);
		}
	}
	*out = rules;
	return KPACK_SUCCESS;
}

kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source source;
	struct stat st;

	KP_TRY(below_file_open(path, &fd, &st, why));
	source = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	return rules_parse(&source, out, why);
}

void rules_free(struct rules *rules)
{
	if (!rules)
		return;
	free(rules->libraries);
	free(rules->items);
	free(rules->text);
	free(rules);
}
