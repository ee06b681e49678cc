/* SPDX-License-Identifier: MIT */
/*
 * Finds and reads AOTriton's files as AOTriton does.
 *
 *   aotriton --so FILE <names
 *
 * FILE is loaded in place of libaotriton_v2.so.  The directory aotriton.images is next
 * to the path that dladdr() reports for it; no variable overrides this.  The names are
 * relative to aotriton.images, one per line: .aks2, .zip or text files that functionals
 * need.
 */
#include <getopt.h>
#include <lzma.h>
#include "code_object.h"

#define PIECE ((size_t)64 << 10)
#define ZIP_TAIL 65558 /* the end record and the longest comment */

static uint32_t u16_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32_at(const uint8_t *p)
{
	return u16_at(p) | u16_at(p + 2) << 16;
}

/* ---- AKS2 ----------------------------------------------------------------------------------- */

static void print_images(const struct bytes *plain, uint32_t count)
{
	size_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *record = plain->data + at;
		uint32_t offset, size, length;
		struct bytes image;

		if (plain->size - at < 20)
			die("the directory ends early");
		offset = u32_at(record + 8);
		size = u32_at(record + 12);
		length = u32_at(record + 16);
		if (length == 0 || length > plain->size - at - 20 ||
		    record[20 + length - 1] || offset > plain->size ||
		    size > plain->size - offset)
			die("a kernel that is not in the file");
		image = (struct bytes){plain->data + offset, size};
		if (size == 0)
			printf("image %s: did not compile\n", record + 20);
		else if (!is_elf(&image))
			die("image %s is no code object", record + 20);
		else
			print_bytes("image", (const char *)record + 20, image.data, size);
		at += 20 + length;
	}
}

struct inflator {
	lzma_stream stream;
	struct bytes plain;
	uint32_t count;
};

static void begin(struct inflator *z, const uint8_t header[16])
{
	if (memcmp(header, "AKS2", 4) != 0)
		die("no AKS2");
	*z = (struct inflator){.stream = LZMA_STREAM_INIT};
	z->plain.size = u32_at(header + 4);
	z->plain.data = grow(NULL, z->plain.size);
	z->count = u32_at(header + 8);
	if (lzma_stream_decoder(&z->stream, UINT64_MAX, 0) != LZMA_OK)
		die("lzma_stream_decoder");
	z->stream.next_out = z->plain.data;
	z->stream.avail_out = z->plain.size;
}

static lzma_ret go_on(struct inflator *z, const uint8_t *piece, size_t size)
{
	z->stream.next_in = piece;
	z->stream.avail_in = size;
	return lzma_code(&z->stream, size ? LZMA_RUN : LZMA_FINISH);
}

static void end(struct inflator *z, lzma_ret last, const char *name)
{
	if (last != LZMA_STREAM_END || z->stream.avail_out)
		die("%s: lzma says %d, %zu bytes are missing", name, last,
		    z->stream.avail_out);
	print_bytes("unpacked", name, z->plain.data, z->plain.size);
	print_images(&z->plain, z->count);
	free(z->plain.data);
	lzma_end(&z->stream);
}

static void read_aks2(int fd, const char *name)
{
	uint8_t piece[PIECE];
	struct inflator z;
	lzma_ret status = LZMA_OK;
	ssize_t n;

	if (read(fd, piece, 16) != 16)
		die("%s: no header", name);
	begin(&z, piece);
	while (status == LZMA_OK) {
		n = read(fd, piece, sizeof(piece));
		if (n < 0)
			die("%s: read: %s", name, strerror(errno));
		status = go_on(&z, piece, (size_t)n);
	}
	end(&z, status, name);
}

/* ---- zip -------------------------------------------------------------------------------------- */

static struct bytes read_at(int fd, uint64_t offset, size_t size)
{
	struct bytes b = {grow(NULL, size), size};

	if (pread(fd, b.data, size, (off_t)offset) != (ssize_t)size)
		die("%zu bytes at %ju: %s", size, (uintmax_t)offset, strerror(errno));
	return b;
}

/* A stored member, which is an AKS2 file. */
static void read_member(int fd, const uint8_t *record, const char *name)
{
	uint32_t offset = u32_at(record + 42), size = u32_at(record + 20);
	struct bytes local = read_at(fd, offset, 30), data;
	struct inflator z;

	if (u16_at(record + 10) != 0 || !(u16_at(record + 8) & 1 << 11))
		die("%s: is not stored, or its name is not UTF-8", name);
	data = read_at(fd,
		       offset + 30 + u16_at(local.data + 26) + u16_at(local.data + 28),
		       size);
	begin(&z, data.data);
	end(&z, go_on(&z, data.data + 16, data.size - 16), name);
	free(data.data);
	free(local.data);
}

static void read_zip(int fd, const char *name)
{
	off_t size = lseek(fd, 0, SEEK_END);
	size_t tail = size < ZIP_TAIL ? (size_t)size : ZIP_TAIL, at;
	struct bytes last = read_at(fd, (uint64_t)size - tail, tail), directory;
	uint32_t members;

	for (at = tail - 22; memcmp(last.data + at, "PK\5\6", 4) != 0; at--)
		if (at == 0)
			die("%s: no end record", name);
	members = u16_at(last.data + at + 10);
	directory = read_at(fd, u32_at(last.data + at + 16), u32_at(last.data + at + 12));
	printf("zip %s: %jd bytes, %u members\n", name, (intmax_t)size, members);
	for (at = 0; members--; at += 46 + u16_at(directory.data + at + 28)) {
		const uint8_t *record = directory.data + at;
		char *member;

		if (directory.size - at < 46 ||
		    u16_at(record + 28) > directory.size - at - 46)
			die("%s: the directory ends early", name);
		member = text("%.*s", (int)u16_at(record + 28), record + 46);
		read_member(fd, record, member);
		free(member);
	}
	free(directory.data);
	free(last.data);
}

/* ---- names ------------------------------------------------------------------------------------ */

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static void open_name(int dir, const char *name)
{
	struct bytes bytes;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		print_absent("open", name);
		return;
	}
	if (read_pieces(dir, name, PIECE, &bytes))
		print_bytes("read", name, bytes.data, bytes.size);
	free(bytes.data);
	if (ends_with(name, ".aks2"))
		read_aks2(fd, name);
	else if (ends_with(name, ".zip"))
		read_zip(fd, name);
	close(fd);
}

/* Open the directory aotriton.images next to LIBRARY's file. */
static int open_images(void *library)
{
	void *answer = dlsym(library, "host_answer");
	char *path;
	Dl_info info;
	int fd;

	if (!answer || !dladdr(answer, &info) || !strrchr(info.dli_fname, '/'))
		die("the library does not know where it is");
	path = text("%.*s/aotriton.images",
		    (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	free(path);
	return fd;
}

int main(int argc, char **argv)
{
	char line[4096];
	int dir;

	if (argc != 3 || strcmp(argv[1], "--so") != 0)
		die("usage: aotriton --so FILE <names");
	dir = open_images(load_library(argv[2]));
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		open_name(dir, line);
	}
	return 0;
}
