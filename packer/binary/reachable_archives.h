/* SPDX-License-Identifier: MIT */
/*
 * The archives that markers lead to, each opened once however many binaries name it, and the
 * objects in them, each decoded once.
 */
#ifndef PACKER_BINARY_REACHABLE_ARCHIVES_H
#define PACKER_BINARY_REACHABLE_ARCHIVES_H

#include "core/archive/archive.h"
#include "core/layout/layout.h"
#include "core/binary/marker.h"

struct installed_decoded; /* inside: what decoding an ordinal gave */

/* A file that stands where a search path leads. */
struct installed_archive {
	char *path;
	dev_t dev;
	ino_t ino;
	struct kpack_archive *archive;     /* NULL: cannot be opened */
	struct kpackx_error why;           /* then: the reason */
	bool reached;                      /* by some binary, and not misnamed */
	bool told;                         /* for the caller: it has been reported */
	struct installed_decoded *decoded; /* per ordinal */
};

struct installed {
	struct installed_archive **archives;
	size_t count, cap;
};

/* Also raises this process's limit of open files. */
void installed_init(struct installed *set);
void installed_fini(struct installed *set);

/* One archive as one binary reaches it. */
struct reached {
	struct installed_archive *archive;
	char *arch;    /* what stands in its name for the placeholder; NULL: any */
	bool misnamed; /* ARCH is a processor, and nothing in it is for that */
};

/* All that a binary reaches, in order of its search paths, then of the names. */
struct reach {
	struct reached *items;
	size_t count, cap;
	size_t names; /* that were looked at */
};

/*
 * Add what MARKER's search paths, seen from the file BINARY, lead to: for a path with a
 * placeholder every file that fits.  What does not exist is left out, as the runtime does.
 * OUT_OF_MEMORY; IO_ERROR: a directory cannot be read; INVALID_METADATA: they lead to too
 * many names; errors of kp_search_resolve.
 */
kpack_error_t installed_reach(struct installed *set, const struct kp_marker *marker,
			      const char *binary, struct reach *out,
			      struct kpackx_error *why);

/* Add the archive PATH for every architecture.  A missing one is an error. */
kpack_error_t installed_add(struct installed *set, const char *path, struct reach *out,
			    struct kpackx_error *why);

void reach_fini(struct reach *reach);

/* Can a GPU called ARCH get at this archive? */
bool reached_by(const struct reached *r, const char *arch);

/* Does some archive that ARCH reaches declare it? */
bool reach_has_arch(const struct reach *reach, const char *arch);

/* Does ARCH reach one that cannot be opened, and so may have it? */
bool reach_has_broken(const struct reach *reach, const char *arch);

/* Does any archive that a binary reached declare ARCH? */
bool installed_has_arch(const struct installed *set, const char *arch);

/* What to look for. */
struct wanted_object {
	const char *name; /* kernel_name */
	uint32_t index;
	const char *arch;
	struct kp_span kind;  /* of its bundle entry ID, or "co" */
	const uint8_t *xxh3;  /* its first KP_LAYOUT_HASH bytes; NULL: any */
	const uint64_t *size; /* NULL: any */
};

/* The kind that goes into the key of a layout's image. */
struct kp_span wanted_kind(const struct kp_layout_image *img);

/* What is found; archive NULL: no such key for that architecture. */
struct found_object {
	struct installed_archive *archive;
	size_t entry;
	bool differs; /* another size or hash than wanted: from another build */
};

/*
 * Find it under the keys that the packer gives: NAME#i, and for further objects of one
 * architecture NAME@kind#i, NAME@kind.2#i ... of which the hash decides.
 * OUT_OF_MEMORY, and why an object that has no hash in its metadata cannot be decoded.
 */
kpack_error_t installed_find(const struct reach *reach, const struct wanted_object *want,
			     struct found_object *out, struct kpackx_error *why);

/* Decode an entry, or remember how it went.  HASH, unless NULL, gets its XXH3-128. */
kpack_error_t installed_decode(struct installed_archive *a, size_t entry,
			       uint8_t hash[16], struct kpackx_error *why);

#endif
