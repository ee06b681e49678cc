/* SPDX-License-Identifier: MIT */
/*
 * The archives that markers lead to, each opened once, however many binaries name it; and
 * the objects in them, each decoded once.
 */
#ifndef PACKER_ARCHIVES_REACHABLE_ARCHIVES_H
#define PACKER_ARCHIVES_REACHABLE_ARCHIVES_H

#include "core/archive/archive.h"
#include "core/host/marker.h"
#include "core/restore/recipe.h"
#include "binary.h"

struct installed_decoded; /* internal: the result of decoding an ordinal */

/* A file that a search path leads to. */
struct installed_archive {
	char *path;
	dev_t dev;
	ino_t ino;
	struct kpack_archive *archive;     /* NULL: cannot be opened */
	struct kpackx_error why;           /* if so: the reason */
	bool reached;                      /* by a binary, and not misnamed */
	bool reported;                     /* for the caller: it was reported */
	struct installed_decoded *decoded; /* per ordinal */
};

/* Begins zeroed. */
struct installed {
	struct installed_archive **archives;
	size_t count, cap;
};

void installed_fini(struct installed *set);

/* One archive as one binary reaches it. */
struct reached {
	struct installed_archive *archive;
	char *arch;    /* the part of its name for the placeholder; NULL: any */
	bool misnamed; /* ARCH is a processor, and no entry is for it */
};

/* All archives that a binary reaches, in order of its search paths, then of the names. */
struct reach {
	struct reached *items;
	size_t count, cap;
	size_t names; /* number of directory entries that were read */
};

/*
 * Add the archives that MARKER's search paths lead to from the file BINARY.  A path with
 * a placeholder leads to every file whose name matches.  Like the runtime, skip files
 * that do not exist.  IO_ERROR: a directory cannot be read, or root does not go where a
 * path leads (below.h); INVALID_METADATA: the paths lead to too many names; errors of
 * kp_search_resolve.
 */
kpack_error_t installed_reach(struct installed *set, const struct kp_marker *marker,
			      const char *binary, struct reach *out,
			      struct kpackx_error *why);

/* Add the archive PATH for every architecture.  A missing one is an error. */
kpack_error_t installed_add(struct installed *set, const char *path, struct reach *out,
			    struct kpackx_error *why);

void reach_fini(struct reach *reach);

/* Whether ARCH reaches an archive that cannot be opened, and so might have ARCH. */
bool reach_has_broken(const struct reach *reach, const char *arch);

/* Whether any archive that a binary reached declares ARCH. */
bool installed_has_arch(const struct installed *set, const char *arch);

/* An object to find. */
struct wanted_object {
	const char *name; /* kernel_name */
	uint32_t index;
	const char *arch;
	struct kp_span kind;  /* kind of its bundle entry ID, or "co" */
	const uint8_t *xxh3;  /* its first KP_RECIPE_HASH bytes; NULL: any */
	const uint64_t *size; /* NULL: any */
};

/* The kind for the key of a layout's image. */
struct kp_span wanted_kind(const struct kp_recipe_image *img);

/* The object that was found; archive NULL: no such key for that architecture. */
struct found_object {
	struct installed_archive *archive;
	size_t entry;
	bool differs; /* size or hash is not the wanted one: it is from another build */
};

/*
 * Find an object under the keys that the packer gives: NAME#i, and for further objects of
 * one architecture NAME@kind#i, NAME@kind.2#i ...; the hash decides among them.  An
 * object without a stored hash that cannot be decoded counts as found.
 */
void installed_find(const struct reach *reach, const struct wanted_object *want,
		    struct found_object *out);

/* Decode an entry, or recall the result.  HASH, unless NULL, gets its XXH3-128. */
kpack_error_t installed_decode(struct installed_archive *a, size_t entry,
			       uint8_t hash[16], struct kpackx_error *why);

/* Whether the bytes of an entry were decoded, successfully or not. */
bool installed_was_decoded(const struct installed_archive *a, size_t entry);

/*
 * The architectures that a converted binary was built for: those of its layout, and those
 * for which its archives have an object of it, which other builds may have added; and
 * which of them are installed for it.
 */
struct built_arches {
	const char **items; /* sorted; strings belong to the layout or the archives */
	size_t count;
	bool *installed; /* per item */
	bool *in_layout; /* per item */
};

/*
 * Find the architectures of B, which reaches the archives in REACH.  The caller passes A
 * as zeros, and must finish it in any case.
 */
void built_arches_find(const struct binary *b, const struct reach *reach,
		       struct built_arches *a);
void built_arches_fini(struct built_arches *a);

/* The number of ARCH among the items; false: it is none of them. */
bool built_arches_number(const struct built_arches *a, const char *arch, size_t *number);

#endif
