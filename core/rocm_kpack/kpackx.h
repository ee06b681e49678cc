/* SPDX-License-Identifier: MIT */
/*
 * The additions of kpackfs to the kpack C API: failure messages, calls of kpack's design
 * paper, the entries of an archive, reading into the caller's memory, code objects that
 * are still embedded in binaries, names of cuTile's kernels, and writing archives.
 *
 * Ownership and threads are as in kpack.h; a writer is for one thread at a time.  Members
 * called reserved are zero in structs that the library fills, and must be zero in structs
 * that the caller passes.
 */
#ifndef ROCM_KPACK_KPACKX_H
#define ROCM_KPACK_KPACKX_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that these declarations are of; AMD's has another. */
#define KPACKX_VERSION_MAJOR 0
#define KPACKX_VERSION_MINOR 1
#define KPACKX_VERSION_PATCH 0
/* As one number: 0.1.0 is 100, 1.2.3 is 10203. */
#define KPACKX_VERSION                                                                   \
	(KPACKX_VERSION_MAJOR * 10000 + KPACKX_VERSION_MINOR * 100 + KPACKX_VERSION_PATCH)

/* The version of the library that is called, as "0.1.0".  The string is static. */
KPACK_API const char *kpackx_version(void);

/*
 * Why a call failed.  The caller owns the struct, zeroes it, passes it in and reads it
 * after a failure; NULL may be passed instead.  Untouched on success.
 */
struct kpackx_error {
	kpack_error_t code;
	int sys_errno;  /* errno when a system call failed, else 0 */
	char text[240]; /* one printable line: object, field, value, limit */
};

/*
 * The name of CODE: "KPACK_ERROR_IO_ERROR" and so on; "KPACK_ERROR_?" for an unknown
 * code.  The string is static.
 */
KPACK_API const char *kpackx_error_name(kpack_error_t code);

/* As kpack_open; on failure WHY says why. */
KPACK_API kpack_error_t kpackx_open(const char *path, kpack_archive_t *archive,
				    struct kpackx_error *why);

/* As kpack_get_kernel; on failure WHY says why. */
KPACK_API kpack_error_t kpackx_get_kernel(kpack_archive_t archive,
					  const char *binary_name, const char *arch,
					  void **data, size_t *size,
					  struct kpackx_error *why);

/*
 * As kpack_load_code_object; on failure WHY says which key or architecture is missing,
 * then lists every file that was tried: opened files with the architectures they have,
 * files that cannot be opened with the reason, and missing files.  A longer text is cut.
 */
KPACK_API kpack_error_t kpackx_load_code_object(
	kpack_cache_t cache, const void *hipk_metadata, const char *binary_path,
	uint32_t co_index, const char *const *arch_list, size_t arch_count,
	void **code_object_out, size_t *code_object_size_out, struct kpackx_error *why);

/*
 * ---- calls of kpack's design paper ----
 * kpack_design.h has the two that AMD's header declares otherwise.
 */

/*
 * Describe CODE in words, such as "no such file"; an unknown code is "unknown error".
 * The string is static, never NULL, and the same in every locale.
 */
KPACK_API const char *kpack_error_string(kpack_error_t code);

/*
 * Return why this thread's most recent failed call on ARCHIVE failed: one line that names
 * object, field and value, in UTF-8 without control bytes; "" when no call failed.  A
 * call that succeeds does not change the text.  ARCHIVE NULL: this thread's most recent
 * failed kpack_open.  Each archive keeps the texts of 4096 threads.  A thread beyond
 * these, or one for which memory runs out, keeps only the text of its most recent such
 * failure, and gets "" for its other archives.
 *
 * The text belongs to this thread.  It is borrowed until this thread's next call on
 * ARCHIVE, and at most until kpack_close.
 */
KPACK_API const char *kpack_get_last_error(kpack_archive_t archive);

