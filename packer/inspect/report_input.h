/* SPDX-License-Identifier: MIT */
/*
 * What kpack report looks at: archives, the files next to them, and device code that is not
 * packed yet, whose packed size is measured by packing it into files without a name.
 */
#ifndef PACKER_INSPECT_REPORT_INPUT_H
#define PACKER_INSPECT_REPORT_INPUT_H

#include "core/archive/archive.h"
#include "core/base/errors.h"

struct report_archive {
	struct kpack_archive *archive;
	char *name; /* path inside the operand: a report shows nothing above it */
	uint64_t bytes;
};

struct report_input {
	struct report_archive *archives;
	size_t count;
	uint64_t archive_bytes;

	/* The other regular files; a file with several links counts once. */
	uint64_t host_files, host_bytes;
	bool trees; /* an operand is not an archive: the two numbers above are known */

	/* Files that were not packed yet: */
	bool measured;
	uint64_t coded_files;    /* files with device code */
	uint64_t coded_bytes;    /* bytes of code in them */
	uint64_t measured_bytes; /* the part of ARCHIVE_BYTES that packing made of them */

	struct kp_faults faults;
};

/*
 * Read N OPERANDS: archives, directories, files with device code.  What cannot be read is
 * reported, is a fault of OUT, and is left out.
 */
void report_input_open(int n, char **operands, bool quiet, struct report_input *out);
void report_input_close(struct report_input *in);

/* Report a fault of NAME and keep it for the page. */
void report_input_fault(struct report_input *in, const char *name, const char *text);

#endif
