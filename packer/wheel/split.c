/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack split-wheel.  Inputs are unpacked and packed in directories of their own, the
 * wheels are written into a staging directory in the output directory, and get their names
 * when all are there; a run that fails leaves nothing.
 *
 *	DIST/.kpack-split-wheel.XXXXXX/		removed at the end, or by the next run
 *		0/tree/		input 0, unpacked, then packed; in --tmp-dir if that is given
 *		0/directory	the wheel that was made of input 0, if it is a directory
 *		joined/		files that several inputs have, joined
 *		out/		output wheels
 *		old-0/		a directory that an unpacked output wheel has replaced
 *
 * Output wheels get their names last.  A build repeats its steps, so what an earlier run wrote is
 * replaced: a file or unpacked wheel that is marked as this program's, was there when the run
 * began, and has no member that the new one has not.  Anything else under these names is
 * somebody's, and an error, before any output has a name.
 */
#include "split.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/files/tree_list.h"
#include "packer/pack/tree.h"

static kpack_error_t make_dir(const struct temp_dir *t, const char *name, char **out,
			      struct kpackx_error *why)
{
	*out = xasprintf("%s/%s", t->path, name);
	if (below_mkdir(*out, 0777) == 0)
		return KPACK_SUCCESS;
	return below_fail(why, "%s: cannot make the directory", *out);
}

/* Make a temporary directory in BASE, and remove those that killed runs left. */
static kpack_error_t open_temp(const char *base, struct temp_dir *out,
			       struct kpackx_error *why)
{
	temp_dir_remove_left(base, KP_TEMP_WHEEL, NULL);
	return temp_dir_open(out, base, KP_TEMP_WHEEL, why);
}

/* --- what has the names of outputs ---------------------------------------------------- */

/* The members of a wheel that has the name of an output, as they are listed one by one. */
struct earlier {
	const char *mark;     /* the file with the mark */
	struct wheel_in *now; /* what this run wrote; NULL: not written yet */
	struct wheel_in *old; /* the wheel itself, if it is one */
	char *marked;         /* the path of the file with the mark */
	char *strange;        /* the first path that NOW has not */
};

static void earlier_fini(struct earlier *e)
{
	wheel_in_close(e->now);
	wheel_in_close(e->old);
	free(e->marked);
	free(e->strange);
}

static void note_member(struct earlier *e, const char *path)
{
	struct kp_span top = {(const uint8_t *)path, strcspn(path, "/")};
	size_t member;

	if (!e->marked && path[top.size] && kp_span_ends(top, ".dist-info") &&
	    strcmp(path + top.size + 1, e->mark) == 0)
		e->marked = xstrdup(path);
	if (e->now && !e->strange && !wheel_in_find(e->now, path, &member))
		e->strange = xstrdup(path);
}

/*
 * Check that NAME is free in the output directory, or that what has it may be replaced: it is an
 * earlier run's output of KIND, with no member that the wheel NOW has not, or --force was
 * given; and it is no input.  NOW may be NULL: names are checked before there is anything to lose
 * by it, as soon as they are known, and by members when the new wheel is there.  What comes into
 * being between the last check and the renaming is another run's, which the lock keeps out, or was
 * put there by hand at that moment.  INVALID_ARGUMENT.
 */
static kpack_error_t check_free(const struct split *s, enum wheel_output_kind kind,
				const char *name, const char *now,
				struct kpackx_error *why)
{
	/*
	 * What only a wheel that was written here has in a file of its .dist-info: the name of the
	 * program, or the host wheel's extra, which a fat wheel may not have.
	 */
	bool device = kind == WHEEL_OUTPUT_DEVICE, before = false;
	const char *mark =
		device ? "\nGenerator: kpack " : "\nProvides-Extra: device-all";
	KP_AUTO(earlier) e = {.mark = device ? "WHEEL" : "METADATA"};
	KP_AUTO_FREE char *old = xasprintf("%s/%s", s->args->output, name), *text = NULL;
	struct stat st, in;
	size_t member, size;

