/* SPDX-License-Identifier: MIT */
/*
 * Two levels of zstd for a given time: a part of the content is compressed at the higher one.
 * A level of zstd is never chosen if another level saves more in less time.
 *
 * Nothing is timed: the time of a level is a constant, so that the same bytes give the same
 * archive on every machine.
 */
#ifndef KP_CORE_CODEC_EFFORT_H
#define KP_CORE_CODEC_EFFORT_H

#include "encode.h"

/* Most seconds for 10^9 bytes. */
#define KP_EFFORT_MAX 10000

/* Classes of densities. */
enum { KP_DENSITY_CLASSES = 256 };

struct kp_effort {
	int low, high; /* levels; equal: all content is compressed at this one */
	bool chosen[KP_DENSITY_CLASSES]; /* whether its content is compressed at HIGH */
};

/* LEVEL for everything. */
struct kp_effort kp_effort_fixed(int level);

/* The level of the encoder for kp_density, and the bytes that it looks at. */
enum { KP_DENSITY_LEVEL = 3, KP_DENSITY_SIZE = 64 << 10 };
/*
 * How many bytes of SOURCE are left when its middle is compressed, of 65536; 0: if so little
 * is saved that a higher level would not save more.  Denser content is where higher levels
 * save most.  IO_ERROR; OUT_OF_MEMORY.
 */
kpack_error_t kp_density(struct kp_encoder *e, const struct kp_source *source,
			 uint32_t *out, struct kpackx_error *why);

/* A part of all content. */
struct kp_density_sample {
	uint32_t density;
	uint64_t size; /* bytes that it stands for; of all samples less than 2^48 */
};

/*
 * Choose the levels with which compressing all content, of which there are N SAMPLES, takes
 * at most NS nanoseconds of CPU time, as far as such levels exist.  BLOCKS: content is a shared
 * archive's blocks, whose encoders have a dictionary; else objects.
 */
struct kp_effort kp_effort_choose(bool blocks, uint64_t ns,
				  const struct kp_density_sample *samples, size_t n);

static inline size_t kp_density_class(uint32_t density)
{
	return density / (65536 / KP_DENSITY_CLASSES);
}

/* Whether content of DENSITY is compressed at the higher of two levels. */
static inline bool kp_effort_high(const struct kp_effort *e, uint32_t density)
{
	return e->chosen[kp_density_class(density)];
}

#endif
