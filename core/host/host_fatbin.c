/* SPDX-License-Identifier: MIT */
/*
 * The files with device code that HIP's runtime itself reads: a host binary with .hip_fatbin, whose wrappers
 * are matched with the containers in that section; and a bare container.
 */
#include "host_fatbin.h"
#include <inttypes.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/order.h"

static bool all_hipk(const struct kp_host *host)
{
	for (size_t i = 0; i < host->n_wrappers; i++)
		if (host->wrappers[i].fields.magic != KP_WRAPPER_HIPK)
			return false;
	return host->n_wrappers > 0;
}

/* The number of the container that begins at address VADDR, or -1. */
static ptrdiff_t container_at(const struct kp_fatbin *fat, uint64_t vaddr)
{
	const struct kp_container probe = {.offset = vaddr - fat->host.fatbin.vaddr};
	const struct kp_container *found;

	if (vaddr < fat->host.fatbin.vaddr || !fat->containers.count)
		return -1;
	found = kp_find(fat->containers.items, fat->containers.count, &probe,
			KP_BY_NUMBER(struct kp_container, offset));
	return found ? found - fat->containers.items : -1;
}

kpack_error_t kp_fatbin_number(struct kp_fatbin *fat, const bool *count,
			       struct kpackx_error *why)
{
	size_t n = fat->containers.count;
	ptrdiff_t next = 0, *loose;

	KP_TRY(kp_new(&loose, n, "containers", why));
	/* without .hip_fatbin, no wrapper's container is known */
	for (size_t i = 0; fat->wrapper_container && i < fat->host.n_wrappers; i++)
		if (fat->wrapper_container[i] >= 0)
			loose[fat->wrapper_container[i]] = -1;
	for (size_t i = 0; i < n; i++)
		if (loose[i] == 0)
			loose[i] = !count || count[i] ? next++ : -1;
	free(fat->loose);
	fat->loose = loose;
	return KPACK_SUCCESS;
}

kpack_error_t kp_fatbin_open(int fd, uint64_t size, struct kp_fatbin *out,
			     struct kpackx_error *why)
{
	KP_AUTO(kp_fatbin) fat = {.source = {.fd = -1}};
	struct kp_source file = kp_source_fd(fd, 0, size);
	struct kp_host *host = &fat.host;
	const struct kp_format *format;
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;
	size_t n = 0;
	bool is_host;

	*out = fat;
	KP_TRY(kp_source_head(&file, 0, bytes, sizeof(bytes), &head, why));
	format = kp_format_probe_hip(head);
	is_host = kp_host_probe(head);
	if (is_host)
		KP_TRY(kp_host_read(fd, size, host, why));
	if (is_host && (host->has_fatbin || all_hipk(host))) {
		fat.kind = KP_FATBIN_HOST;
		fat.format = host->pe ? "pe" : "elf";
		fat.source = kp_source_fd(fd, host->fatbin.offset, host->fatbin.size);
	} else if (!is_host && format) {
		fat.kind = KP_FATBIN_BARE;
		fat.format = format->name;
		fat.source = file;
	}
	if (fat.kind != KP_FATBIN_NONE)
		KP_TRY(kp_containers_scan(&fat.source, &fat.containers, why));
	if (fat.kind == KP_FATBIN_HOST && host->n_wrappers)
		KP_TRY(kp_new(&fat.wrapper_container, host->n_wrappers, "wrappers", why));
	/* find the container of each wrapper; what scanning found, but leads to none, is no wrapper */
	for (size_t i = 0; i < host->n_wrappers && fat.wrapper_container; i++) {
		const struct kp_host_wrapper w = host->wrappers[i];
		bool hipk = w.fields.magic == KP_WRAPPER_HIPK;
		ptrdiff_t at = hipk ? -1 : container_at(&fat, w.target);

		if (!hipk && at < 0 && host->wrappers_scanned)
			continue;
		if (!hipk && w.source == KP_POINTER_UNRESOLVED)
			return kp_elf_machine_of(host->machine)
				       ? kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
						 "wrapper %zu: its pointer %s", i,
						 host->pe ? "has no base relocation"
							  : "is set from outside this "
							    "file")
				       : kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
						 "wrapper %zu: the relocations of "
						 "machine %u are not known",
						 i, host->machine);
		if (!hipk && at < 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "wrapper %zu: no container begins at address "
				       "0x%" PRIx64 " (%s is 0x%" PRIx64 " + 0x%" PRIx64
				       ")",
				       i, w.target, host->fatbin.name, host->fatbin.vaddr,
				       host->fatbin.size);
		host->wrappers[n] = w;
		fat.wrapper_container[n++] = at;
	}
	if (fat.wrapper_container)
		host->n_wrappers = n;
	if (fat.kind == KP_FATBIN_HOST && all_hipk(host))
		fat.kind = KP_FATBIN_CONVERTED;
	if (fat.kind != KP_FATBIN_NONE)
		KP_TRY(kp_fatbin_number(&fat, NULL, why));
	*out = fat;
	fat = (struct kp_fatbin){0};
	return KPACK_SUCCESS;
}

kpack_error_t kp_fatbin_check_marker(const struct kp_fatbin *fat,
				     struct kpackx_error *why)
{
	if (fat->kind != KP_FATBIN_CONVERTED)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED, "is not converted");
	if (fat->host.marker.size == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "wrappers are converted, but there is no %s",
			       fat->host.marker.name);
	for (size_t i = 0; i < fat->host.n_wrappers; i++) {
		const struct kp_host_wrapper *w = &fat->host.wrappers[i];

		if (w->fields.magic != KP_WRAPPER_HIPK ||
		    w->target != fat->host.marker.vaddr ||
		    w->source == KP_POINTER_UNRESOLVED)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "wrapper %zu leads to 0x%" PRIx64
				       ", the marker is at 0x%" PRIx64,
				       i, w->target, fat->host.marker.vaddr);
	}
	return KPACK_SUCCESS;
}

void kp_fatbin_fini(struct kp_fatbin *fat)
{
	kp_containers_fini(&fat->containers);
	kp_host_fini(&fat->host);
	free(fat->wrapper_container);
	free(fat->loose);
	*fat = (struct kp_fatbin){.source = {.fd = -1}};
}

void kp_fatbin_places(const struct kp_fatbin *fat,
		      void (*fn)(uint32_t index, size_t container, void *arg), void *arg)
{
	size_t n = fat->host.n_wrappers;

	for (size_t i = 0; i < n && fat->wrapper_container; i++)
		if (fat->wrapper_container[i] >= 0)
			fn((uint32_t)i, (size_t)fat->wrapper_container[i], arg);
	for (size_t c = 0; c < fat->containers.count; c++)
		if (fat->loose[c] >= 0)
			fn((uint32_t)(n + (size_t)fat->loose[c]), c, arg);
}
