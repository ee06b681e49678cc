/* SPDX-License-Identifier: MIT */
#include "split_source.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "core/base/bounds.h"
#include "packer/files/below.h"
#include "packer/cli/xalloc.h"
#include "record_check.h"
#include "directory.h"
#include "split_overlay.h"
#include "unpack.h"
#include "core/archive/naming.h"

/* --- opening ----------------------------------------------------------------------- */

static kpack_error_t find_file(struct wheel_source *s, struct kpackx_error *why)
{
	struct stat st;

	KP_TRY(below_root_if_directory(s->path, why));
	s->unpacked = below_stat(s->path, &st) == 0 && S_ISDIR(st.st_mode);
	if (s->unpacked)
		return wheel_directory_pack(s->path, s->dir, s->args->jobs, &s->file,
					    why);
	s->file = xstrdup(s->path);
	return KPACK_SUCCESS;
}

static kpack_error_t check_variant(const struct wheel_source *s, struct kpackx_error *why)
{
	if (*s->name.variant)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "it is a variant (%s) already", s->name.variant);
	return KPACK_SUCCESS;
}

kpack_error_t wheel_source_open(const struct wheel_split_args *args, const char *path,
				char *dir, struct wheel_source *out,
				struct kpackx_error *why)
{
	size_t count;

	*out = (struct wheel_source){.args = args, .path = path, .dir = dir};
	KP_TRY(find_file(out, why));
	KP_TRY(wheel_name_parse(kp_path_name(out->file), &out->name, why));
	KP_TRY(check_variant(out, why));
	KP_TRY(wheel_in_open(out->file, &out->in, why));
	KP_TRY(wheel_reader_new(out->in, &out->reader, why));
	KP_TRY(dist_info_read(out->in, out->reader, &out->name, &out->info, why));
	KP_TRY(record_check(out->in, out->reader, out->info.dir, &out->record, why));
	wheel_in_members(out->in, &count);
	out->digests = xcalloc(count, sizeof(*out->digests));
	return KPACK_SUCCESS;
}

void wheel_source_close(struct wheel_source *s)
{
	partition_close(&s->partition);
	packing_close(&s->packing);
	dist_info_fini(&s->info);
	record_fini(&s->record);
	wheel_reader_free(s->reader);
	wheel_in_close(s->in);
	free(s->digests);
	free(s->overlay);
	free(s->root);
	free(s->rest);
	free(s->file);
	free(s->dir);
	*s = (struct wheel_source){0};
}

