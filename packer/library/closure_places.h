/* SPDX-License-Identifier: MIT */
/* Index what Tensile's directories hold for each processor, in one pass. */
#ifndef PACKER_CLOSURE_TENSILE_PLACES_H
#define PACKER_CLOSURE_TENSILE_PLACES_H

#include "library.h"

enum {
	PLACE_CO = 1,        /* a .co */
	PLACE_HSACO = 2,     /* a .hsaco */
	PLACE_MERGED = 4,    /* TensileLibrary_<gpu>.co */
	PLACE_HELPER = 8,    /* Kernels.so-000-<gpu>.hsaco */
	PLACE_HELPERS = 16,  /* helper files Kernels1.so-000-<gpu>.hsaco ... */
	PLACE_PARENT = 32,   /* TensileLibrary_lazy_<gpu>.dat and the like */
	PLACE_XNACK_ON = 64, /* a code object with -xnack+ */
};

struct code_place {
	struct kp_span dir;
	char gpu[KP_TARGET_TEXT_MAX]; /* a processor; "": all of the directory */
	bool whole;                   /* includes the directories of GPUs below dir */
	unsigned flags;
};

/* Sorted by dir, whole, gpu; spans point into the tree's paths. */
struct tensile_places {
	struct code_place *items;
	size_t count, cap;
};

/* Rules may give only some of a directory's files to their library: all files count. */
void tensile_places_read(const struct file_tree *tree, struct tensile_places *out);
void tensile_places_fini(struct tensile_places *places);

/* Flags of GPU ("": any) in DIR; 0 if it has nothing there. */
unsigned tensile_places_get(const struct tensile_places *places, struct kp_span dir,
			    const char *gpu);
/* Flags of any GPU in all directories of the library that has a file in DIR. */
unsigned tensile_places_all(const struct tensile_places *places, struct kp_span dir);

/* --- names, also for the other checks ------------------------------------------------ */

/*
 * Returns "rocblas", "hipblaslt" or "hipsparselt" if FILE is that library's, or if it
 * belongs to rules and its directory has the files of that library; otherwise NULL.
 */
const char *tensile_library_of(const struct library_found *found, size_t file);

/* The last processor in NAME, without its features; false: NAME has none. */
bool tensile_gpu_of_name(struct kp_span name, char out[KP_TARGET_TEXT_MAX]);

/*
 * Whether NAME is that of a library that loaders open first, with the ending .dat,
 * .dat.zlib or .yaml.  GPU is the processor that it names, or "".
 */
bool tensile_is_parent(struct kp_span name, char gpu[KP_TARGET_TEXT_MAX]);

/* Whether NAME is the code of all solutions for one GPU, TensileLibrary_<gpu>.co. */
bool tensile_merged_gpu(struct kp_span name, char gpu[KP_TARGET_TEXT_MAX]);

/* The parts of PATH before and after its last '/'. */
struct kp_span path_last(struct kp_span path);

bool name_ends(struct kp_span name, const char *ending);
bool name_has(struct kp_span name, const char *part);

#endif
