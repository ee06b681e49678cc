/* SPDX-License-Identifier: MIT */
/* The rules for the frames of a zstd blob: their headers and their index. */
#ifndef PACKER_ARCHIVES_CHECK_FRAMES_H
#define PACKER_ARCHIVES_CHECK_FRAMES_H

#include "check.h"
#include "core/archive/toc.h"

/* Check the frames of the archive FILE, whose TOC is TOC. */
void frame_check(const struct kp_source *file, const struct kp_toc *toc,
		 struct check_findings *out);

#endif
