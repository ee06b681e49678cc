/* SPDX-License-Identifier: MIT */
#include "yaml_names.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"

#include <yaml.h>

/* Limit of a file's bytes: libyaml reads some 20 MB/s, and real files are small. */
#define BYTES_MAX (256 << 20)

/* Limit of nested collections: each open one makes libyaml slower per token. */
#define DEPTH_MAX 64

/* Limit of aliases in a file: no known file has any. */
#define ALIASES_MAX 65536

/* Limits of bytes of a GPU's name, and of remembered GPUs: AMD has made some 60. */
#define GPU_MAX 64
#define GPUS_MAX 256

/* A collection that is open. */
struct level {
	bool map, at_value;
	bool placeholder; /* its "type" is "Placeholder" */
	char *key;        /* the last key */
	char *gpu;        /* the value of its "arch" */
	char *value;      /* the value of its "value" */
	size_t names;     /* number of names before it */
};

struct reader {
	yaml_parser_t parser;
	struct level levels[DEPTH_MAX];
	size_t depth;
	size_t aliases;
	struct yaml_names *out;
};

static const char *const endings[] = {".co", ".hsaco", ".dat", ".yaml"};
static const char *const gpu_keys[] = {"arch",       "architecture", "gfx_arch",
				       "gfx_target", "gfx",          "ArchitectureName"};

static bool ends_as(struct kp_span s, const char *ending)
{
	size_t n = strlen(ending);

	return s.size > n && memcmp(s.data + s.size - n, ending, n) == 0;
}

/* Whether S is a file's name: it has a known ending, and no character that indicates a
 * sentence or a pattern. */
static bool is_file_name(struct kp_span s)
{
	bool known = false;

	for (size_t i = 0; i < KP_COUNT(endings) && !known; i++)
		known = ends_as(s, endings[i]);
	if (!known || s.size > KP_NAME_MAX)
		return false;
	for (size_t i = 0; i < s.size; i++)
		if (s.data[i] <= ' ' || strchr("*?|<>\"'", s.data[i]) ||
		    s.data[i] == 0x7f)
			return false;
	return !memmem(s.data, s.size, "://", 3);
}

static bool is_gpu(const char *s)
{
	return strncmp(s, "gfx", 3) == 0 && s[3] >= '0' && s[3] <= '9' &&
	       strlen(s) < GPU_MAX && !strchr(s, '.') && !strchr(s, '/');
}

static bool is_gpu_key(const char *key)
{
	for (size_t i = 0; key && i < KP_COUNT(gpu_keys); i++)
		if (strcmp(key, gpu_keys[i]) == 0)
			return true;
	return false;
}

/* The nearest key above that is a GPU. */
static const char *gpu_above(const struct reader *r)
{
	for (size_t i = r->depth; i-- > 0;)
		if (r->levels[i].key && is_gpu(r->levels[i].key))
			return r->levels[i].key;
	return NULL;
}

static void add_name(struct reader *r, struct kp_span text, const char *ending)
{
	struct yaml_names *x = r->out;
	const char *gpu = gpu_above(r);

	xgrow(&x->items, x->count, &x->cap, sizeof(*x->items));
	x->items[x->count++] = (struct yaml_name){
		.text = xasprintf("%.*s%s", (int)text.size, (const char *)text.data,
				  ending),
		.gpu = gpu ? xstrdup(gpu) : NULL,
	};
}

static void keep_text(char **slot, const char *text)
{
	free(*slot);
	*slot = xstrdup(text);
}

/* Remember a value of a map; TEXT has no NUL in it. */
static void note_value(struct level *l, const char *text)
{
	if (is_gpu_key(l->key) && is_gpu(text))
		keep_text(&l->gpu, text);
	if (l->key && strcmp(l->key, "type") == 0)
		l->placeholder = strcmp(text, "Placeholder") == 0;
	if (l->key && strcmp(l->key, "value") == 0 && strlen(text) <= KP_NAME_MAX)
		keep_text(&l->value, text);
}

static void note_gpu(struct yaml_names *x, const char *text)
{
	if (!is_gpu(text) || x->n_gpus == GPUS_MAX)
		return;
	for (size_t i = 0; i < x->n_gpus; i++)
		if (strcmp(x->gpus[i], text) == 0)
			return;
	xgrow(&x->gpus, x->n_gpus, &x->gpus_cap, sizeof(*x->gpus));
	x->gpus[x->n_gpus++] = xstrdup(text);
}

