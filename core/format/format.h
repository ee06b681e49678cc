/* SPDX-License-Identifier: MIT */
/*
 * Foreign formats of device code: one source file per format, one table of all formats
 * (table.c), and one of those in .hip_fatbin, which librocm_kpack reads.
 *
 * A container is a run of bytes in a source (a .hip_fatbin section, a file): an offload
 * bundle, a compressed one (CCOB), an offload binary, an archive, a host ELF.  Its
 * payload - the bytes themselves, or the decompressed bytes - holds the images.  An
 * object (a code object, a cubin, PTX, bitcode ...) outside of any container is treated
 * as a container whose only image is the object itself.  Images can be containers in
 * turn.
 * To add a format, add a file and a row.
 */
#ifndef KP_CORE_FORMAT_FORMAT_H
#define KP_CORE_FORMAT_FORMAT_H

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/span.h"
#include "core/target/target.h"

/* Bytes at a source's beginning that suffice to recognise every format. */
#define KP_HEAD_SIZE 4096

/* Name of an image's pair, and its value for LTO-IR in CUDA fat binaries. */
#define KP_PAIR_IMAGE_KIND "image kind"
#define KP_LTO_IR "lto-ir"

/* Names and values, in the order in which they were found. */
struct kp_pair {
	char *name;
	char *value; /* SIZE bytes, which may include NULs, and a final NUL */
	size_t size;
};

struct kp_pairs {
	struct kp_pair *items;
	size_t count;
};

/* Append a pair; name and value are copied. */
kpack_error_t kp_pairs_add(struct kp_pairs *pairs, struct kp_span name,
			   struct kp_span value, struct kpackx_error *why);
