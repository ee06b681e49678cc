/* SPDX-License-Identifier: MIT */
/* List every entry ID as it is stored, in the order of the file. */
#include <stdio.h>
#include "packer/cli/report.h"
#include "contents.h"
#include "core/format/ar_archive.h"

static void print_ids(const struct bundler_contents *parts)
{
	for (size_t i = 0; i < parts->list.n_images; i++) {
		if (!parts->list.images[i].id)
			continue;
		report_text(parts->list.images[i].id);
		putchar('\n');
	}
}

static int list_bundle(const struct bundler *b, const char *name,
		       const struct kp_source *src)
{
	struct bundler_contents parts;
	struct kpackx_error why = {0};

	if (bundler_contents_read(b, src, &parts, &why))
		return bundler_fail_parts(b, "input", name, src, &why);
	print_ids(&parts);
	if (parts.ignored)
		llvm_warning(b->tool, "'%s': the last %llu bytes are no bundle", name,
			     (unsigned long long)parts.ignored);
	bundler_contents_free(&parts);
	return 0;
}

static int list_member(const struct bundler *b, const struct kp_source *src,
		       const struct kp_ar *ar, size_t number)
{
	const char *name = ar->items[number].name;
	struct kpackx_error why = {0};
	struct bundler_input in;
	int status;

	if (bundler_member_open(&in, ar, number, src, b->inputs[0], &why))
		return bundler_fail_file(b, name, &why);
	status = list_bundle(b, name, &in.src);
	bundler_input_close(&in);
	return status;
}

/* List the members in order.  A damaged member is reported, and the rest is listed. */
static int list_archive(const struct bundler *b, const struct kp_source *src)
{
	struct kpackx_error why = {0};
	struct kp_ar ar;
	int status = 0;

	if (kp_ar_read(src, &ar, &why))
		return bundler_fail_file(b, b->inputs[0], &why);
	for (size_t i = 0; i < ar.count; i++)
		if (list_member(b, src, &ar, i))
			status = 1;
	kp_ar_fini(&ar);
	return status;
}

static bool is_archive(const struct bundler *b, const struct kp_source *src)
{
	uint8_t head[8];

	return strcmp(b->type, "a") == 0 && src->size >= sizeof(head) &&
	       !kp_source_read(src, 0, head, sizeof(head), NULL) &&
	       kp_ar_probe((struct kp_span){head, sizeof(head)});
}

int bundler_list(const struct bundler *b)
{
	struct bundler_input in;
	struct kpackx_error why = {0};
	int status;

	if (bundler_input_open(&in, b->inputs[0], &why))
		return bundler_fail_file(b, b->inputs[0], &why);
	if (!bundler_type_known(b->type))
		status =
			llvm_error(b->tool, "'%s': invalid file type specified", b->type);
	else
		status = is_archive(b, &in.src) ? list_archive(b, &in.src)
						: list_bundle(b, b->inputs[0], &in.src);
	bundler_input_close(&in);
	return status;
}