static void read_scalar(struct reader *r, const char *text, size_t size)
{
	struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;
	struct kp_span s = {(const uint8_t *)text, size};
	bool is_key = l && l->map && !l->at_value;

	if (is_key) {
		free(l->key);
		l->key = NULL;
	}
	if (is_file_name(s))
		add_name(r, s, "");
	if (memchr(text, 0, size))
		return;
	note_gpu(r->out, text);
	if (is_key)
		keep_text(&l->key, text);
	else if (l && l->map)
		note_value(l, text);
}

/* A node of the open collection is complete: in a map, a value follows a key. */
static void next_place(struct reader *r)
{
	struct level *l = r->depth ? &r->levels[r->depth - 1] : NULL;

	if (l && l->map)
		l->at_value = !l->at_value;
}

static kpack_error_t open_level(struct reader *r, bool map, struct kpackx_error *why)
{
	if (r->depth == DEPTH_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "line %zu: nested deeper than %d levels",
			       r->parser.mark.line + 1, DEPTH_MAX);
	r->levels[r->depth++] = (struct level){.map = map, .names = r->out->count};
	return KPACK_SUCCESS;
}

static void free_level(struct level *l)
{
	free(l->key);
	free(l->gpu);
	free(l->value);
}

/* Give the GPU of an "arch" to all names in the same map. */
static void give_gpu(struct reader *r, const struct level *l)
{
	for (size_t i = l->names; l->gpu && i < r->out->count; i++)
		if (!r->out->items[i].gpu)
			keep_text(&r->out->items[i].gpu, l->gpu);
}

static void close_level(struct reader *r)
{
	struct level l = r->levels[--r->depth];

	if (l.placeholder && l.value)
		add_name(r, kp_span_str(l.value), ".yaml");
	give_gpu(r, &l);
	free_level(&l);
	next_place(r);
}

static kpack_error_t read_event(struct reader *r, const yaml_event_t *e,
				struct kpackx_error *why)
{
	switch (e->type) {
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return open_level(r, e->type == YAML_MAPPING_START_EVENT, why);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		close_level(r);
		return KPACK_SUCCESS;
	case YAML_SCALAR_EVENT:
		read_scalar(r, (const char *)e->data.scalar.value, e->data.scalar.length);
		next_place(r);
		return KPACK_SUCCESS;
	case YAML_ALIAS_EVENT:
		if (++r->aliases > ALIASES_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "more than %d aliases", ALIASES_MAX);
		next_place(r);
		return KPACK_SUCCESS;
	default:
		return KPACK_SUCCESS;
	}
}

static kpack_error_t fail_yaml(const yaml_parser_t *p, struct kpackx_error *why)
{
	if (p->error == YAML_MEMORY_ERROR)
		return kp_fail_memory(why, 0, "YAML");
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: %s",
		       p->problem_mark.line + 1, p->problem ? p->problem : "no YAML");
}

static kpack_error_t read_events(struct reader *r, struct kpackx_error *why)
{
	bool end = false;

	while (!end) {
		yaml_event_t e;
		kpack_error_t err;

		if (!yaml_parser_parse(&r->parser, &e))
			return fail_yaml(&r->parser, why);
		end = e.type == YAML_STREAM_END_EVENT || e.type == YAML_NO_EVENT;
		err = read_event(r, &e, why);
		yaml_event_delete(&e);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

kpack_error_t yaml_names_read(struct kp_span bytes, struct yaml_names *out,
			      struct kpackx_error *why)
{
	struct reader *r;
	kpack_error_t err;

	*out = (struct yaml_names){0};
	if (bytes.size > BYTES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%zu bytes: at most %d bytes of YAML are read", bytes.size,
			       BYTES_MAX);
	r = xcalloc(1, sizeof(*r));
	if (!yaml_parser_initialize(&r->parser))
		xalloc_fail(0);
	r->out = out;
	yaml_parser_set_input_string(&r->parser, bytes.data, bytes.size);
	err = read_events(r, why);
	while (r->depth)
		free_level(&r->levels[--r->depth]);
	yaml_parser_delete(&r->parser);
	free(r);
	return err;
}

void yaml_names_fini(struct yaml_names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		free(names->items[i].text);
		free(names->items[i].gpu);
	}
	for (size_t i = 0; i < names->n_gpus; i++)
		free(names->gpus[i]);
	free(names->gpus);
	free(names->items);
	*names = (struct yaml_names){0};
}
