/* SPDX-License-Identifier: MIT */
/*
 * A wheel's .dist-info, of which two files say what it is: METADATA and WHEEL.  Both have
 * headers "Name: value", continued by lines that begin with a blank, up to the first empty
 * line; free text follows.  They are read strictly, because what is read in two ways may name
 * two distributions, and changed as text, so that everything else in them stays as it is.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "wheel.h"

/* --- names --------------------------------------------------------------------------- */

/*
 * Names of distributions, and of wheels:
 * {dist}-{version}(-{build})?-{python}-{abi}-{platform}(-{variant})?.whl.
 *
 * A wheel has its tags twice: in WHEEL, one python-abi-platform a line, and in its file name,
 * where "py2.py3-none-any" stands for two.  Installers choose by the file name; some of them,
 * and checks after installing, look into WHEEL.
 */

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

/* Whether it is a version: letters, digits, ".", "+", "!", "_", "-". */
static bool dist_version_ok(const char *version)
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

/*
 * Check that NAME is that of a wheel of the distribution DIST, VERSION, as METADATA spells
 * them.  INVALID_FORMAT: it is not.
 */
static kpack_error_t wheel_name_check(const struct wheel_name *name, const char *dist,
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

/* --- headers -------------------------------------------------------------------------- */

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* Values end before blanks and line ends; continuation lines inside a value stay in it. */
static struct kp_span trim_value(struct kp_span s)
{
	while (s.size && is_blank(s.data[0]))
		s = kp_span_tail(s, 1);
	while (s.size && (is_blank(s.data[s.size - 1]) || s.data[s.size - 1] == '\r' ||
			  s.data[s.size - 1] == '\n'))
		s.size--;
	return s;
}

kpack_error_t metadata_text_parse(struct kp_span text, struct metadata_text *out,
				  struct kpackx_error *why)
{
	const char *fault;
	uint32_t c = 1;

	*out = (struct metadata_text){.text = text};
	/* the whole text, not only the headers: it is copied into the host wheel */
	for (struct kp_span rest = text; rest.size;) {
		size_t n = kp_text_char(rest, &c);

		if (n == 0 || c == 0)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "not UTF-8, or with a NUL");
		rest = kp_span_tail(rest, n);
	}
	for (size_t at = 0, number = 1; at < text.size; number++) {
		struct kp_span line = kp_span_tail(text, at);
		const uint8_t *end = memchr(line.data, '\n', line.size);
		size_t n;
		bool crlf;

		if (end)
			line.size = (size_t)(end - line.data);
		at += line.size + (end != NULL);
		crlf = end && line.size && end[-1] == '\r';
		line.size -= crlf;
		/* what is added gets the line ends of the first line */
		if (number == 1)
			out->crlf = crlf;
		if (line.size == 0)
			break;
		fault = NULL;
		n = 0;
		/* names are printable ASCII without blanks and colons (RFC 5322) */
		while (n < line.size && line.data[n] > ' ' && line.data[n] < 0x7f &&
		       line.data[n] != ':')
			n++;
		if (memchr(line.data, '\r', line.size)) {
			/* Python's mail parser treats it as a line end, and it is invisible */
			fault = "it has a carriage return inside";
		} else if (is_blank(line.data[0]) && !out->count) {
			fault = "it continues no header";
		} else if (is_blank(line.data[0])) {
			struct kp_span *last = &out->headers[out->count - 1].value;

			last->size = (size_t)(line.data + line.size - last->data);
			*last = trim_value(*last);
		} else if (n == 0 || n == line.size || line.data[n] != ':') {
			fault = "it is not a header";
		} else {
			xgrow(&out->headers, out->count, &out->cap,
			      sizeof(*out->headers));
			out->headers[out->count++] = (struct metadata_header){
				kp_span_head(line, n),
				trim_value(kp_span_tail(line, n + 1))};
		}
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: %s",
				       number, fault);
		out->headers_end = at;
	}
	return KPACK_SUCCESS;
}

void metadata_text_fini(struct metadata_text *m)
{
	free(m->headers);
	*m = (struct metadata_text){0};
}

bool metadata_text_next(const struct metadata_text *m, const char *name, size_t *at,
			struct kp_span *value)
{
	for (size_t i = *at; i < m->count; i++) {
		struct kp_span is = m->headers[i].name;

		if (is.size == strlen(name) &&
		    strncasecmp((const char *)is.data, name, is.size) == 0) {
			*value = m->headers[i].value;
			*at = i + 1;
			return true;
		}
	}
	return false;
}

