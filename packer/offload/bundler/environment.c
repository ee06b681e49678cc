/* SPDX-License-Identifier: MIT */
/* Environment variables that stand for options. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "bundler.h"

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
	const char *text = getenv(name);

	return text ? strcmp(text, "1") == 0 : otherwise;
}

static void read_level(struct bundler *b)
{
	const char *text = getenv("OFFLOAD_BUNDLER_COMPRESSION_LEVEL");

	if (text && !parse_number(text, &b->form.level))
		fprintf(stderr,
			"Warning: Invalid value for OFFLOAD_BUNDLER_COMPRESSION_LEVEL: "
			"%s. Ignoring it.\n",
			text);
}

static void read_version(struct bundler *b)
{
	const char *text = getenv("COMPRESSED_BUNDLE_FORMAT_VERSION");
	int version;

	if (!text)
		return;
	if (!parse_number(text, &version) || version < 0 || version > UINT16_MAX)
		fprintf(stderr,
			"Warning: Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: "
			"%s. Using default version %u.\n",
			text, b->form.version);
	else if (version != 2 && version != 3)
		fprintf(stderr,
			"Warning: Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: "
			"%s. Valid values are 2 or 3. Using default version %u.\n",
			text, b->form.version);
	else
		b->form.version = (unsigned)version;
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
