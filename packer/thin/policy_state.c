/* SPDX-License-Identifier: MIT */
/*
 * The state of a tree between runs of kpack apply: /var/lib/kpack/NAME.state, lines of text.
 *
 *	kpack state 3
 *	tree PATH
 *	policy HASH WHEN PACKED MOUNTS
 *	gpus LIST                          the first list of GPUs is number 0
 *	KIND SIZE MTIME INO BEFORE GPUS OWNED PATH
 *	end HASH                           of all bytes before
 *
 * Files are sorted by path, bytewise; paths are escaped as kp_text_escape does.  If a state is
 * lost or damaged, the next run looks at all files again, and does not know the earlier changes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "policy.h"

enum { STATE_MAX = 1 << 30, HEX = 2 * sizeof(struct kp_hash) };

static const char first_line[] = "kpack state 3";
static const char kinds[STATE_KINDS + 1] = "scrp";

static void state_file_fini(struct state_file *f)
{
	free(f->path);
}

void state_fini(struct state *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		state_file_fini(&s->files[i]);
	for (size_t i = 0; i < s->n_gpus; i++)
		free(s->gpus[i]);
	free(s->files);
	free(s->gpus);
	free(s->tree);
	*s = (struct state){0};
}

/* Many files are asked for, one by one, so that a list in order is searched. */
bool state_knows(const struct state *s, const char *path, const struct file_identity *id)
{
	const struct state_file probe = {.path = (char *)path};
	const struct state_file *f = kp_find(s->files, s->n_files, &probe,
					     KP_BY_TEXT(struct state_file, path));

	return f && f->ino == id->ino && f->size == id->size && !f->fresh &&
	       f->mtime == (uint64_t)id->mtime.tv_sec * 1000000000 +
				   (uint64_t)id->mtime.tv_nsec;
}

/* --- reading ------------------------------------------------------------------------- */

/* Cut a number, and the blank behind it, off *AT; strtoull alone takes signs and blanks, too. */
static bool cut_number(char **at, uint64_t *out)
{
	char *end;

	if (!*at || **at < '0' || **at > '9')
		return false;
	*out = strtoull(*at, &end, 10);
	*at = *end == ' ' ? end + 1 : end;
	return *end == ' ' || *end == '\0';
}

static bool cut_hash(char **at, struct kp_hash *out)
{
	for (size_t i = 0; i < sizeof(out->bytes); i++) {
		unsigned byte;

		if (strspn(*at, "0123456789abcdef") < 2 || sscanf(*at, "%2x", &byte) != 1)
			return false;
		out->bytes[i] = (uint8_t)byte;
		*at += 2;
	}
	*at += **at == ' ';
	return true;
}

static bool take_file(struct state *s, char *line)
{
	const char *kind = *line ? strchr(kinds, *line) : NULL;
	struct state_file f = {0};
	uint64_t owned;
	char *at = line + 2;

	if (!kind || line[1] != ' ' || !cut_number(&at, &f.size) ||
	    !cut_number(&at, &f.mtime) || !cut_number(&at, &f.ino) ||
	    !cut_number(&at, &f.before) || !cut_number(&at, &f.gpus) ||
	    !cut_number(&at, &owned) || owned > 1)
		return false;
	f.kind = (enum state_kind)(kind - kinds);
	f.owned = owned;
	/* everything that is used without another look is checked: numbers of lists, sums, order */
	kp_text_unescape(at);
	if (!kp_path_inside(at) || f.size > INT64_MAX || f.before > INT64_MAX ||
	    (f.kind != STATE_SEEN && (f.gpus >= s->n_gpus || f.before < f.size)) ||
	    (s->n_files && strcmp(s->files[s->n_files - 1].path, at) >= 0))
		return false;
	f.path = xstrdup(at);
	xgrow(&s->files, s->n_files, &s->files_cap, sizeof(f));
	s->files[s->n_files++] = f;
	return true;
}

