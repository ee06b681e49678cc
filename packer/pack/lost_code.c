/* SPDX-License-Identifier: MIT */
#include "lost_code.h"
#include "packer/cli/report.h"

/* What a GPU finds in a binary. */
struct finding {
	const char *lost; /* the architecture of code that it loses; NULL: none */
	bool spirv;       /* for some of the code it has only SPIR-V */
};

/* Look at the images of container C, as a GPU with the settings SETTING sees them. */
static void look_at(const struct input *in, const struct kp_container *c,
		    const struct arch_filter *filter, const struct kp_target *setting,
		    struct finding *out)
{
	enum kp_fit had = KP_FIT_NONE, has = KP_FIT_NONE;
	const char *lost = NULL;

	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *img = &in->images[i];
		struct kp_target code;
		enum kp_fit fit;

		if (!in->packed[i] ||
		    kp_target_parse(kp_span_str(img->arch), &code, NULL))
			continue;
		fit = kp_target_fit(setting, &code);
		if (fit > had) {
			had = fit;
			lost = img->arch;
		}
		if (fit > has && arch_filter_has(filter, kp_span_str(img->arch)))
			has = fit;
	}
	if (had && !has)
		out->lost = lost;
	out->spirv |= has == KP_FIT_SPIRV;
}

static void check_gpu(const struct input *in, const struct arch_filter *filter,
		      const struct kp_target *gpu, bool quiet, size_t *faults)
{
	struct kp_target settings[KP_TARGET_SETTINGS];
	size_t n = kp_target_settings(gpu, settings);
	struct finding found = {0};
	char text[KP_TARGET_TEXT_MAX];

	for (size_t k = 0; k < in->fat.containers.count; k++)
		for (size_t i = 0; i < n; i++)
			look_at(in, &in->fat.containers.items[k], filter, &settings[i],
				&found);
	kp_target_format(gpu, text);
	if (found.lost) {
		report_error(in->path,
			     "%s would lose its code: what it loads is for %s, which is "
			     "not selected; add that target, or omit --arch-exact",
			     text, found.lost);
		++*faults;
	} else if (found.spirv && !quiet) {
		report_error(in->path,
			     "note: for %s some code is only SPIR-V, which is compiled "
			     "when it is loaded",
			     text);
	}
}

void lost_code_check(const struct converter *c, const struct arch_filter *filter,
		     bool quiet, size_t *faults)
{
	for (size_t b = 0; b < c->n_inputs; b++) {
		const struct input *in = c->inputs[b];

		if (in->kind != INPUT_HOST ||
		    c->dispositions->items[in->entry].fate != FATE_CONVERTED)
			continue;
		for (size_t i = 0; arch_filter_given(filter) && i < filter->chosen.count;
		     i++)
			check_gpu(in, filter, &filter->chosen.gpus[i], quiet, faults);
	}
}