/*
 * All architectures that the archive declares, in stored order: an array of *count
 * strings followed by a NULL.  Borrowed until kpack_close; every call returns the same
 * array.
 * INVALID_ARGUMENT: a NULL argument.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpack_get_architectures(kpack_archive_t archive,
						const char ***arches, size_t *count);

/*
 * The names that kpack_get_kernel accepts for kernels of BINARY_NAME for ARCH: the key
 * BINARY_NAME itself, its indices ("BINARY_NAME#3") and the keys below it as a directory
 * ("BINARY_NAME/...").  "" as BINARY_NAME: every key with an entry for ARCH.  The names
 * are in bytewise order, but "x#2" comes before "x#10"; *kernel_names is an array of
 * *count strings followed by a NULL.  No name at all is not an error.
 *
 * Borrowed until kpack_close; the same arguments give the same array, in every thread.
 * INVALID_ARGUMENT: a NULL argument.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpack_list_kernels(kpack_archive_t archive,
					   const char *binary_name, const char *arch,
					   const char ***kernel_names, size_t *count);

/*
 * The table of contents' record of a kernel as one JSON object in UTF-8.  The kernel is
 * found as kpack_get_kernel finds it:
 *
 *   {"binary":"lib/libx.so#0","arch":"gfx942","type":"hsaco","ordinal":0,
 *    "original_size":7472,"stored_size":2113,"metadata":{"path":"..."}}
 *
 * "metadata" is present when the entry has metadata.  Byte strings become hexadecimal
 * digits, extensions {"ext":5,"data":"00ff"}, NaN and infinities null, invalid UTF-8
 * U+FFFD, and keys that are not strings their JSON text; integers are exact; the first of
 * equal keys counts.  *size is in bytes, without the NUL.  Borrowed until kpack_close;
 * the same arguments give the same text, in every thread.
 *
 * INVALID_ARGUMENT: a NULL argument.  KERNEL_NOT_FOUND: no such entry.  OUT_OF_MEMORY,
 * also for more than 1 MiB of JSON.
 */
KPACK_API kpack_error_t kpack_get_kernel_metadata(kpack_archive_t archive,
						  const char *binary_name,
						  const char *arch,
						  const char **metadata_json,
						  size_t *size);

/*
 * The archive's group_name and gfx_arch_family, "" where it has none.  Borrowed until
 * kpack_close.
 * INVALID_ARGUMENT: a NULL argument.
 */
KPACK_API kpack_error_t kpackx_get_group(kpack_archive_t archive, const char **group,
					 const char **family);

/* ---- entries ---- */

/* One entry of an archive; strings and bytes are borrowed until kpack_close. */
struct kpackx_entry {
	const char *binary; /* key: "lib/libx.so#0" */
	const char *arch;   /* "gfx90a:xnack+" */
	const char *type;   /* "hsaco" */
	uint64_t size;      /* decoded bytes */
	/*
	 * Bytes in the archive; other entries may share them.  In an archive of version 2:
	 * the object's part of the common blocks, which can be an estimate.
	 */
	uint64_t stored_size;
	uint64_t chunk; /* decoded bytes per chunk, which decodes alone; 0: no chunks */
	const void *metadata; /* a MessagePack map as stored; NULL: none */
	size_t metadata_size; /* bytes of the map */
	uint32_t ordinal;     /* equal for entries that share their bytes */
	uint32_t reserved0;
	uint64_t reserved[4];
};

/*
 * The number of entries, and one entry by its number.  Entries are numbered from 0 in
 * bytewise order of key, then architecture.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpackx_get_entry_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpackx_get_entry(kpack_archive_t archive, size_t index,
					 struct kpackx_entry *entry);

/*
 * The number of the entry that kpack_get_kernel would decode.
 * INVALID_ARGUMENT: a NULL argument.  KERNEL_NOT_FOUND: no such entry.
 */
KPACK_API kpack_error_t kpackx_find_entry(kpack_archive_t archive,
					  const char *binary_name, const char *arch,
					  size_t *index);

/*
 * Decode entry INDEX into BUF, which has room for BUF_SIZE bytes.  Bytes of BUF after the
 * entry's size are untouched; after a failure the bytes before it are undefined.  BUF
 * must not be NULL, even for an empty entry.
 *
 * INVALID_ARGUMENT: a NULL argument, index >= count, BUF_SIZE less than the entry's size.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY as for kpack_get_kernel.
 */
KPACK_API kpack_error_t kpackx_read_entry(kpack_archive_t archive, size_t index,
					  void *buf, size_t buf_size,
					  struct kpackx_error *why);

