/* SPDX-License-Identifier: MIT */
#include "option_place.h"
#include <stdlib.h>
#include <string.h>
#include "exit.h"
#include "report.h"
#include "packer/base/xalloc.h"

static void put_text(char **slot, const char *arg)
{
	free(*slot);
	*slot = xstrdup(arg);
}

static void put_number(enum option_kind kind, void *slot, uint64_t n)
{
	if (kind == OPTION_INT)
		*(int *)slot = (int)n;
	else if (kind == OPTION_UNSIGNED)
		*(unsigned *)slot = (unsigned)n;
	else
		*(uint64_t *)slot = n;
}

int option_put(const struct command_help *help, int row, const struct option_place *place,
	       void *args, const char *arg)
{
	void *slot = (char *)args + place->at;
	uint64_t n = 0;
	int status;

	switch (place->kind) {
	case OPTION_NOWHERE:
		return EXIT_OK;
	case OPTION_FLAG:
		*(bool *)slot = true;
		return EXIT_OK;
	case OPTION_WORD:
		*(const char **)slot = arg;
		return EXIT_OK;
	case OPTION_TEXT:
		put_text(slot, arg);
		return EXIT_OK;
	default:
		status = options_take_number(help, help->options[row].long_name, arg,
					     place->low, place->high, &n);
		put_number(place->kind, slot, n);
		return status;
	}
}

unsigned option_jobs(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores > 0 ? (unsigned)cores : 1;
}
