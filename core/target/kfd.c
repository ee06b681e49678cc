/* SPDX-License-Identifier: MIT */
/*
 * KFD's topology in sysfs: the nodes are read in the order of their numbers, which is that in
 * which ROCm numbers them.
 *
 * No ROCm library is asked: it may be missing (a server that packs for other machines, an early
 * mount at boot), and it opens the GPUs.  A damaged node is a fault that is listed, and not an
 * error: the other GPUs still need their code.
 */
#include "kfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/file.h"
#include "core/base/order.h"
#include "core/base/text.h"

/* Parse at most nine digits; no version has more. */
static bool parse_number(struct kp_span digits, unsigned *out)
{
	unsigned n = 0;

	if (digits.size == 0 || digits.size > 9)
		return false;
	for (size_t i = 0; i < digits.size; i++) {
		if (digits.data[i] < '0' || digits.data[i] > '9')
			return false;
		n = 10 * n + (unsigned)(digits.data[i] - '0');
	}
	*out = n;
	return true;
}

kpack_error_t kp_gpus_parse(struct kp_span properties, struct kp_target *gpu, bool *found,
			    struct kpackx_error *why)
{
	unsigned version, minor, stepping;
	struct kp_span text;
	bool stated = false;
	char shown[64];

	*found = false;
	while (!stated && properties.size) {
		text = kp_span_word(&properties, "\n");
		stated = kp_span_take(&text, "gfx_target_version ");
	}
	if (!stated)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no gfx_target_version");
	if (!parse_number(text, &version))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "gfx_target_version \"%s\" is no number",
			       kp_text_escape(text, shown, sizeof(shown)));
	if (version == 0)
		return KPACK_SUCCESS;
	/*
	 * In a name, minor and stepping have one hexadecimal digit each, the major number is
	 * decimal: 90010 is gfx90a, and 110000 is gfx1100.
	 */
	minor = version / 100 % 100;
	stepping = version % 100;
	if (version < 10000 || minor > 15 || stepping > 15)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "gfx_target_version %u is not that of a GPU", version);
	snprintf(shown, sizeof(shown), "gfx%u%x%x", version / 10000, minor, stepping);
	KP_TRY(kp_target_parse(kp_span_str(shown), gpu, why));
	*found = true;
	return KPACK_SUCCESS;
}

/*
 * Add the GPU of a node, if the node is a GPU.  One that cannot be read is a fault in the list; only
 * without memory the whole fails.
 */
static kpack_error_t add_node(struct kp_gpus *g, const char *nodes, unsigned node,
			      size_t *cap, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *buf = malloc(KP_TOPOLOGY_PROPERTIES_MAX);
	KP_AUTO_FREE char *path = NULL;
	KP_AUTO_CLOSE int fd = -1;
	struct kpackx_error reason = {0};
	struct kp_gpu gpu = {.node = node, .number = g->n_nodes};
	bool found = false, hidden;
	size_t size = 0;
	ssize_t n = 1;
	struct stat st;
	kpack_error_t err;

	if (!buf || asprintf(&path, "%s/%u/properties", nodes, node) < 0) {
		path = NULL;
		return kp_fail_memory(why, KP_TOPOLOGY_PROPERTIES_MAX, "properties");
	}
	err = kp_file_open(path, &fd, &st, &reason);
	/* to the end: a file of sysfs says that it has 4096 bytes, whatever is in it */
	while (!err && n && size < KP_TOPOLOGY_PROPERTIES_MAX) {
		n = read(fd, buf + size, KP_TOPOLOGY_PROPERTIES_MAX - size);
		if (n > 0)
			size += (size_t)n;
		else if (n < 0 && errno != EINTR)
			err = kp_fail_errno(&reason, errno, "cannot read");
	}
	if (!err)
		err = kp_gpus_parse((struct kp_span){buf, size}, &gpu.target, &found,
				    &reason);
	/* the driver hides GPUs from a container in this way */
	hidden = err && (reason.sys_errno == EPERM || reason.sys_errno == EACCES);
	g->n_nodes += !hidden;
	if (err && !hidden)
		kp_faults_add(&g->faults, true, "%s: %s", path, reason.text);
	if (err || !found)
		return KPACK_SUCCESS;
	KP_TRY(kp_room(&g->list, g->count, cap, "GPUs", why));
	g->list[g->count++] = gpu;
	return KPACK_SUCCESS;
}

/* The entries of DIR whose names are numbers, sorted; the caller frees *OUT. */
static kpack_error_t list_nodes(DIR *dir, unsigned **out, size_t *count,
				struct kpackx_error *why)
{
	size_t cap = 0;
	struct dirent *e;
	unsigned node;

	while ((errno = 0, e = readdir(dir))) {
		/* "00" would be node 0 twice */
		if (!parse_number(kp_span_str(e->d_name), &node) ||
		    (e->d_name[0] == '0' && e->d_name[1]))
			continue;
		if (*count == KP_TOPOLOGY_NODES_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "more than %d nodes", KP_TOPOLOGY_NODES_MAX);
		KP_TRY(kp_room(out, *count, &cap, "nodes", why));
		(*out)[(*count)++] = node;
	}
	if (errno)
		return kp_fail_errno(why, errno, "cannot list the nodes");
	kp_sort(*out, *count, KP_AS_NUMBER(unsigned));
	return KPACK_SUCCESS;
}

static DIR *open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

kpack_error_t kp_gpus_read(const char *topology, struct kp_gpus *out,
			   struct kpackx_error *why)
{
	KP_AUTO_FREE char *below = NULL;
	KP_AUTO_FREE unsigned *nodes = NULL;
	size_t count = 0, cap = 0;
	const char *path;
	kpack_error_t err;
	DIR *dir;

	*out = (struct kp_gpus){0};
	if (!topology)
		topology = KP_TOPOLOGY;
	if (asprintf(&below, "%s/nodes", topology) < 0) {
		below = NULL;
		return kp_fail_memory(why, 0, "a path");
	}
	/* tests and users give either directory */
	path = below;
	dir = open_dir(path);
	if (!dir && errno == ENOENT) {
		path = topology;
		dir = open_dir(path);
	}
	if (!dir)
		return kp_fail_errno(why, errno, "cannot open");
	err = list_nodes(dir, &nodes, &count, why);
	closedir(dir);
	for (size_t i = 0; i < count && !err; i++)
		err = add_node(out, path, nodes[i], &cap, why);
	return err;
}

void kp_gpus_fini(struct kp_gpus *g)
{
	free(g->list);
	kp_faults_fini(&g->faults);
	*g = (struct kp_gpus){0};
}
