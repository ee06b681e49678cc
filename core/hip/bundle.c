/* SPDX-License-Identifier: MIT */
#include "bundle.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/archive/entry.h"
#include "core/base/bounds.h"
#include "core/format/bundle.h"
#include "mounts.h"

enum { ALIGNMENT = 4096, ID_MAX = 40 + KP_TARGET_TEXT_MAX };

#define HOST_ID "host-x86_64-unknown-linux-gnu-"
#define GPU_ID "hipv4-amdgcn-amd-amdhsa--"
#define SPIRV "amdgcnspirv"
#define SPIRV_ID "hip-spirv64-amd-amdhsa--"

/* An object of a bundle, to recognise a bundle that has the same. */
struct identity {
	const struct kp_cached *archive; /* open as long as the bundle's binary */
	uint32_t ordinal;
	char arch[KP_TARGET_TEXT_MAX];
};

struct bundle {
	struct bundle *next;
	unsigned users;
	void *at;
	size_t size;
	size_t n_objects;
	struct identity objects[];
};

/* Lists of bundles, found by an object, because a library may have thousands of wrappers. */
enum { N_LISTS = 512 };

static struct bundle *bundles[N_LISTS];

/* ---- memory ---- */

/* Whether the limit of file sizes, whose excess ends a process, is not reached. */
static bool may_make_file(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= size;
}

