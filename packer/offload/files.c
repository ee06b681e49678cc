/* SPDX-License-Identifier: MIT */
/*
 * What clang's tools do with files: response files on the command line, inputs of any kind,
 * and outputs that replace files or are written in place.
 *
 * An input that can be read twice is read where it is; what comes out of a pipe, and the members
 * of a thin archive, are spooled first.
 *
 * All outputs of a run appear together, after everything has succeeded.  Until then they are
 * files without a name, in the directory of their path; those that must remain the same file are
 * in memory, and are copied into it at the end.  A failure before that leaves everything as it
 * was.
 */
#include "offload.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/path.h"
#include "core/format/ar_archive.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/target.h"

/* ---- response files ---- */

/* A link of a million objects needs less. */
#define RESPONSE_MAX ((uint64_t)256 << 20)

/* Append WORD, which W takes over; NULL only ends the list. */
static void add_word(struct offload_words *w, char *word)
{
	xgrow(&w->items, w->count, &w->cap, sizeof(*w->items));
	w->items[w->count] = word;
	w->count += word != NULL;
}

kpack_error_t offload_words_read(struct offload_words *w, int argc, char **argv,
				 struct kpackx_error *why)
{
	static const char spaces[] = " \t\r\n";

	for (int i = 0; i < argc; i++) {
		KP_AUTO_FREE uint8_t *file = NULL;
		KP_AUTO_FREE char *word = NULL;
		const char *text;
		struct stat st;
		size_t size;

		/* "@x" without a file x is an ordinary word */
		if (argv[i][0] != '@' ||
		    (below_stat(argv[i] + 1, &st) < 0 && errno != ELOOP)) {
			add_word(w, xstrdup(argv[i]));
			continue;
		}
		if (below_file_load(argv[i] + 1, RESPONSE_MAX, "a response file", &file,
				    &size, why))
			return kp_fail_prefix(why, why->code, "%s", argv[i] + 1);
		text = (const char *)file;
		if (kp_span_starts((struct kp_span){file, size}, "\xef\xbb\xbf", 3))
			text += 3;
		word = xmalloc(strlen(text) + 1);
		while (*text) {
			char quote = 0;
			size_t n = 0;

			for (text += strspn(text, spaces); *text; text++) {
				if (!quote && strchr(spaces, *text))
					break;
				if (*text == '\\' && text[1])
					word[n++] = *++text;
				else if (*text == quote)
					quote = 0;
				else if (!quote && (*text == '"' || *text == '\''))
					quote = *text;
				else
					word[n++] = *text;
			}
			/* as in LLVM, "" alone is no word */
			if (n)
				add_word(w, xstrndup(word, n));
		}
	}
	add_word(w, NULL);
	return KPACK_SUCCESS;
}

void offload_words_fini(struct offload_words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->items[i]);
	free(w->items);
}

/* ---- files without a name ---- */

kpack_error_t offload_spool_open(struct offload_spool *s, struct kpackx_error *why)
{
	int fd = below_open("/tmp", O_TMPFILE | O_RDWR, 0600);

	if (fd < 0)
		fd = memfd_create("spool", MFD_CLOEXEC);
	*s = (struct offload_spool){
		.file = {.fd = fd, .dir_fd = -1, .shown = "temporary file"}};
	s->sink = (struct kp_sink){.out = &s->file};
	return fd < 0 ? kp_fail_errno(why, errno, "cannot make a temporary file")
		      : KPACK_SUCCESS;
}

void offload_spool_fini(struct offload_spool *s)
{
	kp_outfile_close(&s->file);
}

struct kp_source offload_spooled(const struct offload_spool *s, uint64_t before)
{
	return kp_source_fd(s->file.fd, before, s->sink.size - before);
}

/* ---- inputs ---- */

/* Spool what can be read once from FROM, and take over the spool's descriptor. */
static kpack_error_t read_stream(struct offload_input *in, int from,
				 struct kpackx_error *why)
{
	KP_AUTO(offload_spool) spool;
	uint8_t buf[65536];
	ssize_t n;

