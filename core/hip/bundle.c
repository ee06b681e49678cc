/* SPDX-License-Identifier: MIT */
/*
 * Bundles: decoded into memory of a sealed file, or mapped from a mount.  Wrappers with the same
 * objects share one.
 */
#include "hip.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/archive/entry.h"
#include "core/base/bounds.h"
#include "core/format/bundle.h"

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

/* A file in memory of SIZE bytes; -1: it cannot be made. */
static int memory_file(const struct binary *b, size_t size)
{
	const char *slash = b ? strrchr(b->path, '/') : NULL;
	struct rlimit limit;
	char name[128];
	int fd;

	/* to exceed the limit of file sizes would end the process */
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < size)
		return -1;
	snprintf(name, sizeof(name), "kpack:%s", slash ? slash + 1 : "none");
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* ---- layout ---- */

static uint64_t aligned_offset(uint64_t offset)
{
	return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- decoding ---- */

/*
 * Fill new memory; *DONE is false if a part was replaced, and all begins again.  What archives
 * state is checked before memory of that size is asked for.
 */
static kpack_error_t try_fill(struct binary *b, struct parts *p, struct bundle *bundle,
			      bool *done, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	kpack_error_t err = KPACK_SUCCESS;
	/* the header's rows, and the texts that they point to */
	struct kp_bundle_row rows[PARTS_MAX + 1] = {{.id = kp_span_str(HOST_ID)}};
	char ids[PARTS_MAX][ID_MAX];
	void *sealed = MAP_FAILED;
	uint64_t size;
	size_t i;
	int fd;

	*done = false;
	for (i = 0; i < p->count && !err; i += !err) {
		const struct part *part = &p->list[i];

		err = part->size > KP_OBJECT_MAX
			      ? kp_fail(&fault, KPACK_ERROR_INVALID_FORMAT, "too large")
			      : kp_entry_check_size(kp_cached_archive(part->file->held),
						    part->entry, &fault);
	}
	if (err) {
		parts_replace(b, p, i, &fault);
		return KPACK_SUCCESS;
	}

	/* an empty entry of the host begins where the next one does */
	for (i = 0; i < p->count; i++) {
		const char *arch = p->list[i].arch;

		snprintf(ids[i], ID_MAX, "%s%s",
			 strcmp(arch, SPIRV) == 0 ? SPIRV_ID : GPU_ID, arch);
		rows[i + 1].id = kp_span_str(ids[i]);
	}
	size = rows[0].offset = aligned_offset(kp_bundle_header_size(rows, p->count + 1));
	for (i = 0; i < p->count; i++) {
		struct part *part = &p->list[i];

		rows[i + 1].offset = part->offset = aligned_offset(size);
		rows[i + 1].size = part->size;
		size = part->offset + part->size;
	}

	/* memory of a file or, if none can be made, of this process */
	fd = memory_file(b, (size_t)size);
	bundle->size = (size_t)size;
	bundle->at = mmap(NULL, bundle->size, PROT_READ | PROT_WRITE,
			  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (bundle->at == MAP_FAILED) {
		err = kp_fail_memory(why, size, "code objects");
		goto out;
	}
	kp_bundle_header_write(rows, p->count + 1, bundle->at);
	for (i = 0; i < p->count && !err; i += !err)
		err = kp_entry_read(kp_cached_archive(p->list[i].file->held),
				    p->list[i].entry,
				    (uint8_t *)bundle->at + p->list[i].offset, &fault);
	if (err) {
		parts_replace(b, p, i, &fault);
		munmap(bundle->at, bundle->size);
		err = KPACK_SUCCESS;
	} else {
		/*
		 * Make it unchangeable.  Only a mapping that was never writable allows the file
		 * to be sealed; a private one costs no memory, because nobody writes to it.
		 */
		if (!mprotect(bundle->at, bundle->size, PROT_READ) && fd >= 0)
			sealed = mmap(NULL, bundle->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (sealed != MAP_FAILED) {
			munmap(bundle->at, bundle->size);
			bundle->at = sealed;
			(void)fcntl(fd, F_ADD_SEALS,
				    F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_SHRINK |
					    F_SEAL_GROW);
		}
		*done = true;
	}
out:
	if (fd >= 0)
		close(fd);
	return err;
}

/* ---- sharing ---- */

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

/* Return the bundle of P's objects, which is made at its first use. */
static kpack_error_t share_bundle(struct binary *b, struct parts *p, uint32_t index,
				  struct bundle **out, struct kpackx_error *why)
{
	struct bundle **list =
		p->count ? bundle_list(p->list[0].file->held, p->list[0].ordinal)
			 : bundle_list(NULL, 0);
	struct bundle *bundle = *list;
	kpack_error_t err = KPACK_SUCCESS;
	bool done;

	while (bundle && !has_same(bundle, p))
		bundle = bundle->next;
	if (!bundle) {
		bundle = calloc(1,
				sizeof(*bundle) + p->count * sizeof(bundle->objects[0]));
		if (!bundle)
			return kp_fail_memory(why, sizeof(*bundle), "a bundle");
		done = b && mounts_map(b, p, index, &bundle->at, &bundle->size);
		/* each turn but the last uses up an archive of a part */
		while (!done && !err)
			err = try_fill(b, p, bundle, &done, why);
		if (err) {
			free(bundle);
			return err;
		}
		bundle->n_objects = p->count;
		for (size_t i = 0; i < p->count; i++) {
			struct identity *o = &bundle->objects[i];

			o->archive = p->list[i].file->held;
			o->ordinal = p->list[i].ordinal;
			memcpy(o->arch, p->list[i].arch, sizeof(o->arch));
		}
		/* the first object may be another one now */
		list = p->count ? bundle_list(bundle->objects[0].archive,
					      bundle->objects[0].ordinal)
				: bundle_list(NULL, 0);
		bundle->next = *list;
		*list = bundle;
	}
	bundle->users++;
	*out = bundle;
	return KPACK_SUCCESS;
}

/* ---- the calls ---- */

kpack_error_t bundle_get(struct binaries *all, struct binary *b, uint32_t index,
			 struct bundle **out, struct kpackx_error *why)
{
	struct parts p;
	kpack_error_t err = parts_find(all, b, index, &p, why);

	if (!err)
		err = share_bundle(b, &p, index, out, why);
	parts_fini(&p);
	return err;
}

kpack_error_t bundle_empty(struct bundle **out, struct kpackx_error *why)
{
	struct parts none = {.count = 0};

	return share_bundle(NULL, &none, 0, out, why);
}

void bundle_put(struct bundle *bundle)
{
	struct bundle **at;

	if (!bundle || --bundle->users)
		return;
	at = bundle->n_objects
		     ? bundle_list(bundle->objects[0].archive, bundle->objects[0].ordinal)
		     : bundle_list(NULL, 0);
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
