/* SPDX-License-Identifier: MIT */
/*
 * Reading kpack archives, and finding the code object a converted binary asks for: AMD's
 * rocm_kpack/kpack.h, same names, argument order, values and ABI.
 *
 * Ownership.  A string got from an archive is borrowed until kpack_close.
 * Kernel data is the caller's and is freed with kpack_free_kernel, a code object with
 * kpack_free_code_object.
 *
 * Threads.  An archive is immutable after kpack_open: every query and every
 * kpack_get_kernel may run concurrently on it, without a lock.  Only kpack_close needs
 * that nobody else still uses the archive.  Any number of threads may load through one
 * cache; only kpack_cache_destroy needs that nobody else still uses it.
 *
 * Errors.  Outputs are written on success only.  Why a call failed, in words, is told by
 * kpack_get_last_error, and by the kpackx_* variants in kpackx.h.
 *
 * The last five calls are not in AMD's header: they are those of kpack's design paper that
 * fit beside it.  For those that do not, see kpack_design.h.
 */
#ifndef ROCM_KPACK_KPACK_H
#define ROCM_KPACK_KPACK_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Open the archive at PATH.  Reads header, table of contents and frame index,
 * never a kernel.
 *
 * INVALID_ARGUMENT      path or archive is NULL
 * FILE_NOT_FOUND        no such file
 * IO_ERROR              not readable, not a regular file, empty
 * INVALID_FORMAT        too short, wrong magic, offsets outside the file
 * UNSUPPORTED_VERSION   not version 1
 * NOT_IMPLEMENTED       unknown compression scheme
 * MSGPACK_PARSE_FAILED  the table of contents is not valid
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_open(const char *path, kpack_archive_t *archive);

/* Close ARCHIVE and free all that was borrowed from it.  NULL is fine. */
KPACK_API void kpack_close(kpack_archive_t archive);

/*
 * The architectures the archive declares (gfx_arches), in stored order.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpack_get_architecture_count(kpack_archive_t archive,
						     size_t *count);
KPACK_API kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
					       const char **arch);

/*
 * The binaries (keys of the table of contents), sorted bytewise.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index,
					 const char **binary);

/*
 * Decode the code object of BINARY_NAME for ARCH into memory of the caller's
 * (kpack_free_kernel).  Both must match exactly; but when there is no such entry, "x"
 * also stands for "x#0", and "x#0" for "x".  *size is in bytes; *data is not NULL even when
 * *size is 0.
 *
 * INVALID_ARGUMENT      a NULL argument
 * KERNEL_NOT_FOUND      no such entry
 * DECOMPRESSION_FAILED  the frame is corrupt, or original_size is wrong
 * INVALID_FORMAT        the frame index contradicts the blob
 * IO_ERROR              the file could not be read or became shorter
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_get_kernel(kpack_archive_t archive, const char *binary_name,
					 const char *arch, void **data, size_t *size);

/* Free what kpack_get_kernel returned.  NULL is fine. */
KPACK_API void kpack_free_kernel(void *data);

/*
 * Make a cache of open archives.  The environment is read here, once, and not at all in a
 * program that runs with more rights than its user (set-user-ID); no other thread may
 * change it meanwhile.
 *
 * ROCM_KPACK_PATH         archives to look into instead of those a binary names
 * ROCM_KPACK_PATH_PREFIX  archives to look into before those; not used with the former
 * ROCM_KPACK_DISABLE      neither empty nor beginning with 0: loading is NOT_IMPLEMENTED
 * ROCM_KPACK_STRICT       likewise: what is damaged is not looked for elsewhere, see
 *                         kpack_load_code_object
 * ROCM_KPACK_DEBUG        likewise: what is done is reported on stderr, lines of "kpack: ":
 *                         what is looked for, each candidate, and why it was passed over
 *
 * Both lists hold files and directories, separated by ':'.  A directory stands for the
 * archives in it: what is named *.kpack and not hidden, bytewise by name, nothing below;
 * it is listed anew at each load.  Relative paths start at the current directory.  A "\:"
 * is a colon of the path ("/k/torch_gfx90a\:xnack+.kpack"); a backslash before anything
 * else is itself.  Empty members are left out, and a list of nothing else counts as not
 * set.
 *
 * After fork() the child may use the cache, whatever other threads of the parent did.
 *
 * INVALID_ARGUMENT: cache is NULL.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpack_cache_create(kpack_cache_t *cache);

/* Close all archives of CACHE and free it.  NULL is fine. */
KPACK_API void kpack_cache_destroy(kpack_cache_t cache);

