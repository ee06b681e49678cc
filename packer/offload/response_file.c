/* SPDX-License-Identifier: MIT */
#include "response_file.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/base/file.h"

/* Depth of response files in response files.  LLVM's tools only forbid recursion. */
#define DEPTH_MAX 32

/*
 * Bytes of all response files, each counted as BYTES_PER_FILE more than it has: a link of
 * a million objects needs less.
 */
#define BYTES_MAX ((uint64_t)256 << 20)
#define BYTES_PER_FILE 16384

struct words {
	char **items;
	size_t count, cap;
	uint64_t bytes; /* of files so far */
	struct kpackx_error *why;
};

/* A response file that is being read, and the files that include it. */
struct frame {
	const struct frame *outer;
	unsigned depth;
	struct stat st;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void add_word(struct words *w, char *word)
{
	xgrow(&w->items, w->count, &w->cap, sizeof(*w->items));
	w->items[w->count] = word;
}

/* Copy the next word of *TEXT, unquoted, to OUT, which has room for the whole text. */
static size_t next_word(const char **text, char *out)
{
	const char *p = *text;
	char quote = 0;
	size_t n = 0;

	while (is_space(*p))
		p++;
	for (; *p && (quote || !is_space(*p)); p++) {
		if (*p == '\\' && p[1])
			out[n++] = *++p;
		else if (*p == quote)
			quote = 0;
		else if (!quote && (*p == '"' || *p == '\''))
			quote = *p;
		else
			out[n++] = *p;
	}
	out[n] = '\0';
	*text = p;
	return n;
}

static kpack_error_t add_expanded(struct words *w, const char *word,
				  const struct frame *in);

static kpack_error_t add_words_of(struct words *w, const char *text,
				  const struct frame *in)
{
	char *word = xmalloc(strlen(text) + 1);
	kpack_error_t err = KPACK_SUCCESS;

	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	/* as in LLVM, "" alone is no word */
	while (!err && *text)
		if (next_word(&text, word))
			err = add_expanded(w, word, in);
	free(word);
	return err;
}

static bool is_open(const struct frame *in, const struct stat *st)
{
	for (; in; in = in->outer)
		if (in->st.st_dev == st->st_dev && in->st.st_ino == st->st_ino)
			return true;
	return false;
}

/* Append the words of the file open at FD. */
static kpack_error_t add_file(struct words *w, const char *path, int fd,
			      const struct frame *in)
{
	size_t size = (size_t)in->st.st_size;
	kpack_error_t err;
	char *text;

	w->bytes += in->st.st_size + BYTES_PER_FILE;
	if (is_open(in->outer, &in->st) || in->depth > DEPTH_MAX)
		return kp_fail(w->why, KPACK_ERROR_INVALID_ARGUMENT,
			       "recursive expansion of: '%s'", path);
	if (w->bytes > BYTES_MAX)
		return kp_fail(w->why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s': response files of more than %" PRIu64 " bytes",
			       path, BYTES_MAX);
	text = xmalloc(size + 1);
	text[size] = '\0';
	err = kp_file_pread(fd, 0, text, size, w->why);
	if (!err)
		err = add_words_of(w, text, in);
	free(text);
	return err;
}

static kpack_error_t add_expanded(struct words *w, const char *word,
				  const struct frame *in)
{
	struct frame frame = {.outer = in, .depth = in ? in->depth + 1 : 1};
	kpack_error_t err;
	struct stat st;
	int fd;

	/* "@x" without a file x is an ordinary word */
	if (word[0] != '@' || (below_stat(word + 1, &st) < 0 && errno != ELOOP)) {
		add_word(w, xstrdup(word));
		w->count++;
		return KPACK_SUCCESS;
	}
	err = below_file_open(word + 1, &fd, &frame.st, w->why);
	if (err)
		return kp_fail_prefix(w->why, err, "'%s'", word + 1);
	err = add_file(w, word + 1, fd, &frame);
	close(fd);
	return err;
}

kpack_error_t response_words(int argc, char **argv, char ***words, size_t *n_words,
			     struct kpackx_error *why)
{
	struct words w = {.why = why};
	kpack_error_t err = KPACK_SUCCESS;

	add_word(&w, xstrdup(argc > 0 ? argv[0] : ""));
	w.count++;
	for (int i = 1; i < argc && !err; i++)
		err = add_expanded(&w, argv[i], NULL);
	add_word(&w, NULL);
	*words = w.items;
	*n_words = w.count;
	return err;
}

void response_words_free(char **words, size_t n_words)
{
	for (size_t i = 0; i < n_words; i++)
		free(words[i]);
	free(words);
}
