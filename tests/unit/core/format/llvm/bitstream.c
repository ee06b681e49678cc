/* SPDX-License-Identifier: MIT */
/*
 * Bits at every position in a word, compared with counting one by one; headers and
 * padding.
 */
#include "core/format/llvm/bitstream.h"
#include <stdlib.h>
#include "tests/unit/unit.h"
#include "core/format/symbols.h"

static struct kpackx_error why;

static uint64_t one_by_one(const uint8_t *data, size_t pos, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++, pos++)
		value |= (uint64_t)(data[pos / 8] >> pos % 8 & 1) << i;
	return value;
}

TEST(every_width_at_every_place)
{
	uint8_t *data = malloc(24);
	struct kp_source src = kp_source_memory(data, 24);
	struct kp_bits b;

	for (unsigned i = 0; i < 24; i++)
		data[i] = (uint8_t)(i * 151 + 77);
	for (unsigned pos = 0; pos < 24 * 8; pos++) {
		for (unsigned n = 1; n <= 64; n++) {
			kp_bits_init(&b, &src, pos, NULL);
			if (pos + n <= 24 * 8) {
				assert_int_equal(kp_bits_take(&b, n),
						 one_by_one(data, pos, n));
				assert_int_equal(b.pos, pos + n);
				assert_false(b.over);
			} else {
				assert_int_equal(kp_bits_take(&b, n), 0);
				assert_true(b.over);
			}
		}
	}
	free(data);
}

TEST(numbers_in_pieces)
{
	/*
	 * 300 in chunks of 8 bits (44 with a continuation bit, then 2); then chunks that
	 * never end
	 */
	static const uint8_t data[] = {0xac, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct kp_source src = kp_source_memory(data, sizeof(data));
	struct kp_bits b;

	kp_bits_init(&b, &src, 0, NULL);
	assert_int_equal(kp_bits_vbr(&b, 8), 300);
	assert_int_equal(b.pos, 16);
	kp_bits_vbr(&b, 8);
	assert_true(b.over);
	kp_bits_init(&b, &src, 0, NULL);
	b.left = 15;
	kp_bits_vbr(&b, 8);
	assert_true(b.over);
}

TEST(what_is_no_bitcode_is_refused)
{
	static const struct {
		uint32_t words[6];
		size_t size;
		kpack_error_t err;
	} rows[] = {
		{{0xdec04342}, 4, KPACK_SUCCESS},
		{{0xdec04342}, 3, KPACK_ERROR_INVALID_FORMAT},
		{{0xdec04343}, 4, KPACK_ERROR_INVALID_FORMAT},
		{{0x0b17c0de, 0, 20, 4, 7, 0xdec04342}, 24, KPACK_SUCCESS},
		{{0x0b17c0de, 0, 20, 5, 7, 0xdec04342}, 24, KPACK_ERROR_INVALID_FORMAT},
		{{0x0b17c0de, 0, 20, 3, 7, 0xdec04342}, 24, KPACK_ERROR_INVALID_FORMAT},
		{{0x0b17c0de, 0, 20, 4, 7, 0x0b17c0de}, 24, KPACK_ERROR_INVALID_FORMAT},
		{{0x0b17c0de, 0, 24, 4, 7, 0xdec04342}, 24, KPACK_ERROR_INVALID_FORMAT},
		{{0x0b17c0de, 0, 0, 24, 7, 0xdec04342}, 24, KPACK_ERROR_INVALID_FORMAT},
		{{0x0b17c0de, 0, 16, 0}, 16, KPACK_ERROR_INVALID_FORMAT},
	};
	struct kp_bits b;

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t data[24];
		struct kp_source src = kp_source_memory(data, rows[i].size);

		for (size_t k = 0; k < 6; k++)
			kp_put_le32(data + 4 * k, rows[i].words[k]);
		assert_int_equal(kp_bits_open(&b, &src, &why), rows[i].err);
		if (!rows[i].err)
			assert_int_equal(b.pos, 32);
	}
}

/* Up to 8 bytes of padding may follow the last block, as in LLVM. */
TEST(padding_is_passed_over)
{
	/* an empty block 13 */
	uint8_t data[32] = {'B', 'C', 0xc0, 0xde, 13 << 2 | 1, 3 << 2};
	struct kp_symbols symbols = {0};
	struct kp_source src;

	for (int fill = 0; fill < 256; fill += 255) {
		memset(data + 12, fill, sizeof(data) - 12);
		for (size_t n = 0; n <= 20; n += 4) {
			src = kp_source_memory(data, 12 + n);
			assert_int_equal(kp_bitcode_symbols(&src, &symbols, &why),
					 n <= 8 ? KPACK_SUCCESS
						: KPACK_ERROR_INVALID_FORMAT);
		}
	}
	assert_int_equal(symbols.count, 0);
	kp_symbols_fini(&symbols);
}
