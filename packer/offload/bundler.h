/* SPDX-License-Identifier: MIT */
/*
 * clang-offload-bundler: its command line, read, and its modes.  Functions that return
 * int return an exit status; on failure they have printed the message.
 */
#ifndef PACKER_OFFLOAD_BUNDLER_BUNDLER_H
#define PACKER_OFFLOAD_BUNDLER_BUNDLER_H

#include "files.h"
#include "core/format/ccob.h"
#include "entry_id.h"
#include "core/base/errors.h"
#include "options.h"

/* A target: the one to extract, or the one that an input is bundled for. */
struct bundler_target {
	const char *text;   /* as given in -targets */
	char *name;         /* its ID in normal form */
	struct entry_id id; /* of NAME */
};

struct bundler {
	const struct llvm_tool *tool;
	const char *program; /* argv[0], next to which llvm-objcopy may be */
	const char *type;
	const char *const *inputs, *const *outputs;
	size_t n_inputs, n_outputs;
	struct bundler_target *targets;
	size_t n_targets;
	size_t host; /* number of the host's target; SIZE_MAX: none */
	unsigned align;
	bool unbundle, list;
	bool allow_missing, check_archive, hip_openmp;
	bool print_commands; /* -### */
	bool compress, verbose;
	bool debug; /* print each comparison of two IDs */
	struct kp_ccob_form form;
};

/* The modes. */
int bundler_bundle(const struct bundler *b);
int bundler_unbundle(const struct bundler *b);
int bundler_unbundle_archive(const struct bundler *b);
int bundler_list(const struct bundler *b);

/* Apply the environment variables that stand for options. */
void bundler_environment(struct bundler *b);

/* Parse and check the N texts of -targets. */
int bundler_targets_read(struct bundler *b, const char *const *texts, size_t n);
void bundler_targets_free(struct bundler *b);

/* "error: 'FILE': TEXT" */
int bundler_fail_file(const struct bundler *b, const char *file,
		      const struct kpackx_error *why);
/* Print WHY the bundles in SRC cannot be read; messages call SRC WHAT ("input") NAME. */
int bundler_fail_parts(const struct bundler *b, const char *what, const char *name,
		       const struct kp_source *src, const struct kpackx_error *why);
/* "error: TEXT" */
int bundler_fail(const struct bundler *b, const struct kpackx_error *why);

/* Compare CODE with TARGET; with -debug-only also print the verdict. */
enum entry_verdict bundler_compare(const struct bundler *b, const struct entry_id *code,
				   const struct bundler_target *target);

/* With -verbose: print the sizes and the speed of a (de)compression that took SECONDS. */
void bundler_print_compressed(const struct bundler *b, uint64_t size, uint64_t decoded,
			      double seconds);
void bundler_print_decompressed(const struct bundler *b, const struct kp_ccob_form *form,
				uint64_t size, struct kp_span payload, double seconds);

#endif
