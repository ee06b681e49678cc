/* SPDX-License-Identifier: MIT */
#include "gpu_list.h"
#include <stdlib.h>
#include <string.h>
#include "core/target/choice.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"

/* --- lists as texts ------------------------------------------------------------------ */

struct names {
	char **items;
	size_t count, cap;
};

static void add_name(struct names *n, const char *name, size_t size)
{
	for (size_t i = 0; i < n->count; i++)
		if (strlen(n->items[i]) == size && memcmp(n->items[i], name, size) == 0)
			return;
	xgrow(&n->items, n->count, &n->cap, sizeof(*n->items));
	n->items[n->count++] = xstrndup(name, size);
}

/* Returns the sorted list, on the heap, and frees N; "-": it is empty. */
static char *join_names(struct names *n)
{
	char *text = NULL;

	if (n->count)
		qsort(n->items, n->count, sizeof(*n->items), kp_order_texts);
	for (size_t i = 0; i < n->count; i++) {
		char *longer = text ? xasprintf("%s,%s", text, n->items[i])
				    : xstrdup(n->items[i]);

		free(text);
		free(n->items[i]);
		text = longer;
	}
	free(n->items);
	*n = (struct names){0};
	return text ? text : xstrdup("-");
}

/* Step to the next GPU of a list; false: there is none. */
static bool next_gpu(const char **list, const char **gpu, size_t *size)
{
	*list += strspn(*list, ",");
	*gpu = *list;
	*size = strcspn(*list, ",");
	*list += *size;
	return *size;
}

bool gpu_list_has(const char *list, const char *gpu, size_t size)
{
	const char *item;
	size_t n;

	while (next_gpu(&list, &item, &n))
		if (n == size && memcmp(item, gpu, n) == 0)
			return true;
	return false;
}

bool gpu_list_covers(const char *b, const char *a)
{
	const char *gpu;
	size_t n;

	while (next_gpu(&a, &gpu, &n))
		if (!gpu_list_has(b, gpu, n))
			return false;
	return true;
}

char *gpu_list_common(const char *a, const char *b)
{
	struct names both = {0};
	const char *gpu;
	size_t n;

	while (next_gpu(&a, &gpu, &n))
		if (gpu_list_has(b, gpu, n))
			add_name(&both, gpu, n);
	return join_names(&both);
}

/* --- the GPUs of a policy ------------------------------------------------------------ */

static void add_targets(struct names *n, const struct kp_choice *choice)
{
	for (size_t i = 0; i < choice->count; i++) {
		char text[KP_TARGET_TEXT_MAX];

		kp_target_format(&choice->gpus[i], text);
		add_name(n, text, strlen(text));
	}
}

/* Add what the driver reports to CHOICE. */
static kpack_error_t find_gpus(struct kp_choice *choice, const char *topology,
			       struct kpackx_error *why)
{
	struct kp_gpus gpus;
	kpack_error_t err = kp_gpus_read(topology, &gpus, why);

	for (size_t i = 0; i < gpus.faults.kept; i++)
		report_error(NULL, "%s", gpus.faults.items[i].text);
	if (err == KPACK_ERROR_FILE_NOT_FOUND)
		err = KPACK_SUCCESS; /* no driver: no GPU */
	if (!err)
		err = kp_choice_add_found(choice, &gpus, why);
	kp_gpus_fini(&gpus);
	return err;
}

/* Add the GPUs of EARLIER to ALL; returns those that it did not have, or NULL. */
static char *add_earlier(struct names *all, const char *earlier)
{
	struct names gone = {0};
	const char *gpu;
	size_t n;

	while (earlier && next_gpu(&earlier, &gpu, &n)) {
		size_t before = all->count;

		add_name(all, gpu, n);
		if (all->count > before)
			add_name(&gone, gpu, n);
	}
	return gone.count ? join_names(&gone) : NULL;
}

kpack_error_t gpu_list_make(const char *list, const char *topology, const char *earlier,
			    char **out, char **gone, struct kpackx_error *why)
{
	struct kp_choice choice = {0};
	struct names all = {0};
	kpack_error_t err = kp_choice_add(&choice, list, why);
	bool find = choice.find;

	*out = *gone = NULL;
	if (!err && find)
		err = find_gpus(&choice, topology, why);
	if (!err)
		add_targets(&all, &choice);
	kp_choice_fini(&choice);
	KP_TRY(err);
	if (find)
		*gone = add_earlier(&all, earlier);
	if (all.count == 0)
		return kp_fail(
			why, KPACK_ERROR_ARCH_NOT_FOUND,
			"arch=auto: no GPU in %s: name the GPUs, as in arch=gfx1100",
			topology ? topology : KP_TOPOLOGY);
	*out = join_names(&all);
	return KPACK_SUCCESS;
}
