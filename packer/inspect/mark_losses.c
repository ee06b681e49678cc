/* SPDX-License-Identifier: MIT */
/*
 * What each GPU of --arch would load of a binary: every object is ranked by how well it fits
 * the GPU, and of the best in a container one must be in an archive.
 */
#include "mark_check.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

struct finder {
	const struct built_arches *arches;
	const struct kp_recipe *layout; /* NULL: none */
	size_t *numbers; /* per image of the layout: number of its architecture */
	struct kp_target *targets; /* per architecture; no processor: no target ID */
	unsigned *ranks; /* per architecture: how well it fits the GPU; 0: not at all */
	struct losses *out;
};

/* One GPU, or one setting of its features. */
struct wanted {
	size_t number;
	struct kp_target gpu;
	bool exact;
};

static unsigned rank_of(const struct wanted *w, const struct kp_target *code)
{
	if (!*code->processor || (w->exact && !kp_target_eq(&w->gpu, code)))
		return 0;
	/* of two objects for a processor, the one that states more features is loaded */
	return 4 * (unsigned)kp_target_fit(&w->gpu, code) +
	       (kp_target_loadable(&w->gpu, code)
			? (code->xnack != KP_FEATURE_ANY) +
				  (code->sramecc != KP_FEATURE_ANY)
			: 0);
}

/* The number of the architecture of item I: of an image, or of all if there are none. */
static size_t number_of(const struct finder *f, size_t i)
{
	return f->layout ? f->numbers[i] : i;
}

/*
 * Look at the items [FIRST, END), which a GPU can choose from, beside the code that other
 * builds added.
 */
static void check_choice(struct finder *f, const struct wanted *w, size_t first,
			 size_t end)
{
	unsigned added = 0, best;
	bool found = false;

	for (size_t k = 0; f->layout && k < f->arches->count; k++)
		if (!f->arches->in_layout[k] && f->ranks[k] > added)
			added = f->ranks[k];
	best = added;
	for (size_t i = first; i < end; i++)
		if (f->ranks[number_of(f, i)] > best)
			best = f->ranks[number_of(f, i)];
	if (!best)
		return;
	f->out->built[w->number] = true;
	if (best == added)
		return;
	for (size_t i = first; i < end; i++)
		found |= f->ranks[number_of(f, i)] == best &&
			 f->arches->installed[number_of(f, i)];
	for (size_t i = first; i < end && !found; i++)
		if (f->ranks[number_of(f, i)] == best && !f->out->lost[number_of(f, i)])
			f->out->lost[number_of(f, i)] = w->number + 1;
}

static void check_wanted(struct finder *f, const struct wanted *w)
{
	const struct kp_recipe_image *images = f->layout ? f->layout->images : NULL;
	size_t n = f->layout ? f->layout->n_images : 0, end;

	for (size_t k = 0; k < f->arches->count; k++)
		f->ranks[k] = rank_of(w, &f->targets[k]);
	f->ranks[f->arches->count] = 0; /* the host's */
	if (!f->layout)
		check_choice(f, w, 0, f->arches->count);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && images[end].container == images[i].container;
		     end++)
			;
		check_choice(f, w, i, end);
	}
}

void losses_find(const struct binary *b, const struct built_arches *arches,
		 const struct kp_choice *gpus, struct losses *out)
{
	size_t n = arches->count;
	struct finder f = {.arches = arches,
			   .layout = b->has_layout ? &b->layout : NULL,
			   .targets = xcalloc(n + 1, sizeof(*f.targets)),
			   .ranks = xcalloc(n + 1, sizeof(*f.ranks)),
			   .out = out};

	out->built = xcalloc(gpus->count + 1, sizeof(*out->built));
	out->lost = xcalloc(n + 1, sizeof(*out->lost));
	for (size_t k = 0; k < n; k++)
		if (kp_target_parse(kp_span_str(arches->items[k]), &f.targets[k], NULL))
			f.targets[k].processor[0] = '\0';
	if (f.layout)
		f.numbers = xcalloc(f.layout->n_images, sizeof(*f.numbers));
	for (size_t i = 0; f.layout && i < f.layout->n_images; i++)
		if (f.layout->images[i].host ||
		    !built_arches_number(arches, f.layout->images[i].arch, &f.numbers[i]))
			f.numbers[i] = n; /* the host's */
	for (size_t i = 0; i < gpus->count && !kp_choice_is_all(gpus); i++) {
		struct kp_target settings[KP_TARGET_SETTINGS] = {gpus->gpus[i]};
		size_t n_settings =
			gpus->exact ? 1 : kp_target_settings(&gpus->gpus[i], settings);

		for (size_t k = 0; k < n_settings; k++)
			check_wanted(&f, &(struct wanted){i, settings[k], gpus->exact});
	}
	free(f.targets);
	free(f.ranks);
	free(f.numbers);
}

void losses_fini(struct losses *losses)
{
	free(losses->built);
	free(losses->lost);
}
