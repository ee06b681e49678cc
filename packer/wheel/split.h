/* SPDX-License-Identifier: MIT */
/* A whole run of kpack split-wheel. */
#ifndef PACKER_WHEEL_SPLIT_SPLIT_H
#define PACKER_WHEEL_SPLIT_SPLIT_H

#include "split_source.h"

/*
 * Returns the exit status, after reporting what went wrong; on failure no wheel is
 * output.
 */
int wheel_split_run(const struct wheel_split_args *args);

#endif
