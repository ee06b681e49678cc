/* SPDX-License-Identifier: MIT */
/*
 * Names of distributions, and of wheels:
 * {dist}-{version}(-{build})?-{python}-{abi}-{platform}(-{variant})?.whl.
 *
 * A wheel has its tags twice: in WHEEL, one python-abi-platform a line, and in its file name,
 * where "py2.py3-none-any" stands for two.  Installers choose by the file name; some of them,
 * and checks after installing, look into WHEEL.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "wheel.h"

static const char suffix[] = ".whl";

/*
 * Names are checked strictly, because they become file names, lines of METADATA and words of a
 * shell: only ASCII letters, digits and the marks that the specifications allow.
 */

/* Whether TEXT is not empty and has only letters, digits and characters of MORE. */
static bool made_of(const char *text, const char *more)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	if (!*text)
		return false;
	for (; *text; text++)
		if (!strchr(plain, *text) && !strchr(more, *text))
			return false;
	return true;
}

/*
 * Installers take names as equal that differ only in case and in which marks they have:
 * Foo.Bar, foo_bar and FOO--BAR are one distribution.  So names are compared in normal form.
 */

/* --- distributions ------------------------------------------------------------------ */

bool dist_name_ok(const char *dist)
{
	size_t n = strlen(dist);

	return n && n <= WHEEL_NAME_MAX && made_of(dist, "._-") &&
	       isalnum((unsigned char)dist[0]) && isalnum((unsigned char)dist[n - 1]);
}

bool dist_version_ok(const char *version)
{
	return strlen(version) <= WHEEL_NAME_MAX && made_of(version, "._+!-");
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
	if (!dist_version_ok(version))
		return false;
	memcpy(out, version, strlen(version) + 1);
	for (char *dash = out; (dash = strchr(dash, '-'));)
		*dash = '_';
	return true;
}

/* --- file names ---------------------------------------------------------------------- */

static kpack_error_t refuse_name(struct kpackx_error *why, const char *name,
				 const char *text)
{
	char shown[WHEEL_NAME_MAX / 2];

	kp_text_escape(kp_span_str(name), shown, sizeof(shown));
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: %s", shown, text);
}

bool wheel_label_ok(const char *label)
{
	for (const char *p = label; *p; p++)
		if (isupper((unsigned char)*p))
			return false;
	return made_of(label, "._") && strcmp(label, "null") != 0;
}

static kpack_error_t check_components(const struct wheel_name *n, const char *shown,
				      struct kpackx_error *why)
{
	/* a missing build is checked as "0"; the variant has rules of its own */
	const struct {
		const char *text, *more, *fault;
	} components[] = {
		{n->dist, "._", "not a wheel's name: distribution"},
		{n->version, "._+!", "not a wheel's name: version"},
		{*n->build ? n->build : "0", "._", "not a wheel's name: build"},
		{n->python, "._", "not a wheel's name: python tag"},
		{n->abi, "._", "not a wheel's name: abi tag"},
		{n->platform, "._", "not a wheel's name: platform tag"},
	};

	for (size_t i = 0; i < KP_COUNT(components); i++)
		if (!made_of(components[i].text, components[i].more))
			return refuse_name(why, shown, components[i].fault);
	if (*n->build && !isdigit((unsigned char)*n->build))
		return refuse_name(why, shown, "not a wheel's name: build has no number");
	if (*n->variant && !wheel_label_ok(n->variant))
		return refuse_name(why, shown, "not a wheel's name: variant label");
	return KPACK_SUCCESS;
}

kpack_error_t wheel_name_parse(const char *file, struct wheel_name *out,
			       struct kpackx_error *why)
{
	const char *parts[7] = {0};
	size_t size = strlen(file), n = 0, at = 2;

	if (size > WHEEL_NAME_MAX)
		return refuse_name(why, file, "too long for a file name");
	if (!kp_span_ends(kp_span_str(file), suffix))
		return refuse_name(why, file,
				   "not a wheel's name: it does not end with .whl");
	snprintf(out->text, sizeof(out->text), "%.*s", (int)(size - strlen(suffix)),
		 file);
	/* cut it at its dashes, and count all parts, even if more than fit */
	for (char *p = out->text; p; n++) {
		char *dash = strchr(p, '-');

		if (n < KP_COUNT(parts))
			parts[n] = p;
		if (dash)
			*dash++ = '\0';
		p = dash;
	}
	if (n < 5 || n > KP_COUNT(parts))
		return refuse_name(why, file,
				   "not a wheel's name: not five, six or seven parts");
	out->dist = parts[0];
	out->version = parts[1];
	/* a build begins with a digit, and no python tag does */
	out->build = n > 5 && isdigit((unsigned char)parts[2][0]) ? parts[at++] : "";
	if (n - at < 3 || n - at > 4)
		return refuse_name(why, file, "not a wheel's name: build has no number");
	out->python = parts[at];
	out->abi = parts[at + 1];
	out->platform = parts[at + 2];
	out->variant = n - at == 4 ? parts[at + 3] : "";
	if (n - at == 4 && !*out->variant)
		return refuse_name(why, file, "not a wheel's name: variant label");
	return check_components(out, file, why);
}

kpack_error_t wheel_name_compose(const struct wheel_name *name,
				 char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why)
{
	KP_TRY(check_components(name, name->dist, why));
	if (snprintf(out, WHEEL_NAME_MAX + 1, "%s-%s%s%s-%s-%s-%s%s%s%s", name->dist,
		     name->version, *name->build ? "-" : "", name->build, name->python,
		     name->abi, name->platform, *name->variant ? "-" : "", name->variant,
		     suffix) > WHEEL_NAME_MAX)
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

/* --- tags --------------------------------------------------------------------------- */

char **wheel_name_tags(const struct wheel_name *name, size_t *count)
{
	char **tags = NULL;
	size_t n = 0, cap = 0, x, y, z;

	for (const char *p = name->python; *p; p += x + (p[x] == '.')) {
		x = strcspn(p, ".");
		for (const char *a = name->abi; *a; a += y + (a[y] == '.')) {
			y = strcspn(a, ".");
			for (const char *o = name->platform; *o; o += z + (o[z] == '.')) {
				z = strcspn(o, ".");
				xgrow(&tags, n, &cap, sizeof(*tags));
				tags[n++] = xasprintf("%.*s-%.*s-%.*s", (int)x, p, (int)y,
						      a, (int)z, o);
			}
		}
	}
	*count = n;
	return tags;
}

void wheel_tags_free(char **tags, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(tags[i]);
	free(tags);
}
