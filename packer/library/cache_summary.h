/* SPDX-License-Identifier: MIT */
/* A summary of the rows of rocFFT's kernel cache, read without touching their code. */
#ifndef PACKER_LIBRARY_ROCFFT_CACHE_SUMMARY_H
#define PACKER_LIBRARY_ROCFFT_CACHE_SUMMARY_H

#include "facts.h"
#include "sqlite_file.h"
#include "core/target/target.h"

/* Limit of architectures in one cache: far more than exist. */
#define CACHE_ARCHES_MAX 256

struct cache_arch {
	char text[KP_TARGET_TEXT_MAX]; /* as spelled in the rows */
	char canonical[KP_TARGET_TEXT_MAX];
	uint64_t rows;
};

struct cache_summary {
	struct cache_arch arches[CACHE_ARCHES_MAX]; /* sorted by text */
	size_t n_arches;
	int64_t hip_versions[8]; /* sorted */
	size_t n_hip_versions;
	bool more_hip_versions; /* than fit in hip_versions */
	uint64_t rows;
	/* Rows whose arch is no GPU's target ID, or not text; the first such arch */
	uint64_t n_strange;
	char strange[KP_TARGET_TEXT_MAX];
};

/* Whether a table cache_v1 with rocFFT's columns exists. */
kpack_error_t cache_is_there(struct sqlite_file *f, bool *is, struct kpackx_error *why);

/* INVALID_FORMAT: damaged, or more arches than CACHE_ARCHES_MAX. */
kpack_error_t cache_summary_read(struct sqlite_file *f, struct cache_summary *out,
				 struct kpackx_error *why);

/* Whether TEXT is the target ID of a GPU.  CANONICAL gets its canonical form. */
bool cache_arch_ok(struct kp_span text, char canonical[KP_TARGET_TEXT_MAX]);

/* Add kernel_count; if they are few, also rows (per arch) and hip_version. */
void cache_summary_facts(const struct cache_summary *s, struct facts *facts);

#endif
