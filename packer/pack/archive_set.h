/* SPDX-License-Identifier: MIT */
/*
 * The archives of one group that are written together: one per architecture or family, in
 * as many volumes as their blobs need, all published at the end.  Existing archives in
 * the output are added to.
 *
 * Calls are made by one thread at a time, except archive_set_shared.
 */
#ifndef PACKER_PACK_ARCHIVE_SET_H
#define PACKER_PACK_ARCHIVE_SET_H

#include "core/base/errors.h"
#include "core/base/span.h"
#include "core/writer/store.h"
#include "packer/gpu/names.h"

struct archive_set_options {
	const char *dir; /* where the archives go */
	const char *group;
	kpack_compression_t scheme;
	int level;            /* scheme zstd-shared */
	uint32_t effort;      /* ... in place of the level, see kp_writer_options; or 0 */
	unsigned jobs;        /* ... whose objects are compressed by threads of the set */
	uint64_t volume_size; /* maximum bytes of a blob */
	bool force;           /* replace existing archives instead of adding to them */
	const struct families *families;
	const char *inherit; /* directory whose archives are copied to DIR; or NULL */
	/*
	 * Ignore what is in `dir`, and give no archive a name there: see
	 * archive_set_reopen.
	 */
	bool unnamed;
	/*
	 * Whether this run, or another part of it, stores an entry of KEY for ARCH, which
	 * exists in volume VOLUME; sets its place.
	 */
	bool (*stores)(const void *arg, struct kp_span key, struct kp_span arch,
		       unsigned volume, const char **place);
	/*
	 * Whether an existing entry KEY, of the file PATH if it is not empty, is of a file
	 * that the run replaces: it goes even if the run does not store it.  NULL: none.
	 */
	bool (*obsolete)(const void *arg, struct kp_span key, struct kp_span path);
	const void *arg;
};

struct archive_set;

/*
 * An object to be stored.  Its place says in which archive: that of an architecture, or
 * of a family that shares the object; the volume is that of its binary.
 */
struct archive_object {
	const char *place;
	unsigned volume;
	struct kp_content content;
	struct kp_span stored; /* data NULL: already stored (archive_set_shared) */
	/* if not NULL: where the bytes are in place of data */
	const struct kp_source *file;
	uint32_t ordinal; /* where it is stored */
	bool shared;      /* set by archive_set_store: it was already stored */
};

/*
 * Open a set; waits while another run has one open in the same directory.
 * INVALID_ARGUMENT: an entry that the run stores exists in an archive of another name,
 * because the families were different (with `force` that archive is removed instead);
 * errors of inherit_archives.
 */
kpack_error_t archive_set_open(const struct archive_set_options *options,
			       struct archive_set **out, struct kpackx_error *why);
void archive_set_close(struct archive_set *set); /* unpublished archives leave nothing */

/* An upper bound of what a binary needs in a place's archive. */
struct archive_need {
	const char *place;
	uint64_t bytes;
	uint32_t frames;
};

/*
 * Choose the volume of a binary, which begins at 1; call this for one binary after the other,
 * before any is stored.  If an archive, with what stays of an existing one, could pass its
 * bound, all architectures go on in the next volume, so that a binary is never spread over two.
 * Sizes before compression decide, so that whoever packs a part of the binaries finds the same
 * volumes.  The binary does not go to a volume before LEAST, where it was until now: the copies
 * that a killed run converted lead there.
 */
unsigned archive_set_place(struct archive_set *set, unsigned least,
			   const struct archive_need *needs, size_t n);

/*
 * Set *SHARED to whether DATA is already stored, comparing the bytes; OBJECT then says
 * where.  Thread-safe, but may miss what another thread is adding at the moment.  SCRATCH
 * is the calling thread's own, for DATA in memory.  NULL: no more than pieces of either are
 * held; only for the scheme zstd-per-kernel.
 */
kpack_error_t archive_set_shared(struct archive_set *set, struct archive_object *object,
				 const struct kp_source *data, struct kp_scratch *scratch,
				 bool *shared, struct kpackx_error *why);

/* Store OBJECT unless it is already stored, and set its ordinal. */
kpack_error_t archive_set_store(struct archive_set *set, struct archive_object *object,
				struct kpackx_error *why);

/* Add an entry for ARCH, which is canonical, of OBJECT, which was stored. */
kpack_error_t archive_set_entry(struct archive_set *set,
				const struct archive_object *object, const char *arch,
				struct kp_span key, const struct kp_writer_entry *entry,
				struct kpackx_error *why);

/* Take over the entries of existing archives, order and finish all archives, then publish. */
kpack_error_t archive_set_publish(struct archive_set *set, struct kpackx_error *why);

/*
 * Open the archive NAME, which was written, for reading.  *OUT stays valid when the set
 * is closed.  Errors of kp_archive_open.
 */
kpack_error_t archive_set_reopen(const struct archive_set *set, const char *name,
				 struct kpack_archive **out, struct kpackx_error *why);

/* Names of the archives written, in order of name; borrowed until close.  SET NULL: none. */
const char *const *archive_set_names(const struct archive_set *set, size_t *count);

/* What the run stored for an architecture. */
struct arch_stats {
	const char *arch;
	size_t objects;      /* entries added by this run */
	uint64_t bytes_in;   /* decoded, duplicates counted */
	uint64_t bytes_out;  /* stored, duplicates not counted */
	size_t deduplicated; /* objects that share the bytes of another */
};

/* The statistics by architecture; borrowed until close.  SET NULL: none. */
const struct arch_stats *archive_set_stats(const struct archive_set *set, size_t *count);

/* A file that an archive shows at a path. */
struct shown {
	struct kp_span path;
	const struct kpack_archive *archive;
	size_t entry;
};

/* The archives of a directory that can be read, and what they show, by path. */
struct shown_files {
	bool reports;    /* set by the caller: what cannot be read is reported */
	bool unreadable; /* there is an archive that cannot be read */
	struct kpack_archive **archives;
	size_t n_archives;
	struct shown *items;
	size_t n, cap;
};

kpack_error_t shown_files_open(const char *dir, struct shown_files *out,
			       struct kpackx_error *why);
void shown_files_close(struct shown_files *list); /* accepts zeros */

/*
 * Copy the archives of the input tree, the directory FROM, to TO: the output tree needs them,
 * too.  An archive that already exists in TO stays, and must hold every entry of the one in
 * FROM, so that nothing that a marker names is lost.
 * INVALID_ARGUMENT: it does not, or a file of a kernel database would have other bytes in
 * one archive than in another.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t inherit_archives(const char *from, const char *to,
			       struct kpackx_error *why);

#endif