	if (below_lstat(old, &st) == 0 && !s->args->force) {
		for (int i = 0; i < s->n_before; i++)
			before |= strcmp(s->before[i]->d_name, name) == 0;
		if (!before)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: already exists, made by another run "
				       "meanwhile; --force replaces it",
				       old);
		if (now)
			KP_TRY(wheel_in_open(now, &e.now, why));
		if (S_ISDIR(st.st_mode)) {
			struct tree_list *list = tree_list_open(old);
			struct tree_item item;

			while (tree_list_next(list, &item))
				if (item.kind == TREE_OTHER || item.kind == TREE_FAULT)
					note_member(&e, item.rest);
			tree_list_close(list);
			if (e.marked) {
				KP_AUTO_FREE char *path =
					xasprintf("%s/%s", old, e.marked);

				(void)below_file_load(path, METADATA_TEXT_MAX, "the file",
						      (uint8_t **)&text, &size, NULL);
			}
		} else if (!wheel_in_open(old, &e.old, NULL)) {
			for (size_t i = 0; i < e.old->count; i++)
				if (!e.old->members[i].directory)
					note_member(&e, e.old->members[i].path);
			if (e.marked && wheel_in_find(e.old, e.marked, &member))
				(void)wheel_in_text(e.old, member, METADATA_TEXT_MAX,
						    &text, &size, NULL);
		}
		/* what cannot be read has no mark */
		if (!text || !strstr(text, mark))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: already exists, and is no output of "
				       "split-wheel; --force replaces it",
				       old);
		if (e.strange)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: already exists, and %s in it is not from "
				       "this input; --force replaces it",
				       old, e.strange);
	}
	if (below_stat(old, &st) < 0)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < s->n_sources; i++)
		if (below_stat(s->sources[i].path, &in) == 0 && st.st_ino == in.st_ino &&
		    st.st_dev == in.st_dev)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: is an input; it is not replaced", old);
	return KPACK_SUCCESS;
}

/* --- inputs ------------------------------------------------------------------------- */

static kpack_error_t compose_names(const struct split *s, const struct wheel_name *name,
				   struct wheel_output *output, struct kpackx_error *why)
{
	KP_TRY(wheel_name_compose(name, output->name, why));
	snprintf(output->final, sizeof(output->final), "%.*s",
		 (int)(strlen(output->name) - (s->args->directory ? strlen(".whl") : 0)),
		 output->name);
	return KPACK_SUCCESS;
}

/*
 * Check what can be checked before any work, make the directories, and open all inputs, which must
 * become one host wheel, whose name is free.
 */
