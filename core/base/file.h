/* SPDX-License-Identifier: MIT */
/*
 * Files: opening and exact reads for input, atomic creation for output.  Input is read
 * with pread, never mapped: a file that becomes shorter must cause an error, not a
 * SIGBUS.
 */
#ifndef KP_CORE_BASE_FILE_H
#define KP_CORE_BASE_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include "errors.h"
#include "span.h"

/*
 * A bounded run of bytes to read from: a part of a file, or memory.  Borrows the
 * descriptor or the memory.  Reading is thread-safe.
 */
struct kp_source {
	int fd;             /* -1: memory */
	const uint8_t *mem; /* fd == -1: the bytes */
	uint64_t offset;    /* fd != -1: where the run begins in the file */
	uint64_t size;      /* bytes of the run */
	/*
	 * fd != -1: hashes of the bytes [begin, end) of the file, which this run is in: for each
	 * KP_PIECE of them, the last may be shorter, a little-endian XXH3-64.  NULL: none.
	 * Reading never returns bytes that a hash contradicts, and reads whole pieces.
	 */
	const uint8_t *hashes;
	uint64_t begin, end;
};

/* Bytes of a piece. */
enum { KP_PIECE = 64 << 10 };

static inline struct kp_source kp_source_memory(const void *data, size_t size)
{
	return (struct kp_source){.fd = -1, .mem = data, .size = size};
}

static inline struct kp_source kp_source_fd(int fd, uint64_t offset, uint64_t size)
{
	return (struct kp_source){.fd = fd, .offset = offset, .size = size};
}

/* The part [OFF, OFF+LEN) of S; false when it is not inside S. */
bool kp_source_sub(const struct kp_source *s, uint64_t off, uint64_t len,
		   struct kp_source *out);

/*
 * Read exactly LEN bytes at OFF into BUF.
 * INVALID_FORMAT: the bytes are outside the run.
 * IO_ERROR: a system call failed, or the file has become shorter.
 * DECOMPRESSION_FAILED: a piece does not match its hash.
 */
kpack_error_t kp_source_read(const struct kp_source *s, uint64_t off, void *buf,
			     size_t len, struct kpackx_error *why);

/*
 * Read up to ROOM bytes at OFF, fewer at the end of the run, into BUF; HEAD spans the
 * bytes that were read.  OFF is at most the size.  Not compared with hashes: a look at what
 * is to come, which whoever then reads it does not rely on.  Errors as for kp_source_read.
 */
kpack_error_t kp_source_head(const struct kp_source *s, uint64_t off, uint8_t *buf,
			     size_t room, struct kp_span *head, struct kpackx_error *why);

/*
 * The bytes at OFF are about to be read, and then those behind them, in steps: ask the
 * system to read up to 1 MiB ahead, if that has not been done.  Its own read-ahead begins
 * with few bytes, which does not keep a disk or a network busy.  *END is where the next call
 * will go on; it is 0 before the first call.  Does not wait, and reports no errors: reading
 * will.  Not for bytes that are read in one step: the system then reads them in larger pages.
 */
void kp_source_expect(const struct kp_source *s, uint64_t off, uint64_t *end);

/*
 * Read the whole run, WHAT in messages, to the heap; a NUL byte follows it.  The caller
 * frees *OUT, which is NULL after an error.
 * INVALID_FORMAT: it has more than MOST bytes.  Further errors are those of kp_source_read.
 */
kpack_error_t kp_source_load(const struct kp_source *s, uint64_t most, const char *what,
			     uint8_t **out, struct kpackx_error *why);

/* Find out whether both have the same size and bytes. */
kpack_error_t kp_source_compare(const struct kp_source *a, const struct kp_source *b,
				bool *same, struct kpackx_error *why);
/* Whether both have the same size and bytes; false when one cannot be read. */
bool kp_source_same(const struct kp_source *a, const struct kp_source *b);

/* Small reads through a buffer, to walk tables of any length in bounded memory. */
struct kp_window {
	struct kp_source src;
	uint64_t off; /* offset in the run of the buffer's first byte */
	size_t size;  /* bytes in the buffer */
	uint8_t buf[16384];
};

void kp_window_init(struct kp_window *w, const struct kp_source *src);

/*
 * LEN bytes (at most sizeof(buf)) at OFF; they are valid until the next call.
 * Errors as for kp_source_read.
 */
kpack_error_t kp_window_get(struct kp_window *w, uint64_t off, size_t len,
			    const uint8_t **bytes, struct kpackx_error *why);

/*
 * Open PATH for reading (O_CLOEXEC) and return its descriptor, which the caller closes,
 * and its stat.  IO_ERROR also for anything but a regular file; a FIFO does not block.
 */
kpack_error_t kp_file_open(const char *path, int *fd, struct stat *st,
			   struct kpackx_error *why);

/* Return the stat of an open descriptor.  IO_ERROR: it is not a regular file. */
kpack_error_t kp_file_check(int fd, struct stat *st, struct kpackx_error *why);

/* Read exactly LEN bytes with pread, continuing after short reads and EINTR. */
kpack_error_t kp_file_pread(int fd, uint64_t off, void *buf, size_t len,
			    struct kpackx_error *why);

