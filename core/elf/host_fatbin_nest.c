/* SPDX-License-Identifier: MIT */
/* Files with device code that are not just one fat binary. */
#include <elf.h>
#include <stdlib.h>
#include "host_fatbin.h"
#include "core/format/sections.h"
#include "core/format/format.h"

/*
 * Whether all entries of C have kinds that HIP's runtime always treats as code objects.
 */
static bool all_hip(const struct kp_fatbin *fat, const struct kp_container *c)
{
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *img = &fat->containers.images[i];

		if (!img->host && strncmp(img->kind, "hip", 3) != 0)
			return false;
	}
	return true;
}

/* Whether images of a bare container may have containers; decoding to know is costly. */
static bool may_nest(const struct kp_fatbin *fat)
{
	for (size_t i = 0; i < fat->containers.count; i++) {
		const struct kp_container *c = &fat->containers.items[i];

		if (!c->format->type && (!c->format->load || !all_hip(fat, c)))
			return true;
	}
	return false;
}

/* Add nested containers; if they cannot be read to the end, FAT stays as it is. */
static kpack_error_t nest_bare(struct kp_fatbin *fat, struct kpackx_error *why)
{
	struct kp_containers list;
	struct kpackx_error fault = {0};

	if (!may_nest(fat))
		return KPACK_SUCCESS;
	switch (kp_nest_scan(&fat->source, NULL, NULL, &list, &fault)) {
	case KPACK_SUCCESS:
		break;
	case KPACK_ERROR_OUT_OF_MEMORY:
	case KPACK_ERROR_IO_ERROR:
		if (why)
			*why = fault;
		return fault.code;
	default:
		return KPACK_SUCCESS;
	}
	kp_containers_fini(&fat->containers);
	fat->containers = list;
	return kp_fatbin_number(fat, NULL, why);
}

static kpack_error_t nest_file(int fd, uint64_t size, struct kp_fatbin *fat,
			       struct kpackx_error *why)
{
	fat->source = kp_source_fd(fd, 0, size);
	KP_TRY(kp_nest_scan(&fat->source, NULL, NULL, &fat->containers, why));
	if (fat->containers.count == 0)
		return KPACK_SUCCESS;
	fat->kind = KP_FATBIN_NESTED;
	fat->format = fat->containers.items[0].format->name;
	return kp_fatbin_number(fat, NULL, why);
}

/*
 * Append LIST and take over its images; its offsets count from BASE, unlike those of A.
 */
static kpack_error_t join_containers(struct kp_containers *a, struct kp_containers *list,
				     uint64_t base, struct kpackx_error *why)
{
	size_t n = a->count + list->count, m = a->n_images + list->n_images;
	struct kp_container *items = realloc(a->items, (n + 1) * sizeof(*items));
	struct kp_image *images;

	a->items = items ? items : a->items;
	images = realloc(a->images, (m + 1) * sizeof(*images));
	a->images = images ? images : a->images;
	if (!items || !images)
		return kp_fail_memory(why, n * sizeof(*items), "containers");
	for (size_t i = 0; i < list->count; i++) {
		struct kp_container c = list->items[i];

		c.offset += c.inside == KP_NOWHERE ? base : 0;
		c.inside += c.inside == KP_NOWHERE ? 0 : a->n_images;
		c.next += c.next == KP_NOWHERE ? 0 : a->count;
		c.first_image += a->n_images;
		items[a->count + i] = c;
	}
	for (size_t i = 0; i < list->n_images; i++) {
		struct kp_image image = list->images[i];

		image.container += a->count;
		image.inside += image.inside == KP_NOWHERE ? 0 : a->count;
		images[a->n_images + i] = image;
	}
	a->count = n;
	a->n_images = m;
	list->n_images = 0; /* their memory now belongs to A */
	return KPACK_SUCCESS;
}

static kpack_error_t add_section(struct kp_fatbin *fat, const struct kp_image *section,
				 struct kpackx_error *why)
{
	struct kp_containers list;
	struct kp_source src;
	kpack_error_t err;

