/* SPDX-License-Identifier: MIT */
/* Text as a word of a command that a user pastes into a shell, or a script runs. */
#ifndef PACKER_BASE_SHELL_WORD_H
#define PACKER_BASE_SHELL_WORD_H

/*
 * Returns TEXT as one word of a POSIX shell's command, on the heap.  Any terminal can
 * print the word: bytes that it would not show become escapes of printf.  It has one
 * line, unless TEXT ends with newlines: they stay, because "$(...)" would remove them.
 */
char *shell_word(const char *text);

#endif