/*
 * Decode SIZE bytes from OFFSET of entry INDEX into BUF.  *got is the number of decoded
 * bytes: fewer than SIZE when the range passes the entry's end, 0 when it begins there or
 * after it.  Of a plain entry the call reads only the range; of a chunked entry also the
 * table of chunks and the rest of the chunks that the range touches; in an archive of
 * version 2 the blocks that the range touches.  Of any other entry it decodes and discards
 * the bytes before the range, and needs memory for the frame's window: 2 MiB at zstd's
 * level 3, at most 128 MiB.  If window and entry are larger than
 * that, the call decodes all of the entry, and needs memory for it and its stored bytes.
 *
 * The call never gives away a byte that a hash or checksum of the archive contradicts.  If the
 * archive has no hashes of pieces (kpack-format(5)), but a hash or checksum that covers more
 * than the range, the first call for the entry decodes all of it, which is remembered until
 * the archive is closed; entries of at most 256 KiB are always decoded whole.
 * Errors as for kpackx_read_entry.
 */
KPACK_API kpack_error_t kpackx_read_range(kpack_archive_t archive, size_t index,
					  uint64_t offset, void *buf, size_t size,
					  size_t *got, struct kpackx_error *why);

/* ---- targets and embedded code ---- */

/*
 * Write to OUT, as a string, the generic target whose code the GPU of TARGET also runs,
 * with the features of TARGET that the generic target can state: "gfx1100" ->
 * "gfx11-generic", "gfx942:xnack+" -> "gfx9-4-generic:xnack+".  An "amdgcn-amd-amdhsa--"
 * in front of TARGET is dropped.  An OUT_SIZE of 64 bytes is always enough.  Callers put
 * the generic target after TARGET in the list for kpack_load_code_object.
 *
 * INVALID_ARGUMENT: a NULL argument, TARGET is no target ID or states a feature that its
 * processor does not have, or OUT_SIZE is too small.  ARCH_NOT_FOUND: no generic target
 * covers TARGET, or its processor is not known.
 */
KPACK_API kpack_error_t kpackx_generic_target(const char *target, char *out,
					      size_t out_size);

/*
 * Load the code object of wrapper CO_INDEX that the file BINARY_PATH itself contains: a
 * fat binary, or a converted binary that kept its device code.  The call chooses among
 * the code objects by ARCH_LIST as kpack_load_code_object does.  *code_object_size_out is
 * in bytes.  The caller frees *code_object_out with kpack_free_code_object.
 *
 * INVALID_ARGUMENT      a NULL argument, no architectures; in a program that runs with
 *                       more rights than its user: the file is not one that
 *                       kpack_load_code_object would trust
 * FILE_NOT_FOUND        no such file
 * IO_ERROR              the file could not be read
 * INVALID_FORMAT        not a binary, or a damaged one
 * KERNEL_NOT_FOUND      the binary has no such wrapper, or no longer has device code
 * ARCH_NOT_FOUND        the binary has code, but for none of the architectures
 * DECOMPRESSION_FAILED  the code is compressed and does not decode
 * NOT_IMPLEMENTED       a format or compression method that is not supported: zlib, which
 *                       only old compilers use
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpackx_load_embedded(const char *binary_path, uint32_t co_index,
					     const char *const *arch_list,
					     size_t arch_count, void **code_object_out,
					     size_t *code_object_size_out,
					     struct kpackx_error *why);

/* ---- names of cuTile's kernels ---- */

/*
 * The name of a kernel that NVIDIA's cuTile exports encodes its signature: the kind of
 * each parameter of the Python function, what the compiler assumed about it, and the
 * constants that the kernel was compiled for.  A signature is a tree of the structs
 * below.  Zero means "not stated" everywhere: zero a struct, then set only the members
 * that are known.
 */

