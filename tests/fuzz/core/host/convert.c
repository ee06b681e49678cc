/* SPDX-License-Identifier: MIT */
/*
 * Changing host binaries: a converted file must be readable, accept another marker,
 * normalise, and be restored: to the last byte by its recipe, and with other contents of the
 * section so that its wrappers point into it again.  A file that
 * loses every other code object must have the remaining ones.
 */
#include "core/host/convert.h"
#include "core/restore/recipe.h"
#include "packer/thin/selection.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Larger restored sections are not worth the time to write. */
#define SECTION_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t marker[] = "marker", longer[4096] = "longer";

static struct kp_outfile open_out(void)
{
	struct kp_outfile out = {.fd = memfd_create("out", MFD_CLOEXEC), .dir_fd = -1};

	out.name = strdup("out");
	if (out.fd < 0 || !out.name)
		abort();
	return out;
}

static uint64_t size_of(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	if (end < 0)
		abort();
	return (uint64_t)end;
}

static kpack_error_t write_section(void *arg, struct kp_outfile *out, uint64_t offset,
				   struct kpackx_error *why)
{
	const uint64_t *size = arg;
	uint8_t *bytes = calloc(1, (size_t)*size + 1);
	kpack_error_t err;

	if (!bytes)
		abort();
	err = kp_outfile_pwrite(out, offset, bytes, (size_t)*size, why);
	free(bytes);
	return err;
}

static void check_restored(int fd, size_t n_wrappers)
{
	struct kpackx_error why = {0};
	struct kp_host host;

	if (kp_host_read(fd, size_of(fd), &host, &why) || host.n_wrappers != n_wrappers)
		abort();
	for (size_t i = 0; i < n_wrappers; i++)
		if (host.wrappers[i].fields.magic != KP_WRAPPER_HIPF ||
		    host.wrappers[i].target != host.fatbin.vaddr)
			abort();
	kp_host_fini(&host);
}

static void restore(int fd, const struct kp_fatbin *fat, uint64_t size)
{
	uint64_t *offsets = calloc(fat->host.n_wrappers, sizeof(*offsets));
	struct kp_restore_options options = {
		.size = size, .offsets = offsets, .write = write_section, .arg = &size};
	struct kp_outfile out = open_out();
	struct kpackx_error why = {0};

	if (!offsets)
		abort();
	/*
	 * The restored section is zeros and has no containers, so a scan finds no merged
	 * wrappers.
	 */
	if (kp_restore(fd, size_of(fd), fat, &options, &out, &why) == KPACK_SUCCESS &&
	    !fat->host.wrappers_scanned)
		check_restored(out.fd, fat->host.n_wrappers);
	kp_outfile_close(&out);
	free(offsets);
}

static void change(int fd, uint64_t section)
{
	struct kpackx_error why = {0};
	struct kp_outfile out;
	struct kp_fatbin fat;
	bool changed;

	/* kp_convert has read it, so opening cannot fail */
	if (kp_fatbin_open(fd, size_of(fd), &fat, &why) ||
	    fat.kind != KP_FATBIN_CONVERTED)
		abort();
	out = open_out();
	kp_convert_normalise(fd, size_of(fd), &fat, &out, &changed, &why);
	kp_outfile_close(&out);
	out = open_out();
	/* there may be no room for a longer one, but nothing else can be wrong */
	switch (kp_convert_set(
		fd, size_of(fd), &fat,
		&(struct kp_convert_options){.marker = {longer, sizeof(longer)}}, &out,
		&why)) {
	case KPACK_SUCCESS:
	case KPACK_ERROR_NOT_IMPLEMENTED:
		break;
	default:
		abort();
	}
	kp_outfile_close(&out);
	if (section <= SECTION_MAX) {
		restore(fd, &fat, section);
		restore(fd, &fat, section + 4096);
	}
	kp_fatbin_fini(&fat);
}

/* Give image number I of the fat file ARG. */
static kpack_error_t give_image(void *arg, size_t i, void *buf, struct kpackx_error *why)
{
	const struct kp_fatbin *fat = arg;
	const struct kp_image *image = &fat->containers.images[i];
	struct kp_payload payload;
	kpack_error_t err;

	KP_TRY(kp_container_load(&fat->source, &fat->containers.items[image->container],
				 &payload, why));
	err = kp_source_read(&payload.source, image->offset, buf, (size_t)image->size,
			     why);
	kp_payload_fini(&payload);
	return err;
}

/* The file at FD, converted from the one at ORIGINAL, must give that one again. */
static void restore_all(int fd, int original, const struct kp_fatbin *fat)
{
	struct kp_source file = kp_source_fd(fd, 0, size_of(fd)), section, old, new;
	struct kp_recipe_source source = {.changed = &file, .read = give_image};
	struct kp_outfile out = open_out();
	struct kp_recipe_result result;
	struct kpackx_error why = {0};
	struct kp_fatbin converted;
	struct kp_recipe recipe;
	bool fits;

	source.arg = (void *)fat;
	if (kp_fatbin_open(fd, file.size, &converted, &why) ||
	    kp_fatbin_check_marker(&converted, &why))
		abort();
	section = kp_source_fd(fd, converted.host.layout.offset,
			       converted.host.layout.size);
	if (kp_recipe_read(&section, &recipe, &why) ||
	    kp_recipe_fits(&recipe, &file, &fits, &why) || !fits ||
	    kp_recipe_restore(&recipe, &source, &out, &result, &why))
		abort();
	old = kp_source_fd(original, 0, size_of(original));
	new = kp_source_fd(out.fd, 0, size_of(out.fd));
	if (!result.n_recompressed && !kp_source_same(&old, &new))
		abort();
	kp_recipe_fini(&recipe);
	kp_fatbin_fini(&converted);
	kp_outfile_close(&out);
}

