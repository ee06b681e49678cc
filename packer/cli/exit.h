/* SPDX-License-Identifier: MIT */
/* Exit statuses of the program. */
#ifndef PACKER_CLI_EXIT_H
#define PACKER_CLI_EXIT_H

enum {
	EXIT_OK = 0,    /* done */
	EXIT_FAULT = 1, /* a fault was found, or the work failed */
	EXIT_USAGE = 2, /* the command line is wrong */
};

#endif
