/* SPDX-License-Identifier: MIT */
/*
 * Walk a file or a tree and find what has device code, each file classified once.
 * Symlinks are not followed; of hard links the bytewise first path counts.
 */
#ifndef SCAN_H
#define SCAN_H

#include "input.h"

/* A file that was left alone although it has to do with device code. */
struct scan_note {
	char *path;
	const char *text;
};

struct scan {
	struct input **inputs; /* with device code, by key, bytewise */
	size_t n_inputs, inputs_cap;
	struct scan_note *notes;
	size_t n_notes;
	size_t n_files;  /* regular files looked at */
	size_t n_faults; /* files that could not be read; each was told */
};

/*
 * Scan ROOT.  PREFIX (may be "") stands before every key.  In a tree fat binaries are
 * taken; a file given by itself may also be a bare container.  Faults of single files are
 * told and counted; an error is returned when the walk itself fails.
 */
kpack_error_t scan_open(const char *root, const char *prefix, struct scan *out,
			struct kpackx_error *why);
void scan_close(struct scan *scan);

#endif
