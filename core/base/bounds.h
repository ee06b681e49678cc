/* SPDX-License-Identifier: MIT */
/* All limits on input, each with its reason. */
#ifndef KP_CORE_BASE_BOUNDS_H
#define KP_CORE_BASE_BOUNDS_H

#include <stdint.h>

/* Nesting of MessagePack values.  Real tables use 5 levels; HRX stops at 32 too. */
#define KP_MSGPACK_DEPTH_MAX 32

/* Bytes of a table of contents: 74 MB for a million entries; its offsets have 32 bits. */
#define KP_TOC_SIZE_MAX (UINT64_C(1) << 30)

/* Frames in one zstd archive: AMD's reader refuses more. */
#define KP_FRAMES_MAX UINT32_C(1048576)

/* Bytes of one zstd blob: AMD's reader refuses more than 4 GiB. */
#define KP_ZSTD_BLOB_MAX (UINT64_C(1) << 32)

/* Distinct architecture or type strings in one archive: an entry has 16-bit numbers. */
#define KP_STRINGS_MAX 65535

/* Bytes of a key, an architecture or a path: PATH_MAX of Linux. */
#define KP_NAME_MAX 4096

/* Directories above one file of a view: install trees have about ten. */
#define KP_PATH_DEPTH_MAX 64

/*
 * Directories that the paths of one archive may make in a view, where each takes some 100
 * bytes: those of a few paths, and one for so many bytes of the table of contents.  Real
 * tables have 400 and more for each.
 */
#define KP_DIRS_SPARE 256
#define KP_DIRS_RATIO 32

/* Bytes of one decoded object that is held in memory whole.  HRX accepts 2 GiB. */
#define KP_OBJECT_MAX (UINT64_C(4) << 30)

/*
 * Decoded bytes up to which an entry is decoded whole, and compared with its checksums, before
 * any of it is given away; larger ones are given away piece by piece.
 */
#define KP_WHOLE_MAX (256 << 10)

/* Bytes of a chunked object, of which only single chunks are held in memory. */
#define KP_CHUNKED_MAX (UINT64_C(1) << 40)

/* Limits of metadata.chunk, in bytes; they also limit the rows of a seek table. */
#define KP_CHUNK_MIN 4096
#define KP_CHUNK_MAX (64 << 20)

/* Decoded bytes per compressed byte of zstd: a 4-byte RLE block stands for 128 KiB. */
#define KP_ZSTD_RATIO_MAX 32768
/* Decoded bytes per compressed byte of DEFLATE: at best 258 bytes for 2 bits. */
#define KP_ZLIB_RATIO_MAX 1032

/* Decoded bytes per compressed byte of LZ4: at best a byte 255 for 255 bytes. */
#define KP_LZ4_RATIO_MAX 255

/* Decoded bytes of a compressed offload bundle (CCOB). */
#define KP_CCOB_MAX (UINT64_C(4) << 30)

/*
 * Decoded bytes of a CUDA fatbin with compressed entries, which is held in memory whole.
 */
#define KP_FATBIN_MAX (UINT64_C(4) << 30)

/*
 * Decoded bytes of a fatbin's PTX, which is decoded even for listing, because only that
 * shows where the text ends.  Real PTX has some MB.
 */
#define KP_PTX_MAX (256 << 20)

/*
 * Printed bytes of a fatbin entry's options or file name: real ones have fewer than 100.
 */
#define KP_FATBIN_TEXT_MAX 4096

/* Bytes of a compressed offload binary after inflating. */
#define KP_OFFLOAD_INFLATED_MAX (UINT64_C(4) << 30)

/*
 * Bytes of keys and values in an offload binary: as a multiple of the binary's bytes, and
 * in all.  Real ones have fewer bytes than the binary, but many can refer to the same
 * bytes.
 */
#define KP_OFFLOAD_TEXT_RATIO 16
#define KP_OFFLOAD_TEXT_MAX (UINT64_C(256) << 20)

/* Entries of one offload bundle: far more than there are GPU models. */
#define KP_BUNDLE_ENTRIES_MAX 4096

/*
 * Images of one source: as many as one archive can hold.  The file's size does not limit
 * them: a compressed bundle of some hundred bytes can state 4096.
 */
#define KP_IMAGES_MAX 1048576

/*
 * Bytes that the search for containers in containers processes: the stored and decoded
 * bytes of each container, and skipped bytes.  A large library has five levels, all of
 * ROCm has 30 GB; images of hostile files overlap, and each can state the same gigabytes.
 */
#define KP_NEST_WORK_MAX (UINT64_C(256) << 30)

/* Bytes of all entry IDs and member names of one source: 128 for each image. */
#define KP_IDS_MAX (128 << 20)

