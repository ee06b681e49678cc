/* SPDX-License-Identifier: MIT */
#include "journal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/text.h"
#include "core/base/path_step.h"

/* Limit of trees: no run makes more. */
#define NAMES_MAX 65536
/* Limit of a journal's size: each name has at most 255 bytes and a NUL. */
#define SIZE_LIMIT ((off_t)(NAMES_MAX * (256 + sizeof(struct identity))))

/* Identifies a directory independently of its name.  The inode number is not enough,
 * because the numbers of removed directories are reused. */
struct identity {
	uint64_t ino;
	int64_t born;
	uint64_t born_ns;
};

static bool identify_directory(int dir, const char *name, struct identity *out)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), status;
	struct statx st;

	if (fd < 0)
		return false;
	status = statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &st);
	close(fd);
	if (status < 0 || !S_ISDIR(st.stx_mode))
		return false;
	*out = (struct identity){.ino = st.stx_ino};
	if (st.stx_mask & STATX_BTIME) {
		out->born = st.stx_btime.tv_sec;
		out->born_ns = st.stx_btime.tv_nsec;
	}
	return true;
}

bool journal_given(const struct journal_name *name, int to)
{
	struct identity there;

	return identify_directory(to, name->name, &there) && there.ino == name->ino &&
	       there.born == name->born && there.born_ns == name->born_ns;
}

/* --- writing ------------------------------------------------------------------------- */

/* Write the number of names; then for each its tree's identity, and the name with NUL. */
static bool put_names(FILE *to, int dir, const char *const *names, size_t n)
{
	uint64_t count = n;
	struct identity id;

	fwrite(&count, sizeof(count), 1, to);
	for (size_t i = 0; i < n; i++) {
		if (!identify_directory(dir, names[i], &id))
			return false;
		fwrite(&id, sizeof(id), 1, to);
		fwrite(names[i], strlen(names[i]) + 1, 1, to);
	}
	return !ferror(to);
}

static FILE *open_in(int dir, int flags, const char *mode)
{
	int fd = openat(dir, JOURNAL_NAME, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

kpack_error_t journal_write(int dir, const char *const *names, size_t n,
			    struct kpackx_error *why)
{
	FILE *to = open_in(dir, O_WRONLY | O_CREAT | O_EXCL, "w");
	bool ok = to && put_names(to, dir, names, n);

	if (to && fclose(to) != 0)
		ok = false;
	return ok ? KPACK_SUCCESS
		  : kp_fail_errno(why, errno, "cannot write the names of the trees");
}

/* --- reading ------------------------------------------------------------------------- */

static bool get_name(FILE *from, struct journal_name *out)
{
	struct identity id;
	size_t room = 0;
	ssize_t n;

	*out = (struct journal_name){0};
	if (fread(&id, sizeof(id), 1, from) != 1)
		return false;
	out->ino = id.ino;
	out->born = id.born;
	out->born_ns = id.born_ns;
	n = getdelim(&out->name, &room, '\0', from);
	return n > 0 && !out->name[n - 1] && kp_component_ok(kp_span_str(out->name));
}

static bool get_names(FILE *from, struct journal *out)
{
	uint64_t count = 0;

	if (fread(&count, sizeof(count), 1, from) != 1 || count > NAMES_MAX)
		return false;
	out->items = calloc(count + 1, sizeof(*out->items));
	while (out->items && out->count < count)
		if (!get_name(from, &out->items[out->count++]))
			return false;
	return out->items != NULL;
}

bool journal_read(struct journal *out, int dir)
{
	FILE *from = open_in(dir, O_RDONLY | O_NONBLOCK, "r");
	struct stat st;
	bool ok;

	*out = (struct journal){0};
	if (!from)
		return false;
	ok = fstat(fileno(from), &st) == 0 && S_ISREG(st.st_mode) &&
	     st.st_uid == geteuid() && st.st_size <= SIZE_LIMIT && get_names(from, out);
	fclose(from);
	if (!ok)
		journal_fini(out);
	return ok;
}

void journal_fini(struct journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		free(journal->items[i].name);
	free(journal->items);
	*journal = (struct journal){0};
}
