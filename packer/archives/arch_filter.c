/* SPDX-License-Identifier: MIT */
/*
 * The rules about which code suits which GPU are those of core/target/choice.h; here is what a
 * command line adds: "auto", and who matched.  A GPU of the list that matched nothing is most
 * often misspelt, or of another family than the code, so commands warn of it, or refuse to
 * remove what is for the others.
 */
#include "arch_filter.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

kpack_error_t arch_filter_add(struct arch_filter *filter, const char *list,
			      struct kpackx_error *why)
{
	struct kp_choice *s = &filter->chosen;
	struct kpackx_error reason = {0};
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_gpus gpus = {0};
	size_t before = s->count;

	KP_TRY(kp_choice_add(s, list, why));
	if (s->find) { /* "auto" is in the list */
		err = kp_gpus_read(NULL, &gpus, &reason);
		for (size_t i = 0; i < gpus.faults.kept; i++)
			report_error(NULL, "%s", gpus.faults.items[i].text);
		if (err || gpus.count == 0)
			err = kp_fail(why, KPACK_ERROR_ARCH_NOT_FOUND,
				      "no GPU in " KP_TOPOLOGY
				      "%s%s: instead of auto, name the GPUs, as in "
				      "gfx1100,gfx942",
				      err == KPACK_ERROR_FILE_NOT_FOUND
					      ? ", the KFD driver is missing"
				      : err ? ", "
					    : "",
				      err == KPACK_ERROR_FILE_NOT_FOUND ? ""
									: reason.text);
		else
			err = kp_choice_add_found(s, &gpus, why);
		kp_gpus_fini(&gpus);
	}
	KP_TRY(err);
	s->find = false;
	filter->matched = xrealloc(filter->matched, s->count + 1);
	memset(filter->matched + before, 0, s->count + 1 - before);
	return KPACK_SUCCESS;
}

int arch_filter_put(struct arch_filter *filter, const struct command_help *help,
		    const char *option, const char *list)
{
	struct kpackx_error why = {0};
	kpack_error_t err = arch_filter_add(filter, list, &why);

	if (err == KPACK_ERROR_INVALID_ARGUMENT)
		return options_usage(help, "--%s %s: %s", option, list, why.text);
	if (err)
		report_error(help->name, "--%s %s: %s", option, list, why.text);
	return err ? EXIT_FAULT : EXIT_OK;
}

int arch_filter_take(const struct options *o, const struct option_help *row, void *slot)
{
	return arch_filter_put(slot, o->help, row->long_name, o->arg);
}

void arch_filter_check(const struct arch_filter *filter, const struct command_help *help)
{
	if (filter->chosen.exact && !filter->chosen.limited)
		options_usage(help,
			      "--arch-exact needs a list of targets, which is missing");
}

void arch_filter_check_known(const struct arch_filter *filter,
			     const struct command_help *help)
{
	struct kpackx_error why = {0};

	if (kp_choice_check(&filter->chosen, KP_CHOICE_GPUS, &why))
		options_usage(help, "--arch: %s", why.text);
}

bool arch_filter_match(struct arch_filter *filter, struct kp_span arch)
{
	const struct kp_choice *s = &filter->chosen;
	struct kp_target code;

	/* all GPUs that take it, not only the first: none of them is misspelt */
	if (s->limited && !kp_target_parse(arch, &code, NULL))
		for (size_t i = 0; i < s->count; i++)
			/* what suits every GPU is no code for this one */
			filter->matched[i] |= kp_target_neutral(&code)
						      ? kp_target_neutral(&s->gpus[i])
						      : kp_choice_takes(s, i, &code);
	return kp_choice_has(s, arch);
}

bool arch_filter_drops(struct arch_filter *filter, struct kp_span arch)
{
	struct kp_target t;

	return !arch_filter_match(filter, arch) &&
	       kp_target_parse(arch, &t, NULL) == KPACK_SUCCESS && t.known;
}

void arch_filter_warn(struct arch_filter *filter, const struct archives *set)
{
	struct kp_entry_info info;

	if (kp_choice_is_all(&filter->chosen))
		return;
	for (size_t i = 0; i < set->count; i++) {
		size_t n = kp_archive_entry_count(set->items[i]);

		for (size_t e = 0; e < n; e++) {
			kp_archive_entry(set->items[i], e, &info);
			arch_filter_match(filter, info.arch);
		}
	}
	arch_filter_unmatched(filter, "entry");
}

void arch_filter_unmatched(const struct arch_filter *filter, const char *what)
{
	for (size_t i = 0; i < filter->chosen.count; i++) {
		char text[KP_TARGET_TEXT_MAX];

		if (filter->matched[i])
			continue;
		kp_target_format(&filter->chosen.gpus[i], text);
		report_error(NULL, "--arch: %s: no %s is for it", text, what);
	}
}

void arch_filter_fini(struct arch_filter *filter)
{
	kp_choice_fini(&filter->chosen);
	free(filter->matched);
	*filter = (struct arch_filter){0};
}
