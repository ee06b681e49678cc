/* SPDX-License-Identifier: MIT */
/* Text as HTML. */
#ifndef PACKER_BASE_MARKUP_H
#define PACKER_BASE_MARKUP_H

#include <stdio.h>
#include "core/base/span.h"

/*
 * Print TEXT as the content of an element, or as an attribute in either kind of quotes:
 * no byte of it ends what it is in.
 */
void markup_put(FILE *out, struct kp_span text);

#endif
