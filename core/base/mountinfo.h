/* SPDX-License-Identifier: MIT */
/* The kernel's lists of mounts and of open files: /proc/self/mountinfo and fdinfo. */
#ifndef KP_CORE_BASE_MOUNTINFO_H
#define KP_CORE_BASE_MOUNTINFO_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* A mount.  Its texts are in the line that it was taken from. */
struct kp_mount {
	long id;
	dev_t device;
	const char *root;    /* the directory of the file system that is mounted */
	const char *path;    /* where it is mounted */
	const char *type;    /* "fuse.kpackfs" */
	const char *source;  /* with the kernel's escapes */
	const char *options; /* of the file system, as "rw,user_id=0,group_id=0" */
};

/*
 * Take LINE, which is changed, apart: "ID PARENT MAJOR:MINOR ROOT PATH OPTIONS [TAG]... -
 * TYPE SOURCE OPTIONS".  false: it has another form.
 */
bool kp_mount_parse(char *line, struct kp_mount *out);

/*
 * Find the user that mounted M, a mount of FUSE, in its options.  false: M is none,
 * or its user is not stated.
 */
bool kp_mount_fuse_user(const struct kp_mount *m, uid_t *user);

/* The source of overlays that kpackfs mounts, in the table of mounts. */
#define KP_OVERLAY_SOURCE "kpackfs"
/* Whether kpackfs has mounted M: a mount of its own, or an overlay. */
bool kp_mount_is_kpackfs(const struct kp_mount *m);

/* The table while it is read. */
struct kp_mounts {
	FILE *file; /* NULL: closed */
	char *line;
	size_t room;
};

/* Open the table of this process; false, with errno: it cannot be opened. */
bool kp_mounts_open(struct kp_mounts *out);
/*
 * Take the next mount, which is valid until the next call.  false: there are no more, as
 * for a closed table, or, if the file is not at its end, they cannot be read.
 */
bool kp_mounts_next(struct kp_mounts *mounts, struct kp_mount *out);
void kp_mounts_close(struct kp_mounts *mounts);

/* The number after KEY, as "mnt_id:", that the kernel states of the open file FD, or -1. */
long kp_fd_info(int fd, const char *key);

#endif
