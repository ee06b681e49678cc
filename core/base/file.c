/* SPDX-License-Identifier: MIT */
/*
 * Input is a bounded run of a file or of memory.  A run of an archive with hashes of its pieces
 * is read by whole pieces, and never gives away bytes that a hash contradicts.
 *
 * Output is a file that gets its name when it is whole.  Until then it is one of two:
 *
 *	without a name    (O_TMPFILE) it ends with its descriptor, however the program ends.  A name
 *	                  that is free is given by linkat; to replace a file it first gets a
 *	                  temporary name, because linkat never replaces.
 *	temporary name    where the file system has no O_TMPFILE, or /proc is missing, through which
 *	                  linkat finds the descriptor.  Only its owner can open it, and a killed program
 *	                  leaves it behind; kp_is_temp_name knows such names.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>
#include "alloc.h"
#include "hash.h"
#include "text.h"

/* Bytes to be read ahead; a run of FEW bytes is read in one step. */
static const uint64_t AHEAD = 1 << 20, FEW = 64 << 10;

/* Names to try; if all exist, somebody creates them on purpose. */
#define TMP_NAME_TRIES 100

bool kp_source_sub(const struct kp_source *s, uint64_t off, uint64_t len,
		   struct kp_source *out)
{
	if (!kp_range_ok(s->size, off, len))
		return false;
	*out = *s;
	out->size = len;
	if (s->fd >= 0)
		out->offset += off;
	else if (s->mem)
		out->mem += off;
	return true;
}

/* Piece number K has the SIZE bytes at BYTES: compare them with its hash. */
static kpack_error_t check_piece(const struct kp_source *s, uint64_t k,
				 const uint8_t *bytes, uint64_t size,
				 struct kpackx_error *why)
{
	uint64_t at = s->begin + k * KP_PIECE;

	if (kp_hash64(bytes, (size_t)size, 0) == kp_le64(s->hashes + 8 * k))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "the file's bytes %llu to %llu do not match their hash: damaged",
		       (unsigned long long)at, (unsigned long long)(at + size - 1));
}

/* As kp_source_read, but hashes are not looked at. */
static kpack_error_t read_unchecked(const struct kp_source *s, uint64_t off, void *buf,
				    size_t len, struct kpackx_error *why)
{
	if (!kp_range_ok(s->size, off, len))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "read of %zu bytes at offset %llu passes the end at %llu",
			       len, (unsigned long long)off, (unsigned long long)s->size);
	if (s->fd >= 0 && s->offset > UINT64_MAX - off)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "offset %llu + %llu does not fit into 64 bits",
			       (unsigned long long)s->offset, (unsigned long long)off);
	if (s->fd >= 0)
		return kp_file_pread(s->fd, s->offset + off, buf, len, why);
	if (len) /* the memory of an empty run may be NULL */
		memcpy(buf, s->mem + off, len);
	return KPACK_SUCCESS;
}

/*
 * Pieces that are wanted whole are read where they are wanted, with one call; the others by way of
 * PART, since a hash is that of a whole piece.
 */
