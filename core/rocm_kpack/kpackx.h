/* SPDX-License-Identifier: MIT */
/*
 * What kpackfs adds to the kpack C API: reasons of failures in words, the entries of an
 * archive, reading into memory of the caller's, code objects that are still embedded, names
 * of cuTile's kernels, and writing archives.
 *
 * Ownership and threads are as in kpack.h; of a writer, one thread at a time.  Members
 * called reserved are zero in what the library fills, and must be zero in what it is given.
 */
#ifndef ROCM_KPACK_KPACKX_H
#define ROCM_KPACK_KPACKX_H

#include "kpack_export.h"
#include "kpack_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Why a call failed.  The caller owns it, zeroes it, passes it in and reads it after a
 * failure; NULL may be passed instead.  Untouched on success.
 */
struct kpackx_error {
	kpack_error_t code;
	int sys_errno;  /* errno, or 0 unless the system refused */
	char text[240]; /* one line: object, field, value, limit */
};

/* "KPACK_ERROR_IO_ERROR" and so on; "KPACK_ERROR_?" for an unknown code.  Static. */
KPACK_API const char *kpackx_error_name(kpack_error_t code);

/* kpack_open that says why. */
KPACK_API kpack_error_t kpackx_open(const char *path, kpack_archive_t *archive,
				    struct kpackx_error *why);

/* kpack_get_kernel that says why. */
KPACK_API kpack_error_t kpackx_get_kernel(kpack_archive_t archive,
					  const char *binary_name, const char *arch,
					  void **data, size_t *size,
					  struct kpackx_error *why);

/*
 * kpack_load_code_object that says why: which key or architecture is missing, then each
 * file that was looked into - the opened ones with the architectures they offer, those
 * that cannot be opened with the reason, the missing ones.  What exceeds the text is cut.
 */
KPACK_API kpack_error_t kpackx_load_code_object(
	kpack_cache_t cache, const void *hipk_metadata, const char *binary_path,
	uint32_t co_index, const char *const *arch_list, size_t arch_count,
	void **code_object_out, size_t *code_object_size_out, struct kpackx_error *why);

/* ---- entries ---- */

/* What an archive says of one entry; strings and bytes are borrowed until kpack_close. */
struct kpackx_entry {
	const char *binary;   /* key: "lib/libx.so#0" */
	const char *arch;     /* "gfx90a:xnack+" */
	const char *type;     /* "hsaco" */
	uint64_t size;        /* decoded bytes */
	uint64_t stored_size; /* bytes it takes in the archive; may be shared */
	uint64_t chunk; /* decoded bytes per chunk, which decodes alone; 0: no chunks */
	const void *metadata; /* a MessagePack map as stored; NULL: there is none */
	size_t metadata_size; /* its bytes */
	uint32_t ordinal;     /* equal for entries that share their bytes */
	uint32_t reserved0;
	uint64_t reserved[4];
};

/*
 * Entries are numbered from 0 in order of key, then architecture, bytewise.
 * INVALID_ARGUMENT: a NULL argument, or index >= count.
 */
KPACK_API kpack_error_t kpackx_get_entry_count(kpack_archive_t archive, size_t *count);
KPACK_API kpack_error_t kpackx_get_entry(kpack_archive_t archive, size_t index,
					 struct kpackx_entry *entry);

/*
 * The number of the entry kpack_get_kernel would decode.
 * INVALID_ARGUMENT: a NULL argument.  KERNEL_NOT_FOUND.
 */
KPACK_API kpack_error_t kpackx_find_entry(kpack_archive_t archive,
					  const char *binary_name, const char *arch,
					  size_t *index);

/*
 * Decode entry INDEX into BUF, which has room for BUF_SIZE bytes.  What is behind the
 * entry's size is not touched; after a failure what is before it is worthless.  BUF must
 * not be NULL, not even for an entry of no bytes.
 *
 * INVALID_ARGUMENT: a NULL argument, index >= count, BUF_SIZE less than the entry's size.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY as for kpack_get_kernel.
 */
KPACK_API kpack_error_t kpackx_read_entry(kpack_archive_t archive, size_t index,
					  void *buf, size_t buf_size,
					  struct kpackx_error *why);