/*
 * The file that is mapped at ADDRESS_IN_BINARY, as a string in PATH_OUT, and which of
 * its bytes is at the address (OFFSET_OUT may be NULL).  Of a file that was deleted or
 * replaced since it was mapped the name it had, without the " (deleted)" of
 * /proc/self/maps: its archives are looked for beside that.
 *
 * INVALID_ARGUMENT       a NULL argument, no room, or too little for the path and its NUL
 * PATH_DISCOVERY_FAILED  no file is mapped there, or /proc cannot be read
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_discover_binary_path(const void *address_in_binary,
						   char *path_out, size_t path_out_size,
						   size_t *offset_out);

/*
 * Find and decode the code object of one wrapper of a converted binary.
 *
 * HIPK_METADATA is where the wrapper points: the marker, which needs no end; what lies
 * behind its mapping is never read.  BINARY_PATH is the binary's file, from which
 * relative search paths start, CO_INDEX the wrapper's reserved1.  ARCH_LIST names what
 * the device runs, best first, like "gfx90a:sramecc+:xnack-", also with
 * "amdgcn-amd-amdhsa--" in front; NULL members are left out.  An arch also runs objects
 * built for it with some of its features unstated; generic targets run only where they
 * are listed.
 *
 * Archs come before archives: the first arch that any archive has the code object for
 * decides, then the most specific target, then the first archive.  An archive that lacks
 * the key, or in which the object is damaged, is passed over; a key without "#n" stands
 * for index 0.  If nothing answers and something was damaged, the error of the first such
 * object is the result.  With ROCM_KPACK_STRICT an object that is damaged is passed over
 * for the next arch of the list only: no copy of it elsewhere hides the damage.
 *
 * Archives stay open until the cache is destroyed.  Another file under the same path is
 * noticed and opened; files that are missing are looked for again each time.
 *
 * *code_object_out is not NULL even when the size is 0; free it with
 * kpack_free_code_object.
 *
 * INVALID_ARGUMENT      a NULL argument, no archs, more than 65536 archives to look into
 * NOT_IMPLEMENTED       ROCM_KPACK_DISABLE
 * INVALID_METADATA      HIPK_METADATA is not readable, or no map with kernel_name and
 *                       kpack_search_paths
 * ARCHIVE_NOT_FOUND     none of the archives can be opened
 * ARCH_NOT_FOUND        none of them offers a target that an arch of the list runs
 * KERNEL_NOT_FOUND      some do, but not for this binary and index
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR  as for kpack_get_kernel
 * OUT_OF_MEMORY         also when an archive could not be opened for want of it
 */
KPACK_API kpack_error_t kpack_load_code_object(kpack_cache_t cache,
					       const void *hipk_metadata,
					       const char *binary_path, uint32_t co_index,
					       const char *const *arch_list,
					       size_t arch_count, void **code_object_out,
					       size_t *code_object_size_out);

/* Free what kpack_load_code_object returned.  NULL is fine. */
KPACK_API void kpack_free_code_object(void *code_object);

/*
 * Call CALLBACK with each architecture that the archive at ARCHIVE_PATH declares, in
 * stored order, until it returns false, which is no error.  The string is valid during
 * the call.  INVALID_ARGUMENT: a NULL argument, but USER_DATA; else as for kpack_open.
 */
KPACK_API kpack_error_t kpack_enumerate_architectures(const char *archive_path,
						      kpack_arch_callback_t callback,
						      void *user_data);

/* ---- beyond AMD's header: the design paper's calls ---- */

/*
 * What CODE means, in words: "no such file".  Static, never NULL, the same for every
 * locale.  Unknown codes: "unknown error".
 */
KPACK_API const char *kpack_error_string(kpack_error_t code);

/*
 * Why the last call of this thread that failed on ARCHIVE did so: one line that names
 * object, field and value.  "" when none failed.  A call that succeeds does not change
 * it.  ARCHIVE NULL: the last kpack_open of this thread that failed.  UTF-8 without
 * control bytes.  For each archive the reasons of 4096 threads are kept; a thread beyond
 * them, or when memory is short, has only the last such reason, and "" for older ones.
 *
 * The text is this thread's alone, borrowed until its next call on ARCHIVE, and no longer
 * than until kpack_close.
 */
KPACK_API const char *kpack_get_last_error(kpack_archive_t archive);

/*
 * All architectures the archive declares, in stored order: an array of *count strings and
 * a NULL behind them.  Borrowed until kpack_close, the same array each time.
 * INVALID_ARGUMENT: a NULL argument.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpack_get_architectures(kpack_archive_t archive,
						const char ***arches, size_t *count);

/*
 * The names under which kernels of BINARY_NAME for ARCH can be had from kpack_get_kernel:
 * the key BINARY_NAME itself, its indices ("BINARY_NAME#3") and what stands below it as a
 * directory ("BINARY_NAME/...").  "" as BINARY_NAME: every key with an entry for ARCH.
 * Bytewise, but "x#2" before "x#10"; an array of *count strings and a NULL behind them.
 * That there are none is no error.
 *
 * Borrowed until kpack_close; asking the same again gives the same array, other threads
 * too.
 * INVALID_ARGUMENT: a NULL argument.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpack_list_kernels(kpack_archive_t archive,
					   const char *binary_name, const char *arch,
					   const char ***kernel_names, size_t *count);

/*
 * What the table of contents says of a kernel, found as kpack_get_kernel finds it, as one
 * JSON object in UTF-8:
 *
 *   {"binary":"lib/libx.so#0","arch":"gfx942","type":"hsaco","ordinal":0,
 *    "original_size":7472,"stored_size":2113,"metadata":{"path":"..."}}
 *
 * "metadata" is there when the entry has some: byte strings as hexadecimal digits,
 * extensions as {"ext":5,"data":"00ff"}, integers exactly, NaN and infinities as null, what
 * is no UTF-8 as U+FFFD, keys that are no strings as their JSON text; of equal keys the
 * first.  *size counts bytes without the NUL.  Borrowed until kpack_close; asking again
 * gives the same, other threads too.
 *
 * INVALID_ARGUMENT: a NULL argument.  KERNEL_NOT_FOUND.  OUT_OF_MEMORY, also for more than
 * 1 MiB of JSON.
 */
KPACK_API kpack_error_t kpack_get_kernel_metadata(kpack_archive_t archive,
						  const char *binary_name,
						  const char *arch,
						  const char **metadata_json,
						  size_t *size);

#ifdef __cplusplus
}
#endif
#endif
