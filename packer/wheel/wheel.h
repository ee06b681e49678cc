/* SPDX-License-Identifier: MIT */
/*
 * Wheels as files: their names, the texts in their .dist-info, and the zip archives that they
 * are.  split.h has what is done with them.
 */
#ifndef PACKER_WHEEL_WHEEL_H
#define PACKER_WHEEL_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/alloc.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/path.h"
#include "core/base/span.h"
#include "packer/cli/digest.h"
#include "packer/cli/report.h"
#include "packer/files/identity.h"

/* --- metadata.c: names ------------------------------------------------------------------------- */

/* NAME_MAX of Linux: a longer name cannot be a file name. */
#define WHEEL_NAME_MAX 255

/* A wheel's file name: its components as it spells them; "" for an absent one. */
struct wheel_name {
	char text[WHEEL_NAME_MAX + 1]; /* after parsing, the components point into it */
	const char *dist, *version, *build, *python, *abi, *platform, *variant;
};

/* Parse FILE, without directories.  INVALID_ARGUMENT: it is not a wheel's name, and why. */
kpack_error_t wheel_name_parse(const char *file, struct wheel_name *out,
			       struct kpackx_error *why);
/* Join the components to a file name.  INVALID_ARGUMENT: as in wheel_name_parse. */
kpack_error_t wheel_name_compose(const struct wheel_name *name,
				 char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why);
/* Whether LABEL can be the variant of a name: [0-9a-z_.]; "null" is reserved. */
bool wheel_label_ok(const char *label);

/* Whether it is a distribution's name: letters, digits, and inside it ".", "_", "-". */
bool dist_name_ok(const char *dist);
/*
 * Spell DIST in lower case with each run of ".", "_", "-" as JOIN: '-' for indexes, '_' for
 * wheels.  False: not a distribution's name, or too long.
 */
bool dist_name_normal(const char *dist, char join, char out[WHEEL_NAME_MAX + 1]);
/* Spell VERSION as in a file name, "-" as "_".  False: not a version, or too long. */
bool dist_version_escape(const char *version, char out[WHEEL_NAME_MAX + 1]);

/* --- zip_read.c ----------------------------------------------------------------------- */

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* Flags of a member that say how its bytes were made, which a copy keeps. */
enum { ZIP_DATA = 3 << 1 | 3 << 4 };

#define ZIP_LOCAL UINT32_C(0x04034b50)
#define ZIP_ENTRY UINT32_C(0x02014b50)
#define ZIP_END UINT32_C(0x06054b50)
#define ZIP_END64 UINT32_C(0x06064b50)
#define ZIP_LOCATOR UINT32_C(0x07064b50)

/* A torch wheel has 15,000 members; a ROCm one with all kernel files some 100,000. */
#define WHEEL_MEMBERS_MAX 1000000

/* Decoded bytes of a whole wheel: all of ROCm has 30 GB. */
#define WHEEL_SIZE_MAX (UINT64_C(128) << 30)

/*
 * Decoded bytes per byte of the whole file.  Single members of zeros reach deflate's
 * 1032; fat libraries padded with zeros reach 20.  Wheels with fewer decoded bytes than
 * the second limit are harmless, and their ratio is not checked.
 */
#define WHEEL_RATIO_MAX 100
#define WHEEL_RATIO_FREE (UINT64_C(256) << 20)

struct wheel_member {
	char *path;          /* kp_path_ok; a directory's has no final slash */
	uint64_t size;       /* decoded */
	uint64_t compressed; /* in the wheel */
	uint64_t at;         /* of these bytes */
	uint32_t crc;
	uint16_t method;
	uint16_t mode; /* permission bits; 0644 or 0755 if the wheel has none */
	uint16_t flags;
	bool text; /* an attribute without effect, which a copy keeps */
	bool directory;
	/* Only for reading: of the entry in the directory, and the end of its room. */
	uint16_t name_size, needs;
	uint32_t time, attributes;
	uint64_t end;
};

