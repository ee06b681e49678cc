/* SPDX-License-Identifier: MIT */
/* Write a bundle: text, plain, compressed, or an object with sections. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "object.h"
#include "contents.h"
#include "packer/cli/xalloc.h"
#include "core/format/bundle.h"
#include "core/format/text_bundle.h"
#include "core/base/bounds.h"

struct job {
	const struct bundler *b;
	struct bundler_input *inputs; /* one for each target */
	struct bundler_output *out;
};

/* ---- contents ---- */

static kpack_error_t write_text(const struct job *j, struct kp_sink *sink,
				struct kpackx_error *why)
{
	const struct bundler *b = j->b;
	struct kp_text_entry *entries = xcalloc(b->n_targets, sizeof(*entries));
	kpack_error_t err;

	for (size_t i = 0; i < b->n_targets; i++) {
		entries[i].id = kp_span_str(b->targets[i].name);
		entries[i].contents = j->inputs[i].src;
	}
	err = kp_text_bundle_write(entries, b->n_targets, kp_text_bundle_comment(b->type),
				   sink, why);
	free(entries);
	return err;
}

static kpack_error_t lay_out_rows(const struct job *j, struct kp_bundle_row *rows,
				  struct kpackx_error *why)
{
	uint64_t size;

	for (size_t i = 0; i < j->b->n_targets; i++) {
		rows[i].id = kp_span_str(j->b->targets[i].name);
		rows[i].size = j->inputs[i].src.size;
	}
	if (kp_bundle_place(rows, j->b->n_targets, j->b->align, 0, &size))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "bundle of more than %" PRId64 " bytes", INT64_MAX);
}

static kpack_error_t write_header(const struct kp_bundle_row *rows, size_t n,
				  struct kp_sink *sink, struct kpackx_error *why)
{
	uint64_t size = kp_bundle_header_size(rows, n);
	uint8_t *header = xmalloc((size_t)size);
	kpack_error_t err;

	kp_bundle_header_write(rows, n, header);
	err = kp_sink_put(sink, header, (size_t)size, why);
	free(header);
	return err;
}

/* Fill SINK with zeros up to offset TO.  In a file this is a hole. */
static kpack_error_t advance_sink(struct kp_sink *sink, uint64_t to,
				  struct kpackx_error *why)
{
	if (!sink->out)
		return kp_sink_fill(sink, 0, to - sink->size, why);
	if (ftruncate(sink->out->fd, (off_t)to))
		return kp_fail_errno(why, errno, "cannot extend the output");
	sink->size = to;
	return KPACK_SUCCESS;
}

