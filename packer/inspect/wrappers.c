/* SPDX-License-Identifier: MIT */
/* Find the wrappers of a host binary and the numbers of the containers they lead to. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "internal.h"
#include "packer/cli/xalloc.h"

/*
 * The image that is the host ELF's section into which the wrappers lead, or KP_NOWHERE.
 */
static size_t fatbin_image(const struct inspect_file *f)
{
	const struct kp_container *c = &f->list.items[0];

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++)
		if (inspect_is_fatbin(&f->list, i) &&
		    f->list.images[i].inside != KP_NOWHERE)
			return i;
	return KP_NOWHERE;
}

/* The number of the container that begins at OFFSET of .hip_fatbin, or -1. */
static ptrdiff_t number_at(const struct inspect_file *f, const size_t *order, size_t n,
			   uint64_t offset)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->list.items[order[middle]].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && f->list.items[order[low]].offset == offset
		       ? (ptrdiff_t)f->numbers[order[low]]
		       : -1;
}

/* The containers of .hip_fatbin in the order of their offsets, on the heap. */
static size_t *fatbin_containers(const struct inspect_file *f, size_t *count)
{
	size_t image = fatbin_image(f), n = 0;
	size_t *order = xmalloc(f->list.count * sizeof(*order));

	*count = 0;
	if (image == KP_NOWHERE)
		return order;
	for (size_t c = f->list.images[image].inside; c != KP_NOWHERE;
	     c = f->list.items[c].next)
		order[n++] = c;
	*count = n;
	return order;
}

static void report_wrapper(struct inspect_file *f, size_t i,
			   const struct kp_elf_wrapper *w)
{
	char text[160];

	if (w->source == KP_POINTER_UNRESOLVED)
		snprintf(text, sizeof(text),
			 "wrapper %zu: its pointer is set from outside this file", i);
	else
		snprintf(text, sizeof(text),
			 "wrapper %zu: no container begins at address 0x%" PRIx64, i,
			 w->target);
	inspect_fault(f, KP_NOWHERE, text);
}

/* Give wrappers their container numbers; drop bytes that only look like a wrapper. */
static void match_wrappers(struct inspect_file *f, const size_t *order, size_t n)
{
	struct kp_elf *elf = &f->elf;
	size_t kept = 0;

	f->converted = elf->n_wrappers > 0;
	for (size_t i = 0; i < elf->n_wrappers; i++) {
		const struct kp_elf_wrapper w = elf->wrappers[i];
		bool fat = w.fields.magic != KP_WRAPPER_HIPK;
		bool inside = fat && w.source != KP_POINTER_UNRESOLVED &&
			      w.target >= elf->fatbin_vaddr;
		ptrdiff_t number =
			inside ? number_at(f, order, n, w.target - elf->fatbin_vaddr)
			       : -1;

		if (fat && number < 0 && elf->wrappers_scanned)
			continue;
		if (fat && number < 0)
			report_wrapper(f, i, &w);
		f->converted &= !fat;
		f->wrapper_number[kept] = number;
		elf->wrappers[kept++] = w;
	}
	elf->n_wrappers = kept;
	f->converted &= kept > 0;
}

static bool any_hipk(const struct kp_elf *elf)
{
	for (size_t i = 0; i < elf->n_wrappers; i++)
		if (elf->wrappers[i].fields.magic == KP_WRAPPER_HIPK)
			return true;
	return false;
}

void inspect_wrappers_read(struct inspect_file *f)
{
	struct kpackx_error fault = {0};
	size_t *order, n;

	if (kp_elf_read(f->fd, f->source.size, &f->elf, &fault)) {
		inspect_fault(f, KP_NOWHERE, fault.text);
		return;
	}
	/*
	 * objects whose device code is linked later have wrappers that lead nowhere yet
	 */
	if (!f->elf.has_fatbin && !any_hipk(&f->elf))
		f->elf.n_wrappers = 0;
	order = fatbin_containers(f, &n);
	f->wrapper_number = xcalloc(f->elf.n_wrappers, sizeof(*f->wrapper_number));
	match_wrappers(f, order, n);
	free(order);
}
