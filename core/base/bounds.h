/* SPDX-License-Identifier: MIT */
/* Every bound on what input may ask for, each with its reason. */
#ifdef _GCC_NEXT_LIMITS_H
/* gcc's <limits.h> goes on with the quoted directories and meets this file: pass it on. */
#include_next <limits.h>
#elif !defined(KP_LIMITS_H)
#define KP_LIMITS_H

#include <stdint.h>

/* Nesting of MessagePack values.  Real tables use 5 levels; HRX stops at 32 too. */
#define KP_MSGPACK_DEPTH_MAX 32

/* Bytes of one table of contents.  A million entries take 74 MB; offsets in it are 32 bits. */
#define KP_TOC_SIZE_MAX (UINT64_C(1) << 30)

/* Frames in one zstd archive: AMD's reader refuses more. */
#define KP_FRAMES_MAX UINT32_C(1048576)

/* Bytes of one zstd blob: AMD's reader refuses more than 4 GiB. */
#define KP_ZSTD_BLOB_MAX (UINT64_C(1) << 32)

/* Distinct architecture or type strings in one archive: an entry keeps 16-bit numbers. */
#define KP_STRINGS_MAX 65535

/* Bytes of a key, an architecture or a path: PATH_MAX of Linux. */
#define KP_NAME_MAX 4096

/* Directories above one file of a view: install trees have about ten. */
#define KP_PATH_DEPTH_MAX 64

/* Bytes of one decoded object that is held in memory whole.  HRX takes 2 GiB. */
#define KP_OBJECT_MAX (UINT64_C(4) << 30)

/* Bytes of a chunked object, of which only chunks are ever held. */
#define KP_CHUNKED_MAX (UINT64_C(1) << 40)

/* Bounds of metadata.chunk; rows in one seek table follow from them. */
#define KP_CHUNK_MIN 4096
#define KP_CHUNK_MAX (64 << 20)

/* Decoded bytes one compressed byte can stand for: a 4-byte RLE block of 128 KiB. */
#define KP_ZSTD_RATIO_MAX 32768
/* DEFLATE's best is 258 bytes for 2 bits. */
#define KP_ZLIB_RATIO_MAX 1032

/* LZ4's best is a byte of 255 for as many bytes. */
#define KP_LZ4_RATIO_MAX 255

/* Decoded bytes of a compressed offload bundle (CCOB). */
#define KP_CCOB_MAX (UINT64_C(4) << 30)

/* Decoded bytes of a CUDA fatbin with compressed entries, which is held in memory whole. */
#define KP_FATBIN_MAX (UINT64_C(4) << 30)

/*
 * Decoded bytes of a fatbin's PTX, which is decoded to be listed: only then it is known where
 * the text ends.  Real ones have some MB.
 */
#define KP_PTX_MAX (256 << 20)

/* Bytes of a fatbin entry's options or file name that are shown: real ones have below 100. */
#define KP_FATBIN_TEXT_MAX 4096

/* Bytes of a compressed offload binary when it is inflated. */
#define KP_OFFLOAD_INFLATED_MAX (UINT64_C(4) << 30)

/*
 * Bytes of keys and values in an offload binary: real ones have fewer than the binary has, but
 * many may refer to the same bytes.
 */
#define KP_OFFLOAD_TEXT_RATIO 16
#define KP_OFFLOAD_TEXT_MAX (UINT64_C(256) << 20)

/* Entries of one offload bundle: far above every GPU there is. */
#define KP_BUNDLE_ENTRIES_MAX 4096

/*
 * Images of one source: what one archive can hold.  A compressed bundle of some hundred
 * bytes can state 4096, so the file's size is no bound.
 */
#define KP_IMAGES_MAX 1048576

/*
 * Bytes that the search for containers in containers works through: what each container has,
 * what it decodes to, what is skipped.  A large library passes five levels, all of ROCm has
 * 30 GB; images of hostile ones overlap, and each can state the same gigabytes.
 */
#define KP_NEST_WORK_MAX (UINT64_C(256) << 30)

/* Bytes of all entry IDs and names of members of one source: 128 for each image. */
#define KP_IDS_MAX (128 << 20)

/* Sections of an ELF file: libelf keeps some 300 bytes for each as soon as it opens it. */
#define KP_SECTIONS_MAX 262144

/* Bytes of the symbols' names in the index of an archive that is written; LLVM's own have 20 MB. */
#define KP_INDEX_MAX (512 << 20)