/*
 * Temporary names begin with these and end in random characters: a file (kp_temp_name), a
 * directory that packer/files/staging publishes from, a directory of unpacked wheels.
 */
#define KP_TEMP_FILE ".kpack-"
#define KP_TEMP_STAGING ".kpack-staging-"
#define KP_TEMP_WHEEL ".kpack-split-wheel."

/*
 * Make a new hidden name for an unfinished file; a listing of *.kpack does not show it.
 * false, with errno: the system gives no random bytes.
 */
#define KP_TEMP_NAME_SIZE 32
bool kp_temp_name(char out[KP_TEMP_NAME_SIZE]);
/* Whether kp_temp_name made NAME.  A killed program leaves files with such names. */
bool kp_is_temp_name(const char *name);

/*
 * A file being written, which appears under its name only when it is complete.  If the
 * file system supports O_TMPFILE, the file has no name until then, so that a killed
 * program leaves nothing behind.
 */
struct kp_outfile {
	int fd; /* -1 when closed; readable too */
	int dir_fd;
	char *name;     /* final name inside the directory */
	char *tmp_name; /* temporary name; NULL: none */
	mode_t mode;    /* to be given when it is published; 0: it has its mode */
	char shown[64]; /* the name in messages: escaped, and short */
	/* Set after open: publish without flushing, for files that can be recreated. */
	bool lazy;
	/* Set after open: an existing file is an error and is not replaced. */
	bool keep;
};

/*
 * Begin NAME (one component) in directory DIR.  MODE is the final mode before umask; while
 * the file has a temporary name, only its owner can open it.
 */
kpack_error_t kp_outfile_open(struct kp_outfile *out, const char *dir, const char *name,
			      mode_t mode, struct kpackx_error *why);
/* As kp_outfile_open, in the directory open at DIR_FD, which the file takes over. */
kpack_error_t kp_outfile_open_at(struct kp_outfile *out, int dir_fd, const char *name,
				 mode_t mode, struct kpackx_error *why);

/*
 * Remove the file's temporary name, if it has one: the file can still be written and
 * read, but no longer be published.
 */
void kp_outfile_unname(struct kp_outfile *out);

/* Write all LEN bytes at OFF with pwrite. */
kpack_error_t kp_outfile_pwrite(struct kp_outfile *out, uint64_t off, const void *buf,
				size_t len, struct kpackx_error *why);

/*
 * Copy LEN bytes at FROM_OFF of the descriptor FROM to OFF, inside the kernel if the file
 * systems support that.  IO_ERROR: a system call failed, or FROM is shorter.
 */
kpack_error_t kp_outfile_copy(struct kp_outfile *out, uint64_t off, int from,
			      uint64_t from_off, uint64_t len, struct kpackx_error *why);

/* Bytes of a file that is read which the file that is written has at offset TO. */
struct kp_move {
	uint64_t from, size, to;
};

/* Flush to the disk; the file still has no final name. */
kpack_error_t kp_outfile_sync(struct kp_outfile *out, struct kpackx_error *why);

/*
 * Give the file its name, replacing an existing file, flush the directory, and close.
 * IO_ERROR with EEXIST: the name exists and `keep` is set.
 */
kpack_error_t kp_outfile_publish(struct kp_outfile *out, struct kpackx_error *why);

/* Close; an unpublished file is deleted.  OUT may be zeroed or already closed. */
void kp_outfile_close(struct kp_outfile *out);
/* The same, by which KP_AUTO(kp_outfile) finds it. */
static inline void kp_outfile_fini(struct kp_outfile *out)
{
	kp_outfile_close(out);
}

/*
 * Flush the directory open at FD; if its file system cannot do that, it counts as
 * flushed.  -1: the system call failed, see errno.
 */
int kp_flush_dir(int fd);

/* Close FD, unless it is -1, keeping errno. */
void kp_close_keeping_errno(int fd);

/* A name that leads to a descriptor, also to one of O_PATH. */
enum { KP_FD_NAME_SIZE = 32 };
const char *kp_fd_name(int fd, char out[KP_FD_NAME_SIZE]);

/*
 * Decoded bytes on disk instead of in memory: files without a name, which the file system
 * frees when they are closed.  Nobody else can open them, so they never become shorter,
 * and may be mapped.
 */

/* Runs of fewer bytes are held in memory. */
#define KP_SPILL_MIN (UINT64_C(4) << 20)

/*
 * Let the program spill into the directory open at DIR, which stays open; -1: spill
 * nothing, as initially.  To be called while no other thread decodes.
 */
void kp_spill_into(int dir);

/* Whether SIZE bytes are to be spilled. */
bool kp_spills(uint64_t size);

/* Make a file to spill into; -1: not possible, so the bytes belong into memory. */
int kp_spill_open(void);
/* FD, such a file, to write to; the caller closes it. */
struct kp_outfile kp_spill_outfile(int fd);

/*
 * Give FD, such a file, SIZE bytes for which there is room, before it is mapped: the access
 * to a mapped byte without room ends the program.  0, or errno.
 */
int kp_spill_reserve(int fd, uint64_t size);

#endif
