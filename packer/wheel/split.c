/* SPDX-License-Identifier: MIT */
#include "split.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/pack/write_tree.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/lock.h"
#include "zip_time.h"
#include "split_check.h"
#include "split_earlier.h"
#include "directory.h"
#include "split_report.h"
#include "split_union.h"

struct split {
	const struct wheel_split_args *args;
	bool made;              /* this run made the output directory */
	struct dirent **before; /* what was in it when the run began */
	int n_before;
	struct temp_dir staging; /* in the output directory */
	struct temp_dir work;    /* in --tmp-dir, if given */
	struct wheel_source *sources;
	size_t n_sources;
	char group[WHEEL_NAME_MAX + 1];
	struct families families;
	struct device_wheels devices;
	struct wheel_items items;
	struct wheel_files files;
	struct wheel_write write;
	char *out; /* directory of output wheels before they get their names */
};

static void split_fini(struct split *s)
{
	wheel_files_fini(&s->files);
	wheel_items_fini(&s->items);
	device_wheels_fini(&s->devices);
	families_fini(&s->families);
	for (size_t i = 0; i < s->n_sources; i++)
		wheel_source_close(&s->sources[i]);
	free(s->sources);
	for (int i = 0; i < s->n_before; i++)
		free(s->before[i]);
	free(s->before);
	free(s->out);
	temp_dir_close(&s->work);
	temp_dir_close(&s->staging);
	if (s->made)
		below_rmdir(s->args->output); /* unless wheels are in it */
}

/* --- before the work --------------------------------------------------------------- */

static kpack_error_t open_places(struct split *s, struct kpackx_error *why)
{
	const struct wheel_split_args *args = s->args;
	kpack_error_t err;
	struct stat st;

	s->made = below_lstat(args->output, &st) < 0 && errno == ENOENT;
	KP_TRY(below_make_root(args->output, 0777, why));
	s->n_before = below_scandir(args->output, &s->before, NULL);
	KP_TRY(wheel_temp_open(args->output, &s->staging, why));
	KP_TRY(wheel_temp_dir(&s->staging, "out", &s->out, why));
	if (!args->tmp_dir)
		return KPACK_SUCCESS;
	err = below_root(args->tmp_dir, why);
	return err ? kp_fail_prefix(why, err, "%s", args->tmp_dir)
		   : wheel_temp_open(args->tmp_dir, &s->work, why);
}

static kpack_error_t open_source(struct split *s, size_t i, struct kpackx_error *why)
{
	const struct temp_dir *in = s->work.path ? &s->work : &s->staging;
	char name[24], *dir = NULL;
	kpack_error_t err;

	snprintf(name, sizeof(name), "%zu", i);
	err = wheel_temp_dir(in, name, &dir, why);
	if (err) {
		free(dir);
		return err;
	}
	s->n_sources = i + 1;
	err = wheel_source_open(s->args, s->args->inputs[i], dir, &s->sources[i], why);
	return err ? kp_fail_prefix(why, err, "%s", s->args->inputs[i]) : KPACK_SUCCESS;
}

static bool was_there(const struct split *s, const char *file)
{
	for (int i = 0; i < s->n_before; i++)
		if (strcmp(s->before[i]->d_name, file) == 0)
			return true;
	return false;
}

/*
 * Fail if FILE exists and must not be replaced, or is an input.  NOW: this run's, once it
 * is written.
 */
static kpack_error_t check_free(const struct split *s, const char *file,
				enum wheel_file_kind kind, const char *now,
				struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", s->args->output, file);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st, in;

	if (below_lstat(path, &st) == 0 && !s->args->force)
		err = was_there(s, file)
			      ? wheel_earlier_check(path, kind, now, why)
			      : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					"%s: already exists, made by another run "
					"meanwhile; --force replaces it",
					path);
	for (size_t i = 0; !err && i < s->n_sources; i++)
		if (below_stat(path, &st) == 0 &&
		    below_stat(s->sources[i].path, &in) == 0 && st.st_ino == in.st_ino &&
		    st.st_dev == in.st_dev)
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: is an input; it is not replaced", path);
	free(path);
	return err;
}

/* Check the host wheel's name early: it is known before anything is done. */
static kpack_error_t check_host(const struct split *s, struct kpackx_error *why)
{
	char name[WHEEL_NAME_MAX + 1];

	KP_TRY(wheel_name_compose(&s->sources[0].name, name, why));
	if (s->args->directory)
		name[strlen(name) - strlen(".whl")] = '\0';
	return check_free(s, name, WHEEL_FILE_HOST, NULL, why);
}

static kpack_error_t find_names(struct split *s, struct kpackx_error *why)
{
	const char *dist = s->sources[0].info.name;

	if (s->args->group)
		snprintf(s->group, sizeof(s->group), "%s", s->args->group);
	else if (!dist_name_normal(dist, '_', s->group))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "'%s' cannot be the name of a group: give --group", dist);
	return KPACK_SUCCESS;
}