/* Data types: cuTile's name, and the type of a C launch argument. */
typedef enum {
	KPACKX_DTYPE_NONE = 0,
	KPACKX_DTYPE_BOOL = 1,   /* bool_: bool */
	KPACKX_DTYPE_UINT8 = 2,  /* uint8: uint8_t */
	KPACKX_DTYPE_UINT16 = 3, /* and so on */
	KPACKX_DTYPE_UINT32 = 4,
	KPACKX_DTYPE_UINT64 = 5,
	KPACKX_DTYPE_INT8 = 6,
	KPACKX_DTYPE_INT16 = 7,
	KPACKX_DTYPE_INT32 = 8,
	KPACKX_DTYPE_INT64 = 9,
	KPACKX_DTYPE_FLOAT16 = 10,        /* float16: __half */
	KPACKX_DTYPE_FLOAT32 = 11,        /* float32: float */
	KPACKX_DTYPE_FLOAT64 = 12,        /* float64: double */
	KPACKX_DTYPE_BFLOAT16 = 13,       /* bfloat16: __nv_bfloat16 */
	KPACKX_DTYPE_TFLOAT32 = 14,       /* tfloat32: float */
	KPACKX_DTYPE_FLOAT8_E4M3FN = 15,  /* float8_e4m3fn: __nv_fp8_e4m3 */
	KPACKX_DTYPE_FLOAT8_E5M2 = 16,    /* float8_e5m2: __nv_fp8_e5m2 */
	KPACKX_DTYPE_FLOAT8_E8M0FNU = 17, /* float8_e8m0fnu: __nv_fp8_e8m0 */
} kpackx_dtype_t;

/* The kind of a parameter, and the members of struct kpackx_constraint that it uses. */
typedef enum {
	KPACKX_SCALAR = 1,    /* dtype */
	KPACKX_ARRAY = 2,     /* dtype, index_dtype, ndim, axes, base_addr_divisible_by,
				  alias_groups, may_alias */
	KPACKX_LIST = 3,      /* items: one array; alias_groups, may_alias */
	KPACKX_TUPLE = 4,     /* items; convention 2 */
	KPACKX_DATACLASS = 5, /* module, qualname, items: its fields; convention 3 */
	/* constants, which are not launch arguments */
	KPACKX_CONST_BOOL = 6,   /* bits: 0 or 1 */
	KPACKX_CONST_INT = 7,    /* text: any number of decimal digits, '-' in front */
	KPACKX_CONST_FLOAT = 8,  /* bits: of the IEEE double */
	KPACKX_CONST_NONE = 9,   /* no member; from this kind on: convention 3 */
	KPACKX_CONST_STR = 10,   /* text */
	KPACKX_CONST_ENUM = 11,  /* module, qualname: of the class; text: the member */
	KPACKX_CONST_DTYPE = 12, /* dtype */
} kpackx_constraint_kind_t;

/*
 * A Python string: UTF-8 that may contain NUL bytes, and surrogates, which take three
 * bytes each.  In strings that the library fills, a NUL follows, which size does not
 * count.
 */
struct kpackx_string {
	const char *data; /* may be NULL when size is 0 */
	size_t size;
};

/* The assumptions about one dimension of an array; in elements, not bytes. */
struct kpackx_axis {
	bool has_shape_constant; /* convention 2 */
	bool has_stride_constant;
	bool has_stride_lower_bound;
	int64_t shape_constant;     /* not negative */
	int64_t shape_divisible_by; /* 0 and 1: no assumption */
	int64_t stride_constant;
	int64_t stride_divisible_by; /* 0 and 1: no assumption */
	int64_t stride_lower_bound;  /* inclusive */
	uint64_t reserved[2];
};

/* A parameter, or a part of a parameter: cuTile's "constraint". */
struct kpackx_constraint {
	kpackx_constraint_kind_t kind;
	kpackx_dtype_t dtype;
	kpackx_dtype_t index_dtype; /* INT32, UINT32 or INT64; NONE means INT32 */
	uint32_t ndim;              /* at most 64 */
	const struct kpackx_axis *axes;
	int64_t base_addr_divisible_by; /* in bytes; 0 and 1: no assumption */
	/*
	 * Two arrays, or two lists, may overlap when they have a group in common.  Groups
	 * are numbered from 0 in order of their first use in the signature; this array is
	 * in ascending order.
	 */
	const uint32_t *alias_groups;
	size_t n_alias_groups;
	bool may_alias; /* an array may overlap itself; a list's elements one another */
	const struct kpackx_constraint *items;
	size_t n_items;
	struct kpackx_string module;
	struct kpackx_string qualname;
	struct kpackx_string text;
	uint64_t bits;
	uint64_t reserved[4];
};

