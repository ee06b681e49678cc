/* SPDX-License-Identifier: MIT */
#include "policy.h"
#include "packer/base/sha256.h"

enum { DIGEST = 32 };

static unsigned nibble(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void print_base64(FILE *out, const uint8_t *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		unsigned v = (unsigned)bytes[i] << 16 |
			     (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
			     (left > 2 ? bytes[i + 2] : 0U);

		putc(digits[v >> 18], out);
		putc(digits[v >> 12 & 63], out);
		putc(left > 1 ? digits[v >> 6 & 63] : '=', out);
		putc(left > 2 ? digits[v & 63] : '=', out);
	}
}

static void print_source(FILE *out, struct sha256 *hash, const char *text)
{
	char hex[SHA256_TEXT];
	uint8_t digest[DIGEST];

	sha256_begin(hash);
	sha256_add(hash, kp_span_str(text));
	sha256_end(hash, hex);
	if (!*hex) {
		fputs("'unsafe-inline'", out);
		return;
	}
	for (int i = 0; i < DIGEST; i++)
		digest[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	fputs("'sha256-", out);
	print_base64(out, digest, DIGEST);
	putc('\'', out);
}

kpack_error_t page_policy(FILE *out, const char *style, const char *script,
			  struct kpackx_error *why)
{
	struct sha256 *hash = NULL;

	KP_TRY(sha256_new(&hash, why));
	fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
	      "'none'; "
	      "base-uri 'none'; form-action 'none'; style-src ",
	      out);
	print_source(out, hash, style);
	fputs("; script-src ", out);
	print_source(out, hash, script);
	fputs("\">\n", out);
	sha256_free(hash);
	return KPACK_SUCCESS;
}
