/* SPDX-License-Identifier: MIT */
/* Environment variables that stand for options. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "bundler.h"
#include "packer/cli/report.h"

/*
 * Parse a decimal number that is the whole TEXT; false: it is none, or does not fit an
 * int.
 */
static bool parse_number(const char *text, int *out)
{
	char *end;
	long n;

	if (!strchr("-0123456789", *text) || !*text)
		return false;
	errno = 0;
	n = strtol(text, &end, 10);
	if (*end || errno || n < INT_MIN || n > INT_MAX)
		return false;
	*out = (int)n;
	return true;
}

static bool is_one(const char *name, bool otherwise)
{
	const char *text = secure_getenv(name);

	return text ? strcmp(text, "1") == 0 : otherwise;
}

/* As LLVM's tool words it. */
static void warn_value(const char *name, const char *text, const char *rest)
{
	fprintf(stderr, "Warning: Invalid value for %s: ", name);
	report_text_to(stderr, text);
	fprintf(stderr, ". %s", rest);
}

static void read_level(struct bundler *b)
{
	static const char name[] = "OFFLOAD_BUNDLER_COMPRESSION_LEVEL";
	const char *text = secure_getenv(name);

	if (text && !parse_number(text, &b->form.level))
		warn_value(name, text, "Ignoring it.\n");
}

static void read_version(struct bundler *b)
{
	static const char name[] = "COMPRESSED_BUNDLE_FORMAT_VERSION";
	const char *text = secure_getenv(name);
	bool known;
	int version;

	if (!text)
		return;
	known = parse_number(text, &version) && version >= 0 && version <= UINT16_MAX;
	if (known && (version == 2 || version == 3)) {
		b->form.version = (unsigned)version;
		return;
	}
	warn_value(name, text, known ? "Valid values are 2 or 3. " : "");
	fprintf(stderr, "Using default version %u.\n", b->form.version);
}

void bundler_environment(struct bundler *b)
{
	if (is_one("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", false))
		return;
	b->verbose = is_one("OFFLOAD_BUNDLER_VERBOSE", b->verbose);
	b->compress = is_one("OFFLOAD_BUNDLER_COMPRESS", b->compress);
	read_level(b);
	read_version(b);
}
