/* SPDX-License-Identifier: MIT */
#include "proc_maps.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/base/mountinfo.h"
#include "core/base/span.h"

#define MAPS "/proc/self/maps"
#define DELETED " (deleted)"
#define NEWLINE "\\012"

struct mapping {
	uint64_t start, end, offset, inode;
	char *name; /* points into the line; "": none */
};

/* Parse a number in BASE that is followed by END. */
static bool take_number(char **at, int base, char end, uint64_t *out)
{
	char *stop;

	*out = strtoull(*at, &stop, base);
	if (stop == *at || *stop != end)
		return false;
	*at = stop + 1;
	return true;
}

static bool skip_word(char **at)
{
	*at += strcspn(*at, " ");
	return *(*at)++ == ' ';
}

/* Parse a line such as "55d0-55d8 r-xp 00002000 fd:01 1234   /usr/lib/libx.so". */
static bool parse_line(char *line, struct mapping *m)
{
	line[strcspn(line, "\n")] = '\0';
	if (!take_number(&line, 16, '-', &m->start) ||
	    !take_number(&line, 16, ' ', &m->end) || !skip_word(&line) ||
	    !take_number(&line, 16, ' ', &m->offset) || !skip_word(&line) ||
	    !take_number(&line, 10, ' ', &m->inode))
		return false;
	m->name = line + strspn(line, " ");
	return true;
}

/* Read lines into *LINE (getline's) until one covers ADDRESS. */
static bool find_line(FILE *maps, uint64_t address, char **line, struct mapping *m)
{
	size_t cap = 0;

	while (getline(line, &cap, maps) > 0)
		if (parse_line(*line, m) && address >= m->start && address < m->end)
			return true;
	return false;
}

/* ---- the name of the file ---- */

static void unescape_newlines(char *name)
{
	char *to = name;

	while (*name) {
		bool newline = strncmp(name, NEWLINE, strlen(NEWLINE)) == 0;

		*to++ = newline ? '\n' : *name;
		name += newline ? strlen(NEWLINE) : 1;
	}
	*to = '\0';
}

static void strip_deleted(char *name)
{
	size_t n = strlen(name), suffix = strlen(DELETED);

	if (n > suffix && strcmp(name + n - suffix, DELETED) == 0)
		name[n - suffix] = '\0';
}

/* The device is not compared, because for overlays and btrfs stat gives another one. */
static bool is_mapped(const char *name, uint64_t inode)
{
	struct stat st;

	return stat(name, &st) == 0 && st.st_ino == inode;
}

/*
 * The ways to read a name in /proc/self/maps; the last one is used for a file that is
 * gone.
 */
static const struct {
	bool escaped, deleted;
} spellings[] = {{false, false}, {true, false}, {false, true}, {true, true}};

static char *spell_name(const struct mapping *m, size_t i)
{
	char *name = strdup(m->name);

	if (name && spellings[i].deleted)
		strip_deleted(name);
	if (name && spellings[i].escaped)
		unescape_newlines(name);
	return name;
}

/*
 * The kernel gives a file of an overlay over another overlay the name that it has below
 * the upper one's mount point.  NULL: NAME is not such a name.
 */
static char *name_in_overlay(const char *name, uint64_t inode)
{
	struct kp_mounts mounts;
	struct kp_mount m;
	char *path = NULL;

	kp_mounts_open(&mounts);
	while (!path && kp_mounts_next(&mounts, &m)) {
		if (strcmp(m.type, "overlay") != 0 ||
		    asprintf(&path, "%s%s", m.path, name) < 0)
			path = NULL;
		else if (!is_mapped(path, inode)) {
			free(path);
			path = NULL;
		}
	}
	kp_mounts_close(&mounts);
	return path;
}

static char *file_name(const struct mapping *m)
{
	size_t n = KP_COUNT(spellings);
	char *name = NULL, *path;

	for (size_t i = 0; i < n; i++) {
		free(name);
		name = spell_name(m, i);
		if (!name || is_mapped(name, m->inode))
			return name;
	}
	path = name_in_overlay(m->name, m->inode);
	if (!path)
		return name;
	free(name);
	return path;
}

kpack_error_t kp_maps_find(const void *address, char **path, uint64_t *offset,
			   struct kpackx_error *why)
{
	FILE *maps = fopen(MAPS, "re");
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t at = (uintptr_t)address;
	char *line = NULL, *name = NULL;
	struct mapping m = {0};

	if (!maps) {
		kp_fail_errno(why, errno, "cannot open");
		return kp_fail_prefix(why, KPACK_ERROR_PATH_DISCOVERY_FAILED, MAPS);
	}
	if (!find_line(maps, at, &line, &m))
		err = kp_fail(why, KPACK_ERROR_PATH_DISCOVERY_FAILED,
			      "nothing is mapped at %p", address);
	else if (m.name[0] != '/')
		err = kp_fail(why, KPACK_ERROR_PATH_DISCOVERY_FAILED,
			      "no file is mapped at %p", address);
	else if (!(name = file_name(&m)))
		err = kp_fail_memory(why, strlen(m.name), "a path");
	free(line);
	fclose(maps);
	if (err)
		return err;
	*path = name;
	*offset = m.offset + (at - m.start);
	return KPACK_SUCCESS;
}