static kpack_error_t open_sources(struct split *s, struct kpackx_error *why)
{
	const struct wheel_split_args *args = s->args;
	const char *const dirs[] = {args->output, args->tmp_dir};
	struct wheel_output host;
	struct dos_time time;
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	KP_TRY(dos_time_read(secure_getenv("SOURCE_DATE_EPOCH"), &time, why));
	/* what is written must not be inside an input directory */
	for (size_t i = 0; i < 2 * args->n_inputs; i++) {
		const char *input = args->inputs[i / 2], *dir = dirs[i % 2];

		if (dir && below_stat(input, &st) == 0 && S_ISDIR(st.st_mode))
			err = output_check_beside(input, dir, why);
		if (err)
			return kp_fail_prefix(why, err, "%s: %s", input, dir);
	}
	/* a run that fails removes what it made, and no directory of the user */
	s->made = below_lstat(args->output, &st) < 0 && errno == ENOENT;
	KP_TRY(below_make_root(args->output, 0777, why));
	s->n_before = below_scandir(args->output, &s->before, NULL);
	KP_TRY(open_temp(args->output, &s->staging, why));
	KP_TRY(make_dir(&s->staging, "out", &s->dir, why));
	if (args->tmp_dir) {
		err = below_root(args->tmp_dir, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", args->tmp_dir);
		KP_TRY(open_temp(args->tmp_dir, &s->work, why));
	}
	s->sources = xcalloc(args->n_inputs, sizeof(*s->sources));
	for (size_t i = 0; i < args->n_inputs; i++) {
		char *dir = xasprintf("%s/%zu",
				      s->work.path ? s->work.path : s->staging.path, i);

		err = wheel_source_open(args, args->inputs[i], dir, &s->sources[i], why);
		s->n_sources++;
		if (err)
			return kp_fail_prefix(why, err, "%s", args->inputs[i]);
		if (args->prefer && !s->prefer &&
		    strcmp(args->inputs[i], args->prefer) == 0)
			s->prefer = &s->sources[i];
	}
	s->host = s->prefer ? s->prefer : &s->sources[0];
	KP_TRY(wheel_items_check(s->sources, s->n_sources, s->prefer, why));
	KP_TRY(compose_names(s, &s->sources[0].name, &host, why));
	return check_free(s, WHEEL_OUTPUT_HOST, host.final, NULL, why);
}

/* --- output wheels ---------------------------------------------------------------------- */

static const char *const kind_names[] = {
	[WHEEL_OUTPUT_DEVICE] = "device",
	[WHEEL_OUTPUT_VARIANT] = "host variant",
	[WHEEL_OUTPUT_HOST] = "host",
};

static kpack_error_t write_output(const struct split *s, struct wheel_output *output,
				  struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", s->dir, output->name);
	KP_AUTO_FREE char *info =
		output->device ? xasprintf("%s-%s.dist-info", output->device->file,
					   s->host->name.version)
			       : xstrdup(s->host->info.dir);
	struct wheel_out_options how = {.dir = s->dir,
					.name = output->name,
					.threads = s->args->jobs,
					.level = s->args->zip_level};
	KP_AUTO(wheel_out) out = {0};
	struct stat st;
	kpack_error_t err;

	for (size_t i = 0; i < s->items.count; i++) {
		const struct wheel_item *item = &s->items.items[i];

		if (item->device != output->device)
			continue;
		if (item->disk)
			KP_TRY(wheel_out_add_file(&out, item->path, item->mode,
						  item->disk, why));
		else
			wheel_out_add_copy(&out, item->path, item->source->in,
					   item->member,
					   item->source->digests[item->member]);
	}
	KP_TRY(wheel_texts_add(s, output, info, &out, why));
	progress_begin(output->name, out.size, !s->args->quiet && !s->args->json);
	err = wheel_out_write(&out, &how, info, why);
	progress_end();
	if (!err && below_lstat(path, &st) < 0)
		err = below_fail(why, "%s", path);
	if (!err)
		output->size = (uint64_t)st.st_size;
	return err;
}

/* --- publishing ---------------------------------------------------------------------- */

/*
 * Give all outputs their names, the host wheel last: if it exists, everything that it needs
 * exists.  INVALID_ARGUMENT: something else has a name; then no output got one.
 */
static kpack_error_t publish_outputs(const struct split *s, struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = -1; /* closing unlocks */

	for (size_t i = 0; s->args->directory && i < s->n_outputs; i++) {
		const struct wheel_output *output = &s->outputs[i];
		KP_AUTO_FREE char *from = xasprintf("%s/%s", s->dir, output->name);
		KP_AUTO_FREE char *to = xasprintf("%s/%s", s->dir, output->final);
		struct wheel_unpack how = {.dir = to, .threads = s->args->jobs};
		struct wheel_in *w = NULL;
		kpack_error_t err = wheel_in_open(from, &w, why);

		if (!err)
			err = wheel_unpack(w, &how, why);
		wheel_in_close(w);
		KP_TRY(err);
	}
	/*
	 * Names are checked again, all before any is given, and given in one go: lock out other
	 * runs into the same directory, if the file system has locks.
	 */
	fd = below_open_following(s->args->output, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return below_fail(why, "%s: cannot open", s->args->output);
	lock_wait(fd, s->args->output);
	for (size_t i = 0; i < s->n_outputs; i++) {
		const struct wheel_output *output = &s->outputs[i];
		KP_AUTO_FREE char *now = xasprintf("%s/%s", s->dir, output->name);

		KP_TRY(check_free(s, output->kind, output->final, now, why));
	}
	for (size_t i = 0; i < s->n_outputs; i++) {
		const char *name = s->outputs[i].final;
		KP_AUTO_FREE char *from = xasprintf("%s/%s", s->dir, name);
		KP_AUTO_FREE char *to = xasprintf("%s/%s", s->args->output, name);
		KP_AUTO_FREE char *old = xasprintf("%s/old-%zu", s->staging.path, i);
		struct stat st;

		/* a directory with the name goes to the staging directory */
		if (below_lstat(to, &st) == 0 && S_ISDIR(st.st_mode) &&
		    below_rename(to, old, 0) < 0)
			return below_fail(why, "%s: cannot be replaced", to);
		if (below_rename(from, to, 0) < 0)
			return below_fail(why, "%s: cannot rename the output to this",
					  to);
	}
	return kp_flush_dir(fd) < 0
		       ? kp_fail_errno(why, errno, "%s: cannot flush", s->args->output)
		       : KPACK_SUCCESS;
}

/* --- other targets ------------------------------------------------------------------- */

/*
 * Device wheels for targets that this run does not have may be another build's, or what is left of
 * an earlier run with more targets.  They are not removed, because nothing tells which.
 */

/* Report the device wheels of this host wheel that are there and not this run's. */
static void report_others(const struct split *s)
{
	const struct device_wheels *d = &s->devices;
	KP_AUTO_FREE char *family = xasprintf("%s-device", d->host);
	KP_AUTO_FREE char *target =
		d->prefix ? xstrdup(d->prefix) : xasprintf("amd-%s-device", d->host);
	struct dirent **names = NULL;
	int count = below_scandir(s->args->output, &names, NULL);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		bool unpacked = !kp_span_ends(kp_span_str(name), ".whl");
		KP_AUTO_FREE char *file = xasprintf("%s%s", name, unpacked ? ".whl" : "");
		KP_AUTO_FREE char *path = xasprintf("%s/%s", s->args->output, name);
		char dist[WHEEL_NAME_MAX + 1], stem[WHEEL_NAME_MAX + 1];
		struct wheel_name parts;
		bool ours = false, device = false;

		for (size_t k = 0; k < s->n_outputs; k++)
			ours |= strncmp(s->outputs[k].name, name, strlen(name)) == 0;
		if (!ours && !wheel_name_parse(file, &parts, NULL) &&
		    strcmp(parts.version, s->host->name.version) == 0 &&
		    dist_name_normal(parts.dist, '-', dist))
			for (int k = 0; k < 2; k++)
				device |= dist_name_normal(k ? family : target, '-',
							   stem) &&
					  strncmp(dist, stem, strlen(stem)) == 0 &&
					  dist[strlen(stem)] == '-';
		if (device)
			report_error(path, "note: is not from this run; it stays");
		free(names[i]);
	}
	free(names);
}

/* --- the report -------------------------------------------------------------------- */

/* Print what was written: a table, or JSON with the extras and what the wheels need. */
static void report_outputs(const struct split *s)
{
	char size[24];
	json_t *files, *names;
	KP_AUTO(wheel_extras) extras = {0};

	for (size_t i = 0; !s->args->json && !s->args->quiet && i < s->n_outputs; i++) {
		printf("%-8s%12s  ", kind_names[s->outputs[i].kind],
		       report_size(s->outputs[i].size, size));
		report_text(s->outputs[i].name);
		putchar('\n');
	}
	if (!s->args->json)
		return;
	files = json_array();
	names = json_array();
	for (size_t i = 0; i < s->n_outputs; i++) {
		const struct wheel_output *output = &s->outputs[i];
		const struct device_wheel *device = output->device;
		json_t *o = json_pack(
			"{s:o, s:s, s:I}", "file", report_json_text(output->name), "kind",
			kind_names[output->kind], "size", (json_int_t)output->size);
		json_t *arches, *needs;

		json_array_append_new(files, o);
		if (!device)
			continue;
		arches = json_array();
		for (size_t k = 0; k < device->n_arches; k++)
			json_array_append_new(arches,
					      report_json_text(device->arches[k]));
		needs = json_array();
		for (size_t k = 0; k < device->n_needs; k++)
			json_array_append_new(needs,
					      report_json_text(device->needs[k]->dist));
		json_object_set_new(o, "part", report_json_text(device->name));
		json_object_set_new(o, "arches", arches);
		json_object_set_new(o, "requires", needs);
		json_object_set_new(o, "distribution", report_json_text(device->dist));
	}
	if (!wheel_extras_list(s, &extras, NULL))
		for (size_t i = 0; i < extras.count; i++)
			json_array_append_new(names,
					      report_json_text(extras.items[i].name));
	report_json(json_pack("{s:o, s:o, s:o, s:o, s:o}", "distribution",
			      report_json_text(s->host->info.name), "version",
			      report_json_text(s->host->info.version), "overlay_root",
			      report_json_text(s->host->overlay), "files", files,
			      "extras", names));
}

/* --- all ------------------------------------------------------------------------------- */

/* Decide which file goes into which wheel, write the wheels, and give them their names. */
static kpack_error_t write_wheels(struct split *s, struct kpackx_error *why)
{
	const struct wheel_split_args *args = s->args;
	KP_AUTO_FREE char *joined = NULL;

	s->devices = (struct device_wheels){.host = s->sources[0].info.name,
					    .prefix = args->prefix};
	for (size_t i = 0; i < args->n_families; i++)
		KP_TRY(families_parse(&s->devices.families, args->families[i], why));
	for (size_t i = 0; i < s->n_sources; i++)
		KP_TRY(wheel_items_add(&s->items, &s->sources[i], &s->devices, why));
	if (s->devices.count == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: no device code found", args->inputs[0]);
	KP_TRY(device_wheels_finish(&s->devices, why));
	KP_TRY(make_dir(&s->staging, "joined", &joined, why));
	KP_TRY(wheel_items_join(&s->items, s->sources, s->n_sources, s->prefer, joined,
				why));
	/* each output has the host's file name, but for distribution or label */
	s->outputs = xcalloc(s->devices.count + 2, sizeof(*s->outputs));
	for (size_t i = 0; i < s->devices.count + 2; i++) {
		struct wheel_output *output = &s->outputs[s->n_outputs];
		struct wheel_name name = s->host->name;

		if (i < s->devices.count) {
			output->kind = WHEEL_OUTPUT_DEVICE;
			output->device = s->devices.items[i];
			name.dist = output->device->file;
		} else if (i == s->devices.count) {
			if (!args->host_label)
				continue;
			output->kind = WHEEL_OUTPUT_VARIANT;
			name.variant = args->host_label;
		} else {
			output->kind = WHEEL_OUTPUT_HOST;
		}
		s->n_outputs++;
		KP_TRY(compose_names(s, &name, output, why));
	}
	for (size_t i = 0; i < s->n_outputs; i++)
		KP_TRY(check_free(s, s->outputs[i].kind, s->outputs[i].final, NULL, why));
	for (size_t i = 0; i < s->n_outputs; i++) {
		kpack_error_t err = write_output(s, &s->outputs[i], why);

		if (err)
			return kp_fail_prefix(why, err, "%s", s->outputs[i].name);
	}
	KP_TRY(publish_outputs(s, why));
	report_others(s);
	return KPACK_SUCCESS;
}

/*
 * What needs no input is checked first, then inputs and the host wheel's name, then inputs are
 * packed, which takes the time; last come names that depend on what was found.
 */
int wheel_split_run(const struct wheel_split_args *args)
{
	struct split s = {.args = args, .staging = {.fd = -1}, .work = {.fd = -1}};
	struct kpackx_error why = {0};
	kpack_error_t err = open_sources(&s, &why);
	char group[WHEEL_NAME_MAX + 1];
	int status = EXIT_OK;

	if (!err && args->group) {
		snprintf(group, sizeof(group), "%s", args->group);
	} else if (!err && !dist_name_normal(s.sources[0].info.name, '_', group)) {
		report_error(NULL, "'%s' cannot be the name of a group: give --group",
			     s.sources[0].info.name);
		status = EXIT_FAULT;
	}
	for (size_t i = 0; !err && !status && i < s.n_sources; i++) {
		struct wheel_source *source = &s.sources[i];
		static const char *const signatures[] = {"RECORD.jws", "RECORD.p7s"};
		size_t member;

		for (size_t k = 0; !args->quiet && k < KP_COUNT(signatures); k++) {
			KP_AUTO_FREE char *path =
				xasprintf("%s/%s", source->info.dir, signatures[k]);

			if (wheel_in_find(source->in, path, &member))
				report_error(
					source->path,
					"note: %s is left out: it signs the old RECORD",
					path);
		}
		status = wheel_source_pack(source, group);
	}
	if (!err && !status)
		err = write_wheels(&s, &why);
	if (err) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	} else if (!status) {
		report_outputs(&s);
	}
	/* the wheels are there, but not all code could be read, as was reported */
	for (size_t i = 0; i < s.n_sources; i++) {
		if (scan_damaged(&s.sources[i].packing.scan))
			status = EXIT_FAULT;
		wheel_source_close(&s.sources[i]);
	}
	free(s.sources);
	free(s.outputs);
	wheel_items_fini(&s.items);
	device_wheels_fini(&s.devices);
	for (int i = 0; i < s.n_before; i++)
		free(s.before[i]);
	free(s.before);
	free(s.dir);
	temp_dir_close(&s.work);
	temp_dir_close(&s.staging);
	if (s.made)
		below_rmdir(args->output); /* unless wheels are in it */
	return status;
}
