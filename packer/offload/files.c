/* SPDX-License-Identifier: MIT */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/path.h"
#include "packer/cli/tmpdir.h"
#include "packer/cli/xalloc.h"
#include "core/base/bounds.h"

/* The first size of a pipe's buffer in bytes; it doubles when it is full. */
#define STREAM_FIRST 65536

static bool is_dash(const char *path)
{
	return strcmp(path, "-") == 0;
}

/*
 * Set WHY to errno's text alone, as LLVM's tools print it; but what LLVM's tools would do
 * has words of its own.
 */
static kpack_error_t fail_system(struct kpackx_error *why, int sys_errno)
{
	kpack_error_t code;

	if (sys_errno == ELOOP && geteuid() == 0) {
		errno = sys_errno;
		return below_fail(why, "cannot open");
	}
	code = kp_fail_errno(why, sys_errno, "file");
	if (why)
		snprintf(why->text, sizeof(why->text), "%s", strerror(sys_errno));
	return code;
}

/* ---- inputs ---- */

static kpack_error_t read_stream(struct bundler_input *in, int fd,
				 struct kpackx_error *why)
{
	uint64_t size = 0, room = 0;
	ssize_t n = 1;

	while (n != 0) {
		if (size == room) {
			void *grown;

			room = room ? 2 * room : STREAM_FIRST;
			grown = room > KP_OBJECT_MAX ? NULL : realloc(in->heap, room);
			if (!grown)
				return kp_fail_memory(why, room, "an input");
			in->heap = grown;
		}
		n = read(fd, (uint8_t *)in->heap + size, (size_t)(room - size));
		if (n < 0 && errno != EINTR)
			return fail_system(why, errno);
		size += n > 0 ? (uint64_t)n : 0;
	}
	in->src = kp_source_memory(in->heap, (size_t)size);
	return KPACK_SUCCESS;
}

/* Open what T leads to; a pipe waits for its writer. */
static kpack_error_t open_target(struct bundler_input *in, const struct below_target *t,
				 struct kpackx_error *why)
{
	struct stat st;

	if (t->fd < 0)
		return fail_system(why, ENOENT);
	if (S_ISDIR(t->st.st_mode))
		return fail_system(why, EISDIR);
	if (!S_ISREG(t->st.st_mode) && !below_target_trusted(t))
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "is not read, because another user may have put it there");
	do
		in->fd = below_target_reopen(t, O_RDONLY);
	while (in->fd < 0 && errno == EINTR);
	if (in->fd < 0 || fstat(in->fd, &st))
		return fail_system(why, errno);
	in->regular = S_ISREG(st.st_mode);
	if (!in->regular)
		return read_stream(in, in->fd, why);
	in->src = kp_source_fd(in->fd, 0, (uint64_t)st.st_size);
	return KPACK_SUCCESS;
}

static kpack_error_t open_named(struct bundler_input *in, const char *path,
				struct kpackx_error *why)
{
	struct below_target t;
	kpack_error_t err;

	if (below_target_open(&t, path) < 0)
		return fail_system(why, errno);
	err = open_target(in, &t, why);
	below_target_close(&t);
	return err;
}

kpack_error_t bundler_input_open(struct bundler_input *in, const char *path,
				 struct kpackx_error *why)
{
	kpack_error_t err;

	*in = (struct bundler_input){.fd = -1};
	err = is_dash(path) ? read_stream(in, STDIN_FILENO, why)
			    : open_named(in, path, why);
	if (err)
		bundler_input_close(in);
	return err;
}

void bundler_input_close(struct bundler_input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	free(in->heap);
	*in = (struct bundler_input){.fd = -1};
}

/* Open only a regular file: NAME comes from ARCHIVE, which may name a device. */
static kpack_error_t open_beside_archive(struct bundler_input *in, const char *archive,
					 const char *name, struct kpackx_error *why)
{
	int dir = name[0] != '/' ? (int)(kp_path_name(archive) - archive) : 0;
	struct stat st;
	kpack_error_t err;
	char *path = xasprintf("%.*s%s", dir, archive, name);

	*in = (struct bundler_input){.fd = -1, .regular = true};
	err = below_file_open(path, &in->fd, &st, why);
	if (!err)
		in->src = kp_source_fd(in->fd, 0, (uint64_t)st.st_size);
	free(path);
	return err;
}

