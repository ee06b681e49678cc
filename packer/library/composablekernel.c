/* SPDX-License-Identifier: MIT */
#include "library.h"

static bool probe(const struct library *self, const struct library_question *q)
{
	(void)self, (void)q;
	return false;
}

const struct library library_composablekernel = {.name = "composablekernel",
						 .probe = probe};