struct wheel_path {
	const char *path;
	size_t member;
};

struct wheel_in {
	int fd;
	uint64_t size;
	struct wheel_member *members; /* in the order of the directory */
	size_t count;
	struct wheel_path *by_path; /* sorted bytewise */
};

/*
 * Open the wheel PATH, whose members are checked.  FILE_NOT_FOUND, IO_ERROR, OUT_OF_MEMORY;
 * INVALID_FORMAT: see zip_read.c; the error names the member.
 */
kpack_error_t wheel_in_open(const char *path, struct wheel_in **out,
			    struct kpackx_error *why);
void wheel_in_close(struct wheel_in *w); /* accepts NULL */
/* As wheel_in_open, for a zeroed W; the caller calls wheel_in_fini even after an error. */
kpack_error_t wheel_in_read(struct wheel_in *w, const struct kp_source *src,
			    struct kpackx_error *why);
void wheel_in_fini(struct wheel_in *w);

/* Find the index of the member PATH; false: it does not exist. */
bool wheel_in_find(const struct wheel_in *w, const char *path, size_t *member);
/* The bytes of a member as they are in the wheel. */
struct kp_source wheel_in_bytes(const struct wheel_in *w, size_t member);

/* A reader of members for one thread.  The wheel outlives it; the caller frees it. */
struct wheel_reader;
struct wheel_reader *wheel_reader_new(const struct wheel_in *w);
void wheel_reader_free(struct wheel_reader *r); /* accepts NULL */

/* Gets the next bytes of a member; an error ends the reading and is returned. */
typedef kpack_error_t wheel_take(void *arg, struct kp_span data,
				 struct kpackx_error *why);
/*
 * Decode a member, piece by piece.  INVALID_FORMAT: it does not decode, has more or fewer
 * bytes than declared, or another CRC; TAKE may already have been called by then.
 */
kpack_error_t wheel_reader_read(struct wheel_reader *r, size_t member, wheel_take *take,
				void *arg, struct kpackx_error *why);
/*
 * Read a member of W into memory, and append a NUL.  The caller frees *TEXT.
 * INVALID_FORMAT: it has more than MAX bytes.
 */
kpack_error_t wheel_in_text(const struct wheel_in *w, size_t member, size_t max,
			    char **text, size_t *size, struct kpackx_error *why);

/* --- metadata.c: headers ----------------------------------------------------------------- */

/* Size limit of METADATA and WHEEL, which are held in memory: real ones have some 100 KB. */
#define METADATA_TEXT_MAX (16 << 20)

struct metadata_header {
	struct kp_span name;
	struct kp_span value; /* without surrounding blanks; with continuation lines */
};

struct metadata_text {
	struct kp_span text; /* borrowed */
	struct metadata_header *headers;
	size_t count, cap;
	size_t headers_end; /* offset of the empty line, or the text's size */
	bool crlf;          /* the first line ends in CR LF */
};

/*
 * Parse TEXT.  INVALID_FORMAT, naming the line: not UTF-8, a NUL, a line that is not a
 * header or has a carriage return inside.  The caller calls metadata_text_fini even after
 * an error.
 */
kpack_error_t metadata_text_parse(struct kp_span text, struct metadata_text *out,
				  struct kpackx_error *why);
void metadata_text_fini(struct metadata_text *m);
/* Find the first header NAME, in any case; false: there is none. */
bool metadata_text_get(const struct metadata_text *m, const char *name,
		       struct kp_span *value);
/* Find the next header NAME from index *AT on, and move *AT past it; *AT begins as 0. */
bool metadata_text_next(const struct metadata_text *m, const char *name, size_t *at,
			struct kp_span *value);
/*
 * Copy the text with HEADERS, lines that end in \n, before the empty line.  The caller frees
 * the copy, which has *SIZE bytes and a NUL behind them.
 */
