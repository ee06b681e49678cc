/* SPDX-License-Identifier: MIT */
/*
 * Files of the bundler.  Inputs are files, pipes, devices or "-".  Outputs appear all
 * together, after everything has succeeded, by replacing existing files.  An output that
 * must remain the same file (a pipe, a device, "-", a file with other names or owners) is
 * written in place then; but root writes into none that another user may have put there.
 */
#ifndef PACKER_OFFLOAD_BUNDLER_FILES_H
#define PACKER_OFFLOAD_BUNDLER_FILES_H

#include "core/base/file.h"
#include "core/format/ar_archive.h"
#include "core/base/sink.h"
#include "packer/files/below.h"
#include "packer/files/target.h"

struct bundler_input {
	int fd;       /* -1: none is open */
	void *heap;   /* owned; content of an input that is not a regular file */
	bool regular; /* other programs can open it by its name */
	struct kp_source src;
};

/* WHY does not name the file. */
kpack_error_t bundler_input_open(struct bundler_input *in, const char *path,
				 struct kpackx_error *why);
void bundler_input_close(struct bundler_input *in);

/*
 * Open member NUMBER of AR, the archive SRC at PATH.  The member of a thin archive is a
 * file next to the archive.  WHY does not name the member.
 */
kpack_error_t bundler_member_open(struct bundler_input *in, const struct kp_ar *ar,
				  size_t number, const struct kp_source *src,
				  const char *path, struct kpackx_error *why);

struct bundler_output {
	const char *path;       /* borrowed */
	struct below_target to; /* what PATH leads to */
	struct kp_outfile file;
	struct kp_sink sink; /* writes into FILE */
	bool in_place;       /* FILE has no name; publishing copies it into PATH */
	mode_t keep;         /* mode of the file that is replaced, or 0 */
};

struct bundler_outputs {
	struct bundler_output *items;
	size_t count;
};

/* Make room for at most N outputs; bundler_outputs_add adds one. */
struct bundler_outputs bundler_outputs_new(size_t n);
kpack_error_t bundler_outputs_add(struct bundler_outputs *outputs, const char *path,
				  struct bundler_output **out, struct kpackx_error *why);

/* Give all outputs their names.  On failure *FAILED is the path of the failing output. */
kpack_error_t bundler_outputs_publish(struct bundler_outputs *outputs,
				      const char **failed, struct kpackx_error *why);
/* Close all outputs; those that are not published leave nothing behind. */
void bundler_outputs_close(struct bundler_outputs *outputs);

/* Open a file without a name, on disk if possible: it can be large.  -1: errno. */
int bundler_nameless(void);

/*
 * Make a temporary file "clang-offload-bundler-XXXXXX.tmp" with the bytes of SRC, for
 * other programs; the caller unlinks it and frees its name.
 */
kpack_error_t bundler_temporary(const struct kp_source *src, char **name,
				struct kpackx_error *why);

#endif