/* The output must not be inside an input directory. */
static kpack_error_t check_beside(const char *input, const char *dir,
				  struct kpackx_error *why)
{
	struct stat st;
	kpack_error_t err;

	if (!dir || below_stat(input, &st) < 0 || !S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	err = output_check_beside(input, dir, why);
	return err ? kp_fail_prefix(why, err, "%s: %s", input, dir) : KPACK_SUCCESS;
}

static kpack_error_t begin_split(struct split *s, struct kpackx_error *why)
{
	const struct wheel_split_args *args = s->args;
	struct dos_time time;

	/* else the fault would only be found while writing */
	KP_TRY(dos_time_read(secure_getenv("SOURCE_DATE_EPOCH"), &time, why));
	for (size_t i = 0; i < args->n_inputs; i++) {
		KP_TRY(check_beside(args->inputs[i], args->output, why));
		KP_TRY(check_beside(args->inputs[i], args->tmp_dir, why));
	}
	KP_TRY(open_places(s, why));
	s->sources = xcalloc(args->n_inputs, sizeof(*s->sources));
	for (size_t i = 0; i < args->n_inputs; i++)
		KP_TRY(open_source(s, i, why));
	KP_TRY(wheel_union_check(s->sources, s->n_sources, s->args->prefer, why));
	KP_TRY(check_host(s, why));
	return find_names(s, why);
}

/* --- wheels ------------------------------------------------------------------------ */

static const struct wheel_source *preferred_source(const struct split *s)
{
	for (size_t i = 0; s->args->prefer && i < s->n_sources; i++)
		if (strcmp(s->sources[i].path, s->args->prefer) == 0)
			return &s->sources[i];
	return NULL;
}

static kpack_error_t join_items(struct split *s, struct kpackx_error *why)
{
	kpack_error_t err;
	char *dir = NULL;

	wheel_items_sort(&s->items);
	if (s->n_sources == 1)
		return KPACK_SUCCESS;
	err = wheel_temp_dir(&s->staging, "joined", &dir, why);
	if (!err)
		err = wheel_union_join(&s->items, s->sources, s->n_sources,
				       preferred_source(s), dir, why);
	free(dir);
	return err;
}

static kpack_error_t collect_items(struct split *s, struct kpackx_error *why)
{
	KP_TRY(wheel_source_families(s->args, &s->families, why));
	s->devices = (struct device_wheels){.families = &s->families,
					    .host = s->sources[0].info.name,
					    .prefix = s->args->prefix};
	for (size_t i = 0; i < s->n_sources; i++)
		KP_TRY(wheel_items_add(&s->items, &s->sources[i], &s->devices, why));
	if (s->devices.count == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: no device code found", s->args->inputs[0]);
	KP_TRY(device_wheels_finish(&s->devices, why));
	return join_items(s, why);
}

/* FILE's name in the output directory: that of an unpacked wheel has no suffix. */
static void final_name(const struct split *s, const struct wheel_file *file,
		       char out[WHEEL_NAME_MAX + 1])
{
	memcpy(out, file->name, sizeof(file->name));
	if (s->args->directory)
		out[strlen(out) - strlen(".whl")] = '\0';
}

static kpack_error_t check_all_free(const struct split *s, bool written,
				    struct kpackx_error *why)
{
	char name[WHEEL_NAME_MAX + 1];
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < s->files.count && !err; i++) {
		const struct wheel_file *file = &s->files.items[i];
		char *now = written ? xasprintf("%s/%s", s->out, file->name) : NULL;

		final_name(s, file, name);
		err = check_free(s, name, file->kind, now, why);
		free(now);
	}
	return err;
}

static kpack_error_t write_wheels(struct split *s, struct kpackx_error *why)
{
	const struct wheel_source *host = preferred_source(s);

	host = host ? host : &s->sources[0];
	s->write = (struct wheel_write){
		.args = s->args,
		.host = host,
		.devices = &s->devices,
		.items = &s->items,
		.metadata = {.host = &host->info,
			     .devices = &s->devices,
			     .requires = s->args->requires,
			     .n_requires = s->args->n_requires},
		.dir = s->out,
	};
	KP_TRY(wheel_files_list(&s->write, &s->files, why));
	KP_TRY(check_all_free(s, false, why));
	KP_TRY(wheel_files_write(&s->write, &s->files, why));
	return wheel_check(&s->write, &s->files, s->sources, s->n_sources, why);
}

/* --- names ------------------------------------------------------------------------- */

/* Unpack a wheel next to itself, under its name without suffix. */
static kpack_error_t make_directory(const struct split *s, const struct wheel_file *file,
				    struct kpackx_error *why)
{
	char name[WHEEL_NAME_MAX + 1], *from, *to;
	kpack_error_t err;

