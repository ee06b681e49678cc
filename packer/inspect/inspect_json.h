/* SPDX-License-Identifier: MIT */
/* Print the contents of a file as one JSON object. */
#ifndef PACKER_INSPECT_JSON_H
#define PACKER_INSPECT_JSON_H

#include "look.h"

/* Read the images of FILE and print it meanwhile. */
kpack_error_t inspect_json_print(struct inspect_file *file, struct kpackx_error *why);

#endif
