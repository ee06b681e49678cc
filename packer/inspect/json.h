/* SPDX-License-Identifier: MIT */
/* What was found in a file, as one JSON object. */
#ifndef PACKER_INSPECT_JSON_H
#define PACKER_INSPECT_JSON_H

#include "look.h"

/* Print FILE while it is looked at. */
kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why);

#endif