char *metadata_text_add(const struct metadata_text *m, const char *headers, size_t *size);
/* Copy the text with VALUE in the first header NAME, which is added if there is none. */
char *metadata_text_set(const struct metadata_text *m, const char *name,
			const char *value, size_t *size);

struct dist_info {
	char *dir;                        /* "torch-2.0.dist-info" */
	char *metadata_file, *wheel_file; /* texts of METADATA and WHEEL */
	struct metadata_text metadata, wheel;
	char *name, *version; /* as METADATA spells them */
};

/*
 * Find the only top-level directory *.dist-info: call dist_info_note for each path, with *DIR
 * NULL at first, then dist_info_found.  The caller frees *DIR.  INVALID_FORMAT: there are
 * several, or none.
 */
kpack_error_t dist_info_note(const char *path, char **dir, struct kpackx_error *why);
kpack_error_t dist_info_found(const char *dir, struct kpackx_error *why);

/*
 * Read the .dist-info of W, and compare it with FILE_NAME unless that is NULL.  The caller
 * calls dist_info_fini even after an error.
 * INVALID_FORMAT: not exactly one .dist-info; METADATA or WHEEL missing or malformed; no
 * Name, Version, Wheel-Version or Tag; a Wheel-Version other than 1.x; METADATA
 * contradicts the directory's or the file's name.
 */
kpack_error_t dist_info_read(const struct wheel_in *w, const struct wheel_name *file_name,
			     struct dist_info *out, struct kpackx_error *why);
void dist_info_fini(struct dist_info *info); /* accepts a zeroed one */
/* The file name that METADATA and WHEEL imply.  INVALID_FORMAT, INVALID_ARGUMENT. */
kpack_error_t dist_info_file_name(const struct dist_info *info,
				  char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why);

/* --- record.c ------------------------------------------------------------------------- */

/* Size limit of RECORD, which is held in memory: some 130 bytes per WHEEL_MEMBERS_MAX. */
#define RECORD_SIZE_MAX (256 << 20)

struct record_line {
	const char *path; /* in the text of the record */
	uint64_t size;
	bool has_size;
	enum digest_kind kind;
	uint8_t digest[DIGEST_MAX];
};

struct record {
	char *text;                /* owned */
	struct record_line *lines; /* sorted bytewise by path */
	size_t count, cap;
};

/*
 * Parse RECORD's TEXT, which is copied.  The caller calls record_fini even after an error.
 * INVALID_FORMAT, naming the line: not CSV of three columns; an unknown, weak or malformed
 * hash; a size that is not a number; a path that is not kp_path_ok; the same path twice.
 */
kpack_error_t record_parse(struct kp_span text, struct record *out,
			   struct kpackx_error *why);
/*
 * Read the RECORD of W in its directory DIST_INFO, and compare names and sizes: every file
 * must have one line with a hash and its size, every line must have a file.  The caller calls
 * record_fini even after an error.
 * INVALID_FORMAT: RECORD is missing or wrong; the error names the member.
 */
kpack_error_t record_check(const struct wheel_in *w, const char *dist_info,
			   struct record *out, struct kpackx_error *why);
void record_fini(struct record *r); /* accepts a zeroed one */

/* The line of PATH, or NULL. */
const struct record_line *record_find(const struct record *r, const char *path);
/*
 * Whether PATH in DIST_INFO is RECORD, which cannot have its own hash, or a signature of it,
 * which depends on it.
 */
bool record_is_own(const char *path, const char *dist_info);
/* INVALID_FORMAT: the member PATH is not what RECORD has, which TEXT explains. */
kpack_error_t record_refuse(struct kpackx_error *why, const char *path, const char *text);
/* Write the line of a member; DIGEST is its SHA-256, or NULL for RECORD itself. */
void record_put(FILE *f, const char *path, const uint8_t digest[32], uint64_t size);

/* --- wheel_out.c ----------------------------------------------------------------------- */

struct dos_time {
	uint16_t date, time;
};

