/* SPDX-License-Identifier: MIT */
/*
 * libkpack_hip.so: a converted binary's wrapper becomes an ordinary one with a bundle.
 *
 *   register.c  the two calls before the HIP runtime   ->  runtime.c  the runtime behind them
 *   binary.c    the binaries of this process, and the archives that they reach
 *   gpus.c      the GPUs that code is loaded for
 *   parts.c     the code objects of one wrapper that these GPUs can load
 *   bundle.c    the bundle of them in memory           ->  mounts.c  or mapped from a mount
 *
 * The caller holds the library's lock (register.c) during every call but runtime_find's.
 */
#ifndef KP_HIP_HIP_H
#define KP_HIP_HIP_H

#include "core/loader/lookup.h"
#include "core/loader/trace.h"
#include "core/target/target.h"

/* --- lines on stderr: "kpack_hip: TEXT" ------------------------------------------------- */

/*
 * KPACK_HIP_DEBUG: unset, print what cannot be found; "0", print nothing; otherwise print
 * all.
 */
enum say_level { SAY_NOTHING, SAY_MISSING, SAY_ALL };

bool say_wants(enum say_level level);

/* Print LINE if LEVEL is printed. */
void say_line(enum say_level level, const struct kp_line *line);

/* --- GPUs ------------------------------------------------------------------------------- */

/* The kinds of GPUs that code is loaded for. */
struct gpus {
	struct kp_target *list; /* each kind once */
	size_t count;
};

/*
 * Find the GPUs: those of KPACK_HIP_ARCH, a list of target IDs, or the machine's.  For
 * the machine's GPUs, HSA_OVERRIDE_GFX_VERSION_N is the version of the GPU with ROCm's
 * number N, and HSA_OVERRIDE_GFX_VERSION that of every other GPU.  No GPU is a success.
 * INVALID_ARGUMENT: a variable is wrong.  OUT_OF_MEMORY.  OUT lasts as long as
 * the process.
 */
kpack_error_t gpus_find(struct gpus *out, struct kpackx_error *why);

/* Whether GPU can load code for the target ID CODE. */
bool gpu_loads(const struct kp_target *gpu, const char *code);

/*
 * Write all targets that files for these GPUs may be named after to *NAMES, an array of
 * *COUNT strings; the caller frees it, and not the strings, with free().  Those with
 * fewer features are left out.
 */
kpack_error_t gpus_names(const struct gpus *g, const char *const **names, size_t *count,
			 struct kpackx_error *why);

/* --- binaries --------------------------------------------------------------------------- */

enum { BINARY_MOUNTED_MAX = 16 };

struct binary {
	struct binary *next;
	unsigned users;            /* registered wrappers */
	const void *marker;        /* the address, by which the binary is found again */
	bool is_unusable;          /* and was reported */
	struct kpackx_error fault; /* code 0: its marker and archives are known */
	char *path;                /* NULL: unknown */
	struct kp_marker facts;
	struct kp_lookup files; /* candidate archives; open ones stay open */
	char *mount; /* directory of a mount of its archives (mounts.h); NULL: none */
	dev_t mount_device; /* its files' */
	bool mount_sought;
	const struct kp_lookup_file
		*mounted[BINARY_MOUNTED_MAX]; /* archives that the mount lists */
	size_t n_mounted;
	bool *reported; /* for each GPU: it was reported that its code is missing */
};

/* What all binaries share; zeroed before the first use. */
struct binaries {
	bool started;
	struct kpackx_error fault; /* code 0: usable */
	struct kp_environment env;
	struct kp_cache cache;
	struct gpus gpus;
	const char *const *names; /* the targets of files for these GPUs */
	size_t n_names;
	struct binary *first;
};

/* Read the environment and find the GPUs, once.  The error of the first call stays. */
kpack_error_t binaries_start(struct binaries *all, struct kpackx_error *why);

/*
 * Return the binary with the marker at the address MARKER; unless *OUT is NULL, the caller
 * becomes a user of it and ends that with binary_put, on failure, too.
 * PATH_DISCOVERY_FAILED, INVALID_METADATA, OUT_OF_MEMORY, and ARCHIVE_NOT_FOUND in a
 * program with more rights than its user.
 */
kpack_error_t binary_get(struct binaries *all, const void *marker, struct binary **out,
			 struct kpackx_error *why);
void binary_put(struct binaries *all, struct binary *b);

/* --- parts ------------------------------------------------------------------------------ */

/* The code objects of a wrapper that the GPUs can load, and where they are. */
enum { PARTS_MAX = 60 }; /* so that the header of a bundle stays within 4096 bytes */

struct part {
	char arch[KP_TARGET_TEXT_MAX]; /* as in the archive */
	const struct kp_target *gpu;   /* the first that loads it */
	struct kp_lookup_file *file;   /* NULL: every archive's object is damaged */
	size_t entry;
	uint32_t ordinal;
	uint64_t offset, size; /* in the bundle */
};

struct parts {
	struct part list[PARTS_MAX]; /* sorted by their architectures */
	size_t count;
	char *key; /* "lib/libx.so#3" */
};

/*
 * Find the objects of wrapper INDEX; GPUs without any are reported, once for each binary.
 * OUT_OF_MEMORY.  The caller frees OUT with parts_fini on success and on failure.
 */
kpack_error_t parts_find(struct binaries *all, struct binary *b, uint32_t index,
			 struct parts *out, struct kpackx_error *why);
void parts_fini(struct parts *p);

/*
 * Part I could not be decoded, WHY says why: report it, and set the next archive that has
 * the object, or remove the part if there is none.
 */
void parts_replace(struct binary *b, struct parts *p, size_t i,
		   const struct kpackx_error *why);

/* --- bundles ---------------------------------------------------------------------------- */

/*
 * A bundle in memory is as clang writes it: a host entry, then the code objects at multiples
 * of 4096 bytes.
 */
struct bundle;

/*
 * Return a bundle with the code objects that the GPUs can load of wrapper INDEX of B; what
 * cannot be found or decoded is left out and reported.  Wrappers with the same objects
 * share a bundle.  The caller ends its use with bundle_put.  OUT_OF_MEMORY, IO_ERROR.
 */
kpack_error_t bundle_get(struct binaries *all, struct binary *b, uint32_t index,
			 struct bundle **out, struct kpackx_error *why);
/* A bundle without code objects, for a binary about which nothing is known. */
kpack_error_t bundle_empty(struct bundle **out, struct kpackx_error *why);
void bundle_put(struct bundle *bundle); /* NULL is allowed */

const void *bundle_address(const struct bundle *bundle);

/*
 * Map the bundle of wrapper INDEX of B that has every part of P.  Only mounts of root's or
 * of this process's user are used, that list the parts' very archives and no conflicts.
 * false: there is none.
 */
bool mounts_map(struct binary *b, const struct parts *p, uint32_t index, void **at,
		size_t *size);

/* --- the HIP runtime that a call is passed on to --------------------------------------------- */

struct runtime {
	void *(*add)(const void *wrapper); /* __hipRegisterFatBinary; NULL: no runtime */
	void (*drop)(void *handle);        /* __hipUnregisterFatBinary; NULL: none */
	bool takes_kpack;                  /* it loads converted binaries itself */
};

/*
 * Find the runtime that a call from the code or data at CALLER would have reached without
 * this library.  Takes the dynamic linker's lock, so no other lock may be held.
 */
void runtime_find(const void *caller, struct runtime *out);

#endif
