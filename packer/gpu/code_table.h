/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that a tree, a file or archives have code for: one table, which kpack detect and
 * kpack inspect print, and which a command shows that was asked for GPUs without any code.
 */
#ifndef PACKER_GPU_CODE_TABLE_H
#define PACKER_GPU_CODE_TABLE_H

#include "names.h"
#include "packer/cli/rows.h"

struct kpack_archive;

struct code_table_row {
	char arch[KP_TARGET_TEXT_MAX];
	size_t count; /* files or objects */
	size_t last;  /* the number of the last one */
	uint64_t bytes, kernels;
	enum {
		CODE_OTHER_GPU,
		CODE_LOADED,
		CODE_UNKNOWN
	} loads; /* by code_table_match */
};

struct code_table {
	struct code_table_row *rows;
	size_t count, cap;
};

/*
 * Add BYTES of code for ARCH, with KERNELS.  What is added with the same NUMBER, one after the
 * other, is of one file or object.
 */
void code_table_add(struct code_table *t, struct kp_span arch, size_t number,
		    uint64_t bytes, uint64_t kernels);
/* Add the entries of the archive A as one file, or, with OBJECTS, as many. */
void code_table_add_archive(struct code_table *t, const struct kpack_archive *a,
			    size_t number, bool objects);
/* Find out what one of GPUS can load; without any it is unknown.  Sorts the table. */
void code_table_match(struct code_table *t, const struct kp_choice *gpus);
void code_table_fini(struct code_table *t);

/* Columns behind those for the GPU, the count and the bytes. */
enum code_table_more { CODE_TABLE_SHORT, CODE_TABLE_KERNELS, CODE_TABLE_LOADS };

/* Print the first MOST rows, and how many more there are; COUNTED heads the count. */
void code_table_print(const struct code_table *t, FILE *out, const char *counted,
		      enum code_table_more more, size_t most);
/*
 * Report REFUSAL of PATH, whose code is in T, because no GPU that was asked for has code there;
 * then which have, and what to type.  Returns EXIT_FAULT.
 */
int code_table_refuse(struct code_table *t, const char *path, const char *refusal);

#endif
