/* SPDX-License-Identifier: MIT */
/* A program that is run for its output. */
#ifndef PACKER_BASE_PROGRAM_H
#define PACKER_BASE_PROGRAM_H

#include <stdio.h>
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

#endif
