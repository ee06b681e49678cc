/* SPDX-License-Identifier: MIT */
/*
 * HIP runtimes, and whether they take converted binaries, whose wrappers have the magic
 * HIPK.  A runtime does if it needs or contains kpack's library; all others refuse them.
 */
#ifndef PACKER_HIP_RUNTIMES_H
#define PACKER_HIP_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"
#include "core/base/span.h"

enum runtime_answer {
	RUNTIME_REFUSES,
	RUNTIME_TAKES,
	RUNTIME_UNKNOWN, /* WHY says why */
};

struct hip_runtime {
	char *path;                   /* without links */
	char *version;                /* "6.4.43484", from its name */
	enum runtime_answer contains; /* what its file says */
	bool decompresses; /* it reads compressed bundles; or its file is unreadable */
	bool is_6;         /* it is of HIP 6 */
	enum runtime_answer asked; /* how it answered, after runtime_ask */
	bool was_asked;
	struct kpackx_error why;
};

struct hip_runtimes {
	struct hip_runtime *items;
	size_t count, cap;
};

/* Whether NAME, the last component of a path, is that of a HIP runtime. */
bool runtime_is_name(const char *name);

/*
 * Add the runtime PATH, unless the list has it.  A file without the call
 * __hipRegisterFatBinary, such as a linker script, is no runtime and is not added.
 */
void runtimes_add(struct hip_runtimes *list, const char *path);
/* Add the runtimes of the directory TREE; reports faults.  false: there was one. */
bool runtimes_add_tree(struct hip_runtimes *list, const char *tree);
/* Add this system's: of ROCM_PATH, /opt/rocm* and the dynamic linker's cache. */
void runtimes_add_system(struct hip_runtimes *list);
void runtimes_fini(struct hip_runtimes *list);

/*
 * Judge the runtimes of the LIST or, if it is empty, this system's, which are added.  If
 * there are some and all refuse converted binaries, report that for INPUT: as a warning, or
 * with REFUSE as the reason why nothing is converted.  false: it was reported.
 */
bool runtimes_judge(struct hip_runtimes *list, const char *input, bool refuse);

/*
 * Judge the same runtimes: report each that does not read compressed bundles right, as the
 * reason why there will be none.  false: there was one.
 */
bool runtimes_judge_compressed(struct hip_runtimes *list);

/*
 * Load the runtime in another process and register a wrapper of a converted binary that
 * does not exist.  Runs its code; root runs none that another user can write.
 */
void runtime_ask(struct hip_runtime *runtime);

/*
 * Call FN with the name and path of each library in CACHE, the bytes of /etc/ld.so.cache in the
 * format of glibc 2.2 and later, also after a table in the older format.  Strings are
 * NUL-terminated, borrowed from CACHE.  false: another format.
 */
bool loader_cache_walk(struct kp_span cache,
		       void (*fn)(const char *name, const char *path, void *arg),
		       void *arg);

/*
 * The path of the libkpack_hip.so that was built or installed with this program, on the
 * heap; NULL with errno, which is ENOENT if there is none.
 */
char *helper_find(void);

#endif
