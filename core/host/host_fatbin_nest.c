/* SPDX-License-Identifier: MIT */
/*
 * All other files with device code: containers inside of containers, and device code in other
 * sections than .hip_fatbin.  Apart from host_fatbin.c, because the library has only that.
 *
 *	a linked binary       what kp_fatbin_open finds, and on request the other sections
 *	a bare HIP container  what kp_fatbin_open finds, or all that is nested in it
 *	anything else         all containers, nested ones with their enclosing ones
 *
 * Offsets of containers count from the beginning of the source: the section .hip_fatbin, or the file as
 * soon as something else is listed.
 */
#include "core/base/alloc.h"
#include "core/format/sections.h"
#include "core/pe/pe.h"
#include "host_fatbin.h"

/* ---- containers inside of containers ---- */

/*
 * Replace what is listed of a bare container by that and all nested in it; if it cannot be read, FAT
 * stays.  Decoding to know is costly, and not needed for entries of kinds "hip...", which HIP's runtime
 * always treats as code objects.
 */
static kpack_error_t nest_bare(struct kp_fatbin *fat, struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct kp_containers list;
	bool any = false;
	kpack_error_t err;

	for (size_t i = 0; i < fat->containers.count; i++) {
		const struct kp_container *c = &fat->containers.items[i];
		bool may = !c->format->load;

		for (size_t k = 0; k < c->n_images; k++) {
			const struct kp_image *img =
				&fat->containers.images[c->first_image + k];

			may |= !img->host && strncmp(img->kind, "hip", 3) != 0;
		}
		any |= !c->format->type && may;
	}
	if (!any)
		return KPACK_SUCCESS;
	err = kp_nest_scan(&fat->source, NULL, NULL, &list, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		if (why)
			*why = fault;
		return err;
	}
	if (err)
		return KPACK_SUCCESS;
	kp_containers_fini(&fat->containers);
	fat->containers = list;
	return kp_fatbin_number(fat, NULL, why);
}

/* ---- device code in other sections ---- */

bool kp_fatbin_is_section(const struct kp_format *format, const char *name)
{
	return format == &kp_format_pe
		       ? strncmp(name, KP_PE_FATBIN, strlen(KP_PE_FATBIN)) == 0
		       : format == &kp_format_host_elf &&
				 strcmp(name, KP_FATBIN_SECTION) == 0;
}

/* Whether SECTION has bytes, and is not the .hip_fatbin whose containers are listed. */
static bool is_other(const struct kp_fatbin *fat, const struct kp_image *section)
{
	return section->size && section->id &&
	       (fat->kind != KP_FATBIN_HOST ||
		!kp_fatbin_is_section(fat->host.pe ? &kp_format_pe : &kp_format_host_elf,
				      section->id));
}

/* Append the containers in SECTION, whose offsets then count from the file's start. */
static kpack_error_t add_section(struct kp_fatbin *fat, const struct kp_image *section,
				 struct kpackx_error *why)
{
	struct kp_containers *a = &fat->containers;
	KP_AUTO(kp_containers) list = {0};
	struct kp_source src;
	kpack_error_t err;

	if (!kp_source_sub(&fat->source, section->offset, section->size, &src))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "section %s passes the end of the file", section->id);
	err = kp_nest_scan(&src, NULL, NULL, &list, why);
	if (err)
		return kp_fail_prefix(why, err, "section %s", section->id);
	for (size_t i = 0; i < list.count; i++) {
		struct kp_container c = list.items[i];

		c.offset += c.inside == KP_NOWHERE ? section->offset : 0;
		c.inside += c.inside == KP_NOWHERE ? 0 : a->n_images;
		c.next += c.next == KP_NOWHERE ? 0 : a->count;
		c.first_image += a->n_images;
		KP_TRY(kp_room(&a->items, a->count + i, &a->cap, "containers", why));
		a->items[a->count + i] = c;
	}
	for (size_t i = 0; i < list.n_images; i++) {
		struct kp_image image = list.images[i];

		image.container += a->count;
		image.inside += image.inside == KP_NOWHERE ? 0 : a->count;
		KP_TRY(kp_room(&a->images, a->n_images + i, &a->images_cap, "containers",
			       why));
		a->images[a->n_images + i] = image;
	}
	a->count += list.count;
	a->n_images += list.n_images;
	list.n_images = 0; /* their memory now belongs to A */
	return KPACK_SUCCESS;
}

const char kp_fatbin_cuda[] =
	"its CUDA code stays in it: only kpack pack --archives-only "
	"copies it";

