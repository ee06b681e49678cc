/* SPDX-License-Identifier: MIT */
/* Parse the names of MIOpen's database files. */
#ifndef PACKER_LIBRARY_MIOPEN_NAME_H
#define PACKER_LIBRARY_MIOPEN_NAME_H

#include "core/target/target.h"

struct miopen_name {
	char arch[KP_TARGET_TEXT_MAX]; /* canonical; or "" */
	struct kp_span db_id;          /* "gfx906_nosramecc"; or empty */
	struct kp_span variant;        /* "gfx1250-strict"; or empty */
	unsigned cu_count;             /* 0: not stated */
	const char *role;              /* "perf", "find", "kernels", "model", "file" */
	const char *backend;           /* "HIP", "OpenCL", or NULL */
};

/*
 * Parse NAME, whose bytes are borrowed:
 *
 *   gfx942130.db.txt             gfx942, 0x130 = 304 compute units
 *   gfx90878.HIP.fdb.txt         gfx908, 0x78 = 120
 *   gfx1030_36.kdb               gfx1030, 36
 *   gfx906_nosramecc_60.db.txt   gfx906:sramecc-, 60
 *   gfx942_metadata.tn.model     gfx942
 */
struct miopen_name miopen_name(struct kp_span name);

#endif