/*
 * Decode SIZE bytes from OFFSET of entry INDEX into BUF; less at its end, and none behind
 * it: *got says how many.  Of plain and chunked entries what else there is is not looked
 * at, but for the rest of a chunk and the table of chunks.  Of others what stands before the
 * range is decoded and dropped, and the frame's window is held: 2 MiB from zstd's level 3,
 * 128 MiB at most.  Where the window is wider than that, or not smaller than the entry,
 * memory of the entry's size is taken instead.
 *
 * What stands behind the range is not decoded, so damage there is not found; a hash of the
 * entry is never checked.  Errors as for kpackx_read_entry.
 */
KPACK_API kpack_error_t kpackx_read_range(kpack_archive_t archive, size_t index,
					  uint64_t offset, void *buf, size_t size,
					  size_t *got, struct kpackx_error *why);

/* ---- targets and embedded code ---- */

/*
 * The generic target whose code the GPU of TARGET runs too, with the features of TARGET
 * that the generic one can state: "gfx1100" -> "gfx11-generic", "gfx942:xnack+" ->
 * "gfx9-4-generic:xnack+".  An "amdgcn-amd-amdhsa--" in front is left out.  64 bytes are
 * always enough.  To be put behind TARGET in the list for kpack_load_code_object.
 *
 * INVALID_ARGUMENT: a NULL argument, no target ID, or too little room.  ARCH_NOT_FOUND:
 * no generic target covers it.
 */
KPACK_API kpack_error_t kpackx_generic_target(const char *target, char *out,
					      size_t out_size);

/*
 * The code object of wrapper CO_INDEX that stands in the file BINARY_PATH itself: of a fat
 * binary, or of a converted one that kept its device code.  Chosen from ARCH_LIST as
 * kpack_load_code_object does; free it with kpack_free_code_object.
 *
 * INVALID_ARGUMENT      a NULL argument, no architectures
 * FILE_NOT_FOUND, IO_ERROR
 * INVALID_FORMAT        no binary, or one that is damaged
 * KERNEL_NOT_FOUND      it has no such wrapper, or no device code any more
 * ARCH_NOT_FOUND        it has code, for none of the architectures
 * DECOMPRESSION_FAILED, NOT_IMPLEMENTED, OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpackx_load_embedded(const char *binary_path, uint32_t co_index,
					     const char *const *arch_list,
					     size_t arch_count, void **code_object_out,
					     size_t *code_object_size_out,
					     struct kpackx_error *why);

/* ---- names of cuTile's kernels ---- */

/*
 * A kernel that NVIDIA's cuTile exports is named after its signature: what each parameter of
 * the Python function is, what was assumed of it, and the constants it was compiled for.
 * A signature is a tree of the structs below.  Zero is "not stated" everywhere, so that a
 * zeroed struct plus what is known is complete.
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

/* What a parameter is, and the members of struct kpackx_constraint it has. */
typedef enum {
	KPACKX_SCALAR = 1,    /* dtype */
	KPACKX_ARRAY = 2,     /* dtype, index_dtype, ndim, axes, base_addr_divisible_by,
				  alias_groups, may_alias */
	KPACKX_LIST = 3,      /* items: one array; alias_groups, may_alias */
	KPACKX_TUPLE = 4,     /* items; convention 2 */
	KPACKX_DATACLASS = 5, /* module, qualname, items: its fields; convention 3 */
	/* constants, which are no launch arguments */
	KPACKX_CONST_BOOL = 6,   /* bits: 0 or 1 */
	KPACKX_CONST_INT = 7,    /* text: decimal digits, a '-' in front; of any size */
	KPACKX_CONST_FLOAT = 8,  /* bits: of the IEEE double */
	KPACKX_CONST_NONE = 9,   /* nothing; this and the next are of convention 3 */
	KPACKX_CONST_STR = 10,   /* text */
	KPACKX_CONST_ENUM = 11,  /* module, qualname: of the class; text: the member */
	KPACKX_CONST_DTYPE = 12, /* dtype */
} kpackx_constraint_kind_t;

/*
 * Text as Python has it: UTF-8 that may contain NUL bytes, and surrogates, which take three
 * bytes.  A NUL that is not counted follows in what the library fills.
 */
