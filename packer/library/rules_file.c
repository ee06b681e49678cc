/* SPDX-License-Identifier: MIT */
/* Read a rules file, and check each word of its lines. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arch_name.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/base/bounds.h"
#include "rules.h"
#include "core/base/text.h"

/* Limits of a file written by hand; all libraries that kpack knows need 30 lines. */
enum { TEXT_MAX = 1 << 20, RULES_MAX = 1000 };

/* Limits of bytes in one word: names of files have at most 255. */
enum { NAME_MAX_BYTES = 64, PATTERN_MAX = 255 };

enum { LIBRARY, DIRECTORY, NAME, ARCH, ROLE, WORDS };

/* A library, and its rules. */
struct described {
	struct library library;
	struct rule_list list;
	struct rule *rules;
};

struct rules {
	char *text; /* the file; words are NUL-terminated in place */
	struct described **libraries;
	size_t count, n_rules;
};

struct line {
	unsigned number;
	char *words[WORDS];
	size_t count;
};

/* --- words ------------------------------------------------------------------------------ */

static kpack_error_t fail_word(const struct line *l, const char *word, const char *is,
			       struct kpackx_error *why)
{
	char shown[200];

	kp_text_escape(kp_span_str(word), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "line %u: '%s' %s", l->number,
		       shown, is);
}

static bool is_of(const char *word, const char *characters, size_t max)
{
	size_t n = strlen(word);

	return n > 0 && n <= max && strspn(word, characters) == n;
}

#define DIGITS "0123456789"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static kpack_error_t check_library(const struct line *l, struct kpackx_error *why)
{
	const char *word = l->words[LIBRARY];

	if (is_of(word, DIGITS LOWER UPPER "_.-", NAME_MAX_BYTES) &&
	    strcmp(word, "none") != 0)
		return KPACK_SUCCESS;
	return fail_word(l, word,
			 "is no name of a library: [A-Za-z0-9_.-], at most 64, not none",
			 why);
}

static kpack_error_t take_directory(const struct line *l, struct rule *r,
				    struct kpackx_error *why)
{
	char *word = l->words[DIRECTORY];
	size_t n = strlen(word);

	if (strcmp(word, ".") == 0) {
		r->directory = "";
		return KPACK_SUCCESS;
	}
	if (n > 1 && word[n - 1] == '/')
		word[n - 1] = '\0';
	if (!kp_path_ok(kp_span_str(word)))
		return fail_word(l, word, "is no directory relative to the root", why);
	r->directory = word;
	return KPACK_SUCCESS;
}

static kpack_error_t take_name(const struct line *l, struct rule *r,
			       struct kpackx_error *why)
{
	const char *word = l->words[NAME];

	if (strchr(word, '/') || strlen(word) > PATTERN_MAX)
		return fail_word(
			l, word,
			"is no pattern of a file's name: no '/', at most 255 bytes", why);
	r->name = word;
	return KPACK_SUCCESS;
}

/* Replace WORD, a target ID, by its canonical spelling, which must not be longer. */
static bool take_target(char *word, struct rule *r)
{
	char canonical[KP_TARGET_TEXT_MAX];
	struct kp_target target;

	if (kp_target_parse(kp_span_str(word), &target, NULL) != KPACK_SUCCESS ||
	    strncmp(word, "gfx", 3) != 0 || !target.known)
		return false;
	kp_target_format(&target, canonical);
	if (strlen(canonical) > strlen(word))
		return false;
	strcpy(word, canonical);
	r->target = word;
	return true;
}

static kpack_error_t take_arch(const struct line *l, struct rule *r,
			       struct kpackx_error *why)
{
	static const char *const names[] = {
		[RULE_DIRECTORY] = "directory", [RULE_BELOW] = "below",
		[RULE_NAME] = "name",           [RULE_CONTENT] = "content",
		[RULE_GENERIC] = "generic",
	};
	char *word = l->words[ARCH];

	for (size_t i = 0; i < KP_COUNT(names); i++)
		if (strcmp(word, names[i]) == 0) {
			r->where = (enum rule_where)i;
			return KPACK_SUCCESS;
		}
	r->where = RULE_TARGET;
	if (take_target(word, r))
		return KPACK_SUCCESS;
	return fail_word(
		l, word,
		"is none of directory, below, name, content, generic, nor a target ID",
		why);
}

static kpack_error_t take_role(const struct line *l, struct rule *r,
			       struct kpackx_error *why)
{
	r->role = l->count > ROLE ? l->words[ROLE] : "file";
	if (is_of(r->role, DIGITS LOWER "_-", NAME_MAX_BYTES))
		return KPACK_SUCCESS;
	return fail_word(l, r->role, "is no role: [a-z0-9_-], at most 64", why);
}

/* --- lines ------------------------------------------------------------------------------ */

