/* SPDX-License-Identifier: MIT */
#include "shard_host.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/files/attributes.h"
#include "packer/files/below.h"
#include "packer/archives/binary.h"
#include "packer/archives/volume.h"
#include "core/archive/naming.h"

/* --- saving -------------------------------------------------------------------------- */

static kpack_error_t copy_host(struct input *in, bool code, int fd,
			       struct kp_outfile *out, struct kpackx_error *why)
{
	uint64_t size = (uint64_t)in->st.st_size;
	uint64_t hole = code ? size : in->fat.elf.fatbin_offset;
	uint64_t rest = code ? size : hole + in->fat.elf.fatbin_size;

	if (ftruncate(out->fd, in->st.st_size) < 0)
		return kp_fail_errno(why, errno, "cannot be made that long");
	KP_TRY(kp_outfile_copy(out, 0, fd, 0, hole, why));
	KP_TRY(kp_outfile_copy(out, rest, fd, rest, size - rest, why));
	return kp_outfile_publish(out, why);
}

kpack_error_t shard_host_save(struct input *in, bool code, const char *path,
			      struct kpackx_error *why)
{
	struct kp_outfile out;
	kpack_error_t err;
	int fd;

	KP_TRY(input_hold(in, &fd, why));
	err = below_outfile_open(&out, path, 0666, why);
	if (!err)
		err = copy_host(in, code, fd, &out, why);
	kp_outfile_close(&out);
	input_release(in);
	return err;
}

/* --- converting again ---------------------------------------------------------------- */

static char *archive_file_name(const char *group, unsigned volume, const char *stem)
{
	char *name = kp_archive_file_name(group, volume, stem);

	if (!name)
		xalloc_fail(0);
	return name;
}

/* Returns PATH with the other volume. */
static char *change_volume(const char *path, const char *group, unsigned old_volume,
			   unsigned volume)
{
	const char *file = kp_path_name(path);
	char *begin = archive_file_name(group, old_volume, ""), *name, *out;
	size_t n = strlen(begin) - strlen(KP_ARCHIVE_SUFFIX), end = strlen(file);

	if (strncmp(file, begin, n) == 0 && end >= n + strlen(KP_ARCHIVE_SUFFIX)) {
		char *stem = xstrndup(file + n, end - n - strlen(KP_ARCHIVE_SUFFIX));

		name = archive_file_name(group, volume, stem);
		free(stem);
	} else {
		name = xstrdup(file);
	}
	free(begin);
	out = xasprintf("%.*s%s", (int)(file - path), path, name);
	free(name);
	return out;
}

static kpack_error_t make_marker(const struct kp_marker *old, const char *group,
				 unsigned old_volume, unsigned volume, uint8_t **out,
				 size_t *size, struct kpackx_error *why)
{
	size_t n = old->n_search_paths;
	struct kp_marker marker = {.kernel_name = old->kernel_name,
				   .search_paths = xcalloc(n, sizeof(char *)),
				   .n_search_paths = n};
	kpack_error_t err;

	for (size_t i = 0; i < n; i++)
		marker.search_paths[i] =
			change_volume(old->search_paths[i], group, old_volume, volume);
	err = kp_marker_write(&marker, out, size, why);
	for (size_t i = 0; i < n; i++)
		free(marker.search_paths[i]);
	free(marker.search_paths);
	return err;
}

/*
 * Keep only the wrappers that the first conversion found: whether one only looks like a
 * wrapper shows only with its container, which HOST lacks.
 */
static void keep_wrappers(struct kp_elf *elf, const struct kp_elf *converted)
{
	size_t n = 0, at = 0;

	for (size_t i = 0; i < elf->n_wrappers && at < converted->n_wrappers; i++)
		if (elf->wrappers[i].vaddr == converted->wrappers[at].vaddr) {
			elf->wrappers[n++] = elf->wrappers[i];
			at++;
		}
	elf->n_wrappers = n;
}

static kpack_error_t write_again(int host, uint64_t size, const struct binary *from,
				 struct kp_span marker, struct kp_outfile *out,
				 struct kpackx_error *why)
{
	struct kp_fatbin fat = {.kind = KP_FATBIN_ELF, .format = "elf"};
	struct kp_recipe recipe = {0};
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = host, .size = size};
	struct kp_convert_options options = {.marker = marker,
					     .recipe = kp_recipe_complete,
					     .recipe_arg = &maker,
					     .keep_device_code =
						     from->where.has_device_code};
	struct kp_source stored = kp_source_fd(from->fd, from->where.layout_offset,
					       from->where.layout_size);
	kpack_error_t err;

	KP_TRY(kp_elf_read(host, size, &fat.elf, why));
	keep_wrappers(&fat.elf, &from->fat.elf);
	err = kp_recipe_read(&stored, &recipe, why);
	if (!err)
		err = kp_convert(host, size, &fat, &options, out, why);
	free((void *)maker.bytes.data);
	kp_recipe_fini(&recipe);
	kp_elf_fini(&fat.elf);
	return err;
}

/*
 * The copy gets the owner and the set-user-ID bits of FROM, so its bytes must not come from
 * a third user, who may own the directory of the part.
 */
static kpack_error_t check_owner(const char *host, const struct stat *st,
				 const struct binary *from, struct kpackx_error *why)
{
	if (st->st_uid == geteuid() || st->st_uid == from->st.st_uid)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "%s: belongs to user %u, who could have put it there; check it, "
		       "and give it the owner of the part's file",
		       host, (unsigned)st->st_uid);
}

static kpack_error_t convert_host(const char *host, const struct binary *from,
				  struct kp_span marker, const char *to,
				  struct kpackx_error *why)
{
	struct kp_outfile out = {.fd = -1, .dir_fd = -1};
	kpack_error_t err;
	struct stat st;
	int fd;

	KP_TRY(below_file_open_nofollow(host, &fd, &st, why));
	err = check_owner(host, &st, from, why);
	if (err)
		goto out;
	/* no other user may read it before it has its permissions */
	err = below_outfile_open(&out, to, 0600, why);
	if (err)
		goto out;
	err = write_again(fd, (uint64_t)st.st_size, from, marker, &out, why);
	if (err)
		goto out;
	err = attributes_copy(from->fd, out.fd, &from->st, why);
	if (err)
		goto out;
	err = kp_outfile_publish(&out, why);
out:
	kp_outfile_close(&out);
	close(fd);
	return err;
}

kpack_error_t shard_host_convert(const char *host, const char *from, const char *to,
				 const char *group, unsigned old_volume, unsigned volume,
				 struct kpackx_error *why)
{
	uint8_t *marker = NULL;
	struct binary b;
	kpack_error_t err;
	size_t size = 0;

	KP_TRY(binary_open(from, &b, why));
	err = binary_read_marker(&b, why);
	if (!err)
		err = make_marker(&b.marker, group, old_volume, volume, &marker, &size,
				  why);
	if (!err)
		err = convert_host(host, &b, (struct kp_span){marker, size}, to, why);
	free(marker);
	binary_close(&b);
	return err;
}
