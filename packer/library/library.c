/* SPDX-License-Identifier: MIT */
#include "library.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "arch_name.h"
#include "key_owners.h"
#include "rules.h"
#include "packer/cli/xalloc.h"
#include "core/target/target.h"

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
#define TABLE_SIZE KP_COUNT(table)

/* --- objects ------------------------------------------------------------------------- */

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

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Whether PATH has the word PROCESSOR-strict or PROCESSOR_strict, or with a number. */
static bool names_strict(const char *path, const char *processor)
{
	size_t n = strlen(processor);

	for (const char *p = path; (p = strstr(p, processor)); p += n) {
		const char *end = p + n + strlen("-strict");

		if ((p == path || !isalnum((unsigned char)p[-1])) &&
		    (p[n] == '-' || p[n] == '_') &&
		    strncmp(p + n + 1, "strict", strlen("strict")) == 0 &&
		    !isalpha((unsigned char)*end))
			return true;
	}
	return false;
}

void library_object_target(const struct library_object *o, size_t i,
			   char out[KP_TARGET_TEXT_MAX])
{
	static const char strict[] = "-strict";
	struct kp_target t;

	memcpy(out, o->arches[i], KP_TARGET_TEXT_MAX);
	if (!o->path || kp_target_parse(kp_span_str(out), &t, NULL) ||
	    strlen(t.processor) + sizeof(strict) > sizeof(t.processor) ||
	    !names_strict(o->path, t.processor))
		return;
	strcat(t.processor, strict);
	kp_target_format(&t, out);
}

void library_add_arch(struct library_object *o, const char *arch)
{
	for (size_t i = 0; i < o->n_arches; i++)
		if (strcmp(o->arches[i], arch) == 0)
			return;
	o->arches = xrealloc(o->arches, (o->n_arches + 1) * sizeof(*o->arches));
	snprintf(o->arches[o->n_arches++], sizeof(*o->arches), "%s", arch);
	qsort(o->arches, o->n_arches, sizeof(*o->arches), by_text);
}

void library_add_key(struct library_object *o, const char *fmt, ...)
{
	va_list args;

	o->key_facts = xrealloc(o->key_facts, (o->n_keys + 1) * sizeof(*o->key_facts));
	o->keys = xrealloc(o->keys, (o->n_keys + 1) * sizeof(*o->keys));
	va_start(args, fmt);
	if (vasprintf(&o->keys[o->n_keys], fmt, args) < 0)
		xalloc_fail(0);
	va_end(args);
	o->key_facts[o->n_keys++] = (struct facts){0};
}

void library_key_facts(struct library_object *o, struct facts *facts)
{
	facts_fini(&o->key_facts[o->n_keys - 1]);
	o->key_facts[o->n_keys - 1] = *facts;
	*facts = (struct facts){0};
}

void library_warn(struct library_object *o, const char *fmt, ...)
{
	va_list args;

	free(o->warning);
	va_start(args, fmt);
	if (vasprintf(&o->warning, fmt, args) < 0)
		xalloc_fail(0);
	va_end(args);
}

/* --- the libraries of a run ------------------------------------------------------------ */

static const struct library *find_by_name(const struct rules *rules, struct kp_span name)
{
	for (size_t i = 0; i < rules_count(rules); i++)
		if (kp_span_is(name, rules_library(rules, i)->name))
			return rules_library(rules, i);
	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (kp_span_is(name, table[i]->name))
			return table[i];
	return NULL;
}

static kpack_error_t fail_unknown(const struct rules *rules, struct kp_span name,
				  struct kpackx_error *why)
{
	char known[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < rules_count(rules) + TABLE_SIZE; i++) {
		const struct library *l = i < rules_count(rules)
						  ? rules_library(rules, i)
						  : table[i - rules_count(rules)];
		int n = snprintf(known + used, sizeof(known) - used, " %s", l->name);

		if (n > 0 && (size_t)n < sizeof(known) - used)
			used += (size_t)n;
	}
	known[used] = 0;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "'%.*s' is no library; known are%s; or none alone", (int)name.size,
		       (const char *)name.data, known);
}

static kpack_error_t append_library(struct library_set *set,
				    const struct library *library,
				    struct kpackx_error *why)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->items[i] == library)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s is listed twice", library->name);
	set->items = xrealloc(set->items, (set->count + 1) * sizeof(*set->items));
	set->items[set->count++] = library;
	return KPACK_SUCCESS;
}

static kpack_error_t add_all(struct library_set *set, struct kpackx_error *why)
{
	for (size_t i = 0; i < rules_count(set->rules); i++)
		KP_TRY(append_library(set, rules_library(set->rules, i), why));
	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (find_by_name(set->rules, kp_span_str(table[i]->name)) == table[i])
			KP_TRY(append_library(set, table[i], why));
	return KPACK_SUCCESS;
}

static kpack_error_t add_list(struct library_set *set, const char *list,
			      struct kpackx_error *why)
{
	const char *end;

