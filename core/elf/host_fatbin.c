/* SPDX-License-Identifier: MIT */
#include "host_fatbin.h"
#include <inttypes.h>
#include <stdlib.h>

#define HEAD_SIZE 64

static bool all_hipk(const struct kp_elf *elf)
{
	for (size_t i = 0; i < elf->n_wrappers; i++) {
		if (elf->wrappers[i].fields.magic != KP_WRAPPER_HIPK)
			return false;
	}
	return elf->n_wrappers > 0;
}

static kpack_error_t open_elf(int fd, uint64_t size, struct kp_fatbin *fat,
			      struct kpackx_error *why)
{
	struct kp_elf *elf = &fat->elf;

	KP_TRY(kp_elf_read(fd, size, elf, why));
	if (!elf->has_fatbin && !all_hipk(elf))
		return KPACK_SUCCESS;
	fat->kind = KP_FATBIN_ELF;
	fat->format = "elf";
	fat->source = kp_source_fd(fd, elf->fatbin_offset, elf->fatbin_size);
	return KPACK_SUCCESS;
}

/* Find out the kind of file, and which part of it has the containers. */
static kpack_error_t classify_file(int fd, uint64_t size, struct kp_fatbin *fat,
				   struct kpackx_error *why)
{
	uint8_t bytes[HEAD_SIZE];
	struct kp_span head = {bytes, size < HEAD_SIZE ? (size_t)size : HEAD_SIZE};
	const struct kp_format *format;

	KP_TRY(kp_file_pread(fd, 0, bytes, head.size, why));
	if (kp_elf_host_probe(head))
		return open_elf(fd, size, fat, why);
	format = kp_format_probe_hip(head);
	if (!format)
		return KPACK_SUCCESS;
	fat->kind = KP_FATBIN_BARE;
	fat->format = format->name;
	fat->source = kp_source_fd(fd, 0, size);
	return KPACK_SUCCESS;
}

static int compare_offset(const void *key, const void *item)
{
	uint64_t offset = *(const uint64_t *)key;
	const struct kp_container *c = item;

	return KP_ORDER(offset, c->offset);
}

/* The number of the container that begins at address VADDR, or -1. */
static ptrdiff_t container_at(const struct kp_fatbin *fat, uint64_t vaddr)
{
	const struct kp_container *items = fat->containers.items, *found;
	uint64_t offset = vaddr - fat->elf.fatbin_vaddr;

	if (vaddr < fat->elf.fatbin_vaddr || !fat->containers.count)
		return -1;
	found = bsearch(&offset, items, fat->containers.count, sizeof(*items),
			compare_offset);
	return found ? found - items : -1;
}

/* Drop words found by scanning whose pointer does not lead to a container. */
static void drop_strays(struct kp_fatbin *fat)
{
	struct kp_elf *elf = &fat->elf;
	size_t n = 0;

	for (size_t i = 0; i < elf->n_wrappers; i++) {
		const struct kp_elf_wrapper w = elf->wrappers[i];

		if (w.fields.magic == KP_WRAPPER_HIPK || container_at(fat, w.target) >= 0)
			elf->wrappers[n++] = w;
	}
	elf->n_wrappers = n;
}

/*
 * Once the containers are known, settle which words are wrappers, and the kind of file.
 */
static void settle_wrappers(struct kp_fatbin *fat)
{
	if (fat->elf.wrappers_scanned)
		drop_strays(fat);
	if (all_hipk(&fat->elf))
		fat->kind = KP_FATBIN_CONVERTED;
}

static kpack_error_t match_wrapper(const struct kp_fatbin *fat, size_t i,
				   struct kpackx_error *why)
{
	const struct kp_elf_wrapper *w = &fat->elf.wrappers[i];