bool metadata_text_get(const struct metadata_text *m, const char *name,
		       struct kp_span *value)
{
	return metadata_text_next(m, name, &(size_t){0}, value);
}

/* Copy the text with the bytes [FROM, END) replaced by LINES, with its own line ends. */
static char *replace_range(const struct metadata_text *m, size_t from, size_t end,
			   const char *lines, size_t *size)
{
	const char *break_line = m->crlf ? "\r\n" : "\n";
	const char *text = (const char *)m->text.data;
	char *out;
	FILE *f = xmemstream(&out, size);

	fwrite(text, 1, from, f);
	if (from && text[from - 1] != '\n')
		fputs(break_line, f);
	for (; *lines; lines++) {
		if (*lines == '\n')
			fputs(break_line, f);
		else
			fputc(*lines, f);
	}
	fwrite(text + end, 1, m->text.size - end, f);
	fclose(f);
	return out;
}

char *metadata_text_add(const struct metadata_text *m, const char *headers, size_t *size)
{
	return replace_range(m, m->headers_end, m->headers_end, headers, size);
}

char *metadata_text_set(const struct metadata_text *m, const char *name,
			const char *value, size_t *size)
{
	KP_AUTO_FREE char *line = xasprintf("%s: %s\n", name, value);
	size_t from = m->headers_end, end = from, at = 0;
	struct kp_span old;

	/* the old header is replaced with its continuation lines, up to the next header */

	if (metadata_text_next(m, name, &at, &old)) {
		from = (size_t)(m->headers[at - 1].name.data - m->text.data);
		if (at < m->count)
			end = (size_t)(m->headers[at].name.data - m->text.data);
	}
	return replace_range(m, from, end, line, size);
}

/* --- .dist-info ------------------------------------------------------------------------ */

static const char dist_info[] = ".dist-info";

kpack_error_t dist_info_note(const char *path, char **dir, struct kpackx_error *why)
{
	struct kp_span top = {(const uint8_t *)path, strcspn(path, "/")};
	char shown[120];

	if (!kp_span_ends(top, dist_info) || (*dir && kp_span_is(top, *dir)))
		return KPACK_SUCCESS;
	if (*dir)
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"expected exactly one .dist-info directory, and %s is another",
			kp_text_escape(top, shown, sizeof(shown)));
	*dir = xstrndup(path, top.size);
	return KPACK_SUCCESS;
}

kpack_error_t dist_info_found(const char *dir, struct kpackx_error *why)
{
	return dir ? KPACK_SUCCESS
		   : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			     "expected exactly one .dist-info directory, there is none");
}

/* Read and parse FILE of W's .dist-info. */
static kpack_error_t read_text(const struct wheel_in *w, const char *dir,
			       const char *file, char **text, struct metadata_text *out,
			       struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/%s", dir, file);
	size_t member, size;
	kpack_error_t err;

	if (!wheel_in_find(w, path, &member) || w->members[member].directory)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: there is no %s", dir,
			       file);
	KP_TRY(wheel_in_text(w, member, METADATA_TEXT_MAX, text, &size, why));
	err = metadata_text_parse((struct kp_span){(const uint8_t *)*text, size}, out,
				  why);
	return err ? kp_fail_prefix(why, err, "%s", file) : KPACK_SUCCESS;
}

/*
 * Get a header that must occur exactly once: of two, installers take the first or the last.
 * FILE is its name in messages.
 */
static kpack_error_t take_header(const struct metadata_text *m, const char *file,
				 const char *name, char **out, struct kpackx_error *why)
{
	struct kp_span value, second;
	size_t at = 0;

	if (!metadata_text_next(m, name, &at, &value))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: no %s", file, name);
	if (metadata_text_next(m, name, &at, &second))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s occurs twice",
			       file, name);
	*out = xstrndup((const char *)value.data, value.size);
	return KPACK_SUCCESS;
}

kpack_error_t dist_info_read(const struct wheel_in *w, const struct wheel_name *file_name,
			     struct dist_info *out, struct kpackx_error *why)
{
	KP_AUTO_FREE char *format = NULL;
	struct wheel_name name = {.version = ""};
	char shown[120], *dash;
	struct kp_span tag;