/* Sections of an ELF file: each takes some 150 bytes of memory. */
#define KP_SECTIONS_MAX 262144

/*
 * Bytes of the symbol names in the index of an ar archive that we write; LLVM's own
 * libraries have 20 MB.
 */
#define KP_INDEX_MAX (512 << 20)

/* Bytes of section names, which are held in memory. */
#define KP_SECTION_NAMES_MAX (64 << 20)

/*
 * Wrappers of one file, and words that look like wrappers: each takes about 100 bytes of
 * memory.  Every wrapper has an index in archives, which have no more images than this.
 */
#define KP_WRAPPERS_MAX 1048576

/* Bytes of a bundle entry ID: kind, triple and target ID have fewer than 100. */
#define KP_ENTRY_ID_MAX 512

/* Faults of one archive that are kept as text; further ones are only counted. */
#define KP_FAULTS_MAX 1000

/* Program headers of a binary to convert: real ones have about ten. */
#define KP_SEGMENTS_MAX 1024

/*
 * User space of x86-64 and AArch64 ends below this address, except with 5-level paging.
 */
#define KP_ADDRESS_MAX (UINT64_C(1) << 48)

/* Highest file offset at which a converted program's headers may have to be placed. */
#define KP_SPARSE_MAX (UINT64_C(64) << 30)

/* Bytes of a marker: AMD's runtime passes 64 KiB to its parser. */
#define KP_MARKER_MAX 65536

/* Bytes of a layout, held in memory: about 200 for each of KP_IMAGES_MAX objects. */
#define KP_LAYOUT_MAX (UINT64_C(256) << 20)

/*
 * Bytes of the device code that a layout stores itself: the host's entries and the bytes
 * between entries.  Compilers leave host entries empty and the bytes between entries
 * zero.
 */
#define KP_LAYOUT_INLINE_MAX (1 << 20)

/* Bytes that a layout can describe, stored or decompressed: all of ROCm has 30 GB. */
#define KP_LAYOUT_SECTION_MAX (UINT64_C(64) << 30)

/*
 * Threads whose last failure on one archive is kept as text: 1 MiB of text.  Machines
 * have some hundred processors, and thread pools have a few threads per processor.
 */
#define KP_ERROR_THREADS_MAX 4096

/*
 * Bytes of an entry's metadata as JSON: real metadata has some hundred.  A key that is a
 * map is quoted, and each key that encloses it quotes it once more: each level doubles
 * the text.
 */
#define KP_JSON_MAX (1 << 20)

/*
 * Binary logarithm of the window, in bytes, that is held to decode a part of a frame: no
 * level of zstd uses a larger window, and the zstd tool refuses larger ones by default.
 */
#define KP_WINDOW_LOG_MAX 27

/*
 * Log2 of the window that decoders must support (RFC 8878) and zstd uses up to level 19.
 */
#define KP_WINDOW_LOG_USUAL 23

/*
 * Features of one target ID: LLVM has two, HRX accepts four; n features make 2^n targets.
 */
#define KP_FEATURES_MAX 4

/*
 * Files that one look-up of a code object tries: HRX tries 64, AMD's runtime any number.
 * A caller may list every GPU model, and a marker has room for 6000 patterns.
 */
#define KP_SEARCH_FILES_MAX 65536

/*
 * Nodes of a machine's topology, which are processors and GPUs: real ones have some tens.
 */
#define KP_TOPOLOGY_NODES_MAX 4096

/*
 * Bytes of one node's properties: real ones have fewer than 1000; sysfs gives one page.
 */
#define KP_TOPOLOGY_PROPERTIES_MAX 65536

/*
 * Bytes of an AMDGPU code object's metadata note, which is held in memory: some 2000 for
 * each kernel, and libraries have some ten thousand kernels in one object.
 */
#define KP_METADATA_MAX (256 << 20)

/* Listed kernels of one object: each takes some hundred bytes besides its name. */
#define KP_KERNELS_MAX 1048576

/* Bytes of an object's symbol names, which are held in memory. */
#define KP_SYMBOL_NAMES_MAX (256 << 20)

/* Bytes of a cuTile kernel's name: real ones have some hundred. */
#define KP_CUTILE_NAME_MAX 65536

/* Bytes of a target or a key in TileIR's hints. */
#define KP_TILEIR_HINT_MAX 64

/* Dimensions of a cuTile array: NumPy and PyTorch have the same limit. */
#define KP_CUTILE_NDIM_MAX 64

/* Nesting of tuples and dataclasses in a cuTile signature: programs use 2 or 3. */
#define KP_CUTILE_DEPTH_MAX 32

/* Arguments of one launch: CUDA accepts 32,764 bytes of arguments. */
#define KP_CUTILE_ARGUMENTS_MAX 32764

#endif