/* Cut LINE into words, up to a word that begins with '#'. */
static kpack_error_t cut_words(char *line, struct line *l, struct kpackx_error *why)
{
	char *save = NULL;

	l->count = 0;
	for (char *word = strtok_r(line, " \t\r", &save); word && *word != '#';
	     word = strtok_r(NULL, " \t\r", &save)) {
		if (l->count == WORDS)
			return fail_word(l, word, "is one word too many", why);
		l->words[l->count++] = word;
	}
	if (l->count == 0 || l->count >= ROLE)
		return KPACK_SUCCESS;
	return fail_word(l, l->words[l->count - 1],
			 "is the last word, but LIBRARY DIRECTORY NAME ARCH are needed",
			 why);
}

/* The library NAME; it is added if it does not exist. */
static struct described *library_named(struct rules *rules, const char *name)
{
	struct described *d;

	for (size_t i = 0; i < rules->count; i++)
		if (strcmp(rules->libraries[i]->library.name, name) == 0)
			return rules->libraries[i];
	rules->libraries = xrealloc(rules->libraries,
				    (rules->count + 1) * sizeof(struct described *));
	d = xcalloc(1, sizeof(*d));
	d->list.host_files = true;
	d->library = (struct library){
		.name = name,
		.probe = rules_probe,
		.check = rules_check,
		.data = &d->list,
	};
	rules->libraries[rules->count++] = d;
	return d;
}

static void append_rule(struct described *d, const struct rule *rule)
{
	d->rules = xrealloc(d->rules, (d->list.count + 1) * sizeof(*d->rules));
	d->rules[d->list.count++] = *rule;
	d->list.items = d->rules;
}

static kpack_error_t take_line(struct rules *rules, char *text, unsigned number,
			       struct kpackx_error *why)
{
	struct line l = {.number = number};
	struct rule rule = {0};

	KP_TRY(cut_words(text, &l, why));
	if (l.count == 0)
		return KPACK_SUCCESS;
	if (rules->n_rules++ == RULES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "line %u: more than %d rules", number, RULES_MAX);
	KP_TRY(check_library(&l, why));
	KP_TRY(take_directory(&l, &rule, why));
	KP_TRY(take_name(&l, &rule, why));
	KP_TRY(take_arch(&l, &rule, why));
	KP_TRY(take_role(&l, &rule, why));
	append_rule(library_named(rules, l.words[LIBRARY]), &rule);
	return KPACK_SUCCESS;
}

/* Like names of files, a line is UTF-8 without control bytes; it may also have tabs. */
static kpack_error_t check_text(struct kp_span line, unsigned number,
				struct kpackx_error *why)
{
	size_t from = 0;

	for (size_t i = 0; i <= line.size; i++) {
		if (i < line.size && line.data[i] != '\t' && line.data[i] != '\r')
			continue;
		if (!kp_text_ok((struct kp_span){line.data + from, i - from}))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "line %u: not UTF-8, or control bytes are in it",
				       number);
		from = i + 1;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t take_lines(struct rules *rules, size_t size,
				struct kpackx_error *why)
{
	char *line = rules->text, *end = rules->text + size;

	for (unsigned number = 1; line < end; number++) {
		char *stop = memchr(line, '\n', (size_t)(end - line));

		stop = stop ? stop : end;
		*stop = '\0';
		KP_TRY(check_text(
			(struct kp_span){(const uint8_t *)line, (size_t)(stop - line)},
			number, why));
		KP_TRY(take_line(rules, line, number, why));
		line = stop + 1;
	}
	return KPACK_SUCCESS;
}

/* --- files ------------------------------------------------------------------------------ */

static kpack_error_t fill_rules(struct rules *rules, const struct kp_source *source,
				struct kpackx_error *why)
{
	uint8_t *text;

	if (source->size > TEXT_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%llu bytes of rules, limit %d",
			       (unsigned long long)source->size, TEXT_MAX);
	KP_TRY(kp_source_load(source, TEXT_MAX, "rules", &text, why));
	rules->text = (char *)text;
	return take_lines(rules, (size_t)source->size, why);
}

static kpack_error_t parse_source(const struct kp_source *source, struct rules **out,
				  struct kpackx_error *why)
{
	struct rules *rules = xcalloc(1, sizeof(*rules));
	kpack_error_t err = fill_rules(rules, source, why);

	if (err)
		rules_free(rules);
	else
		*out = rules;
	return err;
}

kpack_error_t rules_parse(struct kp_span text, struct rules **out,
			  struct kpackx_error *why)
{
	struct kp_source source = kp_source_memory(text.data, text.size);

	return parse_source(&source, out, why);
}

kpack_error_t rules_read(const char *path, struct rules **out, struct kpackx_error *why)
{
	struct kp_source source;
	struct stat st;
	kpack_error_t err;
	int fd;

	KP_TRY(below_file_open(path, &fd, &st, why));
	source = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	err = parse_source(&source, out, why);
	close(fd);
	return err;
}

void rules_free(struct rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->count; i++) {
		free(rules->libraries[i]->rules);
		free(rules->libraries[i]);
	}
	free(rules->libraries);
	free(rules->text);
	free(rules);
}

size_t rules_count(const struct rules *rules)
{
	return rules ? rules->count : 0;
}

const struct library *rules_library(const struct rules *rules, size_t i)
{
	return &rules->libraries[i]->library;
}