struct kpackx_string {
	const char *data; /* may be NULL when size is 0 */
	size_t size;
};

/* What is assumed of one dimension of an array; in elements, not bytes. */
struct kpackx_axis {
	bool has_shape_constant; /* convention 2 */
	bool has_stride_constant;
	bool has_stride_lower_bound;
	int64_t shape_constant;     /* not negative */
	int64_t shape_divisible_by; /* 0 and 1: nothing is assumed */
	int64_t stride_constant;
	int64_t stride_divisible_by; /* the same */
	int64_t stride_lower_bound;  /* inclusive */
	uint64_t reserved[2];
};

/* A parameter, or a part of one: cuTile's "constraint". */
struct kpackx_constraint {
	kpackx_constraint_kind_t kind;
	kpackx_dtype_t dtype;
	kpackx_dtype_t index_dtype; /* INT32, UINT32 or INT64; NONE is taken for INT32 */
	uint32_t ndim;              /* at most 64 */
	const struct kpackx_axis *axes;
	int64_t base_addr_divisible_by; /* in bytes; 0 and 1: nothing is assumed */
	/*
	 * Two arrays, or two lists, may overlap when they have a group in common.  Groups
	 * are numbered from 0 in order of their first use in the signature, and ascend here.
	 */
	const uint32_t *alias_groups;
	size_t n_alias_groups;
	bool may_alias; /* an array: itself; the elements of a list: one another */
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
	const char *type; /* of C: "float *", "int32_t" */
	const char *meaning; /* a line of English */
	uint32_t size;       /* bytes */
	uint32_t parameter;  /* its number, from 0 */
	/*
	 * Of a list's pointer: 64-bit words the 8-byte aligned buffer holds for each element,
	 * 1 + 2n: a device pointer, n shapes, n strides.  Else 0.
	 */
	uint32_t words;
	uint32_t reserved0;
	uint64_t reserved[2];
};

/* The signature of a kernel. */
struct kpackx_signature {
	struct kpackx_string function; /* name of the Python function */
	uint32_t
		convention; /* cutile_python_v1, _v2 or, in development, _v3: the number */
	uint32_t reserved0;
	const struct kpackx_constraint *parameters;
	size_t n_parameters;
	const struct kpackx_argument *arguments; /* in order; not looked at by mangle */
	size_t n_arguments;
	uint64_t reserved[4];
};

/*
 * Read the signature in SYMBOL.  All of *SIGNATURE is freed by kpackx_signature_free.  What
 * is accepted is what kpackx_mangle writes, byte for byte.
 *
 * INVALID_ARGUMENT     a NULL argument
 * INVALID_FORMAT       no such name; why->text says at which byte, from 0, and why
 * UNSUPPORTED_VERSION  a calling convention that is not known
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpackx_demangle(const char *symbol,
					struct kpackx_signature **signature,
					struct kpackx_error *why);
/* NULL is fine. */
KPACK_API void kpackx_signature_free(struct kpackx_signature *signature);

/*
 * The name of a kernel with SIGNATURE; freed by kpackx_symbol_free.  What a constant of an
 * axis makes redundant, its divisor and its lower bound, is checked and left out, as cuTile
 * does.
 *
 * INVALID_ARGUMENT     a NULL argument; a signature that is not as described above, which
 *                      why->text names: unknown kind or dtype, a member its convention does
 *                      not have, a constant below its bound, groups out of order, tuples
 *                      deeper than 32, more than 32764 arguments or 65536 bytes of name ...
 * UNSUPPORTED_VERSION  a calling convention that is not known
 * OUT_OF_MEMORY
 */
KPACK_API kpack_error_t kpackx_mangle(const struct kpackx_signature *signature,
				      char **symbol, struct kpackx_error *why);
/* NULL is fine. */
KPACK_API void kpackx_symbol_free(char *symbol);

/* ---- writing ---- */

/* An archive being written. */
typedef struct kpackx_writer *kpackx_writer_t;

/* All zero is a good choice. */
struct kpackx_writer_options {
	const char *group; /* group_name; NULL: the file's name without ".kpack" */
	const char
		*family; /* gfx_arch_family; NULL: the arch if all have one, else group */
	int level;       /* of zstd, 1 to 22; 0: 3 */
	bool uncompressed; /* scheme "none" */
	uint64_t reserved[4];
};

