/* SPDX-License-Identifier: MIT */
/* What rows rocFFT's kernel cache has, read without touching the code in them. */
#ifndef PACKER_LIBRARY_ROCFFT_CACHE_SUMMARY_H
#define PACKER_LIBRARY_ROCFFT_CACHE_SUMMARY_H

#include "packer/library/facts.h"
#include "packer/library/sqlite/file.h"
#include "core/target/target.h"

/* Architectures in one cache: far above every GPU there is. */
#define CACHE_ARCHES_MAX 256

struct cache_arch {
	char text[KP_TARGET_TEXT_MAX]; /* as it stands in the rows */
	char canonical[KP_TARGET_TEXT_MAX];
	uint64_t rows;
};

struct cache_summary {
	struct cache_arch arches[CACHE_ARCHES_MAX]; /* sorted by text */
	size_t n_arches;
	int64_t hip_versions[8]; /* sorted */
	size_t n_hip_versions;
	bool more_hip_versions; /* than these */
	uint64_t rows;
	/* Rows whose arch is NULL, no text, or no target ID of a GPU, and one of those. */
	uint64_t n_strange;
	char strange[KP_TARGET_TEXT_MAX];
};

/* Is there a table cache_v1 with rocFFT's columns? */
kpack_error_t cache_is_there(struct sqlite_file *f, bool *is, struct kpackx_error *why);

/* INVALID_FORMAT: damaged, or more arches than CACHE_ARCHES_MAX. */
kpack_error_t cache_summary_read(struct sqlite_file *f, struct cache_summary *out,
				 struct kpackx_error *why);

/* Is TEXT a target ID of a GPU, for which there can be kernels?  Gives the canonical one. */
bool cache_arch_ok(struct kp_span text, char canonical[KP_TARGET_TEXT_MAX]);

/* Add kernel_count; rows (of each arch) and hip_version where these are few. */
void cache_summary_facts(const struct cache_summary *s, struct facts *facts);

#endif