	if (strcmp(list, "none") == 0)
		return KPACK_SUCCESS;
	for (const char *item = list; item; item = *end ? end + 1 : NULL) {
		const struct library *library;
		struct kp_span name;

		end = strchrnul(item, ',');
		name = (struct kp_span){(const uint8_t *)item, (size_t)(end - item)};
		library = find_by_name(set->rules, name);
		if (!library)
			return fail_unknown(set->rules, name, why);
		KP_TRY(append_library(set, library, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t library_set_open(const char *list, const char *rules,
			       struct library_set *out, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct library_set){0};
	if (rules) {
		err = rules_read(rules, &out->rules, why);
		if (err)
			kp_fail_prefix(why, err, "%s", rules);
	}
	if (!err)
		err = list ? add_list(out, list, why) : add_all(out, why);
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

/* --- finding --------------------------------------------------------------------------- */

/* Open the question's file and read its first bytes, unless done already. */
static kpack_error_t open_question(struct library_question *q, struct file_bytes *bytes,
				   struct kpackx_error *why)
{
	if (q->source)
		return KPACK_SUCCESS;
	KP_TRY(file_tree_open(q->tree, q->file, bytes, why));
	q->source = &bytes->source;
	q->head_size = bytes->source.size < sizeof(q->head) ? (size_t)bytes->source.size
							    : sizeof(q->head);
	return kp_source_read(&bytes->source, 0, q->head, q->head_size, why);
}

static struct library_object new_object(const struct library *library,
					const struct library_question *q)
{
	const struct file_tree_item *item = &q->tree->items[q->file];

	return (struct library_object){
		.library = library->name,
		.role = "file",
		.is_archive = strcmp(content_container(q), "kpack") == 0,
		.size = q->source->size,
		.path = xstrdup(item->path),
		.mode = item->mode,
	};
}

static kpack_error_t ask_libraries(const struct library_set *set,
				   struct library_question *q, struct file_bytes *bytes,
				   bool *found, struct library_object *out,
				   struct kpackx_error *why)
{
	for (size_t i = 0; i < set->count && !*found; i++) {
		const struct library *library = set->items[i];
		kpack_error_t err;

		if (!library->probe(library, q))
			continue;
		KP_TRY(open_question(q, bytes, why));
		*out = new_object(library, q);
		err = library->check(library, q, found, out, why);
		if (err || !*found)
			library_object_fini(out);
		else if (out->n_arches == 0)
			library_add_arch(out, KP_ARCH_GENERIC);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t recognise_file(const struct library_set *set,
				    const struct file_tree *tree, size_t file,
				    struct library_object **slot,
				    struct kpackx_error *why)
{
	struct library_question q = {.tree = tree,
				     .file = file,
				     .path = tree->items[file].path,
				     .plain = set->plain};
	struct file_bytes bytes = {.fd = -1};
	struct library_object object = {0};
	bool found = false;
	kpack_error_t err = ask_libraries(set, &q, &bytes, &found, &object, why);

	file_bytes_close(&bytes);
	if (err || !found)
		return err;
	*slot = xmalloc(sizeof(object));
	**slot = object;
	return KPACK_SUCCESS;
}

static kpack_error_t finish_libraries(const struct library_set *set,
				      struct library_found *found,
				      struct kpackx_error *why)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->items[i]->finish)
			KP_TRY(set->items[i]->finish(set->items[i], found, why));
	key_owners_settle(found);
	return KPACK_SUCCESS;
}

kpack_error_t library_find_all(const struct library_set *set,
			       const struct file_tree *tree, library_report *report,
			       void *arg, struct library_found *out, size_t *faults,
			       struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct library_found){tree, xcalloc(tree->count, sizeof(void *))};
	for (size_t i = 0; i < tree->count && err != KPACK_ERROR_OUT_OF_MEMORY; i++) {
		struct kpackx_error fault = {0};

		err = recognise_file(set, tree, i, &out->objects[i], &fault);
		if (err == KPACK_ERROR_OUT_OF_MEMORY && why)
			*why = fault;
		if (!err || err == KPACK_ERROR_OUT_OF_MEMORY)
			continue;
		report(arg, i, &fault);
		++*faults;
	}
	if (err != KPACK_ERROR_OUT_OF_MEMORY)
		err = finish_libraries(set, out, why);
	if (err)
		library_found_fini(out);
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

kpack_error_t library_claim(const struct library *self, struct library_found *found,
			    size_t file, struct library_object **out,
			    struct kpackx_error *why)
{
	struct library_question q = {
		.tree = found->tree, .file = file, .path = found->tree->items[file].path};
	struct file_bytes bytes = {.fd = -1};
	kpack_error_t err = open_question(&q, &bytes, why);

	if (!err) {
		*out = xmalloc(sizeof(**out));
		**out = new_object(self, &q);
		found->objects[file] = *out;
	}
	file_bytes_close(&bytes);
	return err;
}
