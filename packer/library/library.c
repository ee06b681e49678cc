/* SPDX-License-Identifier: MIT */
/*
 * The table of libraries, and how each file of a tree is given to one of them.  At the end keys are
 * settled: when an install tree holds two trees of one library, their files get equal keys besides
 * their paths.
 */
#include "library.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "rules.h"

/* In the order in which they are asked. */
static const struct library *const table[] = {
	&library_rocblas,
	&library_hipblaslt,
	&library_hipsparselt,
	&library_aotriton,
	&library_rocfft,
	&library_miopen,
	&library_composablekernel,
	&library_hipkernelprovider,
	&library_aiter,
	&library_hotswap_cache,
};

/* --- objects ---------------------------------------------------------------------------- */

void library_object_fini(struct library_object *o)
{
	for (size_t i = 0; i < o->n_keys; i++) {
		free(o->keys[i]);
		facts_fini(&o->key_facts[i]);
	}
	free(o->keys);
	free(o->key_facts);
	free(o->arches);
	free(o->path);
	free(o->warning);
	facts_fini(&o->facts);
	*o = (struct library_object){0};
}

void library_object_target(const struct library_object *o, size_t i,
			   char out[KP_TARGET_TEXT_MAX])
{
	static const char strict[] = "-strict";
	struct kp_target t;
	size_t n;

	memcpy(out, o->arches[i], KP_TARGET_TEXT_MAX);
	if (!o->path || kp_target_parse(kp_span_str(out), &t, NULL) ||
	    (n = strlen(t.processor)) + sizeof(strict) > sizeof(t.processor))
		return;
	/* the word PROCESSOR-strict or PROCESSOR_strict, or with a number */
	for (const char *p = o->path; (p = strstr(p, t.processor)); p += n)
		if ((p == o->path || !isalnum((unsigned char)p[-1])) &&
		    (p[n] == '-' || p[n] == '_') &&
		    strncmp(p + n + 1, strict + 1, strlen(strict + 1)) == 0 &&
		    !isalpha((unsigned char)p[n + strlen(strict)])) {
			strcat(t.processor, strict);
			kp_target_format(&t, out);
			return;
		}
}

void arches_add(char (**list)[KP_TARGET_TEXT_MAX], size_t *count, const char *arch)
{
	size_t i = 0;

	while (i < *count && strcmp((*list)[i], arch) < 0)
		i++;
	if (i < *count && strcmp((*list)[i], arch) == 0)
		return;
	*list = xrealloc(*list, (*count + 1) * sizeof(**list));
	memmove(*list + i + 1, *list + i, (*count - i) * sizeof(**list));
	snprintf((*list)[i], sizeof(**list), "%s", arch);
	++*count;
}

void library_add_arch(struct library_object *o, const char *arch)
{
	arches_add(&o->arches, &o->n_arches, arch);
}

void library_add_key(struct library_object *o, struct facts facts, const char *fmt, ...)
{
	va_list args;

	o->key_facts = xrealloc(o->key_facts, (o->n_keys + 1) * sizeof(*o->key_facts));
	o->keys = xrealloc(o->keys, (o->n_keys + 1) * sizeof(*o->keys));
	va_start(args, fmt);
	o->keys[o->n_keys] = xvasprintf(fmt, args);
	va_end(args);
	o->key_facts[o->n_keys++] = facts;
}

void library_warn(struct library_object *o, const char *fmt, ...)
{
	va_list args;

	free(o->warning);
	va_start(args, fmt);
	o->warning = xvasprintf(fmt, args);
	va_end(args);
}

bool library_ends_run(kpack_error_t err, const struct kpackx_error *fault,
		      struct kpackx_error *why)
{
	if (err != KPACK_ERROR_OUT_OF_MEMORY && err != KPACK_ERROR_IO_ERROR)
		return false;
	if (why)
		*why = *fault;
	return true;
}

/* --- the libraries of a run ------------------------------------------------------------- */

static const struct library *find_named(const struct library *const *items, size_t count,
					struct kp_span name)
{
	for (size_t i = 0; i < count; i++)
		if (kp_span_is(name, items[i]->name))
			return items[i];
	return NULL;
}

kpack_error_t library_set_open(const char *list, const char *rules,
			       struct library_set *out, struct kpackx_error *why)
{
	KP_AUTO_FREE const struct library **known = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0, n_rules;

	*out = (struct library_set){0};
	if (rules && (err = rules_read(rules, &out->rules, why)))
		return kp_fail_prefix(why, err, "%s", rules);
	/* a library of the rules file replaces that of ours with its name */
	n_rules = out->rules ? out->rules->n_libraries : 0;
	known = xcalloc(n_rules + KP_COUNT(table), sizeof(*known));
	while (n < n_rules) {
		known[n] = &out->rules->libraries[n];
		n++;
	}
	for (size_t i = 0; i < KP_COUNT(table); i++)
		if (!find_named(known, n_rules, kp_span_str(table[i]->name)))
			known[n++] = table[i];
	out->items = xcalloc(n, sizeof(*out->items));
	for (size_t i = 0; !list && i < n; i++)
		out->items[out->count++] = known[i];
	if (!list || strcmp(list, "none") == 0)
		return KPACK_SUCCESS;

	for (const char *item = list, *end; item && !err; item = *end ? end + 1 : NULL) {
		const struct library *library;
		struct kp_span name;

		end = strchrnul(item, ',');
		name = (struct kp_span){(const uint8_t *)item, (size_t)(end - item)};
		library = find_named(known, n, name);
		if (!library) {
			KP_AUTO(kp_compose) names = {0};

			for (size_t i = 0; i < n; i++)
				kp_compose_print(&names, " %s", known[i]->name);
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "'%.*s' is no library; known are%s; or none alone",
				      (int)name.size, item, names.text);
		} else if (find_named(out->items, out->count, name)) {
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s is listed twice", library->name);
		} else {
			out->items[out->count++] = library;
		}
	}
	if (err)
		library_set_close(out);
	return err;
}

