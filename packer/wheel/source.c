/* SPDX-License-Identifier: MIT */
/*
 * An input wheel: checked, unpacked, and with its device code packed in place.  The archives go
 * into the overlay, the directory whose files find them: keys of archives and search paths
 * in binaries are relative to it, and all wheels add their archives to it when they are
 * installed.  It must have all device code, because code elsewhere would stay in the host
 * wheel.
 */
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "split.h"

kpack_error_t wheel_source_open(const struct wheel_split_args *args, const char *path,
				char *dir, struct wheel_source *out,
				struct kpackx_error *why)
{
	char name[WHEEL_NAME_MAX + 1];
	struct stat st;

	*out = (struct wheel_source){.args = args, .path = path, .dir = dir};
	if (below_mkdir(dir, 0777) < 0)
		return below_fail(why, "%s: cannot make the directory", dir);
	KP_TRY(below_root_if_directory(path, why));
	if (below_stat(path, &st) < 0)
		return below_fail(why,
				  "it cannot be read; it must be a .whl file, or the "
				  "directory that one was unpacked to");
	out->unpacked = S_ISDIR(st.st_mode);
	/* a directory has no name that says anything: METADATA and WHEEL give it one below */
	if (out->unpacked) {
		KP_TRY(wheel_pack_directory(path, dir, args->jobs, &out->file, why));
	} else {
		out->file = xstrdup(path);
		KP_TRY(wheel_name_parse(kp_path_name(path), &out->name, why));
		if (*out->name.variant)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "it is a variant (%s) already", out->name.variant);
	}
	KP_TRY(wheel_in_open(out->file, &out->in, why));
	KP_TRY(dist_info_read(out->in, out->unpacked ? NULL : &out->name, &out->info,
			      why));
	if (out->unpacked) {
		KP_TRY(dist_info_file_name(&out->info, name, why));
		KP_TRY(wheel_name_parse(name, &out->name, why));
	}
	KP_TRY(record_check(out->in, out->info.dir, &out->record, why));
	out->digests = xcalloc(out->in->count, sizeof(*out->digests));
	return KPACK_SUCCESS;
}

void wheel_source_close(struct wheel_source *s)
{
	partition_close(&s->partition);
	packing_close(&s->packing);
	dist_info_fini(&s->info);
	record_fini(&s->record);
	wheel_in_close(s->in);
	free(s->digests);
	free(s->overlay);
	free(s->root);
	free(s->tree);
	free(s->file);
	free(s->dir);
	*s = (struct wheel_source){0};
}

const char *wheel_source_inside(const struct wheel_source *s, const char *path)
{
	return *s->overlay ? kp_path_below(path, s->overlay) : path;
}

/* --- the overlay ----------------------------------------------------------------------- */

/* Whether an installer moves what is in PATH's top directory: *.data and *.dist-info. */
static bool is_special(const char *path)
{
	struct kp_span top = {(const uint8_t *)path, strcspn(path, "/")};

	return kp_span_ends(top, ".data") || kp_span_ends(top, ".dist-info");
}

/* Where device code is: see find_code. */
struct code {
	char *first; /* the first file with some; NULL: there is none */
	char *top;   /* the top-level directory that has all; "": there is none */
	char *moved; /* a file with some that an installer would move; or NULL */
};

static void code_fini(struct code *code)
{
	free(code->first);
	free(code->top);
	free(code->moved);
}

/* There is device code in PATH. */
static void note_code(struct code *code, const char *path)
{
	size_t n = strcspn(path, "/");

	if (!path[n])
		n = 0;
	if (!code->moved && is_special(path))
		code->moved = xstrdup(path);
	if (!code->first) {
		code->first = xstrdup(path);
		code->top = xstrndup(path, n);
	} else if (strlen(code->top) != n || strncmp(code->top, path, n) != 0) {
		code->top[0] = '\0';
	}
}

static bool is_covered(const void *arg, const char *path)
{
	return strcmp(arg, path) == 0;
}

/* Find the device code of the unpacked wheel, but for that in the directory WITHOUT ("": none). */
static kpack_error_t find_code(const struct wheel_source *s, const char *without,
			       struct code *code, struct kpackx_error *why)
{
	KP_AUTO_FREE char *covered = xasprintf("%s/%s", s->tree, without);
	struct scan scan = {.skip = {.covered = is_covered, .arg = covered}};
	kpack_error_t err = scan_open(s->tree, "", SCAN_CONVERTIBLE,
				      &s->packing.args.libraries, SCAN_FIND, &scan, why);

	for (size_t i = 0; !err && i < scan.n_entries; i++)
		if (scan.entries[i].input && !scan.entries[i].database)
			note_code(code, scan.entries[i].relative);
	for (size_t i = 0; !err && scan.found.objects && i < scan.files.count; i++) {
		const struct library_object *o = scan.found.objects[i];
		const struct scan_entry *e = &scan.entries[scan.file_entries[i]];

		/* files of databases that are for all GPUs stay in the host wheel */
		if (e->database && o && strcmp(o->arches[0], KP_ARCH_GENERIC) != 0)
			note_code(code, e->relative);
	}
	scan_close(&scan);
	return err;
}

/*
 * Take --overlay-root, which must be a directory that has all device code; or the top-level
 * directory that has all of it, or else the root.
 */
