/* SPDX-License-Identifier: MIT */
/*
 * Files: opening and exact reads for input, atomic creation for output.
 * Input is read with pread, never mapped: a file that becomes shorter must be
 * an error, not a SIGBUS.
 */
#ifndef KP_CORE_BASE_FILE_H
#define KP_CORE_BASE_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include "errors.h"
#include "span.h"

/*
 * A bounded run of bytes to read from: part of a file, or memory.
 * Borrows the descriptor or the memory.  Reading is thread-safe.
 */
struct kp_source {
	int fd;             /* -1: memory */
	const uint8_t *mem; /* fd == -1: the bytes */
	uint64_t offset;    /* fd != -1: where the run begins in the file */
	uint64_t size;      /* bytes of the run */
};

static inline struct kp_source kp_source_memory(const void *data, size_t size)
{
	return (struct kp_source){.fd = -1, .mem = data, .size = size};
}

static inline struct kp_source kp_source_fd(int fd, uint64_t offset, uint64_t size)
{
	return (struct kp_source){.fd = fd, .offset = offset, .size = size};
}

/* The part [OFF, OFF+LEN) of S; false when it is not inside. */
bool kp_source_sub(const struct kp_source *s, uint64_t off, uint64_t len,
		   struct kp_source *out);

/*
 * Read exactly LEN bytes at OFF into BUF.
 * INVALID_FORMAT: outside the run.
 * IO_ERROR: the system refused, or the file is shorter now.
 */
kpack_error_t kp_source_read(const struct kp_source *s, uint64_t off, void *buf,
			     size_t len, struct kpackx_error *why);

/*
 * The bytes at OFF, as many as there are but at most ROOM, into BUF, which HEAD then spans.
 * OFF is at most the size.  Errors as for kp_source_read.
 */
kpack_error_t kp_source_head(const struct kp_source *s, uint64_t off, uint8_t *buf,
			     size_t room, struct kp_span *head, struct kpackx_error *why);

/* Have both the same size and bytes?  What cannot be read has not. */
bool kp_source_same(const struct kp_source *a, const struct kp_source *b);

/* Small reads through a buffer: walks tables of any length in bounded memory. */
struct kp_window {
	struct kp_source src;
	uint64_t off; /* where in the run the buffer stands */
	size_t size;  /* bytes in the buffer */
	uint8_t buf[16384];
};

void kp_window_init(struct kp_window *w, const struct kp_source *src);

/*
 * LEN bytes (at most sizeof(buf)) at OFF; they stay until the next call.
 * Errors as for kp_source_read.
 */
kpack_error_t kp_window_get(struct kp_window *w, uint64_t off, size_t len,
			    const uint8_t **bytes, struct kpackx_error *why);

/*
 * Open PATH for reading (O_CLOEXEC), give its descriptor and stat.
 * Only regular files: anything else is IO_ERROR, and a FIFO does not block.
 */
kpack_error_t kp_file_open(const char *path, int *fd, struct stat *st,
			   struct kpackx_error *why);

/* Give the stat of an open descriptor.  IO_ERROR: it is no regular file. */
kpack_error_t kp_file_check(int fd, struct stat *st, struct kpackx_error *why);

/* pread exactly LEN bytes, continuing after short reads and EINTR. */
kpack_error_t kp_file_pread(int fd, uint64_t off, void *buf, size_t len,
			    struct kpackx_error *why);

/*
 * A fresh hidden name for a file that is not whole yet; it does not look like an archive to
 * anybody who lists *.kpack.  false, with errno: the system gives no random bytes.
 */
#define KP_TEMP_NAME_SIZE 32
bool kp_temp_name(char out[KP_TEMP_NAME_SIZE]);
/* Is NAME such a name?  A run that was killed leaves files with them. */
bool kp_is_temp_name(const char *name);

/*
 * A file being written that appears under its name only when it is whole.
 * Where the file system can, it has no name until then (O_TMPFILE), so that a
 * killed program leaves nothing behind.
 */
struct kp_outfile {
	int fd; /* -1 when closed; readable too */
	int dir_fd;
	char *name;     /* final name inside the directory */
	char *tmp_name; /* temporary name, or NULL while there is none */
	char shown[64]; /* the name in errors: escaped, and short */
	/* Set after open: publish without flushing, for what can be made again. */
	bool lazy;
	/* Set after open: what stands under the name is not replaced, but an error. */
	bool keep;
};

/* Begin NAME (one component) in directory DIR.  MODE is the final mode before umask. */
kpack_error_t kp_outfile_open(struct kp_outfile *out, const char *dir, const char *name,
			      mode_t mode, struct kpackx_error *why);

/*
 * Take its temporary name away, if it needed one: it can be written and read, but not be
 * published any more.
 */
void kp_outfile_unname(struct kp_outfile *out);

/* pwrite all of it. */
kpack_error_t kp_outfile_pwrite(struct kp_outfile *out, uint64_t off, const void *buf,
				size_t len, struct kpackx_error *why);

/*
 * Copy LEN bytes from FROM_OFF of FROM, inside the kernel where the file systems can.
 * IO_ERROR: the system refused, or FROM is shorter.
 */
kpack_error_t kp_outfile_copy(struct kp_outfile *out, uint64_t off, int from,
			      uint64_t from_off, uint64_t len, struct kpackx_error *why);

/* Flush to the disk; the file still has no final name. */
kpack_error_t kp_outfile_sync(struct kp_outfile *out, struct kpackx_error *why);

/*
 * Give it its name, replacing what stood there, flush the directory, close.
 * IO_ERROR with EEXIST: something stood there that is to be kept.
 */
kpack_error_t kp_outfile_publish(struct kp_outfile *out, struct kpackx_error *why);

/* Close; unless published, nothing remains.  Accepts a zeroed or closed one. */
void kp_outfile_close(struct kp_outfile *out);

/*
 * Flush the directory open at FD; one whose file system cannot do that counts as flushed.
 * -1: the system refused, see errno.
 */
int kp_flush_dir(int fd);

/* mkdir -p.  Existing directories are fine. */
kpack_error_t kp_mkdirs(const char *path, mode_t mode, struct kpackx_error *why);

#endif
