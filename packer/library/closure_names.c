/* SPDX-License-Identifier: MIT */
/*
 * The names of files in files that anybody may have written: TensileLibrary.yaml has had several
 * forms, so any scalar that looks like the name of a file is one; an index of external operations
 * is MessagePack whose "co_path" is at a depth that differs by version.
 */
#include <stdlib.h>
#include <yaml.h>
#include "closure.h"
#include "core/base/bounds.h"
#include "core/base/msgpack_read.h"
#include "packer/cli/xalloc.h"

/* Limit of a file's bytes: libyaml reads some 20 MB/s, and real files are small. */
#define BYTES_MAX (256 << 20)

/* Limit of nested collections: each open one makes libyaml slower per token. */
#define DEPTH_MAX 64

/* Limit of remembered mentions of GPUs: AMD has made some 60. */
#define GPUS_MAX 65536

static void add_name(struct file_names *x, struct kp_span text, const char *ending)
{
	xgrow(&x->items, x->count, &x->cap, sizeof(*x->items));
	x->items[x->count++] =
		xasprintf("%.*s%s", (int)text.size, (const char *)text.data, ending);
}

void file_names_fini(struct file_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	for (size_t i = 0; i < names->n_gpus; i++)
		free(names->gpus[i]);
	free(names->gpus);
	free(names->items);
	*names = (struct file_names){0};
}

/* --- YAML ----------------------------------------------------------------------------- */

/* The state between two events: the open map, as long as it has nothing but scalars, may be a placeholder. */
struct yaml_reader {
	yaml_parser_t parser;
	size_t depth;
	bool flat; /* an open map, with nothing but scalars so far */
	bool at_value, placeholder;
	enum { OTHER, TYPE, VALUE } key;
	char *value; /* owned */
	struct file_names *out;
};

/* Whether S has a file's ending, and no character that indicates a sentence, pattern or URL. */
static bool is_file_name(struct kp_span s)
{
	struct kp_span stem = s;

	if (s.size > KP_NAME_MAX || kp_span_has(s, "://") ||
	    !(kp_span_take_end(&stem, ".co") || kp_span_take_end(&stem, ".hsaco") ||
	      kp_span_take_end(&stem, ".dat") || kp_span_take_end(&stem, ".yaml")))
		return false;
	for (size_t i = 0; i < s.size; i++)
		if (s.data[i] <= ' ' || s.data[i] == 0x7f ||
		    strchr("*?|<>\"'", s.data[i]))
			return false;
	return true;
}

static void begin_map(struct yaml_reader *r, bool flat)
{
	free(r->value);
	r->value = NULL;
	r->flat = flat;
	r->at_value = r->placeholder = false;
}

static void read_scalar(struct yaml_reader *r, struct kp_span text)
{
	struct file_names *x = r->out;
	struct kp_target target;

	if (is_file_name(text))
		add_name(x, text, "");
	/* what a file mentions of GPUs tells for which it is: predicates, keys, lists */
	if (kp_span_begins(text, "gfx") && x->n_gpus < GPUS_MAX &&
	    !kp_target_parse(text, &target, NULL)) {
		xgrow(&x->gpus, x->n_gpus, &x->gpus_cap, sizeof(*x->gpus));
		x->gpus[x->n_gpus++] = xstrndup((const char *)text.data, text.size);
	}
	if (!r->at_value) {
		r->key = kp_span_is(text, "type")    ? TYPE
			 : kp_span_is(text, "value") ? VALUE
						     : OTHER;
	} else if (r->key == TYPE) {
		r->placeholder = kp_span_is(text, "Placeholder");
	} else if (r->key == VALUE && r->flat && text.size <= KP_NAME_MAX) {
		free(r->value);
		r->value = xstrndup((const char *)text.data, text.size);
	}
	r->at_value = !r->at_value;
}

kpack_error_t file_names_of_yaml(struct kp_span bytes, struct file_names *out,
				 struct kpackx_error *why)
{
	struct yaml_reader r = {.out = out};
	kpack_error_t err = KPACK_SUCCESS;
	bool end = false;

