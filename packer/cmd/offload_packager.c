/* SPDX-License-Identifier: MIT */
/* kpack offload-packager: the options of clang-offload-packager (llvm-offload-binary). */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/offload/offload.h"

struct packager_args {
	struct packager job;
	bool compress;
	unsigned version; /* 0: not given */
};

/* As `take` of struct option_place: append the argument. */
static int take_image(const struct options *o, const struct option_help *row, void *slot)
{
	struct offload_texts *texts = slot;

	(void)row;
	xgrow(&texts->items, texts->count, &texts->cap, sizeof(*texts->items));
	texts->items[texts->count++] = o->arg;
	return EXIT_OK;
}

static const struct option_help options[] = {
	{0, "archive", NULL, "write the selected images to a static library",
	 OPTION_PLACE(struct packager_args, job.archive)},
	{0, "compress", NULL, "compress the output with zstd (format version 3)",
	 OPTION_PLACE(struct packager_args, compress)},
	{0, "compression-level", "N", "level of zstd, 1 to 22 (5)",
	 OPTION_NUMBER(struct packager_args, job.form.level, 1, 22)},
	{0, "format-version", "N", "version to write: 1 (default), 2 or 3",
	 OPTION_NUMBER(struct packager_args, version, 1, 3)},
	{0, "image", "KEY=VALUE,...", "an image to pack, or to select",
	 OPTION_TAKE(struct packager_args, job.images, take_image)},
	{'o', "output", "FILE", "write the offload binary FILE",
	 OPTION_PLACE(struct packager_args, job.output)},
	{0},
};

const struct command_help cmd_offload_packager_help = {
	"offload-packager",
	"-o FILE --image KEY=VALUE,... | FILE [--archive] [--image KEY=VALUE,...]",
	"pack and unpack offload binaries, as clang-offload-packager",
	options,
	"A long option may begin with one hyphen.  @FILE stands for the words in FILE.",
};

int cmd_offload_packager(int argc, char **argv)
{
	struct options o = {.help = &cmd_offload_packager_help, .single_dash = true};
	KP_AUTO(offload_words) words = {0};
	struct kpackx_error why = {0};
	struct packager_args a = {0};
	struct packager *p = &a.job;
	int status;

	if (offload_words_read(&words, argc, argv, &why))
		return offload_fail(NULL, &why);
	o.argc = (int)words.count;
	o.argv = words.items;
	status = options_read(&o, &a);
	if (status >= 0)
		goto out;
	p->input = optind < o.argc ? o.argv[optind] : NULL;
	p->form.version = a.version ? a.version : a.compress ? 3 : 1;
	p->form.method = a.compress ? KP_OFFLOAD_ZSTD : KP_OFFLOAD_PLAIN;
	if (o.argc - optind > 1)
		status = options_usage(o.help, "one FILE is read");
	else if (!p->input == !p->output)
		status = options_usage(o.help,
				       p->input ? "FILE and --output exclude each other"
						: "FILE or --output is missing");
	else if (a.compress && p->form.version != 3)
		status = options_usage(o.help, "--compress needs --format-version 3");
	else
		status =
			report_finish(p->output ? packager_pack(p) : packager_extract(p));
out:
	free(p->images.items);
	return status;
}