static void convert(int fd, uint64_t size, const struct kp_fatbin *fat, bool keep)
{
	struct kp_recipe recipe;
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = fd, .size = size};
	struct kp_convert_options options = {.marker = {marker, sizeof(marker)},
					     .recipe = kp_recipe_complete,
					     .recipe_arg = &maker,
					     .keep_device_code = keep};
	struct kp_outfile out = open_out();
	struct kpackx_error why = {0};

	if (fat->kind != KP_FATBIN_HOST ||
	    kp_recipe_describe(fat, NULL, NULL,
			       KP_RECIPE_COMPUTE | (keep ? KP_RECIPE_IN_FILE : 0),
			       &recipe, &why)) {
		recipe = (struct kp_recipe){0};
		options.recipe = NULL;
	}
	if (kp_convert(fd, size, fat, &options, &out, &why) == KPACK_SUCCESS) {
		if (!keep && size_of(out.fd) > size)
			abort();
		if (options.recipe)
			restore_all(out.fd, fd, fat);
		change(out.fd, fat->host.fatbin.size);
	}
	free((void *)maker.bytes.data);
	kp_recipe_fini(&recipe);
	kp_outfile_close(&out);
}

/* ---- fewer code objects ---- */

static kpack_error_t copy_section(void *arg, struct kp_outfile *out, uint64_t offset,
				  struct kpackx_error *why)
{
	const struct kp_outfile *section = arg;

	return kp_outfile_copy(out, offset, section->fd, 0, size_of(section->fd), why);
}

/* The sizes of the images that are not GONE, with those of no bytes. */
static uint64_t sum_images(const struct kp_fatbin *fat, const bool *gone)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < fat->containers.n_images; i++)
		sum += gone && gone[i] ? 0 : fat->containers.images[i].size;
	return sum;
}

static void refill(int fd, uint64_t size, const struct kp_fatbin *fat,
		   struct kp_outfile *section, const uint64_t *offsets, uint64_t left)
{
	uint64_t *starts = calloc(fat->host.n_wrappers + 1, sizeof(*starts));
	struct kp_restore_options options = {.size = size_of(section->fd),
					     .offsets = starts,
					     .write = copy_section,
					     .arg = section};
	struct kp_outfile out = open_out();
	struct kpackx_error why = {0};
	struct kp_fatbin after;
	uint64_t planned, written;

	if (!starts)
		abort();
	for (size_t i = 0; i < fat->host.n_wrappers; i++)
		if (fat->wrapper_container[i] >= 0)
			starts[i] = offsets[fat->wrapper_container[i]];
	if (kp_refill(fd, size, fat, &options, &out, &written, &why) == KPACK_SUCCESS) {
		if (kp_refill(fd, size, fat, &options, NULL, &planned, &why) ||
		    planned != written || written != size_of(out.fd) ||
		    kp_fatbin_open(out.fd, size_of(out.fd), &after, &why) ||
		    after.host.n_wrappers != fat->host.n_wrappers ||
		    sum_images(&after, NULL) != left)
			abort();
		kp_fatbin_fini(&after);
	}
	kp_outfile_close(&out);
	free(starts);
}

static void thin(int fd, uint64_t size, const struct kp_fatbin *fat)
{
	const struct kp_containers *list = &fat->containers;
	uint64_t *offsets = calloc(list->count + 1, sizeof(*offsets)), counted, written;
	bool *gone = calloc(list->n_images + 1, sizeof(*gone));
	struct kp_selection selection = {.gone = gone, .strip = size & 1};
	struct kp_outfile section = open_out();
	struct kpackx_error why = {0};
	kpack_error_t err;

	if (!offsets || !gone)
		abort();
	for (size_t i = 1; i < list->n_images; i += 2)
		gone[i] = !list->images[i].host &&
			  kp_selection_possible(fat, list->images[i].container);
	/* images that share bytes are written more than once */
	if (sum_images(fat, NULL) <= SECTION_MAX) {
		err = kp_selection_write(fat, &selection, NULL, offsets, &counted, &why);
		if (kp_selection_write(fat, &selection, &section, offsets, &written,
				       &why) != err ||
		    (!err && written != counted))
			abort();
		if (!err && fat->kind == KP_FATBIN_HOST)
			refill(fd, size, fat, &section, offsets, sum_images(fat, gone));
	}
	kp_outfile_close(&section);
	free(offsets);
	free(gone);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct kpackx_error why;
	struct kp_fatbin fat;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (kp_fatbin_open(fd, size, &fat, &why) == KPACK_SUCCESS) {
		convert(fd, size, &fat, false);
		convert(fd, size, &fat, true);
		thin(fd, size, &fat);
		kp_fatbin_fini(&fat);
	}
	close(fd);
	return 0;
}