	if (!kp_source_sub(&fat->source, section->offset, section->size, &src))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "section %s passes the end of the file", section->id);
	err = kp_nest_scan(&src, NULL, NULL, &list, why);
	if (err)
		return kp_fail_prefix(why, err, "section %s", section->id);
	err = join_containers(&fat->containers, &list, section->offset, why);
	kp_containers_fini(&list);
	return err;
}

/* Whether SECTION is not the .hip_fatbin whose containers are already listed. */
static bool is_other(const struct kp_fatbin *fat, const struct kp_image *section)
{
	return section->size && section->id &&
	       (fat->kind != KP_FATBIN_ELF ||
		strcmp(section->id, KP_FATBIN_SECTION) != 0);
}

/* Let the containers' offsets count from the file's start, and add those of SECTIONS. */
static kpack_error_t take_sections(int fd, uint64_t size, struct kp_fatbin *fat,
				   const struct kp_containers *sections,
				   struct kpackx_error *why)
{
	uint64_t base = fat->kind == KP_FATBIN_ELF ? fat->elf.fatbin_offset : 0;

	fat->source = kp_source_fd(fd, 0, size);
	for (size_t i = 0; i < fat->containers.count; i++)
		fat->containers.items[i].offset += base;
	for (size_t i = 0; i < sections->n_images; i++)
		if (is_other(fat, &sections->images[i]))
			KP_TRY(add_section(fat, &sections->images[i], why));
	if (fat->kind == KP_FATBIN_NONE && fat->containers.count) {
		fat->kind = KP_FATBIN_NESTED;
		fat->format = sections->items[0].format->name;
	}
	return kp_fatbin_number(fat, NULL, why);
}

/* Why the code of SECTION, in a binary of FORMAT, can only be copied. */
static const char *why_unlisted(const struct kp_format *format,
				const struct kp_image *section, bool elf64)
{
	if (format == &kp_format_pe)
		return "the device code of a Windows file stays in it: only kpack pack "
		       "--archives-only copies it";
	if (!elf64)
		return "the device code of a 32-bit or big-endian file stays in it: only "
		       "kpack pack --archives-only copies it";
	if (strcmp(section->id, KP_NO_SECTION) == 0)
		return "device code that no section names stays in the file: only kpack "
		       "pack --archives-only copies it";
	return "device code in other sections than .hip_fatbin is packed with "
	       "--archives-only";
}

/*
 * Search for device code besides the .hip_fatbin that is listed.  Damage is not reported,
 * unless wrappers show that there is code.
 */
static kpack_error_t look_at_sections(int fd, uint64_t size,
				      const struct kp_format *format, bool elf64,
				      bool take, struct kp_fatbin *fat,
				      struct kpackx_error *why)
{
	struct kp_source file = kp_source_fd(fd, 0, size);
	struct kp_containers list = {0};
	struct kpackx_error fault = {0};
	const struct kp_image *other = NULL;
	kpack_error_t err =
		kp_containers_add(&file, 0, format, KP_NOWHERE, &list, &fault);

	if (err && err != KPACK_ERROR_OUT_OF_MEMORY && fat->kind == KP_FATBIN_NONE &&
	    format->salvage)
		err = kp_containers_salvage(&file, 0, format, KP_NOWHERE, &list, &fault);
	if (err && (err == KPACK_ERROR_OUT_OF_MEMORY ||
		    (fat->kind == KP_FATBIN_NONE && kp_elf_has_wrapper(&file)))) {
		kp_containers_fini(&list);
		if (why)
			*why = fault;
		return err;
	}
	for (size_t i = list.n_images; i-- > 0 && !err;)
		if (is_other(fat, &list.images[i]))
			other = &list.images[i];
	fat->unlisted = other && !take ? why_unlisted(format, other, elf64) : NULL;
	err = other && take ? take_sections(fd, size, fat, &list, why) : KPACK_SUCCESS;
	kp_containers_fini(&list);
	return err;
}

