/* SPDX-License-Identifier: MIT */
/*
 * kpack cat: the decoded bytes of one entry.  To a stream go only bytes that were compared with
 * the archive's hash before, because a reader may act on them; a file gets its name when it is
 * whole.
 */
#include <errno.h>
#include <stdlib.h>
#include "core/archive/entry.h"
#include "packer/archives/content.h"
#include "packer/archives/operands.h"
#include "packer/cli/xalloc.h"
#include "packer/command.h"
#include "packer/files/below.h"
#include "packer/files/target.h"
#include "core/base/file.h"
#include "packer/cli/report.h"
#include "core/base/text.h"

static const struct option_help options[] = {
	{'o', "output", "FILE", "write to FILE, which appears when whole",
	 OPTION_WORD_ALONE},
	{0},
};

const struct command_help cmd_cat_help = {
	"cat",
	"[-o FILE] ARCHIVE|DIR KEY ARCH",
	"write one decoded entry to standard output",
	options,
	"A KEY without '#' that is not found is also looked up as 'KEY#0'.",
};

static kpack_error_t to_stdout(const void *data, size_t size, void *arg,
			       struct kpackx_error *why)
{
	(void)arg;
	if (fwrite(data, 1, size, stdout) != size)
		return kp_fail_errno(why, errno, "standard output: write");
	return KPACK_SUCCESS;
}

struct file_sink {
	struct kp_outfile out;
	uint64_t written;
};

static kpack_error_t to_file(const void *data, size_t size, void *arg,
			     struct kpackx_error *why)
{
	struct file_sink *sink = arg;

	KP_TRY(kp_outfile_pwrite(&sink->out, sink->written, data, size, why));
	sink->written += size;
	return KPACK_SUCCESS;
}

/* Find the entry KEY for ARCH; the archive that has it, or NULL. */
static const struct kpack_archive *find_entry(const struct archives *set, const char *key,
					      const char *arch, size_t *entry)
{
	for (size_t i = 0; i < set->count; i++)
		if (kp_archive_find(set->items[i], kp_span_str(key), kp_span_str(arch),
				    entry))
			return set->items[i];
	return NULL;
}

static kpack_error_t write_entry(const struct kpack_archive *a, size_t entry,
				 const char *output, struct kpackx_error *why)
{
	struct file_sink sink = {.out = {.fd = -1, .dir_fd = -1}};
	bool stream = true;
	kpack_error_t err = output ? output_open(output, &stream, why) : KPACK_SUCCESS;

	if (!err && stream) {
		/* what is written cannot be taken back */
		KP_TRY(kp_entry_check_parts(a, entry, UINT64_MAX, why));
		return archive_decode(a, entry, to_stdout, NULL, why);
	}
	if (!err)
		err = below_outfile_open(&sink.out, output, 0666, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", output);
	err = archive_decode(a, entry, to_file, &sink, why);
	if (!err && kp_outfile_publish(&sink.out, why))
		err = kp_fail_prefix(why, why->code, "%s", output);
	kp_outfile_close(&sink.out);
	return err;
}

/*
 * The status is the entry's alone: bytes of an intact entry are not to be ignored because
 * another one, which is only reported, is not.
 */
static int cat_entry(char *operand, const char *key, const char *arch, const char *output)
{
	char *first = strchr(key, '#') ? NULL : xasprintf("%s#0", key);
	const struct kpack_archive *a;
	struct kpackx_error why = {0};
	struct archives set;
	int status = EXIT_FAULT;
	size_t entry;

	archives_open(&set, 1, &operand);
	a = find_entry(&set, key, arch, &entry);
	if (!a && first)
		a = find_entry(&set, first, arch, &entry);
	if (a && !write_entry(a, entry, output, &why)) {
		archives_refused(a, NULL);
		status = EXIT_OK;
	} else if (a) {
		if (!ferror(stdout)) /* otherwise report_finish reports it */
			report_why(kp_archive_path(a), &why);
	} else if (set.count) {
		char k[400], t[200];

		report_error(operand, "no entry %s for %s",
			     kp_text_escape(kp_span_str(key), k, sizeof(k)),
			     kp_text_escape(kp_span_str(arch), t, sizeof(t)));
		for (size_t i = 0; i < set.count; i++)
			archives_refused(set.items[i], NULL);
	}
	archives_close(&set);
	free(first);
	return status;
}

int cmd_cat(int argc, char **argv)
{
	struct options o = {.help = &cmd_cat_help, .argc = argc, .argv = argv};
	const char *output = NULL;
	int status = options_read(&o, &output);

	if (status >= 0)
		return status;
	if (argc - optind != 3)
		return options_usage(o.help, "ARCHIVE, KEY and ARCH are needed");
	return report_finish(
		cat_entry(argv[optind], argv[optind + 1], argv[optind + 2], output));
}