void library_set_close(struct library_set *set)
{
	rules_free(set->rules);
	free(set->items);
	*set = (struct library_set){0};
}

/* --- finding ---------------------------------------------------------------------------- */

kpack_error_t library_question_open(struct library_question *q, struct file_bytes *bytes,
				    struct kpackx_error *why)
{
	const struct file_tree_item *item = &q->tree->items[q->file];

	if (!q->source) {
		KP_TRY(file_tree_open(q->tree, q->file, bytes, why));
		q->source = &bytes->source;
		q->head_size = bytes->source.size < sizeof(q->head)
				       ? (size_t)bytes->source.size
				       : sizeof(q->head);
		KP_TRY(kp_source_read(&bytes->source, 0, q->head, q->head_size, why));
	}
	q->out = (struct library_object){
		.library = q->library->name,
		.role = "file",
		.is_archive = strcmp(content_container(q), "kpack") == 0,
		.size = q->source->size,
		.path = xstrdup(item->path),
		.mode = item->mode,
	};
	return KPACK_SUCCESS;
}

/* A key, and the file that has it. */
struct claim {
	const char *key;
	size_t file;
	bool lost;
};

static bool share_arch(const struct library_object *a, const struct library_object *b)
{
	for (size_t i = 0; i < a->n_arches; i++)
		for (size_t k = 0; k < b->n_arches; k++)
			if (strcmp(a->arches[i], b->arches[k]) == 0)
				return true;
	return false;
}

/*
 * For each architecture the file with the first path keeps a key that several files have.  The
 * other files lose the key, keep their paths, and get a warning.
 */
static void settle_keys(struct library_found *found)
{
	KP_AUTO_FREE struct claim *claims = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < found->tree->count; i++) {
		const struct library_object *o = found->objects[i];

		for (size_t k = 0; o && k < o->n_keys; k++) {
			xgrow(&claims, n, &cap, sizeof(*claims));
			claims[n++] = (struct claim){o->keys[k], i, false};
		}
	}
	kp_sort(claims, n, KP_BY_TEXT(struct claim, key),
		KP_BY_NUMBER(struct claim, file)); /* in the order of paths */
	for (size_t first = 0, i = 1; i < n; i++) {
		struct library_object *o = found->objects[claims[i].file];

		if (strcmp(claims[first].key, claims[i].key) != 0)
			first = i;
		for (size_t k = first; k < i && !claims[i].lost; k++) {
			claims[i].lost = !claims[k].lost &&
					 share_arch(found->objects[claims[k].file], o);
			if (claims[i].lost && !o->warning)
				library_warn(o, "the key %s is that of %s", claims[i].key,
					     found->tree->items[claims[k].file].path);
		}
	}
	for (size_t i = 0; i < n; i++) {
		struct library_object *o = found->objects[claims[i].file];
		size_t k = 0;

		if (!claims[i].lost)
			continue;
		while (o->keys[k] != claims[i].key)
			k++;
		free(o->keys[k]);
		facts_fini(&o->key_facts[k]);
		o->n_keys--;
		memmove(&o->keys[k], &o->keys[k + 1], (o->n_keys - k) * sizeof(*o->keys));
		memmove(&o->key_facts[k], &o->key_facts[k + 1],
			(o->n_keys - k) * sizeof(*o->key_facts));
	}
}

kpack_error_t library_find_all(const struct library_set *set,
			       const struct file_tree *tree, library_report *report,
			       void *arg, struct library_found *out, size_t *faults,
			       struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	if (!out->objects)
		*out = (struct library_found){tree, xcalloc(tree->count, sizeof(void *))};
	for (size_t i = 0; i < tree->count && !err; i++) {
		struct library_question q = {.tree = tree,
					     .file = i,
					     .path = tree->items[i].path,
					     .plain = set->plain};
		struct file_bytes bytes = {.fd = -1};
		struct kpackx_error fault = {0};

		for (size_t k = 0; k < set->count && !err && !out->objects[i]; k++) {
			q.library = set->items[k];
			if (!q.library->probe(&q))
				continue;
			q.mine = false;
			err = library_question_open(&q, &bytes, &fault);
			if (!err)
				err = q.library->check(&q, &fault);
			if (err || !q.mine) {
				library_object_fini(&q.out);
				continue;
			}
			if (q.out.n_arches == 0)
				library_add_arch(&q.out, KP_ARCH_GENERIC);
			out->objects[i] = xmalloc(sizeof(q.out));
			*out->objects[i] = q.out;
		}
		file_bytes_close(&bytes);
		/* without memory the run ends; another error is a fault of this file alone */
		if (err == KPACK_ERROR_OUT_OF_MEMORY) {
			if (why)
				*why = fault;
		} else if (err) {
			report(arg, i, &fault);
			++*faults;
			err = KPACK_SUCCESS;
		}
	}
	for (size_t i = 0; i < set->count && !err; i++)
		if (set->items[i]->finish)
			err = set->items[i]->finish(set->items[i], out, why);
	if (err)
		library_found_fini(out);
	else
		settle_keys(out);
	return err;
}

void library_found_fini(struct library_found *found)
{
	for (size_t i = 0; found->objects && i < found->tree->count; i++) {
		if (found->objects[i])
			library_object_fini(found->objects[i]);
		free(found->objects[i]);
	}
	free(found->objects);
	*found = (struct library_found){0};
}
