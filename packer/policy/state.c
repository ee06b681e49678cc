/* SPDX-License-Identifier: MIT */
#include "state.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/file.h"
#include "core/base/strbuf.h"
#include "core/base/text.h"
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "policy.h"

/*
 * Lines of a word and values, of which the last may be a path with odd bytes as \ooo; then
 * "seen N", N hashes, and a hash of everything before.
 */
static const char head[] = "kpack state 1";

/* By enum state_kind; then STATE_PACKED of a package. */
static const char kinds[] = "crplo";
enum { OWNED = STATE_LINK + 1 };

enum { HASH_SIZE = sizeof(struct kp_hash), STATE_MAX = 1 << 30 };

/* --- reading ------------------------------------------------------------------------- */

struct parser {
	struct kp_span rest;
	struct state *out;
	size_t line;
	uint64_t n_seen;
	bool done;
};

static kpack_error_t fail_line(const struct parser *p, const char *text,
			       struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "damaged: line %zu: %s", p->line,
		       text);
}

static bool is_octal(const char *text)
{
	return text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' &&
	       text[2] >= '0' && text[2] <= '7';
}

/* Undo kp_text_escape in place.  false: TEXT was not made by it. */
static bool unescape_text(char *text)
{
	char *to = text;

	for (; *text; text++, to++) {
		*to = *text;
		if (*text != '\\')
			continue;
		if (!is_octal(text + 1))
			return false;
		*to = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
			     (text[3] - '0'));
		if (*to == '\0')
			return false;
		text += 3;
	}
	*to = '\0';
	return true;
}

