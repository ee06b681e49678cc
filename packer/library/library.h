/* SPDX-License-Identifier: MIT */
/*
 * Kernel databases: files of an install tree that a library opens by name at run time.
 * Whose a file is, for which GPUs, and what the table of contents says about it.
 *
 * One file per library behind one table (library.c): adding a library is adding a file and a
 * row.  Libraries are asked in order.  One is first asked by the path alone (probe), which
 * must be quick; then it looks into the file and describes it (check).  The first whose
 * check says yes has the file.
 */
#ifndef PACKER_LIBRARY_LIBRARY_H
#define PACKER_LIBRARY_LIBRARY_H

#include "packer/files/file_tree.h"
#include "facts.h"
#include "core/target/target.h"

/* The architecture of files that every GPU needs. */

/* A run of bytes that is stored as one object, and all that is said about it. */
struct library_object {
	const char *library;   /* name of its library; as long as the set of libraries */
	const char *role;      /* "parent", "code" ...: static */
	uint64_t offset, size; /* in its file */

	/* Canonical target IDs, sorted; or just KP_ARCH_GENERIC.  Never empty after check. */
	char (*arches)[KP_TARGET_TEXT_MAX];
	size_t n_arches;
	/* Several arches: the name of their family ("gfx11xx"), and of the archive; or "". */
	char family[KP_TARGET_TEXT_MAX];

	char *path; /* of the file, also in the mount; NULL: not a file of the mount */
	char **keys; /* more keys of the same bytes (the paper's); without a path the only */
	size_t n_keys;
	/* Per key: what is said of it instead of FACTS, when that is anything. */
	struct facts *key_facts;
	mode_t mode;
	bool at_random; /* read at random by its loader: stored in chunks */
	struct facts facts;
	char *warning; /* one line that the user should see; or NULL */
};

void library_object_fini(struct library_object *o);

/*
 * Its architecture I with the stepping that its path names: gfx1250-strict.  Files of one are
 * read by every gfx1250, for drivers tell no difference, but trees keep them apart.
 */
void library_object_target(const struct library_object *o, size_t i,
			   char out[KP_TARGET_TEXT_MAX]);

/* Building an object; OUT_OF_MEMORY. */
kpack_error_t library_add_arch(struct library_object *o, const char *arch,
			       struct kpackx_error *why); /* canonical; twice is once */
kpack_error_t library_add_key(struct library_object *o, struct kpackx_error *why,
			      const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Let FACTS, which become O's, be the facts of the key that was added last. */
kpack_error_t library_key_facts(struct library_object *o, struct facts *facts,
				struct kpackx_error *why);
kpack_error_t library_warn(struct library_object *o, struct kpackx_error *why,
			   const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What a library is asked about. */
struct library_question {
	const struct file_tree *tree; /* to look for other files */
	size_t file;
	const char *path;               /* of the file: the root's, with '/' */
	const struct kp_source *source; /* its bytes; NULL in probe */
	bool plain; /* it stays a file: whether its contents are whole is not asked */
	uint8_t head[512]; /* its first bytes, zeros behind its end; check only */
	size_t head_size;
};

/* Every file of a tree, and the library that it belongs to. */
struct library_found {
	const struct file_tree *tree;
	struct library_object **objects; /* per file; NULL: nobody's */
};

struct library {
	const char *name; /* as --libraries takes it, and as metadata.library says */
	bool (*probe)(const struct library *self, const struct library_question *q);
	/*
	 * Is it really its file?  Then describe it in OUT, in which path, size and mode stand
	 * already.  An error is a fault of the file that keeps it from being packed.
	 */
	kpack_error_t (*check)(const struct library *self,
			       const struct library_question *q, bool *mine,
			       struct library_object *out, struct kpackx_error *why);
	/*
	 * Once, after all files were asked about: what its files say of others.  May describe files
	 * that are nobody's yet, and add keys to its own.  NULL: nothing.
	 */
	kpack_error_t (*finish)(const struct library *self, struct library_found *found,
				struct kpackx_error *why);
	const void *data; /* of rows that share their functions */
};

/* Each in its own file. */
extern const struct library library_rocblas, library_hipblaslt, library_hipsparselt;
extern const struct library library_aotriton, library_rocfft, library_miopen;
extern const struct library library_composablekernel, library_hipkernelprovider;
extern const struct library library_aiter, library_hotswap_cache;

struct rules; /* library/rules.h */

/* The libraries of a run, in the order in which they are asked. */
struct library_set {
	const struct library **items;
	size_t count;
	struct rules *rules; /* owned: libraries that a file of rules describes */
	bool plain;          /* files stay files: see struct library_question */
};

/*
 * The libraries that LIST names, separated by commas; NULL: all, those of RULES first;
 * "none": none.  RULES is the path of a file of rules, or NULL.
 * INVALID_ARGUMENT: an unknown name, the known ones being told; the same name twice; and
 * whatever rules_read says.
 */
kpack_error_t library_set_open(const char *list, const char *rules,
			       struct library_set *out, struct kpackx_error *why);
void library_set_close(struct library_set *set);

/* Tell a fault of a file, by its number in the tree. */
typedef void library_tell(void *arg, size_t file, const struct kpackx_error *why);

/*
 * Whose is each file of TREE, which must outlive what was found?  Faults of files are reported and
 * counted; a file with one is nobody's.  OUT_OF_MEMORY is the only error.
 */
kpack_error_t library_find_all(const struct library_set *set,
			       const struct file_tree *tree, library_tell *tell,
			       void *arg, struct library_found *out, size_t *faults,
			       struct kpackx_error *why);
void library_found_fini(struct library_found *found);

/* For finish: describe FILE, which is nobody's, as SELF's, with what check gets. */
kpack_error_t library_claim(const struct library *self, struct library_found *found,
			    size_t file, struct library_object **out,
			    struct kpackx_error *why);

#endif
