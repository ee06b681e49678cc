/* SPDX-License-Identifier: MIT */
/*
 * clang-offload-bundler and clang-offload-packager (llvm-offload-binary): the jobs of the
 * commands, and what the files of this folder share.
 *
 *	files.c		response files; inputs; outputs, which appear all together
 *	entry_id.c	entry IDs: how they are spelled, and which entry serves which target
 *	contents.c	the entries of a bundled file
 *	bundle.c	bundling
 *	unbundle.c	unbundling and listing, of bundles and of archives of them
 *	object.c	entries as sections of the host's ELF object
 *	packager.c	offload binaries
 *
 * Functions that return int return an exit status, and have reported what is wrong.
 */
#ifndef PACKER_OFFLOAD_OFFLOAD_H
#define PACKER_OFFLOAD_OFFLOAD_H

#include "core/base/sink.h"
#include "core/format/ccob.h"
#include "core/format/format.h"
#include "core/format/offload_binary.h"
#include "packer/cli/options.h"

/* ---- entry IDs ---- */

/* "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"; the spans borrow from the text. */
struct entry_id {
	struct kp_span text;
	struct kp_span kind;
	struct kp_span arch, vendor, system, environment; /* the triple as written */
	struct kp_span target; /* target ID, unknown processors too; or empty */
	bool no_environment;   /* older compilers wrote none: any environment matches */
};

/*
 * Parse TEXT, in any of the four spellings (target.h).  false: there is no kind, or the
 * triple lacks its architecture, vendor or system.
 */
bool entry_id_parse(struct kp_span text, struct entry_id *out);
/* ID as it is written into bundles; the caller frees it. */
char *entry_id_spell(const struct entry_id *id);

enum entry_match { ENTRY_OTHER, ENTRY_SERVES, ENTRY_SAME };

/*
 * Whether the entry CODE serves the target WANT.  It needs the same kind (hip and hipv4 are
 * the same; with HIP_OPENMP so is openmp), the same triple and processor, and WANT must
 * state every feature that CODE states, with the same value.
 */
enum entry_match entry_id_match(const struct entry_id *code, const struct entry_id *want,
				bool hip_openmp);

/*
 * Whether A and B are for the same processor, and one states a feature that the other leaves
 * open: a GPU would have code of both.
 */
bool entry_ids_conflict(const struct entry_id *a, const struct entry_id *b);

/* ---- the jobs ---- */

struct offload_target {
	char *name;         /* its ID as bundles have it */
	struct entry_id id; /* of NAME */
};

struct bundler {
	const char *type; /* of the files: "o", "bc", "ll" ... */
	struct option_texts inputs, outputs;
	struct offload_target *targets;
	size_t n_targets;
	size_t host; /* number of the host's target; SIZE_MAX: none */
	unsigned align;
	bool unbundle, list;
	bool allow_missing, check_archive, hip_openmp;
	bool compress, verbose;
	struct kp_ccob_form form;
};

/* Whether --type accepts TYPE. */
bool bundler_type_known(const char *type);
/* Parse and check --targets. */
int bundler_targets_read(struct bundler *b, const struct option_texts *texts);

int bundler_bundle(const struct bundler *b);
/* Unbundle a bundle, or an archive. */
int bundler_unbundle(const struct bundler *b);
int bundler_list(const struct bundler *b);

struct packager {
	const char *input, *output; /* one of them is NULL */
	struct option_texts images; /* the values of --image */
	bool archive;
	struct kp_offload_form form;
};

/* Make an offload binary of the files that --image names. */
int packager_pack(const struct packager *p);
/* Write the images of the input that --image selects; without --image, all of them. */
int packager_extract(const struct packager *p);

/* ---- files ---- */

/* The words of a command line; begins zeroed. */
struct offload_words {
	char **items; /* with NULL behind the last */
	size_t count, cap;
};

/*
 * Copy the words of ARGV, with those of FILE in place of each "@FILE" whose file exists.  White
 * space separates words in it; quotes keep it, and a backslash keeps the next byte.
 */
