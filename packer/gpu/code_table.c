/* SPDX-License-Identifier: MIT */
/*
 * A row for each architecture, as its code states it.  There are a few dozen at most in real
 * trees, so that rows are found by looking at all of them.
 */
#include "code_table.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/archive.h"
#include "core/base/order.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"

void code_table_add(struct code_table *t, struct kp_span arch, size_t number,
		    uint64_t bytes, uint64_t kernels)
{
	struct code_table_row *row = NULL;

	for (size_t i = 0; i < t->count && !row; i++)
		if (kp_span_is(arch, t->rows[i].arch))
			row = &t->rows[i];
	if (!row) {
		xgrow(&t->rows, t->count, &t->cap, sizeof(*row));
		row = &t->rows[t->count++];
		*row = (struct code_table_row){.last = SIZE_MAX};
		snprintf(row->arch, sizeof(row->arch), "%.*s", (int)arch.size,
			 (const char *)arch.data);
	}
	row->count += row->last != number;
	row->last = number;
	row->bytes += bytes;
	row->kernels += kernels;
}

void code_table_add_archive(struct code_table *t, const struct kpack_archive *a,
			    size_t number, bool objects)
{
	struct kp_entry_info info;

	for (size_t i = 0; i < kp_archive_entry_count(a); i++) {
		kp_archive_entry(a, i, &info);
		code_table_add(t, info.arch, objects ? i : number, info.size, 0);
	}
}

void code_table_match(struct code_table *t, const struct kp_choice *gpus)
{
	struct kp_target code;

	kp_sort(t->rows, t->count, KP_BY_BYTES(struct code_table_row, arch));
	for (size_t i = 0; i < t->count; i++) {
		struct code_table_row *row = &t->rows[i];

		row->loads = gpus && gpus->count ? CODE_OTHER_GPU : CODE_UNKNOWN;
		if (kp_target_parse(kp_span_str(row->arch), &code, NULL))
			continue;
		for (size_t k = 0; gpus && k < gpus->count; k++)
			if (kp_target_loadable(&gpus->gpus[k], &code))
				row->loads = CODE_LOADED;
	}
}

void code_table_print(const struct code_table *t, FILE *out, const char *counted,
		      enum code_table_more more, size_t most)
{
	static const char *const heads[] = {"", "     kernels", "  loadable"};
	static const char *const answers[] = {"no", "yes", "unknown"};
	char arch[4 * KP_TARGET_TEXT_MAX];

	fprintf(out, "%-24s %8s %16s%s\n", "GPU", counted, "bytes", heads[more]);
	for (size_t i = 0; i < t->count && i < most; i++) {
		const struct code_table_row *row = &t->rows[i];

		kp_text_escape(kp_span_str(row->arch), arch, sizeof(arch));
		fprintf(out, "%-24s %8zu %16" PRIu64, arch, row->count, row->bytes);
		if (more == CODE_TABLE_KERNELS)
			fprintf(out, " %11" PRIu64, row->kernels);
		if (more == CODE_TABLE_LOADS)
			fprintf(out, "  %s", answers[row->loads]);
		fputc('\n', out);
	}
	if (t->count > most)
		fprintf(out, "and %zu more\n", t->count - most);
}

int code_table_refuse(struct code_table *t, const char *path, const char *refusal)
{
	enum { SHOWN_MAX = 12 };
	char shown[4096];
	size_t first = 0;

	report_error(path, "%s%s", refusal, t->count ? "; it has code for:" : "");
	if (!t->count)
		return EXIT_FAULT;
	code_table_match(t, NULL);
	code_table_print(t, stderr, "files", CODE_TABLE_SHORT, SHOWN_MAX);
	/* an example that is a GPU, if there is one */
	while (first + 1 < t->count && strncmp(t->rows[first].arch, KP_ARCH_GENERIC,
					       sizeof(KP_ARCH_GENERIC) - 1) == 0)
		first++;
	return report_error(
		NULL,
		"type --arch %s, or others of these; 'kpack detect %s' also says what "
		"this machine's GPUs can load",
		t->rows[first].arch,
		kp_text_escape(kp_span_str(path), shown, sizeof(shown)));
}

void code_table_fini(struct code_table *t)
{
	free(t->rows);
	*t = (struct code_table){0};
}
