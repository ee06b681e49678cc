/* SPDX-License-Identifier: MIT */
#include "wheel_list.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "core/base/bounds.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

static kpack_error_t refuse_member(struct kpackx_error *why, const char *path,
				   const char *text)
{
	char shown[160];

	kp_text_escape(kp_span_str(path), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s", shown, text);
}

/* True for a drive, "C:": on Windows such a path leaves the installation directory. */
static bool has_drive(struct kp_span path)
{
	return path.size > 1 && isalpha(path.data[0]) && path.data[1] == ':';
}

static kpack_error_t check_name(const char *name, struct kp_span path,
				struct kpackx_error *why)
{
	const char *fault = kp_path_fault(path);

	if (fault)
		return refuse_member(why, name, fault);
	if (memchr(path.data, '\\', path.size))
		return refuse_member(why, name, "it has a backslash");
	if (has_drive(path))
		return refuse_member(why, name, "it begins with a drive");
	return KPACK_SUCCESS;
}

/* Read permission bits; like installers, ignore the system that the member claims. */
static kpack_error_t read_mode(struct wheel_member *m, uint32_t attributes,
			       struct kpackx_error *why)
{
	mode_t mode = attributes >> 16, type = mode & S_IFMT;

	if (S_ISLNK(mode))
		return refuse_member(why, m->path, "a symbolic link");
	if (type && type != (m->directory ? S_IFDIR : S_IFREG))
		return refuse_member(why, m->path, "neither a file nor a directory");
	m->mode = mode & 0777;
	if (m->mode == 0)
		m->mode = m->directory ? 0755 : 0644;
	return KPACK_SUCCESS;
}

static kpack_error_t check_data(const struct wheel_member *m, unsigned flags,
				struct kpackx_error *why)
{
	if (flags & ZIP_ENCRYPTED)
		return refuse_member(why, m->path, "encrypted");
	if (m->method != ZIP_STORED && m->method != ZIP_DEFLATED)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: compression method %d", m->path, m->method);
	if (m->method == ZIP_STORED && m->size != m->compressed)
		return refuse_member(why, m->path, "stored with another size");
	if (m->directory && m->size)
		return refuse_member(why, m->path, "a directory with bytes");
	if (m->size / KP_ZLIB_RATIO_MAX > m->compressed)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: %" PRIu64 " bytes cannot decode to %" PRIu64, m->path,
			       m->compressed, m->size);
	return KPACK_SUCCESS;
}

static kpack_error_t read_member(struct wheel_member *m, const struct central_entry *c,
				 struct kpackx_error *why)
{
	struct kp_span path = kp_span_str(c->name);

	if (c->has_nul)
		return refuse_member(why, c->name, "its entry can be read in two ways");
	m->directory = path.size && path.data[path.size - 1] == '/';
	path.size -= m->directory;
	KP_TRY(check_name(c->name, path, why));
	m->path = xstrndup(c->name, path.size);
	m->size = c->size;
	m->compressed = c->compressed;
	m->crc = c->crc;
	m->method = c->method;
	m->flags = c->flags & ZIP_DATA;
	m->text = c->text;
	KP_TRY(check_data(m, c->flags, why));
	return read_mode(m, c->attributes, why);
}

/* Subtract instead of adding: sizes can be any 64-bit number. */
static kpack_error_t check_sum(const struct wheel_list *list, uint64_t file_size,
			       struct kpackx_error *why)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (list->members[i].size > WHEEL_SIZE_MAX - sum)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "decodes to more than %" PRIu64 " bytes",
				       WHEEL_SIZE_MAX);
		sum += list->members[i].size;
	}
	if (sum > WHEEL_RATIO_FREE && sum / WHEEL_RATIO_MAX > file_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " bytes decode to %" PRIu64
			       ", more than %d times as many",
			       file_size, sum, WHEEL_RATIO_MAX);
	return KPACK_SUCCESS;
}

static int by_path(const void *a, const void *b, void *arg)
{
	const struct wheel_list *list = arg;

	return strcmp(list->members[*(const uint32_t *)a].path,
		      list->members[*(const uint32_t *)b].path);
}

bool wheel_list_find(const struct wheel_list *list, struct kp_span path, size_t *member)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		struct kp_span at = kp_span_str(list->members[list->by_path[mid]].path);
		int c = kp_span_cmp(at, path);

		if (c == 0) {
			*member = list->by_path[mid];
			return true;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* Check that no parent directory of a member is a file. */
static kpack_error_t check_above(const struct wheel_list *list,
				 const struct wheel_member *m, struct kpackx_error *why)
{
	const char *slash = m->path;
	size_t above;

	while ((slash = strchr(slash, '/'))) {
		struct kp_span dir = {(const uint8_t *)m->path, slash - m->path};

		if (wheel_list_find(list, dir, &above) && !list->members[above].directory)
			return refuse_member(why, m->path, "it stands below a file");
		slash++;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_clashes(struct wheel_list *list, struct kpackx_error *why)
{
	list->by_path = calloc(list->count + 1, sizeof(*list->by_path));
	if (!list->by_path)
		return kp_fail_memory(why, list->count * sizeof(*list->by_path),
				      "members");
	for (size_t i = 0; i < list->count; i++)
		list->by_path[i] = (uint32_t)i;
	if (list->count)
		qsort_r(list->by_path, list->count, sizeof(*list->by_path), by_path,
			list);
	for (size_t i = 1; i < list->count; i++) {
		const char *path = list->members[list->by_path[i]].path;

		if (strcmp(path, list->members[list->by_path[i - 1]].path) == 0)
			return refuse_member(why, path, "it occurs twice");
	}
	for (size_t i = 0; i < list->count; i++)
		KP_TRY(check_above(list, &list->members[i], why));
	return KPACK_SUCCESS;
}

kpack_error_t wheel_list_read(struct wheel_list *list, const struct central *central,
			      uint64_t size, struct kpackx_error *why)
{
	list->members = calloc(central->count + 1, sizeof(*list->members));
	if (!list->members)
		return kp_fail_memory(why, central->count * sizeof(*list->members),
				      "members");
	for (size_t i = 0; i < central->count; i++) {
		list->count++;
		KP_TRY(read_member(&list->members[i], &central->entries[i], why));
	}
	KP_TRY(check_sum(list, size, why));
	return check_clashes(list, why);
}

void wheel_list_fini(struct wheel_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free((char *)list->members[i].path);
	free(list->members);
	free(list->by_path);
	*list = (struct wheel_list){0};
}
