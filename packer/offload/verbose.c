/* SPDX-License-Identifier: MIT */
/* The output of -verbose, line by line as clang-offload-bundler's. */
#include <inttypes.h>
#include <stdio.h>
#include "bundler.h"

/* 1234567 -> "1,234,567" */
static const char *with_commas(uint64_t n, char out[32])
{
	char digits[24];
	int size = snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;

	for (int i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}

static const char *method_name(unsigned method)
{
	return method == KP_CCOB_ZLIB ? "zlib" : "zstd";
}

static double megabytes(uint64_t size, double seconds)
{
	return (double)size / (1024.0 * 1024.0) / seconds;
}

static void print_rate(uint64_t size, uint64_t decoded)
{
	double rate = (double)decoded / (double)size;

	fprintf(stderr, "Compression rate: %.2f\nCompression ratio: %.2f%%\n", rate,
		100.0 / rate);
}

void bundler_print_compressed(const struct bundler *b, uint64_t size, uint64_t decoded,
			      double seconds)
{
	uint64_t data = size - kp_ccob_header_size(b->form.version);
	char text[32];

	if (!b->verbose)
		return;
	fprintf(stderr, "Compressed bundle format version: %u\n", b->form.version);
	fprintf(stderr, "Total file size (including headers): %s bytes\n",
		with_commas(size, text));
	fprintf(stderr, "Compression method used: %s\n", method_name(b->form.method));
	fprintf(stderr, "Compression level: %d\n", b->form.level);
	fprintf(stderr, "Binary size before compression: %s bytes\n",
		with_commas(decoded, text));
	fprintf(stderr, "Binary size after compression: %s bytes\n",
		with_commas(data, text));
	print_rate(data, decoded);
	fprintf(stderr, "Compression speed: %.2f MB/s\n", megabytes(decoded, seconds));
	fprintf(stderr, "Truncated MD5 hash: 0x%014" PRIx64 "\n", b->form.hash);
}

void bundler_print_decompressed(const struct bundler *b, const struct kp_ccob_form *form,
				uint64_t size, struct kp_span payload, double seconds)
{
	uint64_t data = size - kp_ccob_header_size(form->version);
	uint64_t hash;
	char text[32];

	if (!b->verbose)
		return;
	hash = kp_ccob_hash(payload);
	fprintf(stderr, "Compressed bundle format version: %u\n", form->version);
	if (form->version > 1)
		fprintf(stderr, "Total file size (from header): %s bytes\n",
			with_commas(size, text));
	fprintf(stderr, "Decompression method: %s\n", method_name(form->method));
	fprintf(stderr, "Size before decompression: %s bytes\n", with_commas(data, text));
	fprintf(stderr, "Size after decompression: %s bytes\n",
		with_commas(payload.size, text));
	print_rate(data, payload.size);
	fprintf(stderr, "Decompression speed: %.2f MB/s\n",
		megabytes(payload.size, seconds));
	fprintf(stderr, "Stored hash: 0x%014" PRIx64 "\n", form->hash);
	fprintf(stderr, "Recalculated hash: 0x%014" PRIx64 "\n", hash);
	fprintf(stderr, "Hashes match: %s\n", hash == form->hash ? "Yes" : "No");
}