	KP_TRY(offload_spool_open(&spool, why));
	while ((n = read(from, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kp_fail_errno(why, errno, "cannot read");
		if (spool.sink.size > KP_OBJECT_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "more than %" PRIu64 " bytes", KP_OBJECT_MAX);
		KP_TRY(kp_sink_put(&spool.sink, buf, (size_t)n, why));
	}
	in->src = offload_spooled(&spool, 0);
	in->fd = spool.file.fd;
	spool.file.fd = -1;
	return KPACK_SUCCESS;
}

kpack_error_t offload_input_open(struct offload_input *in, const char *path,
				 struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	KP_AUTO_CLOSE int fd = -1;
	struct below_target t;
	struct stat st;

	*in = (struct offload_input){.fd = -1};
	if (strcmp(path, "-") == 0)
		return read_stream(in, STDIN_FILENO, why);
	if (below_target_open(&t, path) < 0)
		return below_fail(why, "cannot open");
	if (t.fd < 0 || S_ISDIR(t.st.st_mode))
		err = kp_fail_errno(why, t.fd < 0 ? ENOENT : EISDIR, "cannot open");
	else if (!S_ISREG(t.st.st_mode) && !below_target_trusted(&t))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR,
			      "is not read, because another user may have put it there");
	/* a pipe waits for its writer */
	if (!err && ((fd = below_target_reopen(&t, O_RDONLY)) < 0 || fstat(fd, &st)))
		err = kp_fail_errno(why, errno, "cannot open");
	below_target_close(&t);
	if (err || !S_ISREG(st.st_mode))
		return err ? err : read_stream(in, fd, why);
	in->src = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	in->fd = fd;
	/* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): so that it stays open */
	fd = -1;
	return KPACK_SUCCESS;
}

void offload_input_fini(struct offload_input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	*in = (struct offload_input){.fd = -1};
}

kpack_error_t offload_input_gather(struct offload_input *in, const char *path,
				   struct kpackx_error *why)
{
	static const char magic[] = "!<thin>\n";
	KP_AUTO(offload_spool) files = {.file = {.fd = -1, .dir_fd = -1}};
	KP_AUTO(offload_spool) whole = {.file = {.fd = -1, .dir_fd = -1}};
	KP_AUTO_FREE struct kp_ar_input *members = NULL;
	KP_AUTO(kp_ar) ar = {0};
	uint8_t buf[sizeof(magic) - 1];
	struct kp_span head;

	KP_TRY(kp_source_head(&in->src, 0, buf, sizeof(buf), &head, why));
	if (!kp_span_is(head, magic))
		return KPACK_SUCCESS;
	KP_TRY(kp_ar_read(&in->src, &ar, why));
	KP_TRY(offload_spool_open(&files, why));
	KP_TRY(offload_spool_open(&whole, why));
	members = xcalloc(ar.count, sizeof(*members));
	/* one member is open at a time: there may be more than a process can have open */
	for (size_t i = 0; i < ar.count; i++) {
		const char *name = ar.items[i].name;
		int dir = name[0] != '/' ? (int)(kp_path_name(path) - path) : 0;
		KP_AUTO_FREE char *member = xasprintf("%.*s%s", dir, path, name);
		KP_AUTO_CLOSE int fd = -1;
		uint64_t before = files.sink.size;
		struct kp_source src;
		struct stat st;
		/* a regular file, for the archive may be foreign */
		kpack_error_t err = below_file_open(member, &fd, &st, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", name);
		src = kp_source_fd(fd, 0, (uint64_t)st.st_size);
		KP_TRY(kp_sink_copy(&files.sink, &src, why));
		members[i].name = kp_span_str(name);
		members[i].bytes = offload_spooled(&files, before);
	}
	KP_TRY(kp_ar_write(members, ar.count, &whole.sink, why));
	offload_input_fini(in);
	in->src = offload_spooled(&whole, 0);
	in->fd = whole.file.fd;
	whole.file.fd = -1;
	return KPACK_SUCCESS;
}

/* ---- outputs ---- */

struct output {
	const char *path;
	struct below_target to; /* what PATH leads to */
	struct kp_outfile file;
	struct kp_sink sink; /* writes to FILE */
	bool in_place;       /* FILE has no name; publishing copies it into PATH */
	mode_t keep;         /* mode of the file that is replaced, or 0 */
};

/*
 * Find out what the path of O leads to, and whether it is replaced or written in place; nothing is
 * changed there yet.
 */
static kpack_error_t open_output(struct output *o, struct kpackx_error *why)
{
	const struct stat *st = &o->to.st;

	o->in_place = strcmp(o->path, "-") == 0;
	if (!o->in_place && below_target_open(&o->to, o->path) < 0)
		return below_fail(why, "cannot open");
	if (o->to.fd >= 0) {
		bool trusted = below_target_trusted(&o->to);

		if (S_ISDIR(st->st_mode))
			return kp_fail_errno(why, EISDIR, "cannot be written");
		if (below_target_access(&o->to, W_OK))
			return kp_fail_errno(why, errno, "cannot be written");
		/* root may replace the only name of a file, but writes into none */
		if (!trusted && (!S_ISREG(st->st_mode) || st->st_nlink > 1))
			return kp_fail(why, KPACK_ERROR_IO_ERROR,
				       "is not written to, because another user may have "
				       "put it there");
		o->keep = st->st_mode & 0777;
		/* what cannot be replaced by a new file, or would lose other names or its owner */
		o->in_place = trusted && (!S_ISREG(st->st_mode) || o->to.is_open ||
					  st->st_nlink > 1 || st->st_uid != geteuid() ||
					  st->st_gid != getegid());
	}
	/* a link to nothing stays, and the file that it names is made */
	if (!o->in_place) {
		kpack_error_t err = below_target_outfile(&o->to, &o->file, 0666, why);

		/* where nothing can be created, an existing file is written to */
		o->in_place = err && o->to.fd >= 0 && below_target_trusted(&o->to);
		if (err && !o->in_place)
			return err;
	}
	if (o->in_place)
		o->file = (struct kp_outfile){.fd = memfd_create("output", MFD_CLOEXEC),
					      .dir_fd = -1};
	if (o->file.fd < 0)
		return kp_fail_errno(why, errno, "cannot make a temporary file");
	o->file.lazy = true;
	snprintf(o->file.shown, sizeof(o->file.shown), "output");
	o->sink = (struct kp_sink){.out = &o->file};
	return KPACK_SUCCESS;
}

/* As kp_sink's write, to the descriptor *ARG, which may be of a pipe. */
static kpack_error_t write_stream(void *arg, const void *data, size_t size,
				  struct kpackx_error *why)
{
	const char *at = data;

