/* SPDX-License-Identifier: MIT */
/*
 * Bundling: the inputs of all targets become one file.  Its type and the host's input decide
 * the form: text with markers; sections of the host's object; or a binary bundle, a table of
 * IDs and offsets, whose entries follow.  All but objects can be compressed as a whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/format/bundle.h"
#include "core/format/text_bundle.h"
#include "offload.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

struct bundling {
	const struct bundler *b;
	struct offload_input *inputs; /* of each target */
};

/* Write a bundle as the type of the files has it: text, or a table and what it names. */
static kpack_error_t write_bundle(const struct bundling *job, struct kp_sink *sink,
				  struct kpackx_error *why)
{
	const struct bundler *b = job->b;
	const char *comment = kp_text_bundle_comment(b->type);
	size_t n = b->n_targets;
	KP_AUTO_FREE struct kp_text_entry *entries = xcalloc(n, sizeof(*entries));
	KP_AUTO_FREE struct kp_bundle_row *rows = xcalloc(n, sizeof(*rows));
	KP_AUTO_FREE uint8_t *header = NULL;
	uint64_t size;

	for (size_t i = 0; i < n; i++) {
		entries[i].id = rows[i].id = kp_span_str(b->targets[i].name);
		entries[i].contents = job->inputs[i].src;
		rows[i].size = job->inputs[i].src.size;
	}
	if (comment)
		return kp_text_bundle_write(entries, n, comment, sink, why);
	if (!kp_bundle_place(rows, n, b->align, 0, &size))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "bundle of more than %" PRId64 " bytes", INT64_MAX);
	size = kp_bundle_header_size(rows, n);
	header = xmalloc((size_t)size);
	kp_bundle_header_write(rows, n, header);
	KP_TRY(kp_sink_put(sink, header, (size_t)size, why));
	for (size_t i = 0; i < n; i++) {
		/* alignment is a hole in the file */
		if (sink->size < rows[i].offset) {
			if (ftruncate(sink->out->fd, (off_t)rows[i].offset))
				return kp_fail_errno(why, errno,
						     "cannot extend the output");
			sink->size = rows[i].offset;
		}
		KP_TRY(kp_sink_copy(sink, &job->inputs[i].src, why));
	}
	return KPACK_SUCCESS;
}

/* The bundle is spooled, because its hash, which is in the header, needs all of it. */
static kpack_error_t write_compressed(const struct bundling *job, struct kp_sink *sink,
				      struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *bundle = NULL, *made = NULL;
	KP_AUTO(offload_spool) spool;
	struct kp_ccob_form form = job->b->form;
	struct kp_source whole;
	struct kp_span bytes;
	size_t size;

	KP_TRY(offload_spool_open(&spool, why));
	KP_TRY(write_bundle(job, &spool.sink, why));
	whole = offload_spooled(&spool, 0);
	KP_TRY(kp_source_load(&whole, KP_CCOB_MAX, "a bundle to compress", &bundle, why));
	bytes = (struct kp_span){bundle, (size_t)whole.size};
	form.hash = kp_ccob_hash(bytes);
	KP_TRY(kp_ccob_encode(&form, bytes, &made, &size, why));
	if (job->b->verbose)
		report_error(NULL,
			     "compressed %zu bytes to %zu: version %u, zstd level %d",
			     bytes.size, size, form.version, form.level);
	return kp_sink_put(sink, made, size, why);
}

static int write_output(void *arg, size_t number, struct kp_sink *sink)
{
	const struct bundling *job = arg;
	const struct bundler *b = job->b;
	struct kpackx_error why = {0};
	kpack_error_t err;

	if (strcmp(b->type, "o") == 0 && b->host != SIZE_MAX &&
	    offload_is_object(&job->inputs[b->host].src)) {
		/* the host's object, with a section for each target; the host's is one NUL byte */
		static const uint8_t zero;
		KP_AUTO_FREE struct offload_section *sections =
			xcalloc(b->n_targets, sizeof(*sections));

		for (size_t i = 0; i < b->n_targets; i++) {
			sections[i].id = b->targets[i].name;
			sections[i].bytes = i == b->host ? kp_source_memory(&zero, 1)
							 : job->inputs[i].src;
		}
		err = offload_object_add(&job->inputs[b->host].src, sections,
					 b->n_targets, sink, &why);
	} else {
		err = b->compress ? write_compressed(job, sink, &why)
				  : write_bundle(job, sink, &why);
	}
	return err ? report_why(b->outputs.items[number], &why) : 0;
}

int bundler_bundle(const struct bundler *b)
{
	struct bundling job = {.b = b,
			       .inputs = xcalloc(b->inputs.count, sizeof(*job.inputs))};
	struct kpackx_error why = {0};
	size_t opened = 0;
	int status = 0;

	/* all inputs are open before the output is made: a missing one leaves nothing behind */
	for (; opened < b->inputs.count && !status; opened++)
		if (offload_input_open(&job.inputs[opened], b->inputs.items[opened],
				       &why))
			status = report_why(b->inputs.items[opened], &why);
	if (!status)
		status = offload_outputs_write(b->outputs.items, 1, write_output, &job);
	for (size_t i = 0; i < opened; i++)
		offload_input_fini(&job.inputs[i]);
	free(job.inputs);
	return status;
}