/* Take the line with NUMBER, without its newline. */
static bool take_line(struct state *s, size_t number, char *line)
{
	uint64_t when, packed;

	if (number == 0)
		return strcmp(line, first_line) == 0;
	if (number == 1 && strncmp(line, "tree /", 6) == 0) {
		s->tree = xstrdup(line + 5);
		kp_text_unescape(s->tree);
		return true;
	}
	if (number == 2 && strncmp(line, "policy ", 7) == 0) {
		line += 7;
		if (!cut_hash(&line, &s->policy) || !cut_number(&line, &when) ||
		    !cut_number(&line, &packed) || !cut_number(&line, &s->n_mounts) ||
		    when > INT64_MAX || packed > 1)
			return false;
		s->when = (int64_t)when;
		s->packed = packed;
		return true;
	}
	if (number > 2 &&
	    strncmp(line, "gpus ", 5) == 0) { /* files name lists before them */
		const char *list = line + 5;

		xgrow(&s->gpus, s->n_gpus, &s->gpus_cap, sizeof(*s->gpus));
		s->gpus[s->n_gpus++] = xstrdup(list);
		/* it is printed as it is */
		return !list[strspn(list, "abcdefghijklmnopqrstuvwxyz0123456789:+-,")];
	}
	return number > 2 && take_file(s, line);
}

kpack_error_t state_parse(struct kp_span data, struct state *out,
			  struct kpackx_error *why)
{
	static const size_t end_size = sizeof("end ") - 1 + HEX + 1;
	char *text = xstrndup((const char *)data.data, data.size), *rest, *line, *end;
	size_t size = strlen(text), number = 0;
	struct kp_hash stated, sum;
	bool fine = size == data.size && size > end_size && text[size - 1] == '\n';

	end = text + size - (fine ? end_size : 0);
	if (fine)
		sum = kp_hash_of(text, (size_t)(end - text));
	fine = fine && strncmp(end, "end ", 4) == 0;
	line = end + 4;
	fine = fine && cut_hash(&line, &stated) && kp_hash_is(&sum, stated.bytes);
	*(fine ? end - 1 : text) = '\0';
	for (rest = text; fine && (line = strsep(&rest, "\n")); number++)
		fine = take_line(out, number, line);
	free(text);
	return fine && number > 2 ? KPACK_SUCCESS
				  : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					    "damaged, or not a state of this version");
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

static void put_hash(FILE *f, const struct kp_hash *hash)
{
	for (size_t i = 0; i < sizeof(hash->bytes); i++)
		fprintf(f, "%02x", hash->bytes[i]);
}

/* Write PATH, escaped, and end the line. */
static void put_path(FILE *f, const char *path)
{
	struct kp_span whole = kp_span_str(path);
	char *escaped = NULL;

	if (kp_text_plain(whole) < whole.size && !(escaped = kp_text_escape_new(whole)))
		xalloc_fail(0);
	fputs(escaped ? escaped : path, f);
	fputc('\n', f);
	free(escaped);
}

char *state_format(const struct state *s, size_t *size)
{
	struct kp_hash sum;
	char *text = NULL;
	FILE *f = xmemstream(&text, size);

	fprintf(f, "%s\ntree ", first_line);
	put_path(f, s->tree);
	fputs("policy ", f);
	put_hash(f, &s->policy);
	fprintf(f, " %" PRId64 " %d %" PRIu64 "\n", s->when, s->packed, s->n_mounts);
	for (size_t i = 0; i < s->n_gpus; i++)
		fprintf(f, "gpus %s\n", s->gpus[i]);
	for (size_t i = 0; i < s->n_files; i++) {
		const struct state_file *e = &s->files[i];

		fprintf(f,
			"%c %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %d ",
			kinds[e->kind], e->size, e->mtime, e->ino, e->before, e->gpus,
			e->owned);
		put_path(f, e->path);
	}
	fflush(f);
	sum = kp_hash_of(text, *size);
	fputs("end ", f);
	put_hash(f, &sum);
	fputc('\n', f);
	fclose(f);
	return text;
}

kpack_error_t state_write(const char *path, const struct state *s,
			  struct kpackx_error *why)
{
	size_t size;
	char *data = state_format(s, &size);
	kpack_error_t err = below_file_write(
		path, 0644, (struct kp_span){(uint8_t *)data, size}, why);

	free(data);
	return err;
}