	*out = (struct file_names){0};
	if (bytes.size > BYTES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%zu bytes: at most %d bytes of YAML are read", bytes.size,
			       BYTES_MAX);
	if (!yaml_parser_initialize(&r.parser))
		xalloc_fail(0);
	yaml_parser_set_input_string(&r.parser, bytes.data, bytes.size);
	while (!end && !err) {
		const yaml_parser_t *p = &r.parser;
		yaml_event_t e;

		if (!yaml_parser_parse(&r.parser, &e)) {
			err = p->error == YAML_MEMORY_ERROR
				      ? kp_fail_memory(why, 0, "YAML")
				      : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
						"line %zu: %s", p->problem_mark.line + 1,
						p->problem ? p->problem : "no YAML");
			break;
		}
		switch (e.type) {
		case YAML_MAPPING_START_EVENT:
		case YAML_SEQUENCE_START_EVENT:
			if (r.depth++ == DEPTH_MAX)
				err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					      "line %zu: nested deeper than %d levels",
					      p->mark.line + 1, DEPTH_MAX);
			begin_map(&r, e.type == YAML_MAPPING_START_EVENT);
			break;
		case YAML_MAPPING_END_EVENT:
			/* {type: Placeholder, value: PREFIX}, in any order, names PREFIX.yaml */
			if (r.flat && r.placeholder && r.value)
				add_name(out, kp_span_str(r.value), ".yaml");
			/* fall through */
		case YAML_SEQUENCE_END_EVENT:
			r.depth--;
			begin_map(&r, false);
			break;
		case YAML_SCALAR_EVENT:
			read_scalar(&r, (struct kp_span){e.data.scalar.value,
							 e.data.scalar.length});
			break;
		case YAML_ALIAS_EVENT:
			begin_map(&r, false);
			break;
		default:
			end = e.type == YAML_STREAM_END_EVENT || e.type == YAML_NO_EVENT;
		}
		yaml_event_delete(&e);
	}
	free(r.value);
	yaml_parser_delete(&r.parser);
	return err;
}

/* --- MessagePack ---------------------------------------------------------------------- */

/* Walk a value.  WANTED: if it is a string, it is a name.  Faults stay in M. */
static void walk_value(struct kp_mp *m, const char *key, bool wanted, unsigned depth,
		       struct file_names *out)
{
	enum kp_mp_type type = kp_mp_peek(m);
	struct kp_mp_value v = {0};
	struct kp_span name;

	if (type == KP_MP_STR && wanted) {
		/* what is longer can be no file's name */
		if (kp_mp_str(m, &name) && name.size <= KP_NAME_MAX)
			add_name(out, name, "");
	} else if (type != KP_MP_MAP && type != KP_MP_ARRAY) {
		kp_mp_skip(m);
	} else if (depth == KP_MSGPACK_DEPTH_MAX) {
		kp_mp_fault(m, "nested too deeply");
	} else {
		kp_mp_next(m, &v);
	}
	/* a map's keys need not be strings */
	for (uint64_t i = 0; i < v.num && !m->fault; i++) {
		wanted = false;
		if (type == KP_MP_MAP && kp_mp_peek(m) == KP_MP_STR)
			wanted = kp_mp_str(m, &name) && kp_span_is(name, key);
		else if (type == KP_MP_MAP)
			kp_mp_skip(m);
		if (!m->fault)
			walk_value(m, key, wanted, depth + 1, out);
	}
}

kpack_error_t file_names_of_msgpack(struct kp_span bytes, const char *key,
				    struct file_names *out, struct kpackx_error *why)
{
	struct kp_mp m = kp_mp_over(bytes);

	*out = (struct file_names){0};
	if (kp_mp_peek(&m) != KP_MP_MAP)
		kp_mp_fault(&m, "not a map");
	else
		walk_value(&m, key, false, 0, out);
	return m.fault ? kp_mp_fail(&m, key, why) : KPACK_SUCCESS;
}