kpack_error_t bundler_member_open(struct bundler_input *in, const struct kp_ar *ar,
				  size_t number, const struct kp_source *src,
				  const char *path, struct kpackx_error *why)
{
	const struct kp_ar_member *m = &ar->items[number];

	if (ar->thin)
		return open_beside_archive(in, path, m->name, why);
	*in = (struct bundler_input){.fd = -1};
	if (!kp_source_sub(src, m->offset, m->size, &in->src))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the member passes the end");
	return KPACK_SUCCESS;
}

/* ---- outputs ---- */

struct bundler_outputs bundler_outputs_new(size_t n)
{
	return (struct bundler_outputs){
		.items = xcalloc(n, sizeof(struct bundler_output))};
}

/*
 * Write OUT to memory first; publishing copies it to its path when all outputs are
 * complete.
 */
static kpack_error_t open_in_place(struct bundler_output *out, struct kpackx_error *why)
{
	out->in_place = true;
	out->file = (struct kp_outfile){.fd = memfd_create("output", MFD_CLOEXEC),
					.dir_fd = -1};
	return out->file.fd < 0 ? fail_system(why, errno) : KPACK_SUCCESS;
}

/* Open OUT to replace the file at its path; for a symbolic link, the file it leads to. */
static kpack_error_t open_file(struct bundler_output *out, struct kpackx_error *why)
{
	kpack_error_t err = below_target_outfile(&out->to, &out->file, 0666, why);

	out->file.lazy = true;
	if (err && why && why->sys_errno)
		return fail_system(why, why->sys_errno);
	return err;
}

/*
 * Whether the file must not be replaced by a new one: it has more names, or is not ours.
 */
static bool must_stay(const struct below_target *t)
{
	const struct stat *st = &t->st;

	return !S_ISREG(st->st_mode) || t->is_open || st->st_nlink > 1 ||
	       st->st_uid != geteuid() || st->st_gid != getegid();
}

/*
 * Open OUT, a file that exists and that another user may have put there: root does not
 * write into it, but may replace its only name.
 */
static kpack_error_t open_untrusted(struct bundler_output *out, struct kpackx_error *why)
{
	if (S_ISREG(out->to.st.st_mode) && out->to.st.st_nlink == 1)
		return open_file(out, why);
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "is not written to, because another user may have put it there");
}

static kpack_error_t open_existing(struct bundler_output *out, struct kpackx_error *why)
{
	const struct below_target *to = &out->to;

	if (S_ISDIR(to->st.st_mode))
		return fail_system(why, EISDIR);
	if (below_target_access(to, W_OK))
		return fail_system(why, errno);
	out->keep = to->st.st_mode & 0777;
	if (!below_target_trusted(to))
		return open_untrusted(out, why);
	/* if nothing can be created in the directory, write into the existing file */
	return must_stay(to) || open_file(out, why) ? open_in_place(out, why)
						    : KPACK_SUCCESS;
}

static kpack_error_t open_output(struct bundler_output *out, struct kpackx_error *why)
{
	if (is_dash(out->path))
		return open_in_place(out, why);
	if (below_target_open(&out->to, out->path) < 0)
		return fail_system(why, errno);
	/* a link to nothing stays, and the file that it names is made */
	return out->to.fd < 0 ? open_file(out, why) : open_existing(out, why);
}

kpack_error_t bundler_outputs_add(struct bundler_outputs *outputs, const char *path,
				  struct bundler_output **out, struct kpackx_error *why)
{
	struct bundler_output *o = &outputs->items[outputs->count++];

	*o = (struct bundler_output){.path = path,
				     .to = {.dir = -1, .fd = -1},
				     .file = {.fd = -1, .dir_fd = -1}};
	KP_TRY(open_output(o, why));
	snprintf(o->file.shown, sizeof(o->file.shown), "output");
	o->sink = (struct kp_sink){.out = &o->file};
	*out = o;
	return KPACK_SUCCESS;
}