	*out = (struct dist_info){0};
	for (size_t i = 0; i < w->count; i++)
		KP_TRY(dist_info_note(w->members[i].path, &out->dir, why));
	KP_TRY(dist_info_found(out->dir, why));
	KP_TRY(read_text(w, out->dir, "METADATA", &out->metadata_file, &out->metadata,
			 why));
	KP_TRY(read_text(w, out->dir, "WHEEL", &out->wheel_file, &out->wheel, why));
	KP_TRY(take_header(&out->metadata, "METADATA", "Name", &out->name, why));
	KP_TRY(take_header(&out->metadata, "METADATA", "Version", &out->version, why));
	KP_TRY(take_header(&out->wheel, "WHEEL", "Wheel-Version", &format, why));
	if (strncmp(format, "1.", 2) != 0)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "WHEEL: Wheel-Version is not 1.x");
	if (!metadata_text_get(&out->wheel, "Tag", &tag))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "WHEEL: no Tag");
	if (!dist_name_ok(out->name))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"METADATA: Name '%s' is not a valid name",
			kp_text_escape(kp_span_str(out->name), shown, sizeof(shown)));
	if (!dist_version_ok(out->version))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"METADATA: Version '%s' is not a valid version",
			kp_text_escape(kp_span_str(out->version), shown, sizeof(shown)));
	if (strlen(out->dir) > WHEEL_NAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "the name of .dist-info is too long");
	/* the directory, and the file unless it has no name yet, are called as METADATA says */
	memcpy(name.text, out->dir, strlen(out->dir) - strlen(dist_info));
	name.dist = name.text;
	dash = strchr(name.text, '-');
	if (dash) {
		*dash = '\0';
		name.version = dash + 1;
	}
	KP_TRY(wheel_name_check(&name, out->name, out->version, why));
	return file_name ? wheel_name_check(file_name, out->name, out->version, why)
			 : KPACK_SUCCESS;
}

void dist_info_fini(struct dist_info *info)
{
	metadata_text_fini(&info->metadata);
	metadata_text_fini(&info->wheel);
	free(info->metadata_file);
	free(info->wheel_file);
	free(info->dir);
	free(info->name);
	free(info->version);
	*info = (struct dist_info){0};
}

kpack_error_t dist_info_file_name(const struct dist_info *info,
				  char out[WHEEL_NAME_MAX + 1], struct kpackx_error *why)
{
	char tags[3][WHEEL_NAME_MAX + 1], dist[WHEEL_NAME_MAX + 1];
	char version[WHEEL_NAME_MAX + 1], build[WHEEL_NAME_MAX + 1] = "";
	struct kp_span value, tag, one;

	/*
	 * The distinct first, second and third components of all tags, joined with ".": the
	 * name of a wheel has its tags compressed, which can stand for more tags than WHEEL has.
	 */
	for (size_t i = 0; i < KP_COUNT(tags); i++) {
		char *text = tags[i];
		size_t used = 0, at = 0, n;
		const char *is;

		text[0] = '\0';
		while (metadata_text_next(&info->wheel, "Tag", &at, &tag)) {
			one = tag;
			for (size_t k = 0; k <= i; k++) {
				const uint8_t *end = memchr(tag.data, '-', tag.size);

				one = end ? kp_span_head(tag, (size_t)(end - tag.data))
					  : tag;
				tag = kp_span_tail(tag, one.size + (end != NULL));
			}
			if (one.size == 0)
				return kp_fail(
					why, KPACK_ERROR_INVALID_FORMAT,
					"WHEEL has a Tag of fewer than three parts");
			for (is = text; *is; is += n + (is[n] == '.')) {
				n = strcspn(is, ".");
				if (kp_span_eq((struct kp_span){(const uint8_t *)is, n},
					       one))
					break;
			}
			if (*is)
				continue;
			if (WHEEL_NAME_MAX - used < one.size + 1)
				return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					       "WHEEL has too many tags for a file name");
			used += (size_t)snprintf(text + used, WHEEL_NAME_MAX + 1 - used,
						 "%s%.*s", used ? "." : "", (int)one.size,
						 (const char *)one.data);
		}
	}
	if (metadata_text_get(&info->wheel, "Build", &value))
		snprintf(build, sizeof(build), "%.*s", (int)value.size,
			 (const char *)value.data);
	if (!dist_name_normal(info->name, '_', dist) ||
	    !dist_version_escape(info->version, version))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "METADATA: %s %s cannot be part of a file name",
			       info->name, info->version);
	return wheel_name_compose(&(struct wheel_name){.dist = dist,
						       .version = version,
						       .build = build,
						       .python = tags[0],
						       .abi = tags[1],
						       .platform = tags[2],
						       .variant = ""},
				  out, why);
}
