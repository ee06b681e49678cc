/* SPDX-License-Identifier: MIT */
/*
 * A program that is run gets an environment of two variables: its messages and its numbers are
 * then the same for every user, and it looks for its own programs in the system's directories only.
 *
 * A word for a shell is written plainly where no character of it means something to a shell,
 * between single quotes where a terminal can show it, and else by printf's octal escapes, which
 * every shell has.
 */
#include "process.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/text.h"
#include "xalloc.h"

int program_start(struct program *p, const char *path, char **argv)
{
	char locale[] = "LC_ALL=C", programs[] = "PATH=/usr/bin:/bin";
	char *environment[] = {locale, programs, NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], err;

	/* of both ends the program keeps only its standard output: when it ends, so does the stream */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	p->output = fdopen(ends[0], "r");
	err = p->output ? posix_spawn_file_actions_init(&actions) : errno;
	if (!err) {
		err = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		if (!err)
			err = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
							       "/dev/null", O_WRONLY, 0);
		if (!err)
			err = posix_spawn(&p->pid, path, &actions, NULL, argv,
					  environment);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (err && p->output)
		fclose(p->output);
	else if (err)
		close(ends[0]);
	return err;
}

int program_wait(pid_t pid)
{
	pid_t ended;
	int status;

	do
		ended = waitpid(pid, &status, 0);
	while (ended < 0 && errno == EINTR);
	return ended < 0 || !WIFEXITED(status) ? -1 : WEXITSTATUS(status);
}

int program_end(struct program *p)
{
	fclose(p->output);
	return program_wait(p->pid);
}

/*
 * Write TEXT between single quotes; one in it ends the quotes, and stands between two others.
 */
static void put_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", f);
		fputc(*text, f);
	}
	fputc('\'', f);
}

char *shell_word(const char *text)
{
	/* characters that have no meaning for a shell or for printf */
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_@+=:,./-";
	char *word = NULL;
	size_t size, n = strlen(text);
	FILE *f = xmemstream(&word, &size);
	struct kp_span s = kp_span_str(text);
	bool visible = true; /* a terminal shows every character */
	size_t step;

	for (uint32_t c; s.size && visible; s = kp_span_tail(s, step)) {
		step = kp_text_char(s, &c);
		visible = step && kp_text_visible(c);
	}
	if (n && text[strspn(text, safe)] == '\0') {
		fputs(text, f);
	} else if (visible) {
		put_quoted(f, text);
	} else {
		while (n && text[n - 1] == '\n')
			n--;
		if (n)
			fputs("\"$(printf '", f);
		for (size_t i = 0; i < n; i++)
			/* a dash at the beginning would be an option of printf */
			if (strchr(safe, text[i]) && (i || text[i] != '-'))
				fputc(text[i], f);
			else
				fprintf(f, "\\%03o", (unsigned char)text[i]);
		if (n)
			fputs("')\"", f);
		if (text[n])
			put_quoted(f, text + n);
	}
	fclose(f);
	return word;
}

void shell_put(FILE *out, const char *text)
{
	KP_AUTO_FREE char *word = shell_word(text);

	fprintf(out, " %s", word);
}
