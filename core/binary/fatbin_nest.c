/* SPDX-License-Identifier: MIT */
/* Files with device code that are not just one fat binary. */
#include <elf.h>
#include <stdlib.h>
#include "fatbin.h"
#include "core/format/nest.h"

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

/* Whether SECTION is not .hip_fatbin, whose containers are already listed. */
static bool is_other(const struct kp_image *section)
{
	return section->size && section->id &&
	       strcmp(section->id, KP_FATBIN_SECTION) != 0;
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
		if (is_other(&sections->images[i]))
			KP_TRY(add_section(fat, &sections->images[i], why));
	if (fat->kind == KP_FATBIN_NONE && fat->containers.count) {
		fat->kind = KP_FATBIN_NESTED;
		fat->format = kp_format_host_elf.name;
	}
	return kp_fatbin_number(fat, NULL, why);
}

/* Search for sections with device code besides .hip_fatbin.  Damage is not reported. */
static kpack_error_t look_at_sections(int fd, uint64_t size, bool take,
				      struct kp_fatbin *fat, struct kpackx_error *why)
{
	struct kp_source file = kp_source_fd(fd, 0, size);
	struct kp_containers list = {0};
	struct kpackx_error fault = {0};
	bool any = false;
	kpack_error_t err = kp_containers_add(&file, 0, &kp_format_host_elf, KP_NOWHERE,
					      &list, &fault);

	for (size_t i = 0; i < list.n_images && !err; i++)
		any |= is_other(&list.images[i]);
	fat->other_sections = any && !take;
	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		kp_fail(why, err, "%s", fault.text);
	else
		err = any && take ? take_sections(fd, size, fat, &list, why)
				  : KPACK_SUCCESS;
	kp_containers_fini(&list);
	return err;
}

bool kp_fatbin_is_linked(struct kp_span head)
{
	return kp_elf_host_probe(head) &&
	       kp_le16(head.data + offsetof(Elf64_Ehdr, e_type)) != ET_REL;
}

static kpack_error_t nest_any(int fd, uint64_t size, bool sections, struct kp_fatbin *fat,
			      struct kpackx_error *why)
{
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head = {bytes,
			       size < sizeof(bytes) ? (size_t)size : sizeof(bytes)};
	const struct kp_format *format;

	KP_TRY(kp_file_pread(fd, 0, bytes, head.size, why));
	if (kp_fatbin_is_linked(head)) {
		KP_TRY(kp_fatbin_open(fd, size, fat, why));
		return fat->kind == KP_FATBIN_CONVERTED || !kp_format_host_elf.probe(head)
			       ? KPACK_SUCCESS
			       : look_at_sections(fd, size, sections, fat, why);
	}
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
