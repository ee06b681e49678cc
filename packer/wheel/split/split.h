/* SPDX-License-Identifier: MIT */
/* A whole run of kpack split-wheel. */
#ifndef PACKER_WHEEL_SPLIT_SPLIT_H
#define PACKER_WHEEL_SPLIT_SPLIT_H

#include "source.h"

/* Exit status, after reporting what went wrong; then no wheel has appeared. */
int wheel_split_run(const struct wheel_split_args *args);

#endif
