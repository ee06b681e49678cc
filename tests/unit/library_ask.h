/* SPDX-License-Identifier: MIT */
/* Ask a library about a made-up file, for tests of packer/library. */
#ifndef LIBRARY_ASK_H
#define LIBRARY_ASK_H

#include "packer/library/library.h"
#include "core/base/json.h"
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

struct asked {
	bool probed, mine;
	kpack_error_t err;
	struct kpackx_error why;
	struct library_object object;
};

static inline struct asked ask_source(const struct library *l,
				      const struct file_tree *tree, const char *path,
				      struct kp_source source)
{
	struct library_question q = {.tree = tree, .path = path};
	struct asked a = {.object = {.role = "file", .size = source.size}};

	a.probed = l->probe(l, &q);
	if (!a.probed)
		return a;
	q.source = &source;
	q.head_size = source.size < sizeof(q.head) ? source.size : sizeof(q.head);
	assert_int_equal(kp_source_read(&source, 0, q.head, q.head_size, &a.why), 0);
	a.err = l->check(l, &q, &a.mine, &a.object, &a.why);
	return a;
}

static inline struct asked ask(const struct library *l, const char *path,
			       const void *bytes, size_t size)
{
	static const struct file_tree none;

	return ask_source(l, &none, path, kp_source_memory(bytes, size));
}

static inline void asked_fini(struct asked *a)
{
	library_object_fini(&a->object);
}

/* "gfx1100 gfx1101"; at most 400 bytes, valid until the next call. */
static inline const char *asked_arches(const struct asked *a)
{
	static char text[400];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < a->object.n_arches; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "",
				      a->object.arches[i]);
	return text;
}

/* The facts as JSON; the caller frees the text. */
static inline char *facts_json(const struct facts *f)
{
	struct facts whole = {0};
	struct kp_json j;
	struct kp_span text, name;
	struct kp_mp c;
	char *out;

	if (!f->count)
		return strdup("{}");
	facts_map(&whole, "facts", f);
	c = kp_mp_over((struct kp_span){whole.pairs, whole.size});
	assert_true(kp_mp_str(&c, &name));
	kp_json_init(&j, 1 << 16);
	kp_json_value(&j, &c);
	assert_int_equal(kp_json_finish(&j, &text, NULL), KPACK_SUCCESS);
	assert_true(c.pos == c.end);
	out = strndup((const char *)text.data, text.size);
	kp_json_fini(&j);
	facts_fini(&whole);
	return out;
}

static inline void assert_facts(const struct facts *f, const char *json)
{
	char *have = facts_json(f);

	assert_string_equal(have, json);
	free(have);
}

#endif
