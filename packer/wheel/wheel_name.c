/* SPDX-License-Identifier: MIT */
#include "wheel_name.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "core/base/span.h"
#include "core/base/text.h"

/* dist, version, build, python, abi, platform, variant */
enum { PARTS_MIN = 5, PARTS_MAX = 7 };

static const char suffix[] = ".whl";
static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* True if TEXT is not empty and has only a-z, 0-9, A-Z if ANY, and characters of MORE. */
static bool made_of(const char *text, bool any, const char *more)
{
	if (!*text)
		return false;
	for (; *text; text++)
		if (!strchr(letters, *text) && !(any && strchr(capitals, *text)) &&
		    !strchr(more, *text))
			return false;
	return true;
}

static kpack_error_t refuse_name(struct kpackx_error *why, const char *name,
				 const char *text)
{
	char shown[WHEEL_NAME_MAX];

	kp_text_escape(kp_span_str(name), shown, sizeof(shown) / 2);
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: %s", shown, text);
}

static kpack_error_t check_parts(const struct wheel_name *n, const char *shown,
				 struct kpackx_error *why)
{
	const struct {
		const char *text, *more, *fault;
		bool optional;
	} parts[] = {
		{n->dist, "._", "not a wheel's name: distribution", false},
		{n->version, "._+!", "not a wheel's name: version", false},
		{n->build, "._", "not a wheel's name: build", true},
		{n->python, "._", "not a wheel's name: python tag", false},
		{n->abi, "._", "not a wheel's name: abi tag", false},
		{n->platform, "._", "not a wheel's name: platform tag", false},
	};

	for (size_t i = 0; i < KP_COUNT(parts); i++)
		if (!(parts[i].optional && !*parts[i].text) &&
		    !made_of(parts[i].text, true, parts[i].more))
			return refuse_name(why, shown, parts[i].fault);
	if (*n->build && !isdigit((unsigned char)*n->build))
		return refuse_name(why, shown, "not a wheel's name: build has no number");
	if (*n->variant && !made_of(n->variant, false, "._"))
		return refuse_name(why, shown, "not a wheel's name: variant label");
	return KPACK_SUCCESS;
}

/* Cut the name at its dashes.  Returns the number of parts, even if more than fit. */
static size_t cut_name(char *text, const char *parts[PARTS_MAX])
{
	size_t n = 0;

	for (char *p = text; p; n++) {
		char *dash = strchr(p, '-');

		if (n < PARTS_MAX)
			parts[n] = p;
		if (dash)
			*dash++ = '\0';
		p = dash;
	}
	return n;
}

kpack_error_t wheel_name_parse(const char *file, struct wheel_name *out,
			       struct kpackx_error *why)
{
	const char *parts[PARTS_MAX] = {0};
	size_t size = strlen(file), n, at = 2;

	if (size > WHEEL_NAME_MAX)
		return refuse_name(why, file, "too long for a file name");
	if (!kp_span_ends(kp_span_str(file), suffix))
		return refuse_name(why, file,
				   "not a wheel's name: it does not end with .whl");
	memcpy(out->text, file, size - strlen(suffix));
	out->text[size - strlen(suffix)] = '\0';
	n = cut_name(out->text, parts);
	if (n < PARTS_MIN || n > PARTS_MAX)
		return refuse_name(why, file,
				   "not a wheel's name: not five, six or seven parts");
	out->dist = parts[0];
	out->version = parts[1];
	/* a build begins with a digit, and no python tag does */
	out->build = "";
	if (n > PARTS_MIN && isdigit((unsigned char)parts[2][0]))
		out->build = parts[at++];
	if (n - at < 3 || n - at > 4)
		return refuse_name(why, file, "not a wheel's name: build has no number");
	out->python = parts[at];
	out->abi = parts[at + 1];
	out->platform = parts[at + 2];
	out->variant = n - at == 4 ? parts[at + 3] : "";
	if (n - at == 4 && !*out->variant)
		return refuse_name(why, file, "not a wheel's name: variant label");
	return check_parts(out, file, why);
}

kpack_error_t wheel_name_compose(const struct wheel_name *name,
				 char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why)
{
	int n;

	KP_TRY(check_parts(name, name->dist, why));
	n = snprintf(out, WHEEL_NAME_MAX + 1, "%s-%s%s%s-%s-%s-%s%s%s%s", name->dist,
		     name->version, *name->build ? "-" : "", name->build, name->python,
		     name->abi, name->platform, *name->variant ? "-" : "", name->variant,
		     suffix);
	if (n > WHEEL_NAME_MAX)
		return refuse_name(why, name->dist,
				   "the wheel's name is too long for a file");
	return KPACK_SUCCESS;
}

kpack_error_t wheel_name_check(const struct wheel_name *name, const char *dist,
			       const char *version, struct kpackx_error *why)
{
	char in_name[WHEEL_NAME_MAX + 1], in_metadata[WHEEL_NAME_MAX + 1];

	if (!dist_name_normal(dist, '-', in_metadata) ||
	    !dist_name_normal(name->dist, '-', in_name) ||
	    strcmp(in_metadata, in_name) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "METADATA: Name is '%.60s', the wheel's is '%.60s'", dist,
			       name->dist);
	if (!dist_version_escape(version, in_metadata) ||
	    !dist_version_escape(name->version, in_name) ||
	    strcasecmp(in_metadata, in_name) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "METADATA: Version is '%.60s', the wheel's is '%.60s'",
			       version, name->version);
	return KPACK_SUCCESS;
}

bool dist_name_ok(const char *dist)
{
	size_t n = strlen(dist);

	return n && n <= WHEEL_NAME_MAX && made_of(dist, true, "._-") &&
	       isalnum((unsigned char)dist[0]) && isalnum((unsigned char)dist[n - 1]);
}

bool dist_version_ok(const char *version)
{
	return strlen(version) <= WHEEL_NAME_MAX && made_of(version, true, "._+!-");
}

bool dist_name_normal(const char *dist, char join, char out[WHEEL_NAME_MAX + 1])
{
	char *to = out;

	if (!dist_name_ok(dist))
		return false;
	for (; *dist; dist++) {
		if (!strchr("._-", *dist))
			*to++ = (char)tolower((unsigned char)*dist);
		else if (to[-1] != join)
			*to++ = join;
	}
	*to = '\0';
	return true;
}

bool dist_version_escape(const char *version, char out[WHEEL_NAME_MAX + 1])
{
	char *to = out;

	if (!dist_version_ok(version))
		return false;
	for (; *version; version++)
		*to++ = *version;
	*to = '\0';
	while ((to = strchr(out, '-')))
		*to = '_';
	return true;
}
