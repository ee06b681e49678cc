/* SPDX-License-Identifier: MIT */
/* What was found in a file, as one JSON object. */
#ifndef INSPECT_JSON_H
#define INSPECT_JSON_H

#include "look.h"

/* Print FILE while it is looked at. */
kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why);

#endif
