/* SPDX-License-Identifier: MIT */
/*
 * The record of a part, .kpack/shard/record: a sequence of MessagePack arrays.  The first
 * item of each is its kind.
 *
 *   ["kpack shard", 3, program's version, I, N, archives only, scheme, level, volume size,
 *    group, options in words, digest of the whole plan, ["NAME=ARCH,..." of each family]]
 *   ["b", number, key, volume, [[place, bytes, frames]...]]   a binary begins
 *   ["o", place, hash, size, chunk, ordinal]                  an object of that binary
 *   ["e", arch, key, type, metadata]                          an entry for that object
 *   ["c", number, path]                                       a converted binary
 *   ["i", kind, path, size, mode, seconds, nanoseconds, hash, attributes, first path]
 *   ["z", XXH3-128 of all bytes before]
 *
 * Strings that may hold file names are "bin".  The record is not trusted: no path may
 * lead out of the part, and everything that the kinds need must be present.
 */
#ifndef PACKER_SHARD_RECORD_H
#define PACKER_SHARD_RECORD_H

#include "packer/files/identity.h"
#include <sys/stat.h>
#include "packer/pack/archive_set.h"
#include "core/base/msgpack_read.h"
#include "shard_assign.h"
#include "core/archive/naming.h"
#include "packer/pack/shard_number.h"

/* The directory of a part's record and archives, and the record's name in it. */
#define SHARD_DIR KP_ARCHIVES_DIR "/shard"
#define SHARD_RECORD "record"
/*
 * Names in that directory: the host part of a binary (host.h), and the directory of the
 * archives that INPUT had.
 */
#define SHARD_HOST "host-%u"
#define SHARD_INHERITED "inherited"

/* The maximum length of an architecture, a family or a type. */
#define SHARD_NAME_MAX 255

/* The version of the record's format. */
#define SHARD_RECORD_VERSION 3

enum shard_kind {
	SHARD_FILE,
	SHARD_SYMLINK,
	SHARD_SPECIAL,
	SHARD_LINK, /* another path of a file of this part */
	SHARD_DIRECTORY,
	SHARD_ABSENT, /* not in the tree: it is packed */
	SHARD_OWN,    /* a file in SHARD_DIR, to which its path is relative */
	SHARD_KINDS,
};

struct shard_item {
	enum shard_kind kind;
	const char *path;  /* below the part; empty: its root */
	const char *first; /* of LINK: the file's first path */
	uint64_t size;
	uint64_t mode, seconds, nanoseconds; /* seconds: two's complement */
	uint8_t hash[16];                    /* XXH3-128 of FILE, OWN, SYMLINK's target */
	uint8_t attributes[16];              /* of FILE, DIRECTORY: see attributes_hash */
	struct file_identity seen;           /* when it was checked; not recorded */
};

struct shard_binary {
	uint32_t number;
	char *key;
	unsigned volume; /* in the part */
	struct archive_need *needs;
	size_t n_needs;
	struct kp_span events; /* its objects and entries */
};

struct shard_converted {
	uint32_t number;
	char *path;
};

struct shard_record {
	struct shard shard;
	bool archives_only;
	kpack_compression_t scheme;
	int level;
	uint64_t volume_size;
	char *version, *group, *options;
	uint8_t plan[16];
	struct families families;
	struct shard_item *items;
	size_t n_items, items_cap;
	struct shard_binary *binaries; /* by number */
	size_t n_binaries, binaries_cap;
	struct shard_converted *converted; /* by number */
	size_t n_converted, converted_cap;
	uint8_t hash[16]; /* of the record itself */
};

/*
 * Parse BYTES, which must outlive OUT.  The caller must finish OUT in any case.
 * INVALID_FORMAT, MSGPACK_PARSE_FAILED: BYTES are no record, are cut short, or contradict
 * themselves.  UNSUPPORTED_VERSION.  OUT_OF_MEMORY.
 */
kpack_error_t shard_record_parse(struct kp_span bytes, struct shard_record *out,
				 struct kpackx_error *why);
void shard_record_fini(struct shard_record *record);

/* An event of a binary; spans are borrowed. */
struct shard_event {
	bool is_entry;
	char place[SHARD_NAME_MAX + 1]; /* of an object */
	struct kp_content content;
	uint32_t ordinal;
	char arch[SHARD_NAME_MAX + 1]; /* of an entry */
	struct kp_span key, type, metadata;
};

/* Get the next of EVENTS, which shard_record_parse has checked; false: there is none. */
bool shard_event_next(struct kp_mp *events, struct shard_event *out);

#endif