/*
 * Convert EPOCH, the text of SOURCE_DATE_EPOCH, to UTC, clamped to zip's range: 1980 to
 * 2107.  NULL or "" gives 1980-01-01.  INVALID_ARGUMENT: it is not a number of seconds.
 */
kpack_error_t dos_time_read(const char *epoch, struct dos_time *out,
			    struct kpackx_error *why);

struct wheel_out_member {
	char *path;
	unsigned mode;
	uint64_t size;
	char *file;                  /* the file with its bytes; or */
	uint8_t *bytes;              /* its bytes; or */
	const struct wheel_in *from; /* the wheel whose MEMBER is copied */
	size_t member;
	struct file_identity identity; /* of FILE */
	uint8_t digest[32];
	/* Set while the wheel is written: */
	bool deflated;
	uint32_t crc;
	uint64_t packed, packed_at; /* size and offset of the deflated bytes */
};

/* A wheel to be written, with the members in the order in which they are added. */
struct wheel_out {
	struct wheel_out_member *members;
	size_t count, cap;
	uint64_t size; /* decoded bytes of all members: the total that progress reaches */
};

struct wheel_out_options {
	const char *dir;  /* the directory of the wheel; it exists */
	const char *name; /* its file name */
	unsigned threads;
	int level; /* of deflate, 0 to 9; 0: store everything */
};

/* Add DIR/NAME with the SIZE bytes of TEXT, which is taken over. */
void wheel_out_add_text(struct wheel_out *o, const char *dir, const char *name,
			char *text, size_t size);
/*
 * Add a member with the bytes of FILE, which must not change until the wheel is written.
 * IO_ERROR, FILE_NOT_FOUND.
 */
kpack_error_t wheel_out_add_file(struct wheel_out *o, const char *path, unsigned mode,
				 const char *file, struct kpackx_error *why);
/*
 * Add a copy of MEMBER of the wheel W, with its compressed bytes and its mode; DIGEST is its
 * SHA-256, which the caller has checked.  W must outlive wheel_out_write.
 */
void wheel_out_add_copy(struct wheel_out *o, const char *path, const struct wheel_in *w,
			size_t member, const uint8_t digest[32]);
void wheel_out_fini(struct wheel_out *o);

/*
 * Write the wheel, whole and flushed, with RECORD as the last member, DIST_INFO/RECORD.  It
 * replaces an existing file.  Members with a suffix of compressed formats (.kpack, .png, ...)
 * are stored.
 * INVALID_ARGUMENT: a path was added twice; SOURCE_DATE_EPOCH is no number.  IO_ERROR: also
 * if a file has changed.
 */
kpack_error_t wheel_out_write(struct wheel_out *o, const struct wheel_out_options *how,
			      const char *dist_info, struct kpackx_error *why);

/* --- unpack.c -------------------------------------------------------------------------- */

struct wheel_unpack {
	const char *dir; /* is made; its contents are never followed or replaced */
	unsigned threads;
	const struct record
		*record; /* as record_check read it; NULL: hashes are not compared */
	/* Gets the SHA-256 of each member by index, even if RECORD has another hash; or NULL. */
	uint8_t (*digests)[32];
};

/*
 * Unpack W.  Files get their permission bits, without setuid and the like; directories are
 * 0777 less umask.  Nothing is flushed.  After a failure the caller removes DIR.
 * INVALID_FORMAT: a member is damaged or does not match RECORD.  IO_ERROR.
 */
kpack_error_t wheel_unpack(const struct wheel_in *w, const struct wheel_unpack *how,
			   struct kpackx_error *why);
/*
 * Make a wheel of the unpacked wheel DIR, in the directory TO, uncompressed and with a new
 * RECORD.  The caller frees *FILE, its path, which is set even after an error.
 * INVALID_FORMAT: not exactly one directory *.dist-info, a symbolic link or special file.
 */
kpack_error_t wheel_pack_directory(const char *dir, const char *to, unsigned threads,
				   char **file, struct kpackx_error *why);

#endif
