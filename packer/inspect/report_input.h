/* SPDX-License-Identifier: MIT */
/*
 * The input of a page: archives, the files next to them, and device code that is not
 * packed yet, which is measured by packing it.
 */
#ifndef PACKER_HTML_REPORT_INPUT_H
#define PACKER_HTML_REPORT_INPUT_H

#include "core/archive/archive.h"
#include "core/base/faults.h"

struct page_archive {
	struct kpack_archive *archive;
	char *name; /* path inside the operand */
	uint64_t bytes;
};

struct page_input {
	struct page_archive *archives;
	size_t count;
	uint64_t archive_bytes;

	/* The other regular files; a file with several links counts once. */
	uint64_t host_files, host_bytes;
	bool trees; /* an operand is not an archive: the two numbers above are known */

	/* Files that were not packed yet: */
	bool measured;
	uint64_t coded_files;    /* files with device code */
	uint64_t coded_bytes;    /* bytes of code in the files */
	uint64_t measured_bytes; /* the part of ARCHIVE_BYTES that packing made of them */

	struct kp_faults faults;
};

/*
 * Read N OPERANDS: archives, directories, or files with device code.  Anything unreadable
 * is reported, and is a fault of OUT.
 */
void page_input_open(int n, char **operands, bool quiet, struct page_input *out);
/* The last component of OPERAND: a page must not reveal more of its path. */
const char *page_name(const char *operand);

void page_input_close(struct page_input *in);

/*
 * Add the archive A, which is shown as NAME.  IN owns A from now on; if IN already has
 * the same file, A is closed.  A's faults become IN's.
 */
void page_input_take(struct page_input *in, struct kpack_archive *a, const char *name);

/* Report a fault of NAME and keep it for the page. */
void page_input_fault(struct page_input *in, const char *name, const char *text);

#endif
