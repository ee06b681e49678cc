/* SPDX-License-Identifier: MIT */
#include "tensile_rows.h"
#include "file_tree.h"
#include "tensile_index.h"
#include "arch_name.h"

/* Parents have at most some 500 KiB; larger merged libraries are not read. */
enum { PARENT_MAX = 16 << 20 };

/* The first GPU of the rows, if no row's GPU agrees with NAMED; else empty. */
static struct kp_span find_other(const struct tensile_index *index, const char *named)
{
	struct kp_span other = {NULL, 0};

	for (size_t i = 0; i < index->n_gpus; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		/* rows may also name a device by a number or a word */
		if (!arch_of_directory(index->gpus[i], arch, NULL))
			continue;
		if (arch_agrees(named, arch))
			return (struct kp_span){NULL, 0};
		if (!other.size)
			other = index->gpus[i];
	}
	return other;
}

static void compare_rows(struct kp_span bytes, const char *named,
			 struct library_object *out)
{
	struct kp_span other = {NULL, 0};
	struct tensile_index index;

	if (tensile_index_read(bytes, &index, NULL) == KPACK_SUCCESS)
		other = find_other(&index, named);
	if (other.size)
		library_warn(out, "named for %s, but its rows are for %.*s: packed as %s",
			     named, (int)other.size, (const char *)other.data, named);
	tensile_index_fini(&index);
}

kpack_error_t tensile_rows_check(const struct library_question *q, const char *named,
				 struct library_object *out, struct kpackx_error *why)
{
	bool zlib = strcmp(content_container(q), "zlib") == 0;
	struct kpackx_error fault;
	struct read_file dat;
	kpack_error_t err;

	if (q->source->size > PARENT_MAX ||
	    (!zlib && strcmp(content_container(q), "msgpack") != 0))
		return KPACK_SUCCESS;
	err = read_file_unpack(q->source, zlib, &dat, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY || err == KPACK_ERROR_IO_ERROR) {
		*why = fault;
		return err;
	}
	if (!err) {
		compare_rows(read_file_span(&dat), named, out);
		read_file_fini(&dat);
	}
	return KPACK_SUCCESS;
}
