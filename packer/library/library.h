/* SPDX-License-Identifier: MIT */
/*
 * Kernel databases: files of an install tree that a library opens by name at run time.
 * Finds the library that a file belongs to, the GPUs it is for, and the facts for the
 * TOC.
 *
 * A library has a row in the table of library.c, and a file of its own unless rules (rules.h)
 * describe it.  Libraries are asked in order.  A library first judges by the path alone (probe),
 * which must be quick; then it looks into the file and describes it (check).  The file belongs
 * to the first library whose check accepts it.
 */
#ifndef PACKER_LIBRARY_LIBRARY_H
#define PACKER_LIBRARY_LIBRARY_H

#include "file_tree.h"
#include "facts.h"
#include "core/target/target.h"

/* A run of bytes that is stored as one object, and its description. */
struct library_object {
	const char *library;   /* name of its library; lives as long as the library_set */
	const char *role;      /* "parent", "code" ...: static */
	uint64_t offset, size; /* in its file */

	/* Sorted canonical target IDs, or KP_ARCH_GENERIC; never empty after check. */
	char (*arches)[KP_TARGET_TEXT_MAX];
	size_t n_arches;
	/* Several arches: name of their family ("gfx11xx") and its archive; or "". */
	char family[KP_TARGET_TEXT_MAX];

	char *path;  /* of the file, also in the mount; NULL: not a file of the mount */
	char **keys; /* more keys of the same bytes (the paper's); if no path, all keys */
	size_t n_keys;
	/* Per key: facts that replace FACTS for it, unless empty. */
	struct facts *key_facts;
	mode_t mode;
	bool at_random;  /* read at random by its loader: stored in chunks */
	bool is_archive; /* one that its loader opens by path: it stays a file */
	struct facts facts;
	char *warning; /* one line that the user should see; or NULL */
};

void library_object_fini(struct library_object *o);

/*
 * The object's architecture I, with the stepping that the object's path names:
 * gfx1250-strict.  Drivers make no difference between steppings, so every gfx1250 reads
 * the files of each of them, but trees keep these files apart.
 */
void library_object_target(const struct library_object *o, size_t i,
			   char out[KP_TARGET_TEXT_MAX]);

/* The file that a library is asked about, and what it answers. */
struct library_question {
	const struct library *library;
	const struct file_tree *tree; /* to look for other files */
	size_t file;
	const char *path;               /* of the file, relative to the root */
	const struct kp_source *source; /* its bytes; NULL in probe */
	bool plain; /* the file stays a file: do not check that its content is whole */
	uint8_t head[512]; /* its first bytes, zeros after its end; check only */
	size_t head_size;
	/* The answer of check: whether the file is the library's, and its description, which
	 * has path, size and mode already. */
	bool mine;
	struct library_object out;
};

/* Every file of a tree, and the library that it belongs to. */
struct library_found {
	const struct file_tree *tree;
	struct library_object **objects; /* per file; NULL: of no library */
};

struct library {
	const char *name; /* as --libraries takes it, and as metadata.library says */
	bool (*probe)(const struct library_question *q);
	/* Answer Q.  An error is a fault of the file, which then is not packed. */
	kpack_error_t (*check)(struct library_question *q, struct kpackx_error *why);
	/*
	 * Called once after all files were checked, to use what the library's files say
	 * about other files.  May claim and describe files that belong to no library yet,
	 * and add keys to the library's own files.  NULL: nothing to do.
	 */
	kpack_error_t (*finish)(const struct library *self, struct library_found *found,
				struct kpackx_error *why);
	const void *data; /* for libraries that share their functions */
};

extern const struct library library_rocblas, library_hipblaslt, library_hipsparselt;
extern const struct library library_aotriton, library_rocfft, library_miopen;
extern const struct library library_composablekernel, library_hipkernelprovider;
extern const struct library library_aiter, library_hotswap_cache;

/* MIOpen ignores kernel databases (.kdb) that have fewer bytes. */
#define MIOPEN_KDB_MIN 512

struct rules; /* library/rules.h */

/* The libraries of a run, in the order in which they are asked. */
struct library_set {
	const struct library **items;
	size_t count;
	struct rules *rules; /* owned: libraries that a rules file describes */
	bool plain;          /* files stay files: see struct library_question */
};

/*
 * Open the libraries of the comma-separated LIST; NULL: all libraries, those of RULES
 * first; "none": none.  RULES is the path of a rules file, or NULL.
 * INVALID_ARGUMENT: an unknown name (the message lists the known ones), or a name given
 * twice; also the errors of rules_read.
 */
kpack_error_t library_set_open(const char *list, const char *rules,
			       struct library_set *out, struct kpackx_error *why);
void library_set_close(struct library_set *set);

/* Report a fault of a file, given by its number in the tree. */
typedef void library_report(void *arg, size_t file, const struct kpackx_error *why);

/*
 * Find the library of each file of TREE, which must outlive OUT, which is zeroed or has objects of
 * files that are not asked about.  Faults of files are
 * passed to REPORT and added to *FAULTS; a file with a fault belongs to no library.
 * OUT_OF_MEMORY is the only error.
 */
kpack_error_t library_find_all(const struct library_set *set,
			       const struct file_tree *tree, library_report *report,
			       void *arg, struct library_found *out, size_t *faults,
			       struct kpackx_error *why);
void library_found_fini(struct library_found *found);

/* --- for libraries --------------------------------------------------------------------- */

/*
 * Open the question's file into BYTES and read its first bytes, unless done already; and begin its
 * answer.
 */
kpack_error_t library_question_open(struct library_question *q, struct file_bytes *bytes,
				    struct kpackx_error *why);

/*
 * Whether ERR is one of the machine, which ends the run; then WHY gets the reason FAULT.  Other errors
 * are faults of the file that was looked at.
 */
bool library_ends_run(kpack_error_t err, const struct kpackx_error *fault,
		      struct kpackx_error *why);

/* Add the canonical ARCH to the *COUNT sorted ones of LIST, or to those of O, once. */
void arches_add(char (**list)[KP_TARGET_TEXT_MAX], size_t *count, const char *arch);
void library_add_arch(struct library_object *o, const char *arch);
/* Add a key that has FACTS, which O takes over. */
void library_add_key(struct library_object *o, struct facts facts, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Replace the object's warning. */
void library_warn(struct library_object *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
