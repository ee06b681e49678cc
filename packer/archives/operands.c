/* SPDX-License-Identifier: MIT */
#include "operands.h"
#include <stdlib.h>
#include "packer/base/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "core/view/view.h"
#include "core/archive/decode.h"
#include "packer/files/below.h"

/* --- operands --------------------------------------------------------------------- */

bool archives_paths(int n, char **operands, void (*fn)(const char *path, void *arg),
		    void *arg)
{
	bool ok = true;

	for (int i = 0; i < n; i++) {
		struct kpackx_error why = {0};
		char **paths = NULL;
		size_t count = 0;

		if (below_root_if_directory(operands[i], &why) ||
		    below_archives_find(operands[i], &paths, &count, &why)) {
			report_why(operands[i], &why);
			ok = false;
			continue;
		}
		if (count == 0)
			report_error(operands[i], "no archives (*.kpack) in it");
		for (size_t k = 0; k < count; k++) {
			fn(paths[k], arg);
			free(paths[k]);
		}
		free(paths);
	}
	return ok;
}

static void open_one(const char *path, void *arg)
{
	struct archives *set = arg;
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;

	if (below_archive_open(path, &a, &why)) {
		report_why(path, &why);
		set->failed = true;
		return;
	}
	set->items = xrealloc(set->items, (set->count + 1) * sizeof(a));
	set->items[set->count++] = a;
}

void archives_open(struct archives *set, int n, char **operands)
{
	*set = (struct archives){0};
	if (!archives_paths(n, operands, open_one, set))
		set->failed = true;
}

void archives_close(struct archives *set)
{
	for (size_t i = 0; i < set->count; i++)
		kp_archive_close(set->items[i]);
	free(set->items);
	*set = (struct archives){0};
}

bool archives_refused(const struct kpack_archive *a)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);
	bool any = false;

	for (size_t i = 0; i < kept; i++) {
		if (!faults[i].refused)
			continue;
		report_error(kp_archive_path(a), "%s", faults[i].text);
		any = true;
	}
	if (counted > kept) {
		report_error(kp_archive_path(a), "and %zu faults more", counted - kept);
		any = true;
	}
	return any;
}

/* --- --arch ----------------------------------------------------------------------- */

static bool add_target(struct arch_filter *filter, struct kp_span text,
		       struct kpackx_error *why)
{
	struct kp_target target;
	size_t n = filter->count;

	if (kp_target_parse(text, &target, why))
		return false;
	filter->targets = xrealloc(filter->targets, (n + 1) * sizeof(target));
	filter->matched = xrealloc(filter->matched, (n + 1) * sizeof(bool));
	filter->targets[n] = target;
	filter->matched[n] = false;
	filter->count++;
	return true;
}

bool arch_filter_add(struct arch_filter *filter, const char *list,
		     struct kpackx_error *why)
{
	for (;;) {
		size_t n = strcspn(list, ",");

		if (!add_target(filter, (struct kp_span){(const uint8_t *)list, n}, why))
			return false;
		if (list[n] == '\0')
			return true;
		list += n + 1;
	}
}

int arch_filter_take(const struct options *o, const struct option_help *row, void *slot)
{
	struct kpackx_error why = {0};

	if (arch_filter_add(slot, o->arg, &why))
		return EXIT_OK;
	return options_usage(o->help, "--%s: %s", row->long_name, why.text);
}

/* Whether ARCH, which is not a target ID, is spelled like T. */
static bool same_text(const struct kp_target *t, struct kp_span arch)
{
	char text[KP_TARGET_TEXT_MAX];

	kp_target_format(t, text);
	return kp_span_is(arch, text);
}

bool arch_filter_match(struct arch_filter *filter, struct kp_span arch)
{
	struct kp_target t;
	bool parsed = filter->count && kp_target_parse(arch, &t, NULL) == 0;
	bool any = filter->count == 0;

	for (size_t i = 0; i < filter->count; i++) {
		const struct kp_target *select = &filter->targets[i];
		bool yes =
			parsed ? kp_target_selected(select, &t) : same_text(select, arch);

		filter->matched[i] |= yes;
		any |= yes;
	}
	return any;
}

void arch_filter_warn(struct arch_filter *filter, const struct archives *set)
{
	struct kp_entry_info info;

	if (filter->count == 0)
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
	for (size_t i = 0; i < filter->count; i++) {
		char text[KP_TARGET_TEXT_MAX];

		if (filter->matched[i])
			continue;
		kp_target_format(&filter->targets[i], text);
		report_error(NULL, "--arch: %s: no %s is for it", text, what);
	}
}

void arch_filter_fini(struct arch_filter *filter)
{
	free(filter->targets);
	free(filter->matched);
	*filter = (struct arch_filter){0};
}

/* --- bytes ------------------------------------------------------------------------ */

typedef kpack_error_t sink_fn(const void *data, size_t size, void *arg,
			      struct kpackx_error *why);

/* An empty entry is decoded, too. */
static kpack_error_t decode_units(struct kp_decode *d, uint64_t size, sink_fn *sink,
				  void *arg, struct kpackx_error *why)
{
	uint64_t unit = kp_decode_unit(d), done = 0, before;
	void *buf = malloc(unit ? unit : 1);
	kpack_error_t err = buf ? KPACK_SUCCESS : kp_fail_memory(why, unit, "an entry");

	do {
		before = done;
		if (!err)
			err = kp_decode_next(d, buf, unit, &done, why);
		if (!err)
			err = sink(buf, done - before, arg, why);
	} while (!err && done < size);
	free(buf);
	return err;
}

kpack_error_t archive_decode(const struct kpack_archive *a, size_t entry, sink_fn *sink,
			     void *arg, struct kpackx_error *why)
{
	struct kp_entry_info info;
	struct kp_decode *d;
	kpack_error_t err;

	kp_archive_entry(a, entry, &info);
	KP_TRY(kp_decode_open(a, entry, KP_DECODE_UNITS, &d, why));
	err = decode_units(d, info.size, sink, arg, why);
	kp_decode_close(d);
	return err;
}
