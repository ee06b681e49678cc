/* SPDX-License-Identifier: MIT */
/*
 * Files of the bundler: inputs are files, pipes, devices or "-"; outputs appear all together
 * when everything went well, but for what must stay the file it is - pipes, devices, "-", files
 * with other names or owners - which is written then.
 */
#ifndef PACKER_OFFLOAD_BUNDLER_FILES_H
#define PACKER_OFFLOAD_BUNDLER_FILES_H

#include "core/base/file.h"
#include "core/format/ar_archive.h"
#include "core/base/sink.h"

struct bundler_input {
	int fd;       /* -1: none is open */
	void *heap;   /* what is no regular file is read to its end */
	bool regular; /* others can open it by its name */
	struct kp_source src;
};

/* WHY is without the name of the file. */
kpack_error_t bundler_input_open(struct bundler_input *in, const char *path,
				 struct kpackx_error *why);
void bundler_input_close(struct bundler_input *in);

/*
 * Open member NUMBER of AR, the archive SRC at PATH: of a thin one a file beside it.
 * WHY is without the name of the member.
 */
kpack_error_t bundler_member_open(struct bundler_input *in, const struct kp_ar *ar,
				  size_t number, const struct kp_source *src,
				  const char *path, struct kpackx_error *why);

struct bundler_output {
	const char *path; /* borrowed */
	struct kp_outfile file;
	struct kp_sink sink; /* what is written goes there */
	bool in_place;       /* FILE has no name, and is copied in the end */
	mode_t keep;         /* mode of the file that is replaced, or 0 */
};

struct bundler_outputs {
	struct bundler_output *items;
	size_t count;
};

/* N outputs at most; they are added one after another. */
kpack_error_t bundler_outputs_new(struct bundler_outputs *outputs, size_t n,
				  struct kpackx_error *why);
kpack_error_t bundler_outputs_add(struct bundler_outputs *outputs, const char *path,
				  struct bundler_output **out, struct kpackx_error *why);

/* Give all their names.  FAILED is the one that could not get it. */
kpack_error_t bundler_outputs_publish(struct bundler_outputs *outputs,
				      const char **failed, struct kpackx_error *why);
/* What is not published leaves nothing behind. */
void bundler_outputs_close(struct bundler_outputs *outputs);

/*
 * A temporary file "clang-offload-bundler-XXXXXX.tmp" holding SRC, for other programs; the
 * caller unlinks it and frees its name.
 */
kpack_error_t bundler_temporary(const struct kp_source *src, char **name,
				struct kpackx_error *why);

#endif
