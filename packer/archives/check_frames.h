/* SPDX-License-Identifier: MIT */
/* The rules of the frames of a zstd blob: their heads, and the index of them. */
#ifndef FRAME_CHECK_H
#define FRAME_CHECK_H

#include "check.h"
#include "core/toc/toc.h"

/* Check the frames of the archive FILE with the table TOC. */
void frame_check(const struct kp_source *file, const struct kp_toc *toc,
		 struct check_findings *out);

#endif
