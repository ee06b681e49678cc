/* SPDX-License-Identifier: MIT */
#include "debug_files.h"
#include <errno.h>
#include <stdlib.h>
#include "core/format/strip.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

kpack_error_t debug_files_open(struct debug_files *d, const char *dir,
			       struct kpackx_error *why)
{
	d->dir = dir;
	pthread_mutex_init(&d->lock, NULL);
	return below_make_root(dir, 0777, why);
}

static void count_file(struct debug_files *d)
{
	pthread_mutex_lock(&d->lock);
	d->n_files++;
	pthread_mutex_unlock(&d->lock);
}

/* The directory of the file for the build ID in hexadecimal digits. */
static char *dir_of(const struct debug_files *d, const char *id)
{
	return xasprintf("%s/.build-id/%.2s", d->dir, id);
}

static kpack_error_t write_file(const struct debug_files *d, const char *id,
				const struct kp_source *object,
				const struct kp_stripped *debug, struct kpackx_error *why)
{
	char *dir = dir_of(d, id), *name = xasprintf("%s.debug", id + 2);
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	kpack_error_t err = below_mkdirs(dir, 0777, why);

	if (!err)
		err = below_outfile_open_in(&out, dir, name, 0666, why);
	if (!err)
		err = kp_stripped_write(debug, object, &out, 0, why);
	if (!err)
		err = kp_outfile_publish(&out, why);
	kp_outfile_close(&out);
	free(dir);
	free(name);
	return err;
}

static bool debug_file_exists(const struct debug_files *d, const char *id)
{
	char *dir = dir_of(d, id), *path = xasprintf("%s/%s.debug", dir, id + 2);
	struct stat st;
	bool yes = below_lstat(path, &st) == 0 && S_ISREG(st.st_mode);

	free(dir);
	free(path);
	return yes;
}

kpack_error_t debug_files_add(void *arg, const struct kp_source *object, bool written,
			      bool *keep, struct kpackx_error *why)
{
	struct debug_objects *objects = arg;
	struct debug_files *d = objects->files;
	struct kp_stripped debug;
	struct kpackx_error fault = {0};
	char id[KP_BUILD_ID_TEXT];
	kpack_error_t err;

	/* what is damaged stays as it is */
	err = kp_strip_build_id(object, id, &fault);
	if (err == KPACK_ERROR_INVALID_FORMAT)
		*id = '\0';
	else if (err)
		return kp_fail(why, err, "%s", fault.text);
	*keep = !*id;
	objects->n_nameless += *keep;
	if (*keep || !written)
		return KPACK_SUCCESS;
	if (!debug_file_exists(d, id)) {
		err = kp_strip_plan(object, KP_STRIP_KEEP_DEBUG, &debug, why);
		if (!err) {
			err = write_file(d, id, object, &debug, why);
			kp_stripped_fini(&debug);
		}
		if (err)
			return kp_fail_prefix(why, err, "debugging information %s", id);
	}
	count_file(d);
	return KPACK_SUCCESS;
}