	while (size) {
		ssize_t n = write(*(const int *)arg, at, size);

		if (n == 0 || (n < 0 && errno != EINTR))
			return kp_fail_errno(why, n ? errno : EIO, "cannot be written");
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return KPACK_SUCCESS;
}

/* Let the output appear: under its name, or in the file, pipe or device that must stay. */
static kpack_error_t publish_output(struct output *o, struct kpackx_error *why)
{
	const struct below_target *to = &o->to;
	struct kp_source made = kp_source_fd(o->file.fd, 0, o->sink.size);
	int fd = STDOUT_FILENO;
	struct kp_sink stream = {.write = write_stream, .arg = &fd};
	kpack_error_t err;
	struct stat now;

	if (!o->in_place) {
		/* replacing another user's file, root leaves it to that user */
		if (to->fd >= 0 && to->st.st_uid != geteuid() &&
		    fchown(o->file.fd, to->st.st_uid, to->st.st_gid))
			return kp_fail_errno(why, errno, "cannot change the owner");
		if (o->keep && fchmod(o->file.fd, o->keep))
			return kp_fail_errno(why, errno, "cannot change the mode");
		/*
		 * unlink first: file systems flush a file that is renamed over another,
		 * which takes longer than everything else
		 */
		if (o->keep)
			below_target_unlink(to);
		return kp_outfile_publish(&o->file, why);
	}
	if (to->fd < 0)
		return kp_sink_copy(&stream, &made, why);
	if (!to->is_open && (below_lstat_at(to->dir, to->name, &now) < 0 ||
			     now.st_dev != to->st.st_dev || now.st_ino != to->st.st_ino))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "was changed meanwhile");
	fd = below_target_reopen(to, O_WRONLY | O_TRUNC);
	if (fd < 0)
		return kp_fail_errno(why, errno, "cannot open");
	err = kp_sink_copy(&stream, &made, why);
	if (close(fd) && !err)
		err = kp_fail_errno(why, errno, "cannot be written");
	return err;
}

int offload_outputs_write(const char *const *paths, size_t n, offload_write_fn *write,
			  void *arg)
{
	KP_AUTO_FREE struct output *outputs = xcalloc(n, sizeof(*outputs));
	struct kpackx_error why = {0};
	int status = 0;

	for (size_t i = 0; i < n; i++)
		outputs[i] = (struct output){.path = paths[i],
					     .to = {.dir = -1, .fd = -1},
					     .file = {.fd = -1, .dir_fd = -1}};
	for (size_t i = 0; i < n && !status; i++)
		status = open_output(&outputs[i], &why) ? report_why(paths[i], &why)
							: write(arg, i, &outputs[i].sink);
	/*
	 * Every output is written by now, so that a fault of an input changes nothing.  Those in
	 * place go first: they can fail half way, and then the others do not appear.
	 */
	for (size_t i = 0; i < 2 * n && !status; i++) {
		struct output *o = &outputs[i % n];

		if (o->in_place == (i < n) && publish_output(o, &why))
			status = report_why(o->path, &why);
	}
	for (size_t i = 0; i < n; i++) {
		kp_outfile_close(&outputs[i].file);
		below_target_close(&outputs[i].to);
	}
	return status;
}
