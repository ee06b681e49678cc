/* SPDX-License-Identifier: MIT */
/*
 * What a page is about: archives, the files beside them, and device code that is not packed
 * yet, which is measured by packing it.
 */
#ifndef PACKER_HTML_REPORT_INPUT_H
#define PACKER_HTML_REPORT_INPUT_H

#include "core/archive/archive.h"
#include "core/base/faults.h"

struct page_archive {
	struct kpack_archive *archive;
	char *name; /* inside its operand */
	uint64_t bytes;
};

struct page_input {
	struct page_archive *archives;
	size_t count;
	uint64_t archive_bytes;

	/* The other regular files, each once whatever its links. */
	uint64_t host_files, host_bytes;
	bool trees; /* directories were given: the figures above mean something */

	/* Of files that were not packed yet: */
	bool measured;
	uint64_t coded_files;    /* that have device code */
	uint64_t coded_bytes;    /* that packing takes out of them */
	uint64_t measured_bytes; /* of ARCHIVE_BYTES: what packing makes of them */

	struct kp_faults faults;
};

/*
 * Look at N OPERANDS: archives, directories, or files with device code.  What cannot be read
 * is reported, and a fault of OUT.
 * OUT_OF_MEMORY is the only error.
 */
kpack_error_t page_input_open(int n, char **operands, bool quiet, struct page_input *out,
			      struct kpackx_error *why);
/* The last component of an operand: what a page may say of where it was. */
const char *page_name(const char *operand);

void page_input_close(struct page_input *in);

/*
 * Add the archive A, which is shown as NAME, and IN's from now on; one that is there is closed.
 * Its faults become IN's.
 */
void page_input_take(struct page_input *in, struct kpack_archive *a, const char *name);

/* Tell a fault of NAME and keep it for the page. */
void page_input_fault(struct page_input *in, const char *name, const char *text);

#endif