/* Take the next word of *TEXT; "": there is none. */
static char *take_word(char **text)
{
	char *word = *text, *end = strchrnul(word, ' ');

	*text = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static bool take_number(char **text, uint64_t max, uint64_t *out)
{
	const char *word = take_word(text);
	size_t n = strspn(word, "0123456789");

	*out = 0;
	if (n == 0 || word[n])
		return false;
	for (; *word; word++) {
		unsigned digit = (unsigned)(*word - '0');

		if (*out > (max - digit) / 10)
			return false;
		*out = *out * 10 + digit;
	}
	return true;
}

static bool take_path(char *text, char **out)
{
	if (!*text || !unescape_text(text))
		return false;
	free(*out);
	*out = xstrdup(text);
	return true;
}

/* Whether TEXT can be a list of GPUs, which is printed as it is. */
static bool is_list(const char *text)
{
	return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789:+-,")];
}

static bool take_file(struct parser *p, char *text)
{
	struct state_file f = {0};
	const char *kind = take_word(&text), *arch = take_word(&text);
	uint64_t seconds = 0, nanoseconds = 0;
	bool fine = take_number(&text, INT64_MAX, &f.before) &&
		    take_number(&text, INT64_MAX, &f.after) &&
		    take_number(&text, UINT64_MAX, &f.ino) &&
		    take_number(&text, UINT64_MAX, &seconds) &&
		    take_number(&text, 999999999, &nanoseconds) &&
		    take_path(text, &f.path) && kp_path_inside(f.path) &&
		    strlen(kind) == 2 && strchr(kinds, kind[0]) &&
		    strchr("dp", kind[1]) && is_list(arch) && f.after <= f.before &&
		    (p->out->n_files == 0 ||
		     strcmp(p->out->files[p->out->n_files - 1].path, f.path) < 0);

	if (!fine) {
		free(f.path);
		return false;
	}
	f.owned = kind[0] == kinds[OWNED];
	f.kind = f.owned ? STATE_PACKED
			 : (enum state_kind)(strchr(kinds, kind[0]) - kinds);
	f.planned = kind[1] == 'p';
	f.seconds = (int64_t)seconds;
	f.nanoseconds = (int64_t)nanoseconds;
	f.arch = xstrdup(arch);
	xgrow(&p->out->files, p->out->n_files, &p->out->files_cap, sizeof(f));
	p->out->files[p->out->n_files++] = f;
	return true;
}

static bool take_part(struct parser *p, char *text)
{
	struct state *s = p->out;
	const char *gpus = take_word(&text);
	struct state_part part = {0};

	if (!is_list(gpus) || !take_path(text, &part.name))
		return false;
	if (s->n_parts && strcmp(s->parts[s->n_parts - 1].name, part.name) >= 0) {
		free(part.name);
		return false;
	}
	part.gpus = xstrdup(gpus);
	xgrow(&s->parts, s->n_parts, &s->parts_cap, sizeof(part));
	s->parts[s->n_parts++] = part;
	return true;
}

static bool take_action(struct state *s, const char *text)
{
	for (int i = POLICY_THIN; i <= POLICY_PACK; i++)
		if (strcmp(text, policy_action_name((enum policy_action)i)) == 0)
			s->action = policy_action_name((enum policy_action)i);
	return s->action;
}

static bool take_place(struct state *s, char *text)
{
	char *path = NULL;

	if (!take_path(text, &path) || path[0] != '/') {
		free(path);
		return false;
	}
	state_add_place(s, path);
	free(path);
	return true;
}

static bool take_flag(const char *text, bool *out)
{
	return *out = *text == '\0';
}

static bool take_line(struct parser *p, char *text)
{
	struct state *s = p->out;
	const char *word = take_word(&text);
	uint64_t number = 0;

	if (strcmp(word, "file") == 0)
		return take_file(p, text);
	if (strcmp(word, "part") == 0)
		return take_part(p, text);
	if (strcmp(word, "tree") == 0)
		return take_path(text, &s->tree);
	if (strcmp(word, "arch") == 0)
		return is_list(text) && take_path(text, &s->arch);
	if (strcmp(word, "do") == 0)
		return take_action(s, text);
	if (strcmp(word, "place") == 0)
		return take_place(s, text);
	if (strcmp(word, "sure") == 0)
		return take_flag(text, &s->sure);
	if (strcmp(word, "strip") == 0)
		return take_flag(text, &s->strip);
	if (strcmp(word, "forgotten") == 0)
		return take_flag(text, &s->forgotten);
	if (strcmp(word, "seen") == 0) {
		p->done = true;
		return take_number(&text, STATE_MAX / HASH_SIZE, &p->n_seen) && !*text;
	}
	if (strcmp(word, "when") == 0 && take_number(&text, INT64_MAX, &number)) {
		s->when = (int64_t)number;
		return !*text;
	}
	return false;
}

/* The next line on the heap; NULL: there is none. */
static char *next_line(struct parser *p)
{
	const uint8_t *end =
		p->rest.size ? memchr(p->rest.data, '\n', p->rest.size) : NULL;
	char *line;
	size_t n;

	if (!end)
		return NULL;
	n = (size_t)(end - p->rest.data);
	line = xstrndup((const char *)p->rest.data, n);
	p->rest = kp_span_tail(p->rest, n + 1);
	p->line++;
	return line;
}

static kpack_error_t parse_lines(struct parser *p, struct kpackx_error *why)
{
	bool fine = true;
	char *line;

	while (fine && !p->done && (line = next_line(p))) {
		fine = p->line == 1 ? strcmp(line, head) == 0 : take_line(p, line);
		free(line);
	}
	if (!fine || !p->done)
		return fail_line(p,
				 p->line <= 1 ? "not a state of this version"
					      : "not as it was written",
				 why);
	return KPACK_SUCCESS;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, HASH_SIZE);
}

void state_sort(struct kp_hash *hashes, size_t n)
{
	if (n)
		qsort(hashes, n, sizeof(*hashes), by_bytes);
}

static kpack_error_t parse_seen(struct parser *p, struct kpackx_error *why)
{
	struct state *s = p->out;

	if (p->rest.size % HASH_SIZE || p->rest.size / HASH_SIZE != p->n_seen)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "damaged: %zu bytes of hashes for %" PRIu64 " files",
			       p->rest.size, p->n_seen);
	s->seen = xmalloc(p->rest.size + 1);
	if (p->rest.size)
		memcpy(s->seen, p->rest.data, p->rest.size);
	s->n_seen = (size_t)p->n_seen;
	state_sort(s->seen, s->n_seen); /* a look-up relies on the order */
	return KPACK_SUCCESS;
}