/* A file in memory of SIZE bytes; -1: it cannot be made. */
static int memory_file(const struct binary *b, size_t size)
{
	const char *slash = b ? strrchr(b->path, '/') : NULL;
	char name[128];
	int fd;

	if (!may_make_file(size))
		return -1;
	snprintf(name, sizeof(name), "kpack:%s", slash ? slash + 1 : "none");
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Memory to fill: of the file FD or, if FD is -1, of this process. */
static kpack_error_t map_memory(int fd, size_t size, void **at, struct kpackx_error *why)
{
	int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	*at = mmap(NULL, size, PROT_READ | PROT_WRITE, kind, fd, 0);
	return *at == MAP_FAILED ? kp_fail_memory(why, size, "code objects")
				 : KPACK_SUCCESS;
}

/*
 * Make filled memory unchangeable.  Only a mapping that was never writable allows the
 * file to be sealed; a private one costs no memory, because nobody writes to it.
 */
static void seal_memory(int fd, void **at, size_t size)
{
	void *sealed;

	if (mprotect(*at, size, PROT_READ) || fd < 0)
		return;
	sealed = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (sealed == MAP_FAILED)
		return;
	munmap(*at, size);
	*at = sealed;
	(void)fcntl(fd, F_ADD_SEALS,
		    F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
}

/* ---- layout ---- */

static uint64_t aligned_offset(uint64_t offset)
{
	return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The header's rows and the texts that they point to. */
struct header {
	struct kp_bundle_row rows[PARTS_MAX + 1];
	char ids[PARTS_MAX][ID_MAX];
	size_t n;
	uint64_t size; /* of the bundle */
};

/* An empty entry of the host begins where the next one does. */
static void lay_out(struct parts *p, struct header *h)
{
	h->n = p->count + 1;
	h->rows[0] = (struct kp_bundle_row){.id = kp_span_str(HOST_ID)};
	for (size_t i = 0; i < p->count; i++) {
		const char *arch = p->list[i].arch;

		snprintf(h->ids[i], ID_MAX, "%s%s",
			 strcmp(arch, SPIRV) == 0 ? SPIRV_ID : GPU_ID, arch);
		h->rows[i + 1].id = kp_span_str(h->ids[i]);
	}
	h->size = aligned_offset(kp_bundle_header_size(h->rows, h->n));
	h->rows[0].offset = h->size;
	h->rows[0].size = 0;
	for (size_t i = 0; i < p->count; i++) {
		struct part *part = &p->list[i];

		part->offset = aligned_offset(h->size);
		h->rows[i + 1].offset = part->offset;
		h->rows[i + 1].size = part->size;
		h->size = part->offset + part->size;
	}
}

/* ---- decoding ---- */

/* Check what archives state before memory of that size is asked for. */
static bool check_parts(struct binary *b, struct parts *p)
{
	for (size_t i = 0; i < p->count; i++) {
		struct part *part = &p->list[i];
		struct kpackx_error why = {0};
		kpack_error_t err;

		if (part->size > KP_OBJECT_MAX)
			err = kp_fail(&why, KPACK_ERROR_INVALID_FORMAT, "too large");
		else
			err = kp_entry_check_size(kp_cached_archive(part->file->held),
						  part->entry, &why);
		if (err) {
			parts_replace(b, p, i, &why);
			return false;
		}
	}
	return true;
}

static bool decode_parts(struct binary *b, struct parts *p, uint8_t *at)
{
	for (size_t i = 0; i < p->count; i++) {
		struct part *part = &p->list[i];
		struct kpackx_error why = {0};

		if (kp_entry_read(kp_cached_archive(part->file->held), part->entry,
				  at + part->offset, &why)) {
			parts_replace(b, p, i, &why);
			return false;
		}
	}
	return true;
}

/* Fill new memory; *DONE is false if a part was replaced, and all begins again. */
static kpack_error_t try_fill(struct binary *b, struct parts *p, struct bundle *bundle,
			      bool *done, struct kpackx_error *why)
{
	kpack_error_t err;
	struct header h;
	int fd;

	*done = check_parts(b, p);
	if (!*done)
		return KPACK_SUCCESS;
	lay_out(p, &h);
	fd = memory_file(b, (size_t)h.size);
	err = map_memory(fd, (size_t)h.size, &bundle->at, why);
	if (!err) {
		bundle->size = (size_t)h.size;
		kp_bundle_header_write(h.rows, h.n, bundle->at);
		*done = decode_parts(b, p, bundle->at);
		if (*done)
			seal_memory(fd, &bundle->at, bundle->size);
		else
			munmap(bundle->at, bundle->size);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* Each turn but the last uses up an archive of a part. */
static kpack_error_t fill_bundle(struct binary *b, struct parts *p, uint32_t index,
				 struct bundle *bundle, struct kpackx_error *why)
{
	bool done = b && mounts_map(b, p, index, &bundle->at, &bundle->size);

	while (!done)
		KP_TRY(try_fill(b, p, bundle, &done, why));
	return KPACK_SUCCESS;
}

/* ---- sharing ---- */

static void set_identities(struct bundle *bundle, const struct parts *p)
{
	bundle->n_objects = p->count;
	for (size_t i = 0; i < p->count; i++) {
		struct identity *o = &bundle->objects[i];

		o->archive = p->list[i].file->held;
		o->ordinal = p->list[i].ordinal;
		memcpy(o->arch, p->list[i].arch, sizeof(o->arch));
	}
}

static bool has_same(const struct bundle *bundle, const struct parts *p)
{
	if (bundle->n_objects != p->count)
		return false;
	for (size_t i = 0; i < p->count; i++) {
		const struct identity *o = &bundle->objects[i];

		if (o->archive != p->list[i].file->held ||
		    o->ordinal != p->list[i].ordinal ||
		    strcmp(o->arch, p->list[i].arch) != 0)
			return false;
	}
	return true;
}

/* The list for bundles whose first object is ORDINAL of ARCHIVE; NULL and 0: they have none. */
static struct bundle **bundle_list(const struct kp_cached *archive, uint32_t ordinal)
{
	return &bundles[((uintptr_t)archive / sizeof(void *) + ordinal) % N_LISTS];
}

static struct bundle **list_of_parts(const struct parts *p)
{
	return p->count ? bundle_list(p->list[0].file->held, p->list[0].ordinal)
			: bundle_list(NULL, 0);
}

static struct bundle **list_of_bundle(const struct bundle *bundle)
{
	const struct identity *first = bundle->objects;

	return bundle->n_objects ? bundle_list(first->archive, first->ordinal)
				 : bundle_list(NULL, 0);
}

static struct bundle *find_same(const struct parts *p)
{
	struct bundle *bundle = *list_of_parts(p);

	while (bundle && !has_same(bundle, p))
		bundle = bundle->next;
	return bundle;
}

static kpack_error_t make_bundle(struct binary *b, struct parts *p, uint32_t index,
				 struct bundle **out, struct kpackx_error *why)
{
	struct bundle *bundle =
		calloc(1, sizeof(*bundle) + p->count * sizeof(bundle->objects[0]));
	struct bundle **list;
	kpack_error_t err;

	if (!bundle)
		return kp_fail_memory(why, sizeof(*bundle), "a bundle");
	err = fill_bundle(b, p, index, bundle, why);
	if (err) {
		free(bundle);
		return err;
	}
	set_identities(bundle, p);
	list = list_of_bundle(bundle);
	bundle->next = *list;
	*list = bundle;
	*out = bundle;
	return KPACK_SUCCESS;
}

/* ---- the calls ---- */

static kpack_error_t share_bundle(struct binary *b, struct parts *p, uint32_t index,
				  struct bundle **out, struct kpackx_error *why)
{
	*out = find_same(p);
	if (!*out)
		KP_TRY(make_bundle(b, p, index, out, why));
	(*out)->users++;
	return KPACK_SUCCESS;
}

kpack_error_t bundle_get(struct binaries *all, struct binary *b, uint32_t index,
			 struct bundle **out, struct kpackx_error *why)
{
	struct parts *p = malloc(sizeof(*p));
	kpack_error_t err;

	if (!p)
		return kp_fail_memory(why, sizeof(*p), "a list of code objects");
	err = parts_find(all, b, index, p, why);
	if (!err)
		err = share_bundle(b, p, index, out, why);
	parts_fini(p);
	free(p);
	return err;
}

kpack_error_t bundle_empty(struct bundle **out, struct kpackx_error *why)
{
	struct parts *p = calloc(1, sizeof(*p));
	kpack_error_t err;

	if (!p)
		return kp_fail_memory(why, sizeof(*p), "a list of code objects");
	err = share_bundle(NULL, p, 0, out, why);
	free(p);
	return err;
}

void bundle_put(struct bundle *bundle)
{
	struct bundle **at;

	if (!bundle || --bundle->users)
		return;
	at = list_of_bundle(bundle);
	while (*at != bundle)
		at = &(*at)->next;
	*at = bundle->next;
	munmap(bundle->at, bundle->size);
	free(bundle);
}

const void *bundle_address(const struct bundle *bundle)
{
	return bundle->at;
}