static kpack_error_t choose_overlay(struct wheel_source *s, struct kpackx_error *why)
{
	const char *given = s->args->overlay, *best = "", *at = "";
	KP_AUTO(code) rest = {0}, all = {0};
	uint64_t most = 0, bytes = 0;
	bool there = false;

	if (given) {
		s->overlay = xstrdup(given);
		while (*s->overlay && s->overlay[strlen(s->overlay) - 1] == '/')
			s->overlay[strlen(s->overlay) - 1] = '\0';
		if (strcmp(given, ".") == 0) {
			s->overlay[0] = '\0';
			return KPACK_SUCCESS;
		}
		for (size_t i = 0; !there && i < s->in->count; i++)
			there = kp_path_below(s->in->members[i].path, s->overlay);
		if (!there || !kp_path_ok(kp_span_str(s->overlay)))
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"Overlay root '%s' is not a directory of the wheel",
				given);
		if (is_special(s->overlay))
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"Overlay root '%s' is a directory that installers move",
				given);
		KP_TRY(find_code(s, s->overlay, &rest, why));
		if (rest.first)
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"%s: its device code is outside of the overlay root %s",
				rest.first, s->overlay);
		return KPACK_SUCCESS;
	}
	/* usually that with the most bytes has all code: then a scan of the rest, which is small, does */
	for (size_t i = 0; i < s->in->count; i++) {
		const char *path = s->in->members[i].path;
		size_t n = strcspn(path, "/");

		if (path[n] != '/' || is_special(path))
			continue;
		if (strncmp(path, at, n + 1) != 0) {
			at = path;
			bytes = 0;
		}
		bytes += s->in->members[i].size + 1; /* empty files count, too */
		if (bytes > most) {
			most = bytes;
			best = at;
		}
	}
	s->overlay = xstrndup(best, strcspn(best, "/"));
	if (*s->overlay) {
		KP_TRY(find_code(s, s->overlay, &rest, why));
		if (!rest.first)
			return KPACK_SUCCESS;
	}
	KP_TRY(find_code(s, "", &all, why));
	if (all.moved)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: device code in a directory that installers move",
			       all.moved);
	free(s->overlay);
	s->overlay = xstrdup(all.top ? all.top : "");
	return KPACK_SUCCESS;
}

/* --- packing --------------------------------------------------------------------------- */

/* Set what packing needs, unpack, and find the overlay, which has no archives yet. */
static kpack_error_t prepare_source(struct wheel_source *s, const char *group,
				    struct kpackx_error *why)
{
	const struct wheel_split_args *args = s->args;
	struct pack_args *out = &s->packing.args;
	struct wheel_unpack how = {
		.threads = args->jobs, .record = &s->record, .digests = s->digests};
	uint64_t bytes = 0;
	kpack_error_t err;

	pack_args_init(out);
	out->mode = PACK_IN_PLACE;
	out->quiet = args->quiet;
	out->json = args->json;
	out->drop_signature = args->drop_signature;
	out->databases = args->databases;
	out->how.scheme = args->scheme;
	out->how.level = args->level;
	out->how.jobs = args->jobs;
	if (args->scheme != KPACK_COMPRESSION_ZSTD_PER_KERNEL)
		out->volume_size = UINT64_MAX;
	out->group = xstrdup(group);
	out->prefix = xstrdup("");
	for (size_t i = 0; i < args->n_families; i++)
		KP_TRY(families_parse(&out->families, args->families[i], why));
	KP_TRY(library_set_open(args->libraries, NULL, &out->libraries, why));
	/* files that stay files need not be whole */
	out->libraries.plain = args->databases == DATABASES_IDENTIFIED;

	how.dir = s->tree = xasprintf("%s/tree", s->dir);
	for (size_t i = 0; i < s->in->count; i++)
		bytes += s->in->members[i].size;
	progress_begin("unpacking", bytes, !args->quiet && !args->json);
	err = wheel_unpack(s->in, &how, why);
	progress_end();
	if (err)
		return err;

	KP_TRY(choose_overlay(s, why));
	s->root = xasprintf("%s%s%s", s->tree, *s->overlay ? "/" : "", s->overlay);
	for (size_t i = 0; i < s->in->count; i++) {
		const char *inside = wheel_source_inside(s, s->in->members[i].path);

		/* packing would add to these archives, and nothing could tell the two apart */
		if (inside && kp_path_within(kp_span_str(inside), KP_ARCHIVES_DIR))
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: it was split already",
				       s->in->members[i].path);
	}
	return KPACK_SUCCESS;
}

int wheel_source_pack(struct wheel_source *s, const char *group)
{
	const struct packing *p = &s->packing;
	KP_AUTO_FREE char *shown = NULL;
	struct kpackx_error why = {0};
	int status;

	if (prepare_source(s, group, &why)) {
		report_why(s->path, &why);
		return EXIT_FAULT;
	}
	/* messages about the unpacked tree name the wheel */
	shown = xasprintf("%s%s%s", s->path, *s->overlay ? "/" : "", s->overlay);
	report_in_place(s->root, shown);
	s->packing.args.input = s->packing.args.output = s->root;
	status = packing_run(&s->packing);
	if (status)
		goto out;
	if (p->scan.n_faults)
		status = EXIT_FAULT;
	/*
	 * A binary that cannot be converted is a note for a tree.  Here it is a fault, because a
	 * host wheel that kept some device code would be split by halves, and nobody looks
	 * into it.
	 */
	for (size_t i = 0; i < p->dispositions.count; i++) {
		const struct disposition *o = &p->dispositions.items[i];

		if (o->fate != FATE_REFUSED)
			continue;
		report_error(p->scan.entries[i].relative, "cannot be converted: %s",
			     o->reason ? o->reason : "unknown");
		status = EXIT_FAULT;
	}
	if (!status && partition_open(p, &s->partition, &why)) {
		report_why(s->path, &why);
		status = EXIT_FAULT;
	}
out:
	report_in_place(NULL, NULL);
	return status;
}
