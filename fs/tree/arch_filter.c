/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "core/archive/archive.h"
#include "arch_filter.h"
#include "core/target/kfd.h"
#include "fs/base/log.h"

static bool fail_list(const char *text)
{
	log_about(LOG_ERR, "arch=", text);
	return false;
}

static bool add_target(struct arches *a, const struct kp_target *t)
{
	struct kp_target *more;

	for (size_t i = 0; i < a->count; i++)
		if (kp_target_eq(&a->list[i], t))
			return true;
	more = reallocarray(a->list, a->count + 1, sizeof(*more));
	if (!more)
		return fail_list("out of memory");
	a->list = more;
	more[a->count++] = *t;
	return true;
}

static bool add_name(struct arches *a, struct kp_span name)
{
	struct kpackx_error why = {0};
	struct kp_target target;

	a->chosen = true;
	if (kp_span_is(name, "all"))
		return a->all = true;
	if (kp_span_is(name, "auto"))
		return a->find = true;
	if (kp_target_parse(name, &target, &why))
		return fail_list(why.text);
	return add_target(a, &target);
}

bool arches_add(struct arches *a, const char *list)
{
	for (;;) {
		size_t n = strcspn(list, ",;");

		if (!add_name(a, (struct kp_span){(const uint8_t *)list, n}))
			return false;
		a->named = a->count;
		if (!list[n])
			return true;
		list += n + 1;
	}
}

static void warn_none(const struct arches *a, const char *place,
		      const struct kpackx_error *why)
{
	log_print(LOG_WARNING, "%s: arch=auto finds no GPU%s%s%s", place,
		  why->code ? ": " : "", why->code ? why->text : "",
		  a->count ? "" : "; only files for every architecture are shown");
}

bool arches_find(struct arches *a, const char *topology)
{
	struct kpackx_error why = {0};
	struct kp_gpus gpus;
	bool ok = true;

	if (!a->find || a->all)
		return true;
	kp_gpus_read(topology, &gpus, &why);
	for (size_t i = 0; i < gpus.faults.kept; i++)
		log_print(LOG_WARNING, "%s", gpus.faults.items[i].text);
	if (gpus.count == 0)
		warn_none(a, topology ? topology : KP_TOPOLOGY, &why);
	for (size_t i = 0; i < gpus.count && ok; i++)
		ok = add_target(a, &gpus.list[i].target);
	kp_gpus_fini(&gpus);
	return ok;
}

void arches_warn(const struct arches *a, struct kpack_archive *const *archives,
		 size_t count)
{
	char text[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < a->named && !a->all; i++) {
		size_t k = 0;

		if (kp_target_neutral(&a->list[i]))
			continue;
		while (k < count && !kp_archive_serves(archives[k], &a->list[i]))
			k++;
		if (k < count)
			continue;
		kp_target_format(&a->list[i], text);
		log_print(LOG_WARNING, "arch=%s: no archive has a file for it", text);
	}
}

struct kp_view_options arches_view(const struct arches *a)
{
	if (!a->chosen || a->all)
		return (struct kp_view_options){0};
	return (struct kp_view_options){
		.select = a->list, .n_select = a->count, .loadable = true};
}

static void put_targets(const struct arches *a, FILE *f, const char *between,
			const char *behind)
{
	char text[KP_TARGET_TEXT_MAX];

	if (!a->chosen || a->all) {
		fprintf(f, "all%s", behind);
		return;
	}
	for (size_t i = 0; i < a->count; i++) {
		kp_target_format(&a->list[i], text);
		fprintf(f, "%s%s", text, i + 1 < a->count ? between : behind);
	}
}

void arches_put(const struct arches *a, FILE *f)
{
	put_targets(a, f, "\n", "\n");
}

char *arches_line_new(const struct arches *a, const char *separator)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_targets(a, f, separator, "");
	if (!fclose(f) && *text)
		return text;
	free(text);
	return NULL;
}

void arches_free(struct arches *a)
{
	free(a->list);
	*a = (struct arches){0};
}