kpack_error_t state_parse(struct kp_span data, struct state *out,
			  struct kpackx_error *why)
{
	struct parser p = {.out = out};
	struct kp_hash sum;

	if (data.size < HASH_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "damaged: %zu bytes",
			       data.size);
	p.rest = kp_span_head(data, data.size - HASH_SIZE);
	sum = kp_hash_of(p.rest.data, p.rest.size);
	if (!kp_hash_is(&sum, data.data + p.rest.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "damaged: the checksum does not match");
	KP_TRY(parse_lines(&p, why));
	return parse_seen(&p, why);
}

kpack_error_t state_read(const char *path, struct state *out, struct kpackx_error *why)
{
	struct stat st;
	uint8_t *data;
	kpack_error_t err;
	size_t size;

	if (below_lstat(path, &st) < 0)
		return kp_fail(why, KPACK_ERROR_FILE_NOT_FOUND, "there is none");
	KP_TRY(policy_file_load(path, STATE_MAX, &data, &size, why));
	err = state_parse((struct kp_span){data, size}, out, why);
	free(data);
	return err;
}

/* --- writing ------------------------------------------------------------------------- */

static void put_path(struct kp_compose *c, const char *word, const char *path)
{
	char *text;

	if (!path)
		return;
	text = kp_text_escape_new(kp_span_str(path));
	if (!text)
		xalloc_fail(0);
	kp_compose_print(c, "%s %s\n", word, text);
	free(text);
}

static void put_file(struct kp_compose *c, const struct state_file *f)
{
	char *word = xasprintf(
		"file %c%c %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64,
		kinds[f->owned ? OWNED : (int)f->kind], f->planned ? 'p' : 'd', f->arch,
		f->before, f->after, f->ino, (uint64_t)f->seconds, f->nanoseconds);

	put_path(c, word, f->path);
	free(word);
}

static void put_part(struct kp_compose *c, const struct state_part *part)
{
	char *word = xasprintf("part %s", part->gpus);

	put_path(c, word, part->name);
	free(word);
}

uint8_t *state_format(const struct state *s, size_t *size)
{
	struct kp_compose c = {0};
	struct kp_hash sum;

	kp_compose_print(&c, "%s\n", head);
	put_path(&c, "tree", s->tree);
	put_path(&c, "arch", s->arch);
	if (s->action)
		kp_compose_print(&c, "do %s\n", s->action);
	kp_compose_print(&c, "when %" PRId64 "\n", s->when);
	kp_compose_str(&c, s->sure ? "sure\n" : "");
	kp_compose_str(&c, s->strip ? "strip\n" : "");
	kp_compose_str(&c, s->forgotten ? "forgotten\n" : "");
	for (size_t i = 0; i < s->n_places; i++)
		put_path(&c, "place", s->places[i]);
	for (size_t i = 0; i < s->n_files; i++)
		put_file(&c, &s->files[i]);
	for (size_t i = 0; i < s->n_parts; i++)
		put_part(&c, &s->parts[i]);
	kp_compose_print(&c, "seen %zu\n", s->n_seen);
	kp_compose_span(&c, (struct kp_span){(const uint8_t *)s->seen,
					     s->n_seen * sizeof(*s->seen)});
	sum = kp_hash_of(c.text, c.size);
	kp_compose_span(&c, (struct kp_span){sum.bytes, sizeof(sum.bytes)});
	if (c.no_memory)
		xalloc_fail(0);
	*size = c.size;
	return (uint8_t *)c.text;
}

kpack_error_t state_write(const char *path, const struct state *s,
			  struct kpackx_error *why)
{
	size_t size;
	uint8_t *data = state_format(s, &size);
	kpack_error_t err =
		below_file_write(path, 0644, (struct kp_span){data, size}, why);