bool kp_fatbin_is_linked(struct kp_span head)
{
	uint16_t type, machine;

	return kp_format_pe.probe(head) ||
	       (kp_elf_any_probe(head, &type, &machine) && type != ET_REL &&
		machine != EM_AMDGPU && machine != EM_CUDA);
}

static kpack_error_t nest_linked(int fd, uint64_t size, struct kp_span head,
				 bool sections, struct kp_fatbin *fat,
				 struct kpackx_error *why)
{
	bool elf64 = kp_elf_host_probe(head);
	kpack_error_t err = elf64 ? kp_fatbin_open(fd, size, fat, why) : KPACK_SUCCESS;

	/* what is not supported can still be copied */
	if (err && !(err == KPACK_ERROR_NOT_IMPLEMENTED && sections))
		return err;
	if (fat->kind == KP_FATBIN_CONVERTED)
		return KPACK_SUCCESS;
	return look_at_sections(fd, size, kp_format_probe(head), elf64, sections, fat,
				why);
}

static kpack_error_t nest_any(int fd, uint64_t size, bool sections, struct kp_fatbin *fat,
			      struct kpackx_error *why)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head = {bytes,
			       size < sizeof(bytes) ? (size_t)size : sizeof(bytes)};
	const struct kp_format *format;

	KP_TRY(kp_file_pread(fd, 0, bytes, head.size, why));
	if (kp_fatbin_is_linked(head))
		return nest_linked(fd, size, head, sections, fat, why);
	format = kp_format_probe(head);
	if (!format)
		return KPACK_SUCCESS;
	if (!kp_format_is_hip(format))
		return nest_file(fd, size, fat, why);
	KP_TRY(kp_fatbin_open(fd, size, fat, why));
	return nest_bare(fat, why);
}

kpack_error_t kp_fatbin_nest(int fd, uint64_t size, bool sections, struct kp_fatbin *out,
			     struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct kp_fatbin){.source = {.fd = -1}};
	err = nest_any(fd, size, sections, out, why);
	if (err)
		kp_fatbin_fini(out);
	return err;
}

/* Whether bytes that begin like FORMAT are surely meant to be one with device code. */
static bool is_meant(const struct kp_format *format, struct kp_span head)
{
	size_t at = 24; /* of a bundle's number of entries */

	/*
	 * four bytes alone can be a word of text, a text can begin with the magic of
	 * bundles, and sources have the texts of bundles
	 */
	while (format == &kp_format_bundle && at < 32 && at < head.size &&
	       head.data[at] >= ' ' && head.data[at] <= '~')
		at++;
	if (at == 32)
		return false;
	if (format == &kp_format_ccob)
		return head.size < 8 ||
		       (kp_le16(head.data + 4) - 1u < 3 && kp_le16(head.data + 6) < 2);
	return !kp_format_is_host(format) && format != &kp_format_archive &&
	       format != &kp_format_bitcode && format != &kp_format_spirv &&
	       format != &kp_format_ptx && format != &kp_format_text_bundle;
}

static void ignore_fault(void *arg, const struct kp_containers *list, size_t image,
			 const struct kpackx_error *why)
{
	(void)arg, (void)list, (void)image, (void)why;
}

bool kp_fatbin_has_code(int fd, uint64_t size)
{
	const struct kp_source file = kp_source_fd(fd, 0, size);
	uint8_t bytes[KP_HEAD_SIZE];
	const struct kp_format *format;
	struct kp_containers list;
	struct kp_span head;
	bool has;

	if (kp_source_head(&file, 0, bytes, sizeof(bytes), &head, NULL))
		return false;
	format = kp_format_probe(head);
	has = format && (is_meant(format, head) ||
			 (format == &kp_format_host_elf && kp_elf_has_wrapper(&file)));
	if (!format || has || kp_nest_salvage(&file, ignore_fault, NULL, &list, NULL))
		return has;
	for (size_t i = 0; i < list.n_images && !has; i++)
		has = list.images[i].stream;
	for (size_t i = 0; i < list.count && !has; i++)
		has = is_meant(list.items[i].format, (struct kp_span){0});
	kp_containers_fini(&list);
	return has;
}
