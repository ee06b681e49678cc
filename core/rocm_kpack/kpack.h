/* SPDX-License-Identifier: MIT */
/*
 * Reading kpack archives, whose format is in kpack-format(5), and finding the code object
 * that a converted binary needs.
 * The fourteen calls of AMD's rocm_kpack/kpack.h, and no more: same names, argument
 * order, values and ABI.  kpackx.h has all further calls, so that a program for AMD's
 * library may define such names itself.
 *
 * Ownership.  A string that an archive returns is borrowed until kpack_close.  The caller
 * owns kernel data and frees it with kpack_free_kernel; it owns code objects and frees
 * them with kpack_free_code_object.
 *
 * Threads.  An archive is immutable after kpack_open: every query and every
 * kpack_get_kernel may run concurrently on it, without a lock.  Only for kpack_close must
 * no other thread still use the archive.  Any number of threads may load through one
 * cache; only for kpack_cache_destroy must no other thread still use the cache.
 *
 * Errors.  Outputs are written on success only.  kpack_get_last_error and the kpackx_*
 * variants, in kpackx.h, say in words why a call failed.
 */
#ifndef ROCM_KPACK_KPACK_H
#define ROCM_KPACK_KPACK_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Open the archive at PATH.  Reads the header, the table of contents and the frame index,
 * but no kernel.
 *
 * INVALID_ARGUMENT      path or archive is NULL
 * FILE_NOT_FOUND        no such file
 * IO_ERROR              not readable, not a regular file, empty
 * INVALID_FORMAT        too short, wrong magic, offsets outside the file
 * UNSUPPORTED_VERSION   neither version 1 nor 2, or not the version of its scheme
 * NOT_IMPLEMENTED       unknown compression scheme
 * MSGPACK_PARSE_FAILED  the table of contents is not valid
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_open(const char *path, kpack_archive_t *archive);

/* Close ARCHIVE and free everything borrowed from it.  NULL is allowed. */
KPACK_API void kpack_close(kpack_archive_t archive);

/*
 * The architectures that the archive declares (gfx_arches), in stored order.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpack_get_architecture_count(kpack_archive_t archive,
						     size_t *count);
KPACK_API kpack_error_t kpack_get_architecture(kpack_archive_t archive, size_t index,
					       const char **arch);

/*
 * The names of the binaries (keys of the table of contents), sorted bytewise.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpack_get_binary_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpack_get_binary(kpack_archive_t archive, size_t index,
					 const char **binary);

/*
 * Decode the code object of BINARY_NAME for ARCH into newly allocated memory, which the
 * caller frees with kpack_free_kernel.  Both names must match exactly, except that when
 * no such entry exists, "x" also stands for "x#0", and "x#0" for "x".  *size is in bytes;
 * *data is not NULL even when *size is 0.
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

/* Free the data that kpack_get_kernel returned.  NULL is allowed. */
KPACK_API void kpack_free_kernel(void *data);

/*
 * Create a cache of open archives.  This call reads the environment, once; later changes
 * have no effect.  No other thread may change the environment during the call.  A program
 * that runs with more rights than its user (set-user-ID, set-group-ID, file capabilities)
 * does not read it at all.
 *
 * ROCM_KPACK_PATH         archives to search instead of those that a binary names
 * ROCM_KPACK_PATH_PREFIX  archives to search before those that a binary names; ignored
 *                         when ROCM_KPACK_PATH is set
 * ROCM_KPACK_DISABLE      on: loading fails with NOT_IMPLEMENTED
 * ROCM_KPACK_STRICT       on: no other copy of a damaged code object is searched for, see
 *                         kpack_load_code_object
 * ROCM_KPACK_DEBUG        on: each load prints lines "kpack: ..." on stderr: what it
 *                         searches for, each candidate, and why it skipped a candidate
 *
 * The last three are on when their value is not empty and does not begin with 0.
 *
 * Both lists hold files and directories, separated by ':'.  A directory stands for the
 * archives directly in it - files named *.kpack that are not hidden - in bytewise order
 * of their names; every load lists the directory again.  Relative paths start at the
 * current directory.  A member that does not exist is joined with the next one, or up to
 * seven, if that gives the path of a file or directory: "/k/torch_gfx90a:xnack+.kpack" is
 * one path.  A "\:" never separates ("/k/torch_gfx90a\:xnack+.kpack"); a backslash before
 * any other character is an ordinary character.  Empty members are ignored, and a list
 * that has only empty members counts as not set.
 *
 * After fork() the child may use the cache, whatever other threads of the parent did.
 *
 * INVALID_ARGUMENT: cache is NULL.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpack_cache_create(kpack_cache_t *cache);

/* Close all archives of CACHE and free it.  NULL is allowed. */
KPACK_API void kpack_cache_destroy(kpack_cache_t cache);

