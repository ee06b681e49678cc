/* SPDX-License-Identifier: MIT */
#include "packer/pack/mount_places.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * "lib/": directory; "lib/x": kept file; "+lib/x": packed file; "lib/e!": kept empty
 * directory
 */
static void add(struct mounts *m, const char *text)
{
	enum mounts_kind kind = MOUNTS_KEPT;
	char *path = strdup(text + (*text == '+'));
	size_t n = strlen(path);

	assert_non_null(path);
	if (*text == '+')
		kind = MOUNTS_PACKED;
	else if (path[n - 1] == '/')
		kind = MOUNTS_DIRECTORY;
	if (path[n - 1] == '/' || path[n - 1] == '!')
		path[n - 1] = 0;
	mounts_add(m, path, kind);
	free(path);
}

/* PATHS, in both orders, give the command WANT below /o; "": none. */
static void gives(const char *const *paths, const char *prefix, const char *want)
{
	const struct mounts_names names = {"/o", "/o/.kpack", "g", prefix};
	size_t n = 0;

	while (paths[n])
		n++;
	for (int backwards = 0; backwards < 2; backwards++) {
		struct mounts m = {0};
		char *command;

		for (size_t i = 0; i < n; i++)
			add(&m, paths[backwards ? n - 1 - i : i]);
		mounts_decide(&m);
		command = mounts_command(&m, &names);
		assert_string_equal(command ? command : "", want);
		free(command);
		mounts_fini(&m);
	}
}

#define PATHS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(test_nothing)
{
	gives(PATHS("lib/", "lib/a.so", "share/", "share/empty!"), "", "");
	gives((const char *const[]){NULL}, "", "");
}

TEST(test_a_library)
{
	gives(PATHS("lib/", "lib/a.so", "lib/rocblas/", "lib/rocblas/library/",
		    "+lib/rocblas/library/x.dat", "+lib/rocblas/library/gfx90a/y.co",
		    "lib/rocblas/library/gfx90a/"),
	      "",
	      "kpackfs -o subdir=lib/rocblas/library /o/.kpack /o/lib/rocblas/library");
	/* with nothing else in the tree, mounts still go no higher than the libraries */
	gives(PATHS("lib/", "lib/rocblas/", "lib/rocblas/library/", "lib/hipblaslt/",
		    "lib/hipblaslt/library/", "lib/hipblaslt/library/gfx942/",
		    "+lib/rocblas/library/x.dat", "+lib/hipblaslt/library/gfx942/y.dat"),
	      "",
	      "kpackfs -o subdir=lib/hipblaslt/library /o/.kpack "
	      "/o/lib/hipblaslt/library && "
	      "kpackfs -o subdir=lib/rocblas/library /o/.kpack /o/lib/rocblas/library");
}

TEST(test_prefix)
{
	gives(PATHS("lib/", "+lib/a.dat"), "x/y",
	      "kpackfs -o subdir=x/y/lib /o/.kpack /o/lib");
	gives(PATHS("lib/", "lib/other", "+lib/a.dat"), "x/y",
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/lib:/run/kpackfs/g/x/y/lib "
	      "/o/lib");
}

TEST(test_beside_others)
{
	/* the overlay covers the library below it, but not the other tree */
	gives(PATHS("lib/", "lib/a.so", "+lib/ck.so", "lib/rocblas/",
		    "lib/rocblas/library/", "+lib/rocblas/library/x", "share/",
		    "share/miopen/", "share/miopen/db/", "+share/miopen/db/a.kdb"),
	      "",
	      "kpackfs -o subdir=share/miopen/db /o/.kpack /o/share/miopen/db && "
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/lib:/run/kpackfs/g/lib /o/lib");
	/* two overlays */
	gives(PATHS("a/", "a/x", "+a/y", "b/", "b/c/", "b/c/x", "+b/c/y"), "",
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/a:/run/kpackfs/g/a /o/a && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/b/c:/run/kpackfs/g/b/c /o/b/c");
	/* no higher than needed: the other library gets its own mount */
	gives(PATHS("lib/", "lib/a.so", "lib/rocblas/", "lib/rocblas/library/",
		    "+lib/rocblas/library/x", "lib/rocfft/", "+lib/rocfft/a.db",
		    "lib/rocfft/1.0/", "lib/rocfft/1.0/helper"),
	      "",
	      "kpackfs -o subdir=lib/rocblas/library /o/.kpack /o/lib/rocblas/library && "
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/lib/rocfft:"
	      "/run/kpackfs/g/lib/rocfft /o/lib/rocfft");
	/* an overlay below another one is part of it */
	gives(PATHS("lib/", "lib/a.so", "+lib/ck.so", "lib/rocfft/", "+lib/rocfft/a.db",
		    "lib/rocfft/helper"),
	      "",
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/lib:/run/kpackfs/g/lib /o/lib");
	/* an overlay at the root covers everything */
	gives(PATHS("+ck.so", "b/", "b/c", "+b/y", "d/", "+d/x"), "",
	      "mkdir -p /run/kpackfs/g && kpackfs -o subdir=. /o/.kpack /run/kpackfs/g "
	      "&& "
	      "mount -t overlay overlay -o ro,lowerdir=/o:/run/kpackfs/g /o");
	gives(PATHS("+ck.so", "b"), "p",
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o:/run/kpackfs/g/p /o");
}

TEST(test_empty_directories)
{
	/*
	 * a directory that was always empty stays visible; one that lost its files does
	 * not
	 */
	gives(PATHS("l/", "l/empty!", "+l/x"), "",
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o ro,lowerdir=/o/l:/run/kpackfs/g/l /o/l");
	gives(PATHS("l/", "l/lost/", "+l/x"), "", "kpackfs -o subdir=l /o/.kpack /o/l");
	/* directories that look empty lost their files to archives in an earlier run */
	gives(PATHS("l/", "l!", "l/m!", "+l/m/x"), "",
	      "kpackfs -o subdir=l/m /o/.kpack /o/l/m");
}

TEST(test_not_missing)
{
	gives(PATHS("l/", "l/x", "+l/x"), "", "");    /* a copy exists */
	gives(PATHS("l/", "+m/x", "+l/n/x"), "", ""); /* no directory for the file */
}

/*
 * A name that begins like a directory's name sorts between the directory and its
 * contents.
 */
TEST(test_names_alike)
{
	gives(PATHS("a/", "a-b/", "a.c", "+a/x", "+a-b/y"), "",
	      "kpackfs -o subdir=a /o/.kpack /o/a && kpackfs -o subdir=a-b /o/.kpack "
	      "/o/a-b");
}

TEST(test_special_names)
{
	gives(PATHS("l,m/", "+l,m/x"), "", "kpackfs -o 'subdir=l\\,m' /o/.kpack /o/l,m");
	gives(PATHS("a b:c/", "a b:c/o", "+a b:c/x"), "",
	      "mkdir -p /run/kpackfs/g && kpackfs /o/.kpack /run/kpackfs/g && "
	      "mount -t overlay overlay -o 'ro,lowerdir=/o/a b\\:c:"
	      "/run/kpackfs/g/a b\\:c' '/o/a b:c'");
	gives(PATHS("it's/", "+it's/x"), "",
	      "kpackfs -o 'subdir=it'\\''s' /o/.kpack '/o/it'\\''s'");
}