/* Bytes of section names, which libelf holds in memory. */
#define KP_SECTION_NAMES_MAX (64 << 20)

/*
 * Wrappers of one file, and words that look like ones: about 100 bytes are held for each.
 * Every wrapper has an index in archives, which have no more images.
 */
#define KP_WRAPPERS_MAX 1048576

/* Bytes of a bundle entry ID: kind, triple and target ID are below 100. */
#define KP_ENTRY_ID_MAX 512

/* Faults of one archive that are kept in words; the rest is counted. */
#define KP_FAULTS_MAX 1000

/* Program headers of a binary that is converted: real ones have some ten. */
#define KP_SEGMENTS_MAX 1024

/* User space of x86-64 and AArch64 ends below this; 5-level paging counts as unusual. */
#define KP_ADDRESS_MAX (UINT64_C(1) << 48)

/* Offset in a converted program's file where its program headers may have to stand. */
#define KP_SPARSE_MAX (UINT64_C(64) << 30)

/* Bytes of a marker: AMD's runtime hands 64 KiB to its parser. */
#define KP_MARKER_MAX 65536

/* Bytes of a layout, which is held whole: about 200 for each of KP_IMAGES_MAX objects. */
#define KP_LAYOUT_MAX (UINT64_C(256) << 20)

/*
 * Bytes of the device code that stand in a layout themselves: the host's entries and what
 * lies between entries.  Compilers leave the one empty and the other zero.
 */
#define KP_LAYOUT_INLINE_MAX (1 << 20)

/* Bytes a layout can describe, as they are or decompressed: all of ROCm has 30 GB. */
#define KP_LAYOUT_SECTION_MAX (UINT64_C(64) << 30)

/*
 * Threads whose last failure on one archive is kept in words: 1 MiB of them.  Machines
 * have some hundred processors, pools of threads a few per processor.
 */
#define KP_ERROR_THREADS_MAX 4096

/*
 * Bytes of an entry's metadata as JSON: real ones have some hundred.  A key that is a map
 * is quoted, and quoted again in a key around it: each level doubles the text.
 */
#define KP_JSON_MAX (1 << 20)

/*
 * Binary logarithm of a frame's window, held to decode a part of it: no level of zstd
 * takes a wider one, and zstd's own tool refuses wider ones unless told not to.
 */
#define KP_WINDOW_LOG_MAX 27

/* Log2 of the window that decoders must offer (RFC 8878), and zstd needs up to level 19. */
#define KP_WINDOW_LOG_USUAL 23

/* Features of one target ID: LLVM knows two, HRX takes four; n of them make 2^n targets. */
#define KP_FEATURES_MAX 4

/*
 * Files that one look-up of a code object tries: HRX takes 64, AMD's runtime any number.
 * A caller may list every GPU there is, a marker has room for 6000 patterns.
 */
#define KP_SEARCH_FILES_MAX 65536

/* Nodes of a machine's topology that are looked at: processors and GPUs, some tens. */
#define KP_TOPOLOGY_NODES_MAX 4096

/* Bytes of one node's properties: real ones have below 1000, sysfs gives a page at most. */
#define KP_TOPOLOGY_PROPERTIES_MAX 65536

/*
 * Bytes of an AMDGPU code object's metadata note, which is held whole: some 2000 a kernel,
 * and libraries put some ten thousand kernels into one object.
 */
#define KP_METADATA_MAX (256 << 20)

/* Kernels of one object that are listed: each costs some hundred bytes besides its name. */
#define KP_KERNELS_MAX 1048576

/* Bytes of the names of an object's symbols, which are held whole. */
#define KP_SYMBOL_NAMES_MAX (256 << 20)

/* Bytes of a cuTile kernel's name: real ones have some hundred. */
#define KP_CUTILE_NAME_MAX 65536

/* Bytes of a target or a key among TileIR's hints, and of all hints that are kept. */
#define KP_TILEIR_HINT_MAX 64
#define KP_TILEIR_HINTS_MAX 65536

/* Dimensions of a cuTile array: NumPy and PyTorch stop there too. */
#define KP_CUTILE_NDIM_MAX 64

/* Tuples and dataclasses in one another in a cuTile signature: programs have two or three. */
#define KP_CUTILE_DEPTH_MAX 32

/* Arguments of one launch: CUDA takes 32,764 bytes of them. */
#define KP_CUTILE_ARGUMENTS_MAX 32764

#endif