/*
 * Begin the archive PATH; options may be NULL.  Frames go to the disk as they are added,
 * only the table of contents is kept.  Nothing stands at PATH, or still what stood there,
 * until kpackx_writer_finish.
 *
 * INVALID_ARGUMENT: path or writer is NULL, path names no file, a level out of range, a group
 * or family (or the file's name in its place) that is no UTF-8 without control bytes or
 * longer than 4096 bytes, a reserved member that is not zero.  FILE_NOT_FOUND: no such
 * directory.  IO_ERROR: what stands at path is no regular file, or the system refused.
 * OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpackx_writer_open(const char *path,
					   const struct kpackx_writer_options *options,
					   kpackx_writer_t *writer,
					   struct kpackx_error *why);

/* A text in an entry's metadata; the order of several does not matter. */
struct kpackx_text {
	const char *name, *text; /* the name is not empty */
};

/* What is added; all is copied.  Zero what is not known. */
struct kpackx_object {
	const char *binary; /* key: "lib/libx.so#0"; must be set */
	const char *arch;   /* "gfx90a:xnack+"; must be set */
	const char *type;   /* NULL: "hsaco"; a file's extension in a mount */
	const void *data;   /* may be NULL when size is 0 */
	size_t size;
	const char *path;   /* metadata.path: where the file belongs in a mount */
	const char *target; /* metadata.target: bundle entry ID */
	uint32_t mode;      /* metadata.mode: permission bits */
	uint32_t chunk; /* bytes that shall be readable alone, 4096 to 64 MiB; 0: none.
			   Plain archives, and objects that are not larger, need none. */
	const struct kpackx_text *texts; /* more metadata, no name twice and none of
					    path, target, xxh3, mode, chunk */
	size_t n_texts;
	uint64_t reserved[4];
};

/*
 * Add one object.  Equal bytes are stored once.  The bytes of the finished file depend on
 * the calls that succeeded alone.  A target ID is stored in its canonical spelling, so that
 * "gfx90a:xnack+:sramecc-" is "gfx90a:sramecc-:xnack+"; what is no target ID, as it is.
 *
 * AMD's C++ reader and HRX read chunks; AMD's Python tools take the first for the whole.
 * They do not find a key with a backslash, and HRX refuses objects of no bytes or of more
 * than 2 GiB.
 *
 * After INVALID_ARGUMENT the archive is as before and more can be added.  After any other
 * failure it is lost: only kpackx_writer_abort and a failing kpackx_writer_finish are left.
 *
 * INVALID_ARGUMENT: a NULL argument or member that must be set; a string that is no UTF-8
 * without control bytes or longer than 4096 bytes; an empty one, but for the text of a
 * kpackx_text; a '/' in arch or type; a path that is absolute, has an empty, "." or ".."
 * component, one of more than 255 bytes, or more than 64; a mode, chunk, text or reserved
 * member that is not as above; a key and arch added before; more than 4 GiB in one object
 * that is not chunked; an archive that would pass what readers accept (4 GiB and
 * 1,048,576 different contents of AMD's when compressed; of ours 65,535 different archs and
 * types, and 1 GiB of names and metadata).  IO_ERROR, OUT_OF_MEMORY.
 */
KPACK_API kpack_error_t kpackx_writer_add(kpackx_writer_t writer,
					  const struct kpackx_object *object,
					  struct kpackx_error *why);

/*
 * Write the table of contents, flush, and give the archive its name, replacing what stood
 * there, and not what a symbolic link there leads to.  WRITER is freed, success or not; after
 * a failure nothing is left of it, unless it was the directory that could not be flushed:
 * then it has its name.
 * INVALID_ARGUMENT: writer is NULL.  IO_ERROR, OUT_OF_MEMORY, and what adding met.
 */
KPACK_API kpack_error_t kpackx_writer_finish(kpackx_writer_t writer,
					     struct kpackx_error *why);

/* Drop what was written and free WRITER.  NULL is fine. */
KPACK_API void kpackx_writer_abort(kpackx_writer_t writer);

#ifdef __cplusplus
}
#endif
#endif