const char *wheel_source_inside(const struct wheel_source *s, const char *path)
{
	size_t n = strlen(s->overlay);

	if (n == 0)
		return path;
	return strncmp(path, s->overlay, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* --- unpacking --------------------------------------------------------------------- */

static void advance_progress(void *arg, uint64_t bytes)
{
	progress_add(arg, bytes);
}

static uint64_t bytes_of(const struct wheel_in *w)
{
	size_t count;
	const struct wheel_member *members = wheel_in_members(w, &count);
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += members[i].size;
	return bytes;
}

static kpack_error_t unpack_source(struct wheel_source *s, const char *tree,
				   struct kpackx_error *why)
{
	struct progress progress;
	struct wheel_unpack how = {.dir = tree,
				   .threads = s->args->jobs,
				   .progress = advance_progress,
				   .arg = &progress,
				   .digests = s->digests};
	kpack_error_t err;

	KP_TRY(below_mkdirs(tree, 0777, why));
	progress_begin(&progress, "unpacking", bytes_of(s->in),
		       !s->args->quiet && !s->args->json);
	err = wheel_unpack(s->in, &s->record, &how, why);
	progress_end(&progress);
	return err;
}

/* --- packing ----------------------------------------------------------------------- */

kpack_error_t wheel_source_families(const struct wheel_split_args *args,
				    struct families *out, struct kpackx_error *why)
{
	for (size_t i = 0; i < args->n_families; i++) {
		const char *text = args->families[i], *equals = strchr(text, '=');

		if (!equals)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: not NAME=ARCH,...", text);
		KP_TRY(families_add(
			out,
			(struct kp_span){(const uint8_t *)text, (size_t)(equals - text)},
			equals + 1, why));
	}
	return KPACK_SUCCESS;
}

/* The overlay must not have archives yet, because they would be changed. */
static kpack_error_t check_archives(const struct wheel_source *s,
				    struct kpackx_error *why)
{
	static const char archives[] = KP_ARCHIVES_DIR;
	size_t count, n = strlen(archives);
	const struct wheel_member *members = wheel_in_members(s->in, &count);

	for (size_t i = 0; i < count; i++) {
		const char *inside = wheel_source_inside(s, members[i].path);

		if (inside && strncmp(inside, archives, n) == 0 &&
		    (inside[n] == '/' || inside[n] == '\0'))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: it was split already", members[i].path);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t set_args(struct wheel_source *s, const char *group,
			      struct kpackx_error *why)
{
	const struct wheel_split_args *args = s->args;
	struct pack_args *out = &s->packing.args;

	pack_args_init(out);
	out->mode = PACK_IN_PLACE;
	out->quiet = args->quiet;
	out->json = args->json;
	out->databases = args->databases;
	out->how.scheme = args->scheme;
	out->how.level = args->level;
	out->how.jobs = args->jobs;
	if (args->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		out->volume_size = UINT64_MAX;
	out->group = xstrdup(group);
	out->prefix = xstrdup("");
	KP_TRY(wheel_source_families(args, &out->families, why));
	KP_TRY(library_set_open(args->libraries, NULL, &out->libraries, why));
	out->libraries.plain = args->databases == DATABASES_IDENTIFIED;
	return KPACK_SUCCESS;
}

/* Unpack into DIR/tree, the wheel's root; the overlay is moved to DIR/overlay. */
static kpack_error_t prepare_source(struct wheel_source *s, const char *group,
				    struct kpackx_error *why)
{
	char *moved;
	kpack_error_t err;

	s->rest = xasprintf("%s/tree", s->dir);
	KP_TRY(set_args(s, group, why));
	KP_TRY(unpack_source(s, s->rest, why));
	moved = xasprintf("%s/overlay", s->dir);
	err = wheel_overlay_find(s->in, s->rest, s->args->overlay,
				 &s->packing.args.libraries, moved, &s->overlay, why);
	if (!err)
		err = check_archives(s, why);
	if (!err)
		s->root = xstrdup(*s->overlay ? moved : s->rest);
	free(moved);
	return err;
}

/* Report binaries that cannot be converted: they would keep their device code. */
static int check_refused(const struct wheel_source *s)
{
	const struct scan *scan = &s->packing.scan;
	int status = EXIT_OK;

	for (size_t i = 0; i < s->packing.dispositions.count; i++) {
		const struct disposition *o = &s->packing.dispositions.items[i];

		if (o->fate != FATE_REFUSED)
			continue;
		report_error(scan->entries[i].relative, "cannot be converted: %s",
			     o->reason ? o->reason : "unknown");
		status = EXIT_FAULT;
	}
	return status;
}

static int pack_overlay(struct wheel_source *s)
{
	struct kpackx_error why = {0};
	int status;

	s->packing.args.input = s->packing.args.output = s->root;
	status = packing_run(&s->packing);
	if (status)
		return status;
	if (s->packing.scan.n_faults || check_refused(s))
		return EXIT_FAULT;
	if (!partition_open(&s->packing, &s->partition, &why))
		return EXIT_OK;
	report_why(s->path, &why);
	return EXIT_FAULT;
}

/* Pack; messages about the unpacked tree name the wheel instead. */
static int pack_in_place(struct wheel_source *s)
{
	char *shown = xasprintf("%s%s%s", s->path, *s->overlay ? "/" : "", s->overlay);
	int status;

	report_in_place(s->root, shown);
	status = pack_overlay(s);
	report_in_place(NULL, NULL);
	free(shown);
	return status;
}

int wheel_source_pack(struct wheel_source *s, const char *group)
{
	struct kpackx_error why = {0};

	if (!prepare_source(s, group, &why))
		return pack_in_place(s);
	report_why(s->path, &why);
	return EXIT_FAULT;
}