	final_name(s, file, name);
	from = xasprintf("%s/%s", s->out, file->name);
	to = xasprintf("%s/%s", s->out, name);
	err = wheel_directory_unpack(from, to, s->args->jobs, why);
	free(from);
	free(to);
	return err;
}

static kpack_error_t make_directories(const struct split *s, struct kpackx_error *why)
{
	for (size_t i = 0; s->args->directory && i < s->files.count; i++)
		KP_TRY(make_directory(s, &s->files.items[i], why));
	return KPACK_SUCCESS;
}

/* Move an existing directory into the staging directory, which is removed at the end. */
static kpack_error_t move_away(const struct split *s, const char *to, size_t number,
			       struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;
	char *old;

	if (below_lstat(to, &st) < 0 || !S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	old = xasprintf("%s/old-%zu", s->staging.path, number);
	if (below_rename(to, old, 0) < 0)
		err = below_fail(why, "%s: cannot be replaced", to);
	free(old);
	return err;
}

static kpack_error_t publish_file(const struct split *s, size_t number,
				  struct kpackx_error *why)
{
	char name[WHEEL_NAME_MAX + 1], *from, *to;
	kpack_error_t err;

	final_name(s, &s->files.items[number], name);
	from = xasprintf("%s/%s", s->out, name);
	to = xasprintf("%s/%s", s->args->output, name);
	err = move_away(s, to, number, why);
	if (!err && below_rename(from, to, 0) < 0)
		err = below_fail(why, "%s: cannot rename the output to this", to);
	free(from);
	free(to);
	return err;
}

/* The host wheel gets its name last: if it exists, everything that it needs exists. */
static kpack_error_t publish_into(const struct split *s, int dir,
				  struct kpackx_error *why)
{
	KP_TRY(check_all_free(s, true, why));
	for (size_t i = 0; i < s->files.count; i++)
		KP_TRY(publish_file(s, i, why));
	return kp_flush_dir(dir) < 0
		       ? kp_fail_errno(why, errno, "%s: cannot flush", s->args->output)
		       : KPACK_SUCCESS;
}

/* Lock out other runs into the same directory, if the file system has locks. */
static kpack_error_t publish_all(const struct split *s, struct kpackx_error *why)
{
	kpack_error_t err;
	int fd;

	KP_TRY(make_directories(s, why));
	fd = below_open_following(s->args->output, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return below_fail(why, "%s: cannot open", s->args->output);
	err = lock_wait(fd, s->args->output, NULL, why);
	if (!err)
		err = publish_into(s, fd, why);
	lock_close(fd);
	return err;
}

/* --- all --------------------------------------------------------------------------- */

static int report_failure(const struct kpackx_error *why)
{
	report_why(NULL, why);
	return EXIT_FAULT;
}

static kpack_error_t end_split(struct split *s, struct kpackx_error *why)
{
	KP_TRY(collect_items(s, why));
	KP_TRY(write_wheels(s, why));
	KP_TRY(publish_all(s, why));
	wheel_earlier_report(s->args->output, &s->write, &s->files);
	return KPACK_SUCCESS;
}

static void report_signatures(const struct wheel_source *source)
{
	static const char *const names[] = {"RECORD.jws", "RECORD.p7s"};

	for (size_t i = 0; i < KP_COUNT(names); i++) {
		char *path = dist_info_path(&source->info, names[i]);
		size_t member;

		if (wheel_in_find(source->in, path, &member))
			report_error(source->path,
				     "note: %s is left out: it signs the old RECORD",
				     path);
		free(path);
	}
}

static void report_notes(const struct wheel_source *source)
{
	if (*source->info.tag_fault)
		report_error(source->path,
			     "note: %s; device wheels get the tags of the file name",
			     source->info.tag_fault);
	report_signatures(source);
}

static int run_split(struct split *s)
{
	struct kpackx_error why = {0};
	int status;

	if (begin_split(s, &why))
		return report_failure(&why);
	for (size_t i = 0; i < s->n_sources; i++) {
		if (!s->args->quiet)
			report_notes(&s->sources[i]);
		status = wheel_source_pack(&s->sources[i], s->group);
		if (status)
			return status;
	}
	if (end_split(s, &why))
		return report_failure(&why);
	return wheel_report(&s->write, &s->files);
}

int wheel_split_run(const struct wheel_split_args *args)
{
	struct split s = {.args = args, .staging = {.fd = -1}, .work = {.fd = -1}};
	int status = run_split(&s);

	for (size_t i = 0; i < s.n_sources; i++)
		if (scan_damaged(&s.sources[i].packing.scan))
			status = EXIT_FAULT;
	split_fini(&s);
	return status;
}