kpack_error_t kp_source_read(const struct kp_source *s, uint64_t off, void *buf,
			     size_t len, struct kpackx_error *why)
{
	uint64_t from = s->offset + off, to = from + len; /* in the file */
	KP_AUTO_FREE uint8_t *part = NULL;
	uint8_t *out = buf;

	if (!s->hashes || !kp_range_ok(s->size, off, len))
		return read_unchecked(s, off, buf, len, why);
	while (from < to) {
		uint64_t k = (from - s->begin) / KP_PIECE, at = s->begin + k * KP_PIECE;
		uint64_t size = s->end - at < KP_PIECE ? s->end - at : KP_PIECE, n;

		if (at == from && size <= to - from) {
			n = to == s->end ? to - from : (to - from) / KP_PIECE * KP_PIECE;
			KP_TRY(kp_file_pread(s->fd, from, out, (size_t)n, why));
			for (uint64_t done = 0; done < n; done += size, k++) {
				size = n - done < KP_PIECE ? n - done : KP_PIECE;
				KP_TRY(check_piece(s, k, out + done, size, why));
			}
		} else {
			if (!part)
				part = malloc(KP_PIECE);
			if (!part)
				return kp_fail_memory(why, KP_PIECE, "reading");
			n = at + size < to ? at + size - from : to - from;
			KP_TRY(kp_file_pread(s->fd, at, part, (size_t)size, why));
			KP_TRY(check_piece(s, k, part, size, why));
			memcpy(out, part + (from - at), (size_t)n);
		}
		from += n;
		out += n;
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_source_head(const struct kp_source *s, uint64_t off, uint8_t *buf,
			     size_t room, struct kp_span *head, struct kpackx_error *why)
{
	uint64_t left = off < s->size ? s->size - off : 0;

	*head = (struct kp_span){buf, left < room ? (size_t)left : room};
	return read_unchecked(s, off, buf, head->size, why);
}

void kp_source_expect(const struct kp_source *s, uint64_t off, uint64_t *end)
{
	uint64_t from = *end > off ? *end : off, left;

	/* half of what was asked for is still to come: asking for small steps costs more */
	if (s->fd < 0 || s->size <= FEW || from >= s->size || from - off > AHEAD / 2)
		return;
	left = s->size - from;
	*end = from + (left < AHEAD ? left : AHEAD);
	if (s->offset <= INT64_MAX - *end)
		posix_fadvise(s->fd, (off_t)(s->offset + from), (off_t)(*end - from),
			      POSIX_FADV_WILLNEED);
}

kpack_error_t kp_source_load(const struct kp_source *s, uint64_t most, const char *what,
			     uint8_t **out, struct kpackx_error *why)
{
	kpack_error_t err;

	*out = NULL;
	if (s->size > most)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %llu bytes, at most %llu", what,
			       (unsigned long long)s->size, (unsigned long long)most);
	/* where a pointer has 32 bits, a file can be larger than memory */
	if (s->size < SIZE_MAX)
		*out = malloc((size_t)s->size + 1);
	if (!*out)
		return kp_fail_memory(why, s->size, what);
	(*out)[s->size] = '\0';
	err = kp_source_read(s, 0, *out, (size_t)s->size, why);
	if (err) {
		free(*out);
		*out = NULL;
	}
	return err;
}

kpack_error_t kp_source_compare(const struct kp_source *a, const struct kp_source *b,
				bool *same, struct kpackx_error *why)
{
	uint8_t x[16384], y[sizeof(x)];
	size_t n = sizeof(x);

	*same = a->size == b->size;
	for (uint64_t off = 0; *same && off < a->size; off += n) {
		if (n > a->size - off)
			n = (size_t)(a->size - off);
		KP_TRY(kp_source_read(a, off, x, n, why));
		KP_TRY(kp_source_read(b, off, y, n, why));
		*same = memcmp(x, y, n) == 0;
	}
	return KPACK_SUCCESS;
}

bool kp_source_same(const struct kp_source *a, const struct kp_source *b)
{
	bool same;

	return !kp_source_compare(a, b, &same, NULL) && same;
}

void kp_window_init(struct kp_window *w, const struct kp_source *src)
{
	w->src = *src;
	w->off = 0;
	w->size = 0;
}

kpack_error_t kp_window_get(struct kp_window *w, uint64_t off, size_t len,
			    const uint8_t **bytes, struct kpackx_error *why)
{
	size_t want = sizeof(w->buf);

	if (off < w->off || !kp_range_ok(w->size, off - w->off, len)) {
		if (off < w->src.size && w->src.size - off < want)
			want = (size_t)(w->src.size - off);
		w->size = 0;
		/* the run ends before LEN bytes: let kp_source_read report it */
		KP_TRY(kp_source_read(&w->src, off, w->buf, want < len ? len : want,
				      why));
		w->off = off;
		w->size = want;
	}
	*bytes = w->buf + (off - w->off);
	return KPACK_SUCCESS;
}

kpack_error_t kp_file_check(int fd, struct stat *st, struct kpackx_error *why)
{
	if (fstat(fd, st))
		return kp_fail_errno(why, errno, "cannot stat");
	if (S_ISREG(st->st_mode))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "is a %s, not a regular file",
		       S_ISDIR(st->st_mode)    ? "directory"
		       : S_ISFIFO(st->st_mode) ? "FIFO"
		       : S_ISSOCK(st->st_mode) ? "socket"
					       : "device");
}

