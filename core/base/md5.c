/* SPDX-License-Identifier: MIT */
#include "md5.h"

enum { BLOCK = 64 };

/* The first 32 bits of the fraction of |sin(i + 1)|. */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
	0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
	0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
	0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
	0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
	0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
	0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
	0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

/* Bits to rotate by: four per round, used in turn. */
static const uint8_t turns[4][4] = {
	{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t rotate_left(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static uint32_t mix_words(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	switch (round) {
	case 0:
		return (b & c) | (~b & d);
	case 1:
		return (b & d) + (c & ~d);
	case 2:
		return b ^ c ^ d;
	default:
		return c ^ (b | ~d);
	}
}

static void take_block(uint32_t state[4], const uint8_t *block)
{
	static const uint8_t step[4] = {1, 5, 3, 7}, first[4] = {0, 1, 5, 0};
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	/* a step waits for the one before it: what needs only the block comes first */
#pragma GCC unroll 64
	for (unsigned i = 0; i < 64; i++) {
		unsigned round = i / 16, word = (first[round] + step[round] * i) % 16;
		uint32_t known = a + sines[i] + kp_le32(block + 4 * (size_t)word);
		uint32_t sum = known + mix_words(round, b, c, d);

		a = d;
		d = c;
		c = b;
		b += rotate_left(sum, turns[round][i % 4]);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

/* Process the last bytes, a one bit, zeros, and the length in bits: one or two blocks. */
static void take_end(uint32_t state[4], struct kp_span rest, uint64_t size)
{
	uint8_t end[2 * BLOCK] = {0};
	size_t n = rest.size < BLOCK - 8 ? BLOCK : 2 * BLOCK;

	if (rest.size)
		memcpy(end, rest.data, rest.size);
	end[rest.size] = 0x80;
	kp_put_le64(end + n - 8, size * 8);
	for (size_t i = 0; i < n; i += BLOCK)
		take_block(state, end + i);
}

void kp_md5(struct kp_span data, uint8_t out[16])
{
	uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	size_t whole = data.size - data.size % BLOCK;

	for (size_t i = 0; i < whole; i += BLOCK)
		take_block(state, data.data + i);
	take_end(state, (struct kp_span){data.data + whole, data.size - whole},
		 data.size);
	for (size_t i = 0; i < 4; i++)
		kp_put_le32(out + 4 * i, state[i]);
}