static kpack_error_t write_all(int fd, const uint8_t *from, size_t len,
			       struct kpackx_error *why)
{
	while (len) {
		ssize_t n = write(fd, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail_system(why, n ? errno : EIO);
		from += n;
		len -= (size_t)n;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t copy_to(int fd, const struct bundler_output *o,
			     struct kpackx_error *why)
{
	static uint8_t buf[65536];
	size_t n;

	for (uint64_t at = 0; at < o->sink.size; at += n) {
		n = o->sink.size - at < sizeof(buf) ? (size_t)(o->sink.size - at)
						    : sizeof(buf);
		KP_TRY(kp_file_pread(o->file.fd, at, buf, n, why));
		KP_TRY(write_all(fd, buf, n, why));
	}
	return KPACK_SUCCESS;
}

/* Whether another file has the name of T by now. */
static bool was_exchanged(const struct below_target *t)
{
	struct stat now;

	return !t->is_open && (below_target_named(t, &now) < 0 ||
			       now.st_dev != t->st.st_dev || now.st_ino != t->st.st_ino);
}

static kpack_error_t publish_in_place(struct bundler_output *o, struct kpackx_error *why)
{
	kpack_error_t err;
	int fd;

	if (is_dash(o->path))
		return copy_to(STDOUT_FILENO, o, why);
	if (was_exchanged(&o->to))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	fd = below_target_reopen(&o->to, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return fail_system(why, errno);
	err = copy_to(fd, o, why);
	if (close(fd) && !err)
		err = fail_system(why, errno);
	return err;
}

static kpack_error_t publish_output(struct bundler_output *o, struct kpackx_error *why)
{
	if (o->in_place)
		return publish_in_place(o, why);
	/* replacing another user's file, root leaves it to that user */
	if (o->to.fd >= 0 && o->to.st.st_uid != geteuid() &&
	    fchown(o->file.fd, o->to.st.st_uid, o->to.st.st_gid))
		return fail_system(why, errno);
	if (o->keep && fchmod(o->file.fd, o->keep))
		return fail_system(why, errno);
	/*
	 * unlink first: file systems flush a file that is renamed over another, which
	 * takes longer than everything else
	 */
	if (o->keep)
		below_target_unlink(&o->to);
	return kp_outfile_publish(&o->file, why);
}

/*
 * Outputs in place go first: they can fail half way, and then the other outputs do not
 * appear.
 */
kpack_error_t bundler_outputs_publish(struct bundler_outputs *outputs,
				      const char **failed, struct kpackx_error *why)
{
	for (size_t i = 0; i < 2 * outputs->count; i++) {
		struct bundler_output *o = &outputs->items[i % outputs->count];
		kpack_error_t err;

		if (o->in_place != (i < outputs->count))
			continue;
		err = publish_output(o, why);
		if (err) {
			*failed = o->path;
			return err;
		}
	}
	return KPACK_SUCCESS;
}

void bundler_outputs_close(struct bundler_outputs *outputs)
{
	for (size_t i = 0; i < outputs->count; i++) {
		kp_outfile_close(&outputs->items[i].file);
		below_target_close(&outputs->items[i].to);
	}
	free(outputs->items);
	*outputs = (struct bundler_outputs){0};
}

/* ---- temporary files ---- */

int bundler_nameless(void)
{
	int fd = below_open("/tmp", O_TMPFILE | O_RDWR, 0600);

	return fd < 0 ? memfd_create("entries", MFD_CLOEXEC) : fd;
}

static kpack_error_t fill_temporary(int fd, const struct kp_source *src,
				    struct kpackx_error *why)
{
	struct kp_outfile file = {.fd = fd, .dir_fd = -1, .shown = "temporary file"};
	struct kp_sink sink = {.out = &file};

	return kp_sink_copy(&sink, src, why);
}

kpack_error_t bundler_temporary(const struct kp_source *src, char **name,
				struct kpackx_error *why)
{
	kpack_error_t err;
	int fd;

	*name = xasprintf("%s/clang-offload-bundler-XXXXXX.tmp", tmpdir("/tmp"));
	fd = below_mkstemps(*name, strlen(".tmp"));
	if (fd < 0) {
		err = below_fail(why, "%s", *name);
	} else {
		err = fill_temporary(fd, src, why);
		close(fd);
		if (err)
			below_unlink(*name);
	}
	if (err) {
		free(*name);
		*name = NULL;
	}
	return err;
}