kpack_error_t kp_file_open(const char *path, int *fd, struct stat *st,
			   struct kpackx_error *why)
{
	kpack_error_t err;
	int opened;

	/* O_NONBLOCK: opening a FIFO must not block before its type is known */
	do
		opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	while (opened < 0 && errno == EINTR); /* opening on a slow mount */
	if (opened < 0)
		return kp_fail_errno(why, errno, "cannot open");
	err = kp_file_check(opened, st, why);
	if (err)
		close(opened);
	else
		*fd = opened;
	return err;
}

kpack_error_t kp_file_pread(int fd, uint64_t off, void *buf, size_t len,
			    struct kpackx_error *why)
{
	uint8_t *to = buf;
	size_t done = 0;

	if (!kp_range_ok(INT64_MAX, off, len))
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "read of %zu bytes at offset %llu: no file is that long",
			       len, (unsigned long long)off);
	while (done < len) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kp_fail_errno(why, errno,
					     "read of %zu bytes at offset %llu", len,
					     (unsigned long long)off);
		if (n == 0)
			return kp_fail(
				why, KPACK_ERROR_IO_ERROR,
				"read of %zu bytes at offset %llu: the file ends at %llu",
				len, (unsigned long long)off,
				(unsigned long long)(off + done));
		done += (size_t)n;
	}
	return KPACK_SUCCESS;
}

/* --- temporary names -------------------------------------------------------------------- */

static const char TEMP_BEGIN[] = KP_TEMP_FILE, TEMP_END[] = ".tmp";
enum { TEMP_DIGITS = 16 };

bool kp_temp_name(char out[KP_TEMP_NAME_SIZE])
{
	unsigned long long random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	snprintf(out, KP_TEMP_NAME_SIZE, "%s%0*llx%s", TEMP_BEGIN, TEMP_DIGITS, random,
		 TEMP_END);
	return true;
}

bool kp_is_temp_name(const char *name)
{
	size_t begin = strlen(TEMP_BEGIN);

	return strncmp(name, TEMP_BEGIN, begin) == 0 &&
	       strspn(name + begin, "0123456789abcdef") == TEMP_DIGITS &&
	       strcmp(name + begin + TEMP_DIGITS, TEMP_END) == 0;
}

/*
 * Give OUT a temporary name: link its nameless file, or create a file.  0, or -1 and errno; OUT
 * has no temporary name then, because a file under that name is not ours.
 */
static int take_temp_name(struct kp_outfile *out)
{
	char *name = malloc(KP_TEMP_NAME_SIZE), proc[KP_FD_NAME_SIZE];
	int status = -1;

	for (int i = 0; name && i < TMP_NAME_TRIES && status < 0 && kp_temp_name(name);
	     i++) {
		if (out->fd >= 0)
			status = linkat(AT_FDCWD, kp_fd_name(out->fd, proc), out->dir_fd,
					name, AT_SYMLINK_FOLLOW);
		else
			status = out->fd = openat(
				out->dir_fd, name,
				O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (status < 0 && errno != EEXIST)
			break;
	}
	if (status >= 0)
		out->tmp_name = name;
	else
		free(name);
	return status < 0 ? -1 : 0;
}

/* --- files that appear when they are complete ---------------------------------------------- */

/*
 * Whether a file NAME exists, of whatever kind.  Sends no request to a file system that is
 * mounted on it.
 */
static bool has_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

kpack_error_t kp_outfile_open_at(struct kp_outfile *out, int dir_fd, const char *name,
				 mode_t mode, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	char proc[KP_FD_NAME_SIZE];

	*out = (struct kp_outfile){.fd = -1, .dir_fd = dir_fd};
	kp_text_escape(kp_span_str(name), out->shown, sizeof(out->shown));
	out->name = strdup(name);
	if (!out->name)
		err = kp_fail_memory(why, strlen(name) + 1, "a file name");
	else if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "\"%s\" is not the name of a file", out->shown);
	/* a nameless file would fail only when it is published */
	else if (!has_file(dir_fd, name) && errno == ENAMETOOLONG)
		err = kp_fail_errno(why, errno, "%s: cannot create", out->shown);
	else
		out->fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	/* /proc gives the name later: AT_EMPTY_PATH would need a capability */
	if (out->fd >= 0 && access(kp_fd_name(out->fd, proc), F_OK) < 0) {
		close(out->fd);
		out->fd = -1;
	}
	if (!err && out->fd < 0) {
		out->mode = mode == 0600 ? 0 : mode;
		if (take_temp_name(out) < 0)
			err = kp_fail_errno(why, errno, "%s: cannot create", out->shown);
	}
	if (err)
		kp_outfile_close(out);
	return err;
}

