/* SPDX-License-Identifier: MIT */
/*
 * The archives of one group that are written together: one per architecture or family,
 * in as many volumes as their blobs need, published all at the end.  What stands in
 * the output already is added to.
 *
 * Calls are made by one thread at a time, except archive_set_shared.
 */
#ifndef PACKER_PACK_ARCHIVES_ARCHIVE_SET_H
#define PACKER_PACK_ARCHIVES_ARCHIVE_SET_H

#include <pthread.h>
#include "stats.h"
#include "core/base/errors.h"
#include "packer/gpu/families.h"
#include "core/base/span.h"
#include "core/writer/store.h"

struct archive_set_options {
	const char *dir; /* where the archives go */
	const char *group;
	kpack_compression_t scheme;
	int level;
	uint64_t volume_size; /* most bytes of a blob */
	bool force;           /* replace existing archives instead of adding to them */
	const struct families *families;
	const char *inherit; /* directory whose archives shall be in DIR too; or NULL */
	/* Nothing in DIR is looked at, and no archive appears there: see archive_set_reopen. */
	bool unnamed;
	/*
	 * Will this run store an entry of that name, and in which place?  One stands in that
	 * volume.
	 */
	bool (*stores)(const void *arg, struct kp_span key, struct kp_span arch,
		       unsigned volume, const char **place);
	const void *stores_arg;
};

struct archive_set;

/*
 * An object on its way into an archive.  Its place says into which: an architecture, or a
 * family of them that shares the object.
 */
struct archive_object {
	const char *place;
	struct kp_content content;
	struct kp_span stored; /* data NULL: found stored already (archive_set_shared) */
	uint32_t ordinal;      /* then: where, in that volume */
	unsigned volume;
};

/*
 * Waits while another run has a set open in the same directory.  Errors of
 * inherit_archives.  INVALID_ARGUMENT: an entry
 * that the run stores stands in an archive of another name, because the families
 * were others then; with FORCE that archive is removed.
 */
kpack_error_t archive_set_open(const struct archive_set_options *options,
			       struct archive_set **out, struct kpackx_error *why);
void archive_set_close(struct archive_set *set); /* unpublished archives leave nothing */

/* What a binary will need of a place's archive, at most. */
struct archive_need {
	const char *place;
	uint64_t bytes;
	uint32_t frames;
};

/*
 * Begin a binary: when one of its architectures' blobs could pass its bound, with what stays of
 * the archive that stands there, all go on in another volume, so that one binary is
 * never spread over two.  It does not go back before volume LEAST, where it stood until
 * now: what a killed run converted of it leads there.  Returns the number of the volume.
 */
unsigned archive_set_begin_binary(struct archive_set *set, unsigned least,
				  const struct archive_need *needs, size_t n);

/*
 * Is DATA stored already?  Compares the bytes.  Thread-safe, but what another
 * thread adds at the moment may be missed.  SCRATCH is the thread's own.
 */
kpack_error_t archive_set_shared(struct archive_set *set, struct archive_object *object,
				 const void *data, struct kp_scratch *scratch,
				 bool *shared, struct kpackx_error *why);

/* Store the object, or find that it is, and give its ordinal in the place's archive. */
kpack_error_t archive_set_store(struct archive_set *set, struct archive_object *object,
				struct kpackx_error *why);

/* Add an entry of ARCH, which is canonical, for the object stored in PLACE under its ordinal. */
kpack_error_t archive_set_entry(struct archive_set *set, const char *place,
				const char *arch, struct kp_span key,
				const struct kp_writer_entry *entry,
				struct kpackx_error *why);

/* Take over what existing archives hold, finish all, then publish all. */
kpack_error_t archive_set_publish(struct archive_set *set, struct kpackx_error *why);

/*
 * Read the archive NAME, which was written.  *OUT stays when the set is closed.  Errors of
 * kp_archive_open.
 */
kpack_error_t archive_set_reopen(const struct archive_set *set, const char *name,
				 struct kpack_archive **out, struct kpackx_error *why);

/* Per place, sorted; borrowed until close. */
const struct archive_stats *archive_set_stats(const struct archive_set *set);
/* Names of the archives written, in order of name; borrowed until close. */
const char *const *archive_set_names(const struct archive_set *set, size_t *count);

#endif
