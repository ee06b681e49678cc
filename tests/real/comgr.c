/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for the part of libamd_comgr that MIOpen imports, with tests/real/hip.c.  Each
 * step from a source to an executable has the same result: a code object that computes nothing
 * and has a kernel of every name.  Handles are structures of 8 bytes there, pointers here.
 * Logged is
 *
 *   compile NAME ARCH
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "object.h"

#define API __attribute__((visibility("default")))
#define SET_MAX 4096

/* of tests/real/hip.c */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

enum { SOURCE = 1, LOG = 5 }; /* kinds of data */

struct data {
	int kind, references;
	char *name, *bytes;
	size_t size;
};

struct set {
	struct data *members[SET_MAX];
	size_t n;
};

struct action {
	char isa[128];
	char *options;
};

API void amd_comgr_get_version(size_t *major, size_t *minor);
API int amd_comgr_status_string(int status, const char **text);
API int amd_comgr_create_data(int kind, struct data **out);
API int amd_comgr_release_data(struct data *d);
API int amd_comgr_set_data(struct data *d, size_t size, const char *bytes);
API int amd_comgr_set_data_name(struct data *d, const char *name);
API int amd_comgr_get_data(struct data *d, size_t *size, char *bytes);
API int amd_comgr_create_data_set(struct set **out);
API int amd_comgr_destroy_data_set(struct set *s);
API int amd_comgr_data_set_add(struct set *s, struct data *d);
API int amd_comgr_action_data_count(struct set *s, int kind, size_t *n);
API int amd_comgr_action_data_get_data(struct set *s, int kind, size_t i,
				       struct data **out);
API int amd_comgr_create_action_info(struct action **out);
API int amd_comgr_destroy_action_info(struct action *a);
API int amd_comgr_action_info_set_isa_name(struct action *a, const char *isa);
API int amd_comgr_action_info_set_language(struct action *a, int language);
API int amd_comgr_action_info_set_logging(struct action *a, bool on);
API int amd_comgr_action_info_set_option_list(struct action *a, const char **options,
					      size_t n);
API int amd_comgr_do_action(int kind, struct action *a, struct set *in, struct set *out);

void amd_comgr_get_version(size_t *major, size_t *minor)
{
	*major = 3;
	*minor = 0;
}

int amd_comgr_status_string(int status, const char **text)
{
	(void)status;
	*text = "a status of the stand-in";
	return 0;
}

int amd_comgr_create_data(int kind, struct data **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return 1;
	(*out)->kind = kind;
	(*out)->references = 1;
	return 0;
}

int amd_comgr_release_data(struct data *d)
{
	if (--d->references == 0) {
		free(d->name);
		free(d->bytes);
		free(d);
	}
	return 0;
}

int amd_comgr_set_data(struct data *d, size_t size, const char *bytes)
{
	free(d->bytes);
	d->bytes = calloc(1, size + 1);
	if (!d->bytes)
		return 1;
	memcpy(d->bytes, bytes, size);
	d->size = size;
	return 0;
}

int amd_comgr_set_data_name(struct data *d, const char *name)
{
	free(d->name);
	d->name = name ? strdup(name) : NULL;
	return 0;
}

int amd_comgr_get_data(struct data *d, size_t *size, char *bytes)
{
	if (bytes)
		memcpy(bytes, d->bytes, *size < d->size ? *size : d->size);
	*size = d->size;
	return 0;
}

int amd_comgr_create_data_set(struct set **out)
{
	*out = calloc(1, sizeof(**out));
	return !*out;
}

int amd_comgr_destroy_data_set(struct set *s)
{
	for (size_t i = 0; i < s->n; i++)
		amd_comgr_release_data(s->members[i]);
	free(s);
	return 0;
}

int amd_comgr_data_set_add(struct set *s, struct data *d)
{
	if (s->n == SET_MAX)
		return 1;
	d->references++;
	s->members[s->n++] = d;
	return 0;
}

/* What a set has besides a log may be taken for any kind. */
int amd_comgr_action_data_count(struct set *s, int kind, size_t *n)
{
	*n = kind == LOG ? 0 : s->n;
	return 0;
}

int amd_comgr_action_data_get_data(struct set *s, int kind, size_t i, struct data **out)
{
	if (kind == LOG || i >= s->n)
		return 1;
	*out = s->members[i];
	(*out)->references++;
	return 0;
}

int amd_comgr_create_action_info(struct action **out)
{
	*out = calloc(1, sizeof(**out));
	return !*out;
}

int amd_comgr_destroy_action_info(struct action *a)
{
	free(a->options);
	free(a);
	return 0;
}

int amd_comgr_action_info_set_isa_name(struct action *a, const char *isa)
{
	snprintf(a->isa, sizeof(a->isa), "%s", isa);
	return 0;
}

int amd_comgr_action_info_set_language(struct action *a, int language)
{
	(void)a, (void)language;
	return 0;
}

int amd_comgr_action_info_set_logging(struct action *a, bool on)
{
	(void)a, (void)on;
	return 0;
}

int amd_comgr_action_info_set_option_list(struct action *a, const char **options,
					  size_t n)
{
	free(a->options);
	a->options = join_options(n, options);
	return 0;
}

/* The object of a source; of another kind of data it is the same again. */
static int add_result(const struct action *a, const struct data *from, struct set *out)
{
	struct image *o = calloc(1, sizeof(*o));
	uint32_t flags = 0;
	const char *arch = find_arch(a->isa, &flags), *text = from->bytes;
	struct data *made;
	int status;

	if (!o || amd_comgr_create_data(0, &made) != 0)
		abort();
	if (from->kind == SOURCE && arch) {
		init_image(o, flags, text, a->options ? a->options : "");
		add_kernel(o, "*", 1);
		note("compile %s %s", from->name, arch);
		amd_comgr_set_data(made, sizeof(*o), (const char *)o);
	} else {
		amd_comgr_set_data(made, from->size, text);
	}
	free(o);
	status = amd_comgr_data_set_add(out, made);
	amd_comgr_release_data(made);
	return status;
}

int amd_comgr_do_action(int kind, struct action *a, struct set *in, struct set *out)
{
	uint32_t flags;

	(void)kind;
	if (!find_arch(a->isa, &flags))
		return 1;
	for (size_t i = 0; i < in->n; i++)
		if (in->members[i]->kind == SOURCE || in->members[i]->kind == 0)
			return add_result(a, in->members[i], out);
	return 1;
}