kpack_error_t kp_outfile_open(struct kp_outfile *out, const char *dir, const char *name,
			      mode_t mode, struct kpackx_error *why)
{
	int dir_fd;

	*out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return kp_fail_errno(
			why, errno, "%s: cannot open the directory",
			kp_text_escape(kp_span_str(dir), out->shown, sizeof(out->shown)));
	return kp_outfile_open_at(out, dir_fd, name, mode, why);
}

void kp_outfile_unname(struct kp_outfile *out)
{
	if (out->tmp_name)
		unlinkat(out->dir_fd, out->tmp_name, 0);
	free(out->tmp_name);
	out->tmp_name = NULL;
}

kpack_error_t kp_outfile_pwrite(struct kp_outfile *out, uint64_t off, const void *buf,
				size_t len, struct kpackx_error *why)
{
	const uint8_t *from = buf;
	size_t done = 0;

	if (!kp_range_ok(INT64_MAX, off, len))
		return kp_fail(
			why, KPACK_ERROR_IO_ERROR,
			"%s: write of %zu bytes at offset %llu: no file is that long",
			out->shown, len, (unsigned long long)off);
	while (done < len) {
		ssize_t n = pwrite(out->fd, from + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return kp_fail_errno(why, n ? errno : EIO,
					     "%s: write of %zu bytes at offset %llu",
					     out->shown, len, (unsigned long long)off);
		done += (size_t)n;
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_outfile_copy(struct kp_outfile *out, uint64_t off, int from,
			      uint64_t from_off, uint64_t len, struct kpackx_error *why)
{
	const size_t piece = 1 << 20;
	KP_AUTO_FREE uint8_t *buf = NULL;
	off_t in = (off_t)from_off, to = (off_t)off;

	if (!kp_range_ok(INT64_MAX, from_off, len) || !kp_range_ok(INT64_MAX, off, len))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: no file is that long",
			       out->shown);
	while (len) {
		ssize_t n = copy_file_range(from, &in, out->fd, &to, len, 0);

		if (n > 0)
			len -= (uint64_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	/* through memory: different file systems, an old kernel, or FROM is shorter */
	if (len && !(buf = malloc(piece)))
		return kp_fail_memory(why, piece, "copying");
	for (size_t n; len; len -= n, in += (off_t)n, to += (off_t)n) {
		n = len < piece ? (size_t)len : piece;
		KP_TRY(kp_file_pread(from, (uint64_t)in, buf, n, why));
		KP_TRY(kp_outfile_pwrite(out, (uint64_t)to, buf, n, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_outfile_sync(struct kp_outfile *out, struct kpackx_error *why)
{
	if (fsync(out->fd))
		return kp_fail_errno(why, errno, "%s: cannot flush", out->shown);
	return KPACK_SUCCESS;
}

/* Give the file its name, where nothing has it: linkat never replaces.  0, or -1 and errno. */
static int give_free_name(const struct kp_outfile *out)
{
	char proc[KP_FD_NAME_SIZE];

	if (!out->tmp_name)
		return linkat(AT_FDCWD, kp_fd_name(out->fd, proc), out->dir_fd, out->name,
			      AT_SYMLINK_FOLLOW);
	if (renameat2(out->dir_fd, out->tmp_name, out->dir_fd, out->name,
		      RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* the file system lacks RENAME_NOREPLACE: check first */
	if (has_file(out->dir_fd, out->name)) {
		errno = EEXIST;
		return -1;
	}
	if (errno != ENOENT) /* there may be one */
		return -1;
	return renameat(out->dir_fd, out->tmp_name, out->dir_fd, out->name);
}

int kp_flush_dir(int fd)
{
	/* a file system that cannot flush a directory reports EINVAL */
	return fsync(fd) && errno != EINVAL ? -1 : 0;
}

/* The process's umask, which only /proc shows without changing it; 077: not known. */
static mode_t current_umask(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *line = NULL;

	if (fd >= 0)
		close(fd);
	if (size > 0) {
		text[size] = '\0';
		line = strstr(text, "\nUmask:"); /* since Linux 4.7 */
	}
	return line ? (mode_t)strtoul(line + 7, NULL, 8) & 0777 : 077;
}

kpack_error_t kp_outfile_publish(struct kp_outfile *out, struct kpackx_error *why)
{
	if (out->mode && fchmod(out->fd, out->mode & ~current_umask()))
		return kp_fail_errno(why, errno, "%s: cannot set its permissions",
				     out->shown);
	/* with luck the name is free, and needs no temporary one before */
	if (out->lazy && !out->tmp_name && give_free_name(out) == 0) {
		kp_outfile_close(out);
		return KPACK_SUCCESS;
	}
	/*
	 * First the bytes, then the name, then the directory: after a crash the name is of the old
	 * file or of the whole new one, never of an empty one.
	 */
	if (!out->lazy)
		KP_TRY(kp_outfile_sync(out, why));
	if (out->keep) {
		if (give_free_name(out) < 0)
			return kp_fail_errno(why, errno, "%s: cannot give it its name",
					     out->shown);
	} else {
		if (!out->tmp_name && take_temp_name(out) < 0)
			return kp_fail_errno(why, errno,
					     "%s: cannot name the finished file",
					     out->shown);
		if (renameat(out->dir_fd, out->tmp_name, out->dir_fd, out->name))
			return kp_fail_errno(why, errno, "%s: cannot rename into place",
					     out->shown);
	}
	free(out->tmp_name);
	out->tmp_name = NULL;
	if (!out->lazy && kp_flush_dir(out->dir_fd))
		return kp_fail_errno(why, errno, "%s: cannot flush its directory",
				     out->shown);
	kp_outfile_close(out);
	return KPACK_SUCCESS;
}

void kp_outfile_close(struct kp_outfile *out)
{
	/* OUT is zeroed: its descriptors 0 are not ours */
	if (!out->name && out->fd <= 0 && out->dir_fd <= 0)
		return;
	kp_outfile_unname(out);
	if (out->fd >= 0)
		close(out->fd);
	if (out->dir_fd >= 0)
		close(out->dir_fd);
	free(out->name);
	*out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
}

void kp_close_keeping_errno(int fd)
{
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
}

const char *kp_fd_name(int fd, char out[KP_FD_NAME_SIZE])
{
	snprintf(out, KP_FD_NAME_SIZE, "/proc/self/fd/%d", fd);
	return out;
}

/* --- decoded bytes on disk ------------------------------------------------------------------ */

static int spill_directory = -1;

void kp_spill_into(int dir)
{
	spill_directory = dir;
}

bool kp_spills(uint64_t size)
{
	return spill_directory >= 0 && size >= KP_SPILL_MIN;
}

int kp_spill_open(void)
{
	return openat(spill_directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

struct kp_outfile kp_spill_outfile(int fd)
{
	return (struct kp_outfile){.fd = fd, .dir_fd = -1, .shown = "temporary file"};
}

int kp_spill_reserve(int fd, uint64_t size)
{
	int error;

	/* a signal may interrupt it */
	do
		error = posix_fallocate(fd, 0, (off_t)size);
	while (error == EINTR);
	return error;
}