static kpack_error_t write_rows(const struct job *j, struct kp_bundle_row *rows,
				struct kp_sink *sink, struct kpackx_error *why)
{
	KP_TRY(lay_out_rows(j, rows, why));
	KP_TRY(write_header(rows, j->b->n_targets, sink, why));
	for (size_t i = 0; i < j->b->n_targets; i++) {
		if (sink->size < rows[i].offset)
			KP_TRY(advance_sink(sink, rows[i].offset, why));
		KP_TRY(kp_sink_copy(sink, &j->inputs[i].src, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_binary(const struct job *j, struct kp_sink *sink,
				  struct kpackx_error *why)
{
	struct kp_bundle_row *rows = xcalloc(j->b->n_targets, sizeof(*rows));
	kpack_error_t err = write_rows(j, rows, sink, why);

	free(rows);
	return err;
}

static kpack_error_t write_bundle(const struct job *j, struct kp_sink *sink,
				  struct kpackx_error *why)
{
	return kp_text_bundle_comment(j->b->type) ? write_text(j, sink, why)
						  : write_binary(j, sink, why);
}

/* ---- compression ---- */

/* A bundle in memory. */
struct buffer {
	uint8_t *data;
	size_t size, room;
};

static kpack_error_t append_bytes(void *arg, const void *data, size_t size,
				  struct kpackx_error *why)
{
	struct buffer *buf = arg;
	size_t room = buf->room ? buf->room : 65536;
	uint8_t *grown = buf->data;

	if (size > KP_CCOB_MAX - buf->size)
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "bundle of more than %" PRIu64
			       " bytes: it cannot be compressed",
			       KP_CCOB_MAX);
	while (room - buf->size < size)
		room *= 2;
	if (room != buf->room)
		grown = realloc(buf->data, room);
	if (!grown)
		return kp_fail_memory(why, room, "a bundle");
	buf->data = grown;
	buf->room = room;
	memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	return KPACK_SUCCESS;
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static kpack_error_t encode_bundle(const struct job *j, struct kp_span payload,
				   struct kpackx_error *why)
{
	struct bundler hashed = *j->b;
	double begin = seconds_now();
	kpack_error_t err;
	uint8_t *made;
	size_t size;

	hashed.form.hash = kp_ccob_hash(payload);
	KP_TRY(kp_ccob_encode(&hashed.form, payload, &made, &size, why));
	bundler_print_compressed(&hashed, size, payload.size, seconds_now() - begin);
	err = kp_sink_put(&j->out->sink, made, size, why);
	free(made);
	return err;
}

static kpack_error_t write_compressed(const struct job *j, struct kpackx_error *why)
{
	struct buffer buf = {0};
	struct kp_sink sink = {.write = append_bytes, .arg = &buf};
	kpack_error_t err = write_bundle(j, &sink, why);

	if (!err)
		err = encode_bundle(j, (struct kp_span){buf.data, buf.size}, why);
	free(buf.data);
	return err;
}

/* ---- the job ---- */

/* Whether the entries become sections of the host's object. */
static bool is_object(const struct job *j)
{
	return strcmp(j->b->type, "o") == 0 && j->b->host != SIZE_MAX &&
	       bundler_is_object(&j->inputs[j->b->host].src);
}

static int write_output(const struct job *j)
{
	struct kpackx_error why = {0};
	kpack_error_t err;

	if (is_object(j))
		return bundler_object_add(j->b, j->inputs, j->out);
	err = j->b->compress ? write_compressed(j, &why)
			     : write_bundle(j, &j->out->sink, &why);
	return err ? bundler_fail(j->b, &why) : 0;
}

static int open_inputs(struct job *j)
{
	const struct bundler *b = j->b;
	struct kpackx_error why = {0};

	for (size_t i = 0; i < b->n_inputs; i++)
		if (bundler_input_open(&j->inputs[i], b->inputs[i], &why))
			return bundler_fail_file(b, b->inputs[i], &why);
	if (!bundler_type_known(b->type))
		return llvm_error(b->tool, "'%s': invalid file type specified", b->type);
	if (b->align == 0 && !kp_text_bundle_comment(b->type))
		return llvm_error(b->tool, "for the --bundle-align option: must be at "
					   "least 1, not '0'");
	return 0;
}

static int write_and_publish(struct job *j)
{
	const char *path = j->b->outputs[0];
	struct bundler_outputs outputs = bundler_outputs_new(1);
	struct kpackx_error why = {0};
	int status;

	status = bundler_outputs_add(&outputs, path, &j->out, &why)
			 ? bundler_fail_file(j->b, path, &why)
			 : write_output(j);
	if (!status && bundler_outputs_publish(&outputs, &path, &why))
		status = bundler_fail_file(j->b, path, &why);
	bundler_outputs_close(&outputs);
	return status;
}

int bundler_bundle(const struct bundler *b)
{
	struct job j = {.b = b, .inputs = xcalloc(b->n_inputs, sizeof(*j.inputs))};
	int status;

	for (size_t i = 0; i < b->n_inputs; i++)
		j.inputs[i].fd = -1;
	status = open_inputs(&j);
	if (!status)
		status = write_and_publish(&j);
	for (size_t i = 0; i < b->n_inputs; i++)
		bundler_input_close(&j.inputs[i]);
	free(j.inputs);
	return status;
}