/* Why the code of SECTION, in a binary of FORMAT, can only be copied. */
static const char *why_unlisted(const struct kp_format *format,
				const struct kp_image *section, bool host)
{
	if (format == &kp_format_pe && !host)
		return "the device code of a Windows file that is not PE32+ stays in it: "
		       "only kpack pack --archives-only copies it";
	if (!host)
		return "the device code of a 32-bit or big-endian file stays in it: only "
		       "kpack pack --archives-only copies it";
	if (strcmp(section->id, KP_NO_SECTION) == 0)
		return "device code that no section names stays in the file: only kpack "
		       "pack --archives-only copies it";
	if (strncmp(section->id, ".nv_fatb", 8) == 0 ||
	    strcmp(section->id, "__nv_relfatbin") == 0)
		return kp_fatbin_cuda;
	return "device code in other sections than .hip_fatbin is packed with "
	       "--archives-only";
}

/*
 * A linked binary: besides what kp_fatbin_open finds, look for device code in other sections, and
 * append it if TAKE.  Damage is not reported, unless wrappers show that there is code.
 */
static kpack_error_t nest_linked(const struct kp_source *file, struct kp_span head,
				 bool take, struct kp_fatbin *fat,
				 struct kpackx_error *why)
{
	const struct kp_format *format = kp_format_probe(head);
	bool host = kp_host_probe(head);
	const struct kp_image *other = NULL;
	KP_AUTO(kp_containers) list = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err =
		host ? kp_fatbin_open(file->fd, file->size, fat, why) : KPACK_SUCCESS;

	/* what is not supported can still be copied */
	if (err && !(err == KPACK_ERROR_NOT_IMPLEMENTED && take))
		return err;
	if (fat->kind == KP_FATBIN_CONVERTED)
		return KPACK_SUCCESS;
	/* a linker was told to join its sections */
	if (fat->kind == KP_FATBIN_NONE && fat->host.pe && fat->host.n_wrappers)
		fat->unlisted = "its device code stays in it, because it is in no "
				"section " KP_PE_FATBIN;
	err = kp_containers_add(file, 0, format, KP_NOWHERE, &list, &fault);
	if (err && err != KPACK_ERROR_OUT_OF_MEMORY && fat->kind == KP_FATBIN_NONE &&
	    format->salvage)
		err = kp_containers_salvage(file, 0, format, KP_NOWHERE, &list, &fault);
	if (err && (err == KPACK_ERROR_OUT_OF_MEMORY ||
		    (fat->kind == KP_FATBIN_NONE && kp_elf_has_wrapper(file)))) {
		if (why)
			*why = fault;
		return err;
	}
	for (size_t i = list.n_images; i-- > 0 && !err;)
		if (is_other(fat, &list.images[i]))
			other = &list.images[i];
	if (other && !take)
		fat->unlisted = why_unlisted(format, other, host);
	if (!other || !take)
		return KPACK_SUCCESS;
	fat->source = *file;
	for (size_t i = 0; i < fat->containers.count && fat->kind == KP_FATBIN_HOST; i++)
		fat->containers.items[i].offset += fat->host.fatbin.offset;
	for (size_t i = 0; i < list.n_images; i++)
		if (is_other(fat, &list.images[i]))
			KP_TRY(add_section(fat, &list.images[i], why));
	if (fat->kind == KP_FATBIN_NONE && fat->containers.count) {
		fat->kind = KP_FATBIN_NESTED;
		fat->format = list.items[0].format->name;
	}
	return kp_fatbin_number(fat, NULL, why);
}

bool kp_fatbin_is_linked(struct kp_span head)
{
	uint16_t type, machine;

	return kp_format_pe.probe(head) ||
	       (kp_elf_any_probe(head, &type, &machine) && type != ET_REL &&
		machine != EM_AMDGPU && machine != EM_CUDA);
}

kpack_error_t kp_fatbin_nest(int fd, uint64_t size, bool sections, struct kp_fatbin *out,
			     struct kpackx_error *why)
{
	const struct kp_source file = kp_source_fd(fd, 0, size);
	KP_AUTO(kp_fatbin) fat = {.source = {.fd = -1}};
	const struct kp_format *format;
	uint8_t bytes[KP_HEAD_SIZE];
	struct kp_span head;

	*out = fat;
	KP_TRY(kp_source_head(&file, 0, bytes, sizeof(bytes), &head, why));
	format = kp_format_probe(head);
	if (kp_fatbin_is_linked(head)) {
		KP_TRY(nest_linked(&file, head, sections, &fat, why));
	} else if (format && kp_format_is_hip(format)) {
		KP_TRY(kp_fatbin_open(fd, size, &fat, why));
		KP_TRY(nest_bare(&fat, why));
	} else if (format) {
		fat.source = file;
		KP_TRY(kp_nest_scan(&file, NULL, NULL, &fat.containers, why));
		if (fat.containers.count) {
			fat.kind = KP_FATBIN_NESTED;
			fat.format = fat.containers.items[0].format->name;
			KP_TRY(kp_fatbin_number(&fat, NULL, why));
		}
	}
	*out = fat;
	fat = (struct kp_fatbin){0};
	return KPACK_SUCCESS;
}

/* ---- whether there is device code at all ---- */

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
	const struct kp_format *format;
	uint8_t bytes[KP_HEAD_SIZE];
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
