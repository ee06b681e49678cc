/* SPDX-License-Identifier: MIT */
/* Places in the new file; what conversions make of whole files, golden cases check (pes.py). */
#include "core/pe/edit.h"
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "tests/unit/unit.h"

/* ---- a file of three sections of 512 bytes at 512, 1024 and 1536, and TAIL bytes behind them ---- */

enum { AT = 64, TABLE = AT + 24 + 240, SIZE = 2048, TAIL = 40 };

struct image {
	uint8_t bytes[SIZE + TAIL];
};

static void put(struct image *m, size_t at, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		m->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static struct image make_image(void)
{
	static const char *const names[] = {".text", ".hip_fat", ".data"};
	struct image m = {"MZ"};

	put(&m, 60, AT, 4);
	memcpy(m.bytes + AT, "PE\0\0", 4);
	put(&m, AT + 4, KP_PE_X86_64, 2);
	put(&m, AT + 6, 3, 2);
	put(&m, AT + 20, 240, 2);
	put(&m, AT + 24, 0x20b, 2);
	put(&m, AT + 24 + 8, 1536, 4); /* initialised data */
	put(&m, AT + 24 + 32, 4096, 4);
	put(&m, AT + 24 + 36, 512, 4);
	put(&m, AT + 24 + 60, 512, 4);
	put(&m, AT + 24 + 108, 16, 4);
	for (unsigned i = 0; i < 3; i++) {
		size_t row = TABLE + 40 * i;

		memcpy(m.bytes + row, names[i], strlen(names[i]));
		put(&m, row + 8, 512, 4);
		put(&m, row + 12, 4096 * (i + 1), 4);
		put(&m, row + 16, 512, 4);
		put(&m, row + 20, 512 * (i + 1), 4);
		put(&m, row + 36, KP_PE_DATA, 4);
		memset(m.bytes + 512 * (i + 1), 'a' + (int)i, 512);
	}
	return m;
}

/* Open M, without the code of its .hip_fat, and with a marker. */
static kpack_error_t edit_image(const struct image *m, size_t size, struct kp_pe_edit *ed)
{
	static const uint8_t marker[] = "marker";
	int fd = memfd_create("pe", MFD_CLOEXEC);
	struct kpackx_error why;
	kpack_error_t err;

	assert_int_equal(write(fd, m->bytes, size), size);
	err = kp_pe_edit_open(fd, size, false, ed, &why);
	if (!err) {
		kp_pe_edit_fill(ed, kp_pe_edit_find(ed, KP_PE_FATBIN), 0, NULL, NULL);
		err = kp_pe_edit_add(ed, KP_PE_MARKER, KP_PE_DATA | KP_PE_READ,
				     (struct kp_span){marker, sizeof(marker)}, &why);
	}
	return err ? err : kp_pe_edit_place(ed, &why);
}

static void close_edit(struct kp_pe_edit *ed)
{
	close(ed->file.fd);
	kp_pe_edit_fini(ed);
}

TEST(what_is_behind_moves_up)
{
	struct image m = make_image();
	struct kp_pe_edit ed = {0};
	struct kp_move *moves;
	size_t n;

	assert_int_equal(edit_image(&m, SIZE, &ed), KPACK_SUCCESS);
	assert_false(ed.pinned);
	assert_int_equal(ed.parts[0].s.offset, 512);
	assert_int_equal(ed.parts[1].s.offset, 0);
	assert_int_equal(ed.parts[2].s.offset, 1024);
	assert_int_equal(ed.parts[3].s.offset, 1536);
	assert_int_equal(ed.parts[3].s.rva, 4096 * 4);
	assert_int_equal(ed.size, 2048);
	assert_int_equal(kp_pe_edit_moves(&ed, &moves, &n, NULL), KPACK_SUCCESS);
	/* DOS header, the rest of the headers, .text, .data */
	assert_int_equal(n, 4);
	assert_int_equal(moves[3].from, 1536);
	assert_int_equal(moves[3].to, 1024);
	free(moves);
	close_edit(&ed);
}

TEST(bytes_that_nothing_names_stay_where_they_are)
{
	struct image m = make_image();
	struct kp_pe_edit ed = {0};

	memcpy(m.bytes + SIZE, "appended", 8);
	assert_int_equal(edit_image(&m, SIZE + TAIL, &ed), KPACK_SUCCESS);
	assert_true(ed.pinned);
	assert_int_equal(ed.parts[2].s.offset, 1536);
	assert_int_equal(ed.parts[3].s.offset, 1024);
	assert_int_equal(ed.tail_to, SIZE);
	assert_int_equal(ed.size, SIZE + TAIL);
	close_edit(&ed);
}

TEST(symbols_move)
{
	struct image m = make_image();
	struct kp_pe_edit ed = {0};
	uint8_t bytes[4];

	put(&m, AT + 12, SIZE, 4);
	put(&m, AT + 16, 2, 4);
	memset(m.bytes + SIZE, 's', 36);
	put(&m, SIZE + 36, 4, 4);
	assert_int_equal(edit_image(&m, SIZE + TAIL, &ed), KPACK_SUCCESS);
	assert_false(ed.pinned);
	assert_int_equal(ed.tail_to, 2048);
	{
		struct kp_outfile out = {.fd = memfd_create("out", MFD_CLOEXEC),
					 .dir_fd = -1,
					 .name = strdup("out")};

		assert_int_equal(kp_pe_edit_write(&ed, &out, NULL), KPACK_SUCCESS);
		assert_int_equal(pread(out.fd, bytes, 4, AT + 24 + 8), 4);
		assert_int_equal(kp_le32(bytes), 1536);
		assert_int_equal(pread(out.fd, bytes, 4, 2048), 4);
		assert_memory_equal(bytes, "ssss", 4);
		kp_outfile_close(&out);
	}
	close_edit(&ed);
}

TEST(files_that_cannot_be_edited)
{
	static const struct {
		size_t at;
		uint64_t value;
		unsigned size;
		kpack_error_t err;
	} cases[] = {
		{AT + 4, 0x14c, 2, KPACK_ERROR_NOT_IMPLEMENTED},     /* i386 */
		{AT + 6, 0, 2, KPACK_ERROR_NOT_IMPLEMENTED},         /* no section */
		{AT + 24 + 32, 512, 4, KPACK_ERROR_NOT_IMPLEMENTED}, /* alignment */
		{AT + 24 + 60, 300, 4, KPACK_ERROR_INVALID_FORMAT},  /* headers */
		{TABLE + 12, 0, 4, KPACK_ERROR_INVALID_FORMAT},      /* in the headers */
		{TABLE + 16, 4096, 4, KPACK_ERROR_INVALID_FORMAT},   /* past the end */
		{TABLE + 60, 512, 4, KPACK_ERROR_NOT_IMPLEMENTED},   /* shared bytes */
		{TABLE + 72, 1, 2, KPACK_ERROR_NOT_IMPLEMENTED},     /* relocations */
		{TABLE + 122, 1, 1, KPACK_ERROR_NOT_IMPLEMENTED},    /* no room behind */
		{TABLE + 92, 0x7ffff000, 4, KPACK_ERROR_NOT_IMPLEMENTED}, /* 2 GiB */
		{AT + 24 + 112 + 8 * KP_PE_SIGNATURE + 4, 8, 4,
		 KPACK_ERROR_NOT_IMPLEMENTED}, /* signed */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct image m = make_image();
		struct kp_pe_edit ed = {0};

		put(&m, cases[i].at, cases[i].value, cases[i].size);
		assert_int_equal(edit_image(&m, SIZE, &ed), cases[i].err);
		close_edit(&ed);
	}
}