/* One argument of a launch, as for cuLaunchKernel. */
struct kpackx_argument {
	const char *name; /* "p0", "p0.shape[1]", "p2[0].stride[0]": of parameter 0, 2 */
	const char *type; /* in C: "float *", "int32_t" */
	const char *meaning; /* a line of English */
	uint32_t size;       /* bytes */
	uint32_t parameter;  /* number of the parameter it belongs to, from 0 */
	/*
	 * For the pointer of a list: the 64-bit words that the 8-byte aligned buffer
	 * holds for each element, 1 + 2n: a device pointer, n shapes, n strides.  Else 0.
	 */
	uint32_t words;
	uint32_t reserved0;
	uint64_t reserved[2];
};

/* The signature of a kernel. */
struct kpackx_signature {
	struct kpackx_string function; /* name of the Python function */
	uint32_t convention; /* the N of cutile_python_vN: 1, 2 or, in development, 3 */
	uint32_t reserved0;
	const struct kpackx_constraint *parameters;
	size_t n_parameters;
	const struct kpackx_argument *arguments; /* in order; ignored by kpackx_mangle */
	size_t n_arguments;
	uint64_t reserved[4];
};

/*
 * Read the signature in SYMBOL.  The caller frees *SIGNATURE and everything in it with
 * kpackx_signature_free.  Only names that kpackx_mangle writes, byte for byte, are
 * accepted.
 *
 * INVALID_ARGUMENT     a NULL argument
 * INVALID_FORMAT       not such a name; why->text has the reason and the byte, from 0
 * UNSUPPORTED_VERSION  a calling convention that is not known
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpackx_demangle(const char *symbol,
					struct kpackx_signature **signature,
					struct kpackx_error *why);
/* Free a signature that kpackx_demangle returned.  NULL is allowed. */
KPACK_API void kpackx_signature_free(struct kpackx_signature *signature);

/*
 * Write the name of a kernel with SIGNATURE as a string; the caller frees it with
 * kpackx_symbol_free.  If an axis has a constant, its divisor and lower bound are
 * redundant: they are checked and omitted, as cuTile does.
 *
 * INVALID_ARGUMENT     a NULL argument, or a signature that is not as described above;
 *                      why->text says where: unknown kind or dtype, a member that its
 *                      convention does not have, a constant below its bound, groups out
 *                      of order, tuples deeper than 32, more than 32764 arguments or
 *                      65536 bytes of name ...
 * UNSUPPORTED_VERSION  a calling convention that is not known
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpackx_mangle(const struct kpackx_signature *signature,
				      char **symbol, struct kpackx_error *why);
/* Free a name that kpackx_mangle returned.  NULL is allowed. */
KPACK_API void kpackx_symbol_free(char *symbol);

/* ---- writing ---- */

/* An archive being written. */
typedef struct kpackx_writer *kpackx_writer_t;

/* Options of kpackx_writer_open.  Zero everything for the defaults. */
struct kpackx_writer_options {
	const char *group; /* group_name; NULL: the file name without ".kpack" */
	const char
		*family; /* gfx_arch_family; NULL: the arch if all have one, else group */
	int level;       /* zstd level, 1 to 22; 0: 3, and 7 for "zstd-shared" */
	bool uncompressed; /* scheme "none" */
	/*
	 * 1: scheme "zstd-shared", unless uncompressed: content that several objects have is
	 * stored once.  Such archives have version 2, which AMD's readers refuse
	 * (kpack-format(5)).
	 */
	uint64_t shared;
	uint64_t reserved[3];
};