kpack_error_t kp_pairs_print(struct kp_pairs *pairs, struct kpackx_error *why,
			     const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Return the value of the first pair named NAME, or NULL. */
const char *kp_pairs_find(const struct kp_pairs *pairs, const char *name);

void kp_pairs_fini(struct kp_pairs *pairs);

/* Index that means "no container" or "no image". */
#define KP_NOWHERE SIZE_MAX

struct kp_format;
struct kp_object;

/* One container, found but not decoded. */
struct kp_container {
	const struct kp_format *format;
	size_t inside;   /* the image that contains it; KP_NOWHERE: the source itself */
	size_t next;     /* the next container among the same bytes, or KP_NOWHERE */
	uint64_t offset; /* in that image, or in the source */
	uint64_t size;   /* in bytes, as stored */
	uint64_t payload_size; /* in bytes; the images' offsets refer to the payload */
	size_t first_image;    /* its images are [first_image, first_image + n_images) */
	size_t n_images;
};

/* One entry of a container. */
struct kp_image {
	size_t container; /* 0-based, in file order; nested ones follow their parent */
	char *id;  /* as stored: bundle entry ID, section name, member name; NULL: none */
	bool host; /* the host's entry */
	bool stream;   /* holds containers one after another, and nothing else */
	bool damaged;  /* cannot be decoded; set by kp_nest_salvage */
	char kind[16]; /* offload kind, as in IDs: "hip", "openmp", "cuda" ...; or "" */
	char arch[KP_TARGET_TEXT_MAX]; /* canonical target ID, "" if not stated */
	uint64_t offset;               /* in the container's payload */
	uint64_t size;
	size_t inside; /* the first container inside it (kp_nest_scan), or KP_NOWHERE */
	struct kp_pairs pairs; /* the container's other statements on it, as stored */
};

/* All containers of a source, in file order, and their images in stored order. */
struct kp_containers {
	struct kp_container *items;
	size_t count, cap;
	struct kp_image *images;
	size_t n_images, images_cap;
	size_t id_bytes; /* sum over all images' IDs */
};

/* A container's decoded bytes. */
struct kp_payload {
	struct kp_source source; /* what the images' offsets refer to */
	void *heap;              /* owned, or NULL if the source is a file */
	bool spilled;            /* the source's file is owned: core/base/file.h */
	void *map;               /* owned: kp_payload_map */
};

/*
 * Called for image NUMBER of a container, which cannot be decoded because of WHY.
 * Returns true to leave the image out, so that the payload has zeros in its place.
 */
typedef bool kp_image_fault(void *arg, size_t number, const struct kpackx_error *why);

/*
 * Read the container that begins at the beginning of SRC, which may have more bytes: set
 * C's size and payload_size, and append its images (kp_containers_add_...).
 */
typedef kpack_error_t kp_parse_fn(const struct kp_source *src, struct kp_container *c,
				  struct kp_containers *list, struct kpackx_error *why);

struct kp_format {
	const char *name; /* "bundle", "ccob", "code-object" ... */
	const char
		*type; /* for an object: its entry type, "hsaco" ...; NULL: a container */

	/* True if HEAD (up to KP_HEAD_SIZE bytes) can begin such a container. */
	bool (*probe)(struct kp_span head);

	kp_parse_fn *parse;
	/* Read what is readable of a container that parse() refuses; NULL: impossible. */
	kp_parse_fn *salvage;

	/*
	 * Decode the payload of C, whose bytes are SRC; NULL: the payload is these bytes.
	 * With FAULT, each image is decoded by itself where that is possible, and FAULT says
	 * which to leave out.
	 */
	kpack_error_t (*load)(const struct kp_source *src, const struct kp_container *c,
			      kp_image_fault *fault, void *arg, struct kp_payload *out,
			      struct kpackx_error *why);

	/* Read what an object records about itself; NULL: nothing is known. */
	kpack_error_t (*describe)(const struct kp_source *src, struct kp_object *out,
				  struct kpackx_error *why);
};

extern const struct kp_format kp_format_bundle;
extern const struct kp_format kp_format_ccob;
extern const struct kp_format kp_format_text_bundle;
extern const struct kp_format kp_format_offload_binary;
extern const struct kp_format kp_format_archive; /* ar: static, heterogeneous */
extern const struct kp_format kp_format_host_elf;
extern const struct kp_format kp_format_pe; /* Windows: programs, libraries */
extern const struct kp_format kp_format_code_object;
extern const struct kp_format kp_format_fatbin; /* CUDA's */
extern const struct kp_format kp_format_cubin;
extern const struct kp_format kp_format_ptx;
extern const struct kp_format kp_format_tileir;
extern const struct kp_format kp_format_bitcode;
extern const struct kp_format kp_format_spirv;

/* Return the format of which a container begins with HEAD, or NULL. */
const struct kp_format *kp_format_probe(struct kp_span head);
/* The same among the formats that may occur in .hip_fatbin. */
const struct kp_format *kp_format_probe_hip(struct kp_span head);
bool kp_format_is_hip(const struct kp_format *format);

/* The name of an image in a host's file that no section holds. */
#define KP_NO_SECTION "(no section)"

/* Whether it is the file of a program, a library or an object of the host. */
static inline bool kp_format_is_host(const struct kp_format *format)
{
	return format == &kp_format_host_elf || format == &kp_format_pe;
}

/*
 * Find every container of SRC, the contents of .hip_fatbin: bundles, plain and
 * compressed, and code objects, in any mix and at any alignment, with zero bytes between
 * and after them.  Anything else is INVALID_FORMAT, naming the offset.  A source of zero
 * bytes only has no containers.  Compressed containers are decoded only as far as their
 * header lists the images; the images themselves are not searched.
 * On failure OUT is empty.
 */
kpack_error_t kp_containers_scan(const struct kp_source *src, struct kp_containers *out,
				 struct kpackx_error *why);
void kp_containers_fini(struct kp_containers *list);

/*
 * For parsers: append an image with ID (data NULL: none).  If ID is a bundle entry ID, it
 * sets kind, arch and host.
 */
kpack_error_t kp_containers_add_image(struct kp_containers *list, struct kp_container *c,
				      struct kp_span id, uint64_t offset, uint64_t size,
				      struct kpackx_error *why);
/* The same, with a NAME that is no entry ID even if it looks like one. */
kpack_error_t kp_containers_add_named(struct kp_containers *list, struct kp_container *c,
				      struct kp_span name, uint64_t offset, uint64_t size,
				      struct kp_image **image, struct kpackx_error *why);
/* For parsers of objects: set C's size, and append the image that has all its bytes. */
kpack_error_t kp_containers_add_object(struct kp_containers *list, struct kp_container *c,
				       uint64_t size, struct kp_image **image,
				       struct kpackx_error *why);

/* For scans: the single steps of kp_containers_scan. */
kpack_error_t kp_skip_zeros(const struct kp_source *src, uint64_t *pos,
			    struct kpackx_error *why);
kpack_error_t kp_containers_add(const struct kp_source *src, uint64_t off,
				const struct kp_format *format, size_t inside,
				struct kp_containers *list, struct kpackx_error *why);
/* Append what is readable of a container that kp_containers_add refuses. */
kpack_error_t kp_containers_salvage(const struct kp_source *src, uint64_t off,
				    const struct kp_format *format, size_t inside,
				    struct kp_containers *list, struct kpackx_error *why);

/*
 * Decode container C, whose offset refers to SRC.  Thread-safe; the caller frees OUT with
 * kp_payload_fini.
 */
kpack_error_t kp_container_load(const struct kp_source *src, const struct kp_container *c,
				struct kp_payload *out, struct kpackx_error *why);
/*
 * As kp_container_load, but images that cannot be decoded are reported to FAULT, which
 * may leave them out.
 */
kpack_error_t kp_container_load_most(const struct kp_source *src,
				     const struct kp_container *c, kp_image_fault *fault,
				     void *arg, struct kp_payload *out,
				     struct kpackx_error *why);
/*
 * Decode container NUMBER of LIST at any depth; SRC is the scanned source.  The
 * containers around it are decoded first, and freed.
 */
kpack_error_t kp_containers_load(const struct kp_source *src,
				 const struct kp_containers *list, size_t number,
				 struct kp_payload *out, struct kpackx_error *why);
void kp_payload_fini(struct kp_payload *payload);

/*
 * Get the decoded bytes of a container with `load` as one run of memory, which lasts as
 * long as PAYLOAD.
 */
kpack_error_t kp_payload_map(struct kp_payload *payload, struct kp_span *out,
			     struct kpackx_error *why);

/* Bytes of memory, not disk, that a loaded payload of C holds. */
uint64_t kp_payload_memory(const struct kp_container *c);

/*
 * Return the entry type of an object that begins with HEAD (KP_HEAD_SIZE bytes are
 * enough): "hsaco", "cubin", "bc", "spv", "tileirbc", "ptx"; "co" for anything else.  The
 * text is static.
 */
const char *kp_object_type(struct kp_span head);

/*
 * Return the entry type of IMAGE, which begins with HEAD: as kp_object_type, or "ltoir"
 * if its container says so and its bytes are of no known format.
 */
const char *kp_image_type(const struct kp_image *image, struct kp_span head);

/* ---- containers in containers ---- */

/* Maximum nesting depth, as in archive, object, section, bundle, binary, object. */
#define KP_NEST_MAX 12

/* Called for contents of IMAGE (KP_NOWHERE: of the source) that cannot be read. */
typedef void kp_nest_fault(void *arg, const struct kp_containers *list, size_t image,
			   const struct kpackx_error *why);

/*
 * Find every container of SRC, of any format, and recursively of its images.  A source
 * that begins like no container is a success without containers.  Compressed containers
 * are decoded, one of each level at a time.  A damaged container, or one followed by
 * bytes other than zeros, is reported to FAULT and otherwise ignored; with FAULT NULL it
 * is an error.
 * On failure OUT is empty.
 */
kpack_error_t kp_nest_scan(const struct kp_source *src, kp_nest_fault *fault, void *arg,
			   struct kp_containers *out, struct kpackx_error *why);

/*
 * As kp_nest_scan, but keep the readable part of a damaged container: each image that
 * cannot be decoded is reported and marked as damaged, the other images are kept; an
 * archive that ends too early has the members before the damage.
 */
kpack_error_t kp_nest_salvage(const struct kp_source *src, kp_nest_fault *fault,
			      void *arg, struct kp_containers *out,
			      struct kpackx_error *why);

/* ---- objects ---- */

#define KP_NOT_STATED (-1)

/*
 * A kernel.  Numbers are those of AMD's code objects; KP_NOT_STATED if they do not state
 * them, and for other objects, of which only the names are read.
 */
struct kp_kernel {
	char *name;
	char *symbol;      /* of its descriptor, "name.kd"; or NULL */
	int64_t vgprs;     /* vector registers */
	int64_t agprs;     /* accumulation registers */
	int64_t sgprs;     /* scalar registers */
	int64_t lds;       /* bytes of local memory of fixed size */
	int64_t scratch;   /* bytes of private memory per thread */
	int64_t kernarg;   /* bytes of the arguments */
	int64_t wavefront; /* threads per wavefront */
	int64_t threads;   /* maximum threads per workgroup */
};

struct kp_object {
	const struct kp_format *format; /* NULL: unknown format */
	const char *type;               /* as kp_object_type says */
	/*
	 * Canonical target from its bytes, "gfx90a:xnack+", "sm_90a", "compute_90a"; or
	 * "".
	 */
	char arch[KP_TARGET_TEXT_MAX];
	struct kp_pairs facts; /* "code object": "6", "toolkit": "13.0" ... */
	struct kp_kernel *kernels;
	size_t n_kernels, kernels_cap;
};

/*
 * Describe the object SRC.  An unknown format, or an object without facts, is a success.
 * INVALID_FORMAT: SRC begins like an object but is damaged.  On failure OUT is empty.
 */
kpack_error_t kp_object_describe(const struct kp_source *src, struct kp_object *out,
				 struct kpackx_error *why);
void kp_object_fini(struct kp_object *object);

/* For describers: append a kernel with its name; its numbers are KP_NOT_STATED. */
kpack_error_t kp_object_add_kernel(struct kp_object *object, struct kp_span name,
				   struct kp_kernel **out, struct kpackx_error *why);

#endif
