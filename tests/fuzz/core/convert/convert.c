/* SPDX-License-Identifier: MIT */
/*
 * Changing host binaries: a converted file must be readable, accept another marker,
 * normalise, and be restored with wrappers that point into the section again.
 */
#include "core/convert/convert.h"
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
	struct kp_elf elf;

	if (kp_elf_read(fd, size_of(fd), &elf, &why) || elf.n_wrappers != n_wrappers)
		abort();
	for (size_t i = 0; i < n_wrappers; i++)
		if (elf.wrappers[i].fields.magic != KP_WRAPPER_HIPF ||
		    elf.wrappers[i].target != elf.fatbin_vaddr)
			abort();
	kp_elf_fini(&elf);
}

static void restore(int fd, const struct kp_fatbin *fat, uint64_t size)
{
	uint64_t *offsets = calloc(fat->elf.n_wrappers, sizeof(*offsets));
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
	    !fat->elf.wrappers_scanned)
		check_restored(out.fd, fat->elf.n_wrappers);
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
	if (kp_convert_set(fd, size_of(fd), &fat,
			   (struct kp_span){longer, sizeof(longer)}, &out, &why))
		abort();
	kp_outfile_close(&out);
	if (section <= SECTION_MAX) {
		restore(fd, &fat, section);
		restore(fd, &fat, section + 4096);
	}
	kp_fatbin_fini(&fat);
}

static void convert(int fd, uint64_t size, const struct kp_fatbin *fat, bool keep)
{
	struct kp_convert_options options = {.marker = {marker, sizeof(marker)},
					     .layout = {marker, sizeof(marker)},
					     .keep_device_code = keep};
	struct kp_outfile out = open_out();
	struct kpackx_error why = {0};

	if (kp_convert(fd, size, fat, &options, &out, &why) == KPACK_SUCCESS)
		change(out.fd, fat->elf.fatbin_size);
	kp_outfile_close(&out);
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
		kp_fatbin_fini(&fat);
	}
	close(fd);
	return 0;
}