/*
 * Find the file that is mapped at ADDRESS_IN_BINARY.  PATH_OUT gets its path, at most
 * PATH_OUT_SIZE bytes with the NUL; OFFSET_OUT, which may be NULL, gets the offset in the
 * file, in bytes, of the byte at the address.  For a file that was deleted or replaced
 * since it was mapped, PATH_OUT gets its former path, without the " (deleted)" of
 * /proc/self/maps: its archives are searched for relative to that path.
 *
 * INVALID_ARGUMENT       a NULL argument, or PATH_OUT_SIZE is too small for path and NUL
 * PATH_DISCOVERY_FAILED  no file is mapped there, or /proc cannot be read
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpack_discover_binary_path(const void *address_in_binary,
						   char *path_out, size_t path_out_size,
						   size_t *offset_out);

/*
 * Find and decode the code object of one wrapper of a converted binary.
 *
 * HIPK_METADATA is the address that the wrapper points to, that of the marker.  The
 * marker needs no terminator; bytes after its memory mapping are never read.  BINARY_PATH
 * is the path of the binary's file, from which relative search paths start.  CO_INDEX is
 * the wrapper's reserved1.  ARCH_LIST has ARCH_COUNT targets that the device runs, best
 * first, like "gfx90a:sramecc+:xnack-", optionally with "amdgcn-amd-amdhsa--" in front;
 * NULL members are ignored.  An arch also runs objects built for it with some of its
 * features unstated; a generic target is used only if it is in the list.
 *
 * Archs take precedence over archives: the first arch for which any archive has the code
 * object decides, then the most specific target, then the first archive.  An archive that
 * lacks the key, or in which the object is damaged, is skipped; a key without "#n" stands
 * for index 0.  If no archive provides the object and one was damaged, the call returns
 * the error of the first damaged object.  With ROCM_KPACK_STRICT only the next arch of
 * the list can replace a damaged object: no copy of it in another archive hides the
 * damage.
 *
 * Archives stay open until the cache is destroyed.  If another file appears under the
 * path of an open archive, the call opens that file.  Missing files are searched for
 * again each time.
 *
 * A program that runs with more rights than its user (AT_SECURE: set-user-ID,
 * set-group-ID, file capabilities) loads only what the administrator installed: the
 * directory of BINARY_PATH, each archive, and all directories above them must belong to
 * root, or to the user that the program became, and nobody else may write to them; a
 * directory with the sticky bit may be above the last one.  A link to the program in a
 * user's directory therefore loads nothing of that user's.
 *
 * *code_object_size_out is in bytes.  *code_object_out is not NULL even when the size is
 * 0; the caller frees it with kpack_free_code_object.
 *
 * INVALID_ARGUMENT      a NULL argument, no archs, more than 65536 archives to search
 * NOT_IMPLEMENTED       ROCM_KPACK_DISABLE is on
 * INVALID_METADATA      HIPK_METADATA is not readable, or is not a map with kernel_name
 *                       and kpack_search_paths
 * ARCHIVE_NOT_FOUND     none of the archives can be opened, or none is trusted
 * ARCH_NOT_FOUND        no archive has a target that an arch of the list runs
 * KERNEL_NOT_FOUND      an archive has such a target, but not for this binary and index
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR  as for kpack_get_kernel
 * OUT_OF_MEMORY         also when there was too little memory to open an archive
 */
KPACK_API kpack_error_t kpack_load_code_object(kpack_cache_t cache,
					       const void *hipk_metadata,
					       const char *binary_path, uint32_t co_index,
					       const char *const *arch_list,
					       size_t arch_count, void **code_object_out,
					       size_t *code_object_size_out);

/* Free a code object that kpack_load_code_object returned.  NULL is allowed. */
KPACK_API void kpack_free_code_object(void *code_object);

/*
 * Call CALLBACK with each architecture that the archive at ARCHIVE_PATH declares, in
 * stored order, until it returns false, which is not an error.  The string is valid only
 * during the callback.  INVALID_ARGUMENT: a NULL argument other than USER_DATA; other
 * errors as for kpack_open.
 */
KPACK_API kpack_error_t kpack_enumerate_architectures(const char *archive_path,
						      kpack_arch_callback_t callback,
						      void *user_data);

#ifdef __cplusplus
}
#endif
#endif
