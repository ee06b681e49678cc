/* SPDX-License-Identifier: MIT */
/* The rules of the frames of a zstd blob: their heads, and the index of them. */
#ifndef FRAME_CHECK_H
#define FRAME_CHECK_H

#include "check.h"
#include "core/toc/toc.h"

/* Of the archive FILE, whose table is TOC. */
void frame_check(const struct kp_source *file, const struct kp_toc *toc,
		 struct check_findings *out);

#endif
