/* SPDX-License-Identifier: MIT */
/* Lines on stderr, "kpack_hip: TEXT", one write per line. */
#ifndef KP_HIP_SAY_H
#define KP_HIP_SAY_H

#include <stdbool.h>
#include "core/loader/trace.h"

/*
 * KPACK_HIP_DEBUG: unset, print what cannot be found; "0", print nothing; otherwise print
 * all.
 */
enum say_level { SAY_NOTHING, SAY_MISSING, SAY_ALL };

void say_read_level(void);
bool say_wants(enum say_level level);

/* Print LINE if LEVEL is printed. */
void say_line(enum say_level level, const struct kp_line *line);

#endif
