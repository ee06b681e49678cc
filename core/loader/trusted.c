/* SPDX-License-Identifier: MIT */
#include "trusted.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

bool kp_is_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* The user that a set-user-ID program became; not the one that started it. */
static bool is_trusted_user(uid_t uid)
{
	return uid == 0 || (uid == geteuid() && uid != getuid());
}

/*
 * Why what ST is of is not trusted; NULL: it is.  Others may write to a sticky directory
 * that is AROUND the file's own: what root has there stays root's.
 */
static const char *fault_of(const struct stat *st, bool around)
{
	if (S_ISLNK(st->st_mode))
		return "a symbolic link";
	if (!is_trusted_user(st->st_uid))
		return "another user's";
	if (around && S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX))
		return NULL;
	/* the group's bit is also the mask of an access control list */
	return st->st_mode & (S_IWGRP | S_IWOTH) ? "others may write to it" : NULL;
}

static kpack_error_t check_one(const char *part, bool around, struct kpackx_error *why)
{
	const char *fault;
	struct stat st;

	if (lstat(part, &st) != 0)
		return kp_fail_errno(why, errno, "cannot open");
	fault = fault_of(&st, around);
	return fault ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "not trusted in a program with more rights than its "
			       "user: %s: %s",
			       part, fault)
		     : KPACK_SUCCESS;
}

/*
 * Check the root, then each directory of the canonical PATH, then PATH: nobody can
 * exchange what was checked.  AROUND: the last directory is not the one that matters.
 */
static kpack_error_t check_all(char *path, bool around, struct kpackx_error *why)
{
	char *last = strrchr(path, '/');

	KP_TRY(check_one("/", around || last != path, why));
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		kpack_error_t err;

		*p = '\0';
		err = check_one(path, around || p != last, why);
		*p = '/';
		KP_TRY(err);
	}
	return check_one(path, false, why);
}

/* Replace *PATH by its canonical form, and check that. */
static kpack_error_t check_path(char **path, bool around, struct kpackx_error *why)
{
	char *real = realpath(*path, NULL);

	if (!real)
		return kp_fail_errno(why, errno, "cannot open");
	free(*path);
	*path = real;
	return check_all(real, around, why);
}

kpack_error_t kp_trusted_file(char **path, struct kpackx_error *why)
{
	return kp_is_secure() ? check_path(path, false, why) : KPACK_SUCCESS;
}

kpack_error_t kp_trusted_binary(const char *binary, char **out, struct kpackx_error *why)
{
	const char *slash = strrchr(binary, '/'), *name = slash ? slash + 1 : binary;
	kpack_error_t err;
	char *dir;

	*out = NULL;
	if (!kp_is_secure()) {
		*out = strdup(binary);
		return *out ? KPACK_SUCCESS
			    : kp_fail_memory(why, strlen(binary), "a path");
	}
	dir = slash ? strndup(binary, (size_t)(slash - binary) + 1) : strdup(".");
	if (!dir)
		return kp_fail_memory(why, strlen(binary), "a path");
	err = check_path(&dir, true, why);
	if (!err && asprintf(out, "%s/%s", dir, name) < 0) {
		*out = NULL;
		err = kp_fail_memory(why, strlen(binary), "a path");
	}
	free(dir);
	return err;
}
