/* SPDX-License-Identifier: MIT */
#include "report_content_policy.h"
#include <openssl/evp.h>
#include "packer/cli/digest.h"

static kpack_error_t print_source(FILE *out, const char *text, struct kpackx_error *why)
{
	struct digest hash = {0};
	uint8_t bytes[DIGEST_MAX];
	unsigned char base64[DIGEST_MAX];
	kpack_error_t err;

	digest_begin(&hash, DIGEST_SHA256);
	digest_add(&hash, kp_span_str(text));
	err = digest_end(&hash, bytes, why);
	digest_fini(&hash);
	if (err)
		return err;
	EVP_EncodeBlock(base64, bytes, (int)digest_size(DIGEST_SHA256));
	fprintf(out, "'sha256-%s'", (const char *)base64);
	return KPACK_SUCCESS;
}

kpack_error_t page_policy(FILE *out, const char *style, const char *script,
			  struct kpackx_error *why)
{
	fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
	      "'none'; "
	      "base-uri 'none'; form-action 'none'; style-src ",
	      out);
	KP_TRY(print_source(out, style, why));
	fputs("; script-src ", out);
	KP_TRY(print_source(out, script, why));
	fputs("\">\n", out);
	return KPACK_SUCCESS;
}