kpack_error_t offload_words_read(struct offload_words *w, int argc, char **argv,
				 struct kpackx_error *why);
void offload_words_fini(struct offload_words *w);

/* An input: a file, or the spooled bytes of a pipe or a device. */
struct offload_input {
	int fd; /* -1: none is open */
	struct kp_source src;
};

/* Open PATH; "-" is standard input.  WHY does not name it. */
kpack_error_t offload_input_open(struct offload_input *in, const char *path,
				 struct kpackx_error *why);
void offload_input_fini(struct offload_input *in);

/*
 * If IN, opened from PATH, is a thin archive, whose members are files beside it, replace it
 * by a spooled archive that contains them.
 */
kpack_error_t offload_input_gather(struct offload_input *in, const char *path,
				   struct kpackx_error *why);

/* A file without a name, on disk if possible: it can be large. */
struct offload_spool {
	struct kp_outfile file;
	struct kp_sink sink; /* writes to FILE; a spool must not be moved */
};

kpack_error_t offload_spool_open(struct offload_spool *s, struct kpackx_error *why);
void offload_spool_fini(struct offload_spool *s);
/* The bytes written since the spool had BEFORE bytes. */
struct kp_source offload_spooled(const struct offload_spool *s, uint64_t before);

/*
 * Let WRITE write the contents of each of N outputs, and then let all of them appear.  On
 * failure none does.  An existing file is replaced, except one that must remain the same
 * file: a pipe, a device, "-", a file with other names or owners is written in place.  Root
 * writes into no file that another user may have put there.
 */
typedef int offload_write_fn(void *arg, size_t number, struct kp_sink *sink);
int offload_outputs_write(const char *const *paths, size_t n, offload_write_fn *write,
			  void *arg);

/* ---- contents of bundled files ---- */

struct bundle_contents {
	struct kp_source src; /* what the images' or the containers' offsets refer to */
	struct kp_containers list; /* its images with an ID are the entries */
	bool object;               /* entries are sections */
	bool binary;               /* offsets of images refer to their containers */
	bool verbose;
	struct kp_payload loaded; /* decoded: the text, or container LOADED_NUMBER */
	size_t loaded_number;
	uint64_t ignored; /* bytes behind the last bundle that are not a bundle */
};

/*
 * List the entries of SRC, which must outlive C; a file without entries is a success.
 * INVALID_FORMAT: SRC begins like a bundle and is damaged.  NOT_IMPLEMENTED: an object of a
 * kind whose sections are not read.  The caller finishes C in any case.
 */
kpack_error_t bundle_contents_read(const struct bundler *b, const struct kp_source *src,
				   struct bundle_contents *c, struct kpackx_error *why);
void bundle_contents_fini(struct bundle_contents *c);

/* Set OUT to the bytes of image NUMBER, valid until the next call. */
kpack_error_t bundle_contents_open(struct bundle_contents *c, size_t number,
				   struct kp_source *out, struct kpackx_error *why);
/* Whether image NUMBER of an object is one NUL byte: it stands for the object itself. */
bool bundle_contents_is_mark(const struct bundle_contents *c, size_t number);

/* ---- entries in objects ---- */

/* The section of an entry is named this, followed by the entry's ID. */
#define OFFLOAD_SECTION "__CLANG_OFFLOAD_BUNDLE__"

struct offload_section {
	const char *id;
	struct kp_source bytes;
};

/* Whether SRC is an ELF file, to which sections can be added. */
bool offload_is_object(const struct kp_source *src);

/*
 * Write OBJECT with a section for each of N entries, which linkers leave out (SHF_EXCLUDE).
 * The existing content keeps its offsets.
 */
kpack_error_t offload_object_add(const struct kp_source *object,
				 const struct offload_section *sections, size_t n,
				 struct kp_sink *sink, struct kpackx_error *why);
/*
 * Write OBJECT without the sections of entries.  The other sections keep their numbers: a
 * removed section becomes SHT_NULL.
 */
kpack_error_t offload_object_strip(const struct kp_source *object, struct kp_sink *sink,
				   struct kpackx_error *why);

#endif
