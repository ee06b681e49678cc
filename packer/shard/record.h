/* SPDX-License-Identifier: MIT */
/*
 * The record of a part, .kpack/shard/record: MessagePack arrays one after another, each with
 * its kind first.
 *
 *   ["kpack shard", 2, program's version, I, N, archives only, scheme, volume size, group,
 *    options in words, digest of the whole plan, ["NAME=ARCH,..." of each family]]
 *   ["b", number, key, volume, [[place, bytes, frames]...]]   a binary begins
 *   ["o", place, hash, size, chunk, ordinal]                  an object of it
 *   ["e", arch, key, type, metadata]                          an entry of that
 *   ["c", number, path]                                       a converted binary
 *   ["i", kind, path, size, mode, seconds, nanoseconds, hash, attributes, first path]
 *   ["z", XXH3-128 of all bytes before]
 *
 * Strings are "bin" where names of files can be in them.  Nothing in it is believed: paths lead
 * nowhere but below the part, and everything is there that the kinds need.
 */
#ifndef PACKER_SHARD_RECORD_H
#define PACKER_SHARD_RECORD_H

#include "packer/pack/archives/archive_set.h"
#include "core/base/msgpack_read.h"
#include "assign.h"
#include "core/archive/naming.h"
#include "packer/pack/shard_number.h"

/* Where a part has its record and its archives, and the record's name there. */
#define SHARD_DIR KP_ARCHIVES_DIR "/shard"
#define SHARD_RECORD "record"
/* There: what a binary was before, without its device code, and what INPUT had archived. */
#define SHARD_HOST "host-%u"
#define SHARD_INHERITED "inherited"

/* Characters of an architecture, a family or a type. */
#define SHARD_NAME_MAX 255

/* Faults of the record's form. */
#define SHARD_RECORD_VERSION 2

enum shard_kind {
	SHARD_FILE,
	SHARD_SYMLINK,
	SHARD_SPECIAL,
	SHARD_LINK, /* another path of a file of this part */
	SHARD_DIRECTORY,
	SHARD_ABSENT, /* it is in archives now */
	SHARD_OWN,    /* a file in SHARD_DIR, where its path begins */
	SHARD_KINDS,
};

struct shard_item {
	enum shard_kind kind;
	const char *path;  /* below the part; empty: its root */
	const char *first; /* of LINK */
	uint64_t size;
	uint64_t mode, seconds, nanoseconds; /* seconds: two's complement */
	uint8_t hash[16];                    /* XXH3-128 of FILE, OWN, SYMLINK's target */
	uint8_t attributes[16];              /* of FILE, DIRECTORY: see attributes_hash */
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
 * Parse the BYTES, which must stay; OUT must be finished in any case.
 * INVALID_FORMAT, MSGPACK_PARSE_FAILED: no record, cut short, or one that contradicts itself.
 * UNSUPPORTED_VERSION.  OUT_OF_MEMORY.
 */
kpack_error_t shard_record_parse(struct kp_span bytes, struct shard_record *out,
				 struct kpackx_error *why);
void shard_record_fini(struct shard_record *record);

/* One of a binary's events; spans are borrowed. */
struct shard_event {
	bool is_entry;
	char place[SHARD_NAME_MAX + 1]; /* of an object */
	struct kp_content content;
	uint32_t ordinal;
	char arch[SHARD_NAME_MAX + 1]; /* of an entry */
	struct kp_span key, type, metadata;
};

/* The next of EVENTS, which were parsed once; false: there is none. */
bool shard_event_next(struct kp_mp *events, struct shard_event *out);

#endif
