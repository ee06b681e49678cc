/* SPDX-License-Identifier: MIT */
/*
 * The system around this program: other programs that are run for their output, shells into which
 * a user pastes what we print, and the directory for temporary files.
 */
#ifndef PACKER_CLI_PROCESS_H
#define PACKER_CLI_PROCESS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

struct program {
	FILE *output;
	pid_t pid;
};

/*
 * Run the program at PATH, an absolute one, with ARGV in the C locale, and read what it
 * prints from P->output; its messages are dropped.  Returns 0 or an errno.
 */
int program_start(struct program *p, const char *path, char **argv);
/* Wait for the end.  Returns the exit status, or -1: a signal ended the program. */
int program_end(struct program *p);
/* The same for any child process. */
int program_wait(pid_t pid);

/*
 * Returns TEXT as one word of a POSIX shell's command, on the heap.  Any terminal can
 * print the word: bytes that it would not show become escapes of printf.  It has one
 * line, unless TEXT ends with newlines: they stay, because "$(...)" would remove them.
 */
char *shell_word(const char *text);
/* Write a blank, and TEXT as such a word. */
void shell_put(FILE *out, const char *text);

/* For temporary files of any size. */
#define LARGE_TEMPORARY_DIR "/var/tmp"

/*
 * The directory for temporary files: $TMPDIR, or OTHERWISE if it is not set or the program
 * runs with more rights than its user.
 */
static inline const char *tmpdir(const char *otherwise)
{
	const char *dir = secure_getenv("TMPDIR");

	return dir && *dir ? dir : otherwise;
}

#endif