	free(data);
	return err;
}

/* --- parts --------------------------------------------------------------------------- */

static void fini_file(struct state_file *f)
{
	free(f->path);
	free(f->arch);
	*f = (struct state_file){0};
}

void state_clear_places(struct state *s)
{
	for (size_t i = 0; i < s->n_places; i++)
		free(s->places[i]);
	s->n_places = 0;
}

static void clear_parts(struct state *s)
{
	for (size_t i = 0; i < s->n_parts; i++) {
		free(s->parts[i].name);
		free(s->parts[i].gpus);
	}
	free(s->parts);
	s->parts = NULL;
	s->n_parts = s->parts_cap = 0;
}

void state_fini(struct state *s)
{
	state_clear_places(s);
	clear_parts(s);
	for (size_t i = 0; i < s->n_files; i++)
		fini_file(&s->files[i]);
	free(s->places);
	free(s->files);
	free(s->seen);
	free(s->tree);
	free(s->arch);
	*s = (struct state){0};
}

/* The number of the first file whose path is not less than PATH. */
static size_t files_from(const struct state *s, const char *path)
{
	size_t low = 0, high = s->n_files;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->files[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct state_file *state_find_file(const struct state *s, const char *path)
{
	size_t i = files_from(s, path);

	return i < s->n_files && strcmp(s->files[i].path, path) == 0 ? &s->files[i]
								     : NULL;
}

void state_put_file(struct state *s, const struct state_file *file)
{
	size_t i = files_from(s, file->path);

	if (i < s->n_files && strcmp(s->files[i].path, file->path) == 0) {
		fini_file(&s->files[i]);
	} else {
		xgrow(&s->files, s->n_files, &s->files_cap, sizeof(*s->files));
		memmove(&s->files[i + 1], &s->files[i],
			(s->n_files - i) * sizeof(*s->files));
		s->n_files++;
	}
	s->files[i] = *file;
}

void state_drop_files(struct state *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_files; i++) {
		if (s->files[i].path)
			s->files[kept++] = s->files[i];
		else
			fini_file(&s->files[i]);
	}
	s->n_files = kept;
}

static int by_part(const void *a, const void *b)
{
	const struct state_part *x = a, *y = b;

	return strcmp(x->name, y->name);
}

const char *state_find_part(const struct state *s, const char *name)
{
	const struct state_part key = {.name = (char *)name};
	const struct state_part *part =
		s->n_parts ? bsearch(&key, s->parts, s->n_parts, sizeof(key), by_part)
			   : NULL;

	return part ? part->gpus : NULL;
}

void state_set_parts(struct state *s, struct state_part *parts, size_t n)
{
	clear_parts(s);
	s->parts = parts;
	s->n_parts = s->parts_cap = n;
}

void state_add_place(struct state *s, const char *path)
{
	xgrow(&s->places, s->n_places, &s->places_cap, sizeof(*s->places));
	s->places[s->n_places++] = xstrdup(path);
}

struct kp_hash state_hash(const char *path, uint64_t ino, uint64_t size,
			  const struct timespec *mtime, const struct timespec *ctime,
			  mode_t mode)
{
	size_t n = strlen(path);
	uint8_t *bytes = xmalloc(7 * 8 + n);
	const uint64_t fields[7] = {
		ino,
		size,
		(uint64_t)mtime->tv_sec,
		(uint64_t)mtime->tv_nsec,
		(uint64_t)ctime->tv_sec,
		(uint64_t)ctime->tv_nsec,
		mode,
	};
	struct kp_hash hash;

	for (int i = 0; i < 7; i++)
		kp_put_le64(bytes + 8 * i, fields[i]);
	memcpy(bytes + sizeof(fields), path, n);
	hash = kp_hash_of(bytes, sizeof(fields) + n);
	free(bytes);
	return hash;
}

bool state_has_seen(const struct state *s, const struct kp_hash *hash)
{
	return s->n_seen && bsearch(hash, s->seen, s->n_seen, sizeof(*hash), by_bytes);
}