	fat->wrapper_container[i] = -1;
	if (w->fields.magic == KP_WRAPPER_HIPK)
		return KPACK_SUCCESS;
	if (w->source == KP_POINTER_UNRESOLVED && !kp_elf_machine_known(fat->elf.machine))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "wrapper %zu: the relocations of machine %u are not known",
			       i, fat->elf.machine);
	if (w->source == KP_POINTER_UNRESOLVED)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "wrapper %zu: its pointer is set from outside this file",
			       i);
	fat->wrapper_container[i] = container_at(fat, w->target);
	if (fat->wrapper_container[i] < 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "wrapper %zu: no container begins at address 0x%" PRIx64
			       " (.hip_fatbin is 0x%" PRIx64 " + 0x%" PRIx64 ")",
			       i, w->target, fat->elf.fatbin_vaddr, fat->elf.fatbin_size);
	return KPACK_SUCCESS;
}

static kpack_error_t match_wrappers(struct kp_fatbin *fat, struct kpackx_error *why)
{
	size_t n = fat->elf.n_wrappers;

	if (n == 0)
		return KPACK_SUCCESS;
	fat->wrapper_container = calloc(n, sizeof(*fat->wrapper_container));
	if (!fat->wrapper_container)
		return kp_fail_memory(why, (uint64_t)n * sizeof(*fat->wrapper_container),
				      "wrappers");
	for (size_t i = 0; i < n; i++)
		KP_TRY(match_wrapper(fat, i, why));
	return KPACK_SUCCESS;
}

kpack_error_t kp_fatbin_number(struct kp_fatbin *fat, const bool *count,
			       struct kpackx_error *why)
{
	size_t n = fat->containers.count;
	ptrdiff_t next = 0, *loose = calloc(n + 1, sizeof(*loose));

	if (!loose)
		return kp_fail_memory(why, (uint64_t)n * sizeof(*loose), "containers");
	/* without .hip_fatbin, no wrapper's container is known */
	for (size_t i = 0; fat->wrapper_container && i < fat->elf.n_wrappers; i++) {
		if (fat->wrapper_container[i] >= 0)
			loose[fat->wrapper_container[i]] = -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (loose[i] == 0)
			loose[i] = !count || count[i] ? next++ : -1;
	}
	free(fat->loose);
	fat->loose = loose;
	return KPACK_SUCCESS;
}

kpack_error_t kp_fatbin_open(int fd, uint64_t size, struct kp_fatbin *out,
			     struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct kp_fatbin){.source = {.fd = -1}};
	err = classify_file(fd, size, out, why);
	if (err != KPACK_SUCCESS)
		goto fail;
	if (out->kind == KP_FATBIN_NONE)
		return KPACK_SUCCESS;
	err = kp_containers_scan(&out->source, &out->containers, why);
	if (err != KPACK_SUCCESS)
		goto fail;
	settle_wrappers(out);
	err = match_wrappers(out, why);
	if (err == KPACK_SUCCESS)
		err = kp_fatbin_number(out, NULL, why);
	if (err != KPACK_SUCCESS)
		goto fail;
	return KPACK_SUCCESS;
fail:
	kp_fatbin_fini(out);
	return err;
}

void kp_fatbin_fini(struct kp_fatbin *fat)
{
	kp_containers_fini(&fat->containers);
	kp_elf_fini(&fat->elf);
	free(fat->wrapper_container);
	free(fat->loose);
	*fat = (struct kp_fatbin){.source = {.fd = -1}};
}

void kp_fatbin_places(const struct kp_fatbin *fat,
		      void (*fn)(uint32_t index, size_t container, void *arg), void *arg)
{
	size_t n = fat->elf.n_wrappers;

	for (size_t i = 0; i < n && fat->wrapper_container; i++)
		if (fat->wrapper_container[i] >= 0)
			fn((uint32_t)i, (size_t)fat->wrapper_container[i], arg);
	for (size_t c = 0; c < fat->containers.count; c++)
		if (fat->loose[c] >= 0)
			fn((uint32_t)(n + (size_t)fat->loose[c]), c, arg);
}