/*
 * Begin the archive PATH; OPTIONS may be NULL and is copied.  Frames are written to disk
 * as they are added; only the table of contents stays in memory.  With the scheme
 * "zstd-shared" the objects go to a temporary file without a name beside the archive, and
 * are compressed by kpackx_writer_finish, on the calling thread.  A file at PATH stays as
 * it is, and no file appears there, until kpackx_writer_finish.  *WRITER is freed by
 * kpackx_writer_finish or kpackx_writer_abort.
 *
 * INVALID_ARGUMENT: path or writer is NULL; path names no file; level is out of range;
 * shared is neither 0 nor 1; group or family (or the file name used instead) is not UTF-8
 * without control bytes, or is longer than 4096 bytes; a reserved member is not zero.
 * FILE_NOT_FOUND: no such directory.  IO_ERROR: PATH exists and is not a regular file, or
 * a system call failed.
 * OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpackx_writer_open(const char *path,
					   const struct kpackx_writer_options *options,
					   kpackx_writer_t *writer,
					   struct kpackx_error *why);

/* A named text in an entry's metadata; the order of the texts does not matter. */
struct kpackx_text {
	const char *name, *text; /* the name is not empty */
};

/* An object to add.  The library copies it.  Zero the members that are not known. */
struct kpackx_object {
	const char *binary; /* key: "lib/libx.so#0"; must be set */
	const char *arch;   /* "gfx90a:xnack+"; must be set */
	const char *type;   /* NULL: "hsaco"; the file's extension in a mount */
	const void *data;   /* may be NULL when size is 0 */
	size_t size;
	const char *path;   /* metadata.path: where the file belongs in a mount */
	const char *target; /* metadata.target: bundle entry ID */
	uint32_t mode;      /* metadata.mode: permission bits */
	uint32_t chunk; /* bytes per chunk, which decodes alone, 4096 to 64 MiB; 0: none.
			   Plain archives, those with the scheme "zstd-shared", and objects
			   that fit one chunk need none. */
	const struct kpackx_text *texts; /* more metadata; names must differ and must not
					    be path, target, xxh3, mode, chunk */
	size_t n_texts;
	uint64_t reserved[4];
};

/*
 * Add one object.  Equal bytes are stored once.  The bytes of the finished file depend
 * only on the calls that succeeded.  A target ID is stored in its canonical spelling:
 * "gfx90a:xnack+:sramecc-" becomes "gfx90a:sramecc-:xnack+".  An arch that is not a
 * target ID is stored as it is.
 *
 * All readers decode chunked entries like other entries; only with a libzstd that was built
 * without threads do AMD's Python tools mistake the first chunk for the whole object.  The
 * Python tools do not find a key with a backslash, and HRX refuses empty objects and
 * objects of more than 2 GiB.
 *
 * After INVALID_ARGUMENT the archive is unchanged and more objects can be added.  After
 * any other failure the archive is lost: the caller can only call kpackx_writer_abort, or
 * kpackx_writer_finish, which then fails.
 *
 * INVALID_ARGUMENT, one of:
 * - a required argument or member is NULL
 * - a string is not UTF-8 without control bytes, or is longer than 4096 bytes, or is
 *   empty (the text of a kpackx_text may be empty)
 * - arch or type has a '/'
 * - path is absolute, or has an empty, "." or ".." component, a component of more than
 *   255 bytes, or more than 64 components
 * - a mode, chunk, text or reserved member is not as described above
 * - this key and arch were added before
 * - an object that is not chunked has more than 4 GiB
 * - the archive would exceed what readers accept: AMD's reader takes 4 GiB and 1,048,576
 *   different contents in a compressed archive; ours takes 65,535 different archs and
 *   types, and 1 GiB of names and metadata
 * IO_ERROR: a system call failed.  OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpackx_writer_add(kpackx_writer_t writer,
					  const struct kpackx_object *object,
					  struct kpackx_error *why);

/*
 * Write the table of contents, flush to disk, and give the archive its name.  A file or a
 * symbolic link of this name is replaced; the target of the link is not touched.  WRITER
 * is freed on success and on failure.  A failure leaves no file behind, except that when
 * only flushing the directory failed, the archive already has its name.
 * INVALID_ARGUMENT: writer is NULL.  IO_ERROR, OUT_OF_MEMORY, and the error of an earlier
 * kpackx_writer_add that lost the archive.
 */
KPACK_API kpack_error_t kpackx_writer_finish(kpackx_writer_t writer,
					     struct kpackx_error *why);

/* Discard the unfinished archive and free WRITER.  NULL is allowed. */
KPACK_API void kpackx_writer_abort(kpackx_writer_t writer);

#ifdef __cplusplus
}
#endif
#endif
