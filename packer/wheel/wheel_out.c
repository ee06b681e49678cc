/* SPDX-License-Identifier: MIT */
#include "wheel_out.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "record.h"
#include "core/base/text.h"
#include "wheel_join.h"
#include "press.h"

struct wheel_out {
	struct wheel_out_member *members;
	size_t count, cap;
	uint64_t size;
	unsigned threads;
	int level;
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
	struct dos_time time;
	struct kp_outfile out;
	struct kp_outfile collected; /* never gets its name */
	uint64_t collected_end;
};

static kpack_error_t open_files(struct wheel_out *o, const struct wheel_out_options *how,
				struct kpackx_error *why)
{
	KP_TRY(below_outfile_open_in(&o->out, how->dir, how->name, 0666, why));
	return below_outfile_open_in(&o->collected, how->dir, ".kpack-wheel", 0600, why);
}

kpack_error_t wheel_out_new(const struct wheel_out_options *options,
			    struct wheel_out **out, struct kpackx_error *why)
{
	struct wheel_out *o = xcalloc(1, sizeof(*o));
	kpack_error_t err;

	o->out.fd = o->collected.fd = -1;
	o->threads = options->threads ? options->threads
				      : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	o->level = options->level;
	o->progress = options->progress;
	o->arg = options->arg;
	err = dos_time_read(secure_getenv("SOURCE_DATE_EPOCH"), &o->time, why);
	if (!err)
		err = open_files(o, options, why);
	if (err) {
		wheel_out_close(o);
		return err;
	}
	*out = o;
	return KPACK_SUCCESS;
}

void wheel_out_close(struct wheel_out *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->count; i++) {
		free(o->members[i].path);
		free(o->members[i].file);
		free(o->members[i].bytes);
	}
	free(o->members);
	if (o->collected.fd >= 0)
		kp_outfile_close(&o->collected);
	if (o->out.fd >= 0)
		kp_outfile_close(&o->out);
	free(o);
}

/* Add a member, zeroed except for path and mode; *OUT is valid until the next call. */
static kpack_error_t add_member(struct wheel_out *o, const char *path, unsigned mode,
				struct wheel_out_member **out, struct kpackx_error *why)
{
	const char *fault = kp_path_fault(kp_span_str(path));

	if (fault)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%.100s: %s", path,
			       fault);
	if (o->count == WHEEL_MEMBERS_MAX)
		return kp_fail_memory(why, o->count * sizeof(*o->members), "members");
	xgrow(&o->members, o->count, &o->cap, sizeof(*o->members));
	*out = &o->members[o->count++];
	**out = (struct wheel_out_member){.path = xstrdup(path), .mode = mode & 0777};
	return KPACK_SUCCESS;
}

kpack_error_t wheel_out_add_bytes(struct wheel_out *o, const char *path, unsigned mode,
				  struct kp_span bytes, struct kpackx_error *why)
{
	struct wheel_out_member *m;

	KP_TRY(add_member(o, path, mode, &m, why));
	m->bytes = xmalloc(bytes.size);
	if (bytes.size)
		memcpy(m->bytes, bytes.data, bytes.size);
	m->size = bytes.size;
	o->size += m->size;
	return KPACK_SUCCESS;
}

kpack_error_t wheel_out_add_file(struct wheel_out *o, const char *path, unsigned mode,
				 const char *file, struct kpackx_error *why)
{
	struct wheel_out_member *m;
	struct stat st;
	int fd;

	KP_TRY(add_member(o, path, mode, &m, why));
	KP_TRY(below_file_open_nofollow(file, &fd, &st, why));
	close(fd);
	m->file = xstrdup(file);
	m->identity = file_identity_of(&st);
	m->size = m->identity.size;
	o->size += m->size;
	return KPACK_SUCCESS;
}

kpack_error_t wheel_out_add_copy(struct wheel_out *o, const char *path,
				 const struct wheel_in *w, size_t member,
				 const uint8_t digest[32], struct kpackx_error *why)
{
	size_t count;
	const struct wheel_member *from = &wheel_in_members(w, &count)[member];
	struct wheel_out_member *m;

	KP_TRY(add_member(o, path, from->mode, &m, why));
	m->from = w;
	m->member = member;
	m->size = from->size;
	memcpy(m->digest, digest, sizeof(m->digest));
	o->size += m->size;
	return KPACK_SUCCESS;
}

uint64_t wheel_out_size(const struct wheel_out *o)
{
	return o->size;
}

static int by_path(const void *a, const void *b)
{
	const struct wheel_out_member *x = *(const struct wheel_out_member *const *)a;
	const struct wheel_out_member *y = *(const struct wheel_out_member *const *)b;

	return strcmp(x->path, y->path);
}

static kpack_error_t check_twice(const struct wheel_out *o, struct kpackx_error *why)
{
	const struct wheel_out_member **sorted = xmalloc(o->count * sizeof(void *));
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < o->count; i++)
		sorted[i] = &o->members[i];
	qsort(sorted, o->count, sizeof(void *), by_path);
	for (size_t i = 1; !err && i < o->count; i++)
		if (by_path(&sorted[i - 1], &sorted[i]) == 0)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%.150s: added twice", sorted[i]->path);
	free(sorted);
	return err;
}

/* Hash and compress the members from FIRST on. */
static kpack_error_t press_members(struct wheel_out *o, size_t first,
				   struct kpackx_error *why)
{
	struct wheel_press p = {.members = o->members,
				.first = first,
				.count = o->count,
				.threads = o->threads,
				.level = o->level,
				.collected = &o->collected,
				.end = &o->collected_end,
				.progress = o->progress,
				.arg = o->arg};

	return wheel_press_run(&p, why);
}

static kpack_error_t add_record(struct wheel_out *o, const char *dist_info,
				struct kpackx_error *why)
{
	struct record_text text = {0};
	char *path = xasprintf("%s/RECORD", dist_info);
	struct wheel_out_member *m;
	kpack_error_t err;

	for (size_t i = 0; i < o->count; i++)
		record_text_add(&text, o->members[i].path, o->members[i].digest,
				o->members[i].size);
	record_text_end(&text, path);
	err = add_member(o, path, 0644, &m, why);
	if (!err) {
		m->bytes = (uint8_t *)text.text;
		m->size = text.size;
		text.text = NULL;
	}
	record_text_fini(&text);
	free(path);
	return err ? err : check_twice(o, why);
}

/* Report the progress of copied members, which are not pressed. */
static void report_copies(const struct wheel_out *o)
{
	for (size_t i = 0; i < o->count && o->progress; i++)
		if (o->members[i].from)
			o->progress(o->arg, o->members[i].size);
}

kpack_error_t wheel_out_finish(struct wheel_out *o, const char *dist_info,
			       struct kpackx_error *why)
{
	struct wheel_join join = {
		.time = o->time, .collected = o->collected.fd, .out = &o->out};
	size_t n = o->count;

	KP_TRY(press_members(o, 0, why));
	KP_TRY(add_record(o, dist_info, why));
	KP_TRY(press_members(o, n, why));
	join.members = o->members;
	join.count = o->count;
	report_copies(o);
	KP_TRY(wheel_join_run(&join, why));
	kp_outfile_close(&o->collected);
	return kp_outfile_sync(&o->out, why);
}

kpack_error_t wheel_out_publish(struct wheel_out *o, struct kpackx_error *why)
{
	return kp_outfile_publish(&o->out, why);
}
