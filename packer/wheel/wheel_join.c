/* SPDX-License-Identifier: MIT */
#include "wheel_join.h"
#include <unistd.h>
#include "packer/files/below.h"
#include "zip_write.h"

/* An empty member is stored, whatever it was. */
static struct zip_member describe_member(const struct wheel_join *j,
					 const struct wheel_out_member *m)
{
	struct zip_member out = {.path = m->path,
				 .mode = m->mode,
				 .crc = m->crc,
				 .size = m->size,
				 .bytes = kp_source_memory(m->bytes, (size_t)m->size)};

	if (m->from && m->size) {
		size_t count;
		const struct wheel_member *from =
			&wheel_in_members(m->from, &count)[m->member];

		out.method = from->method;
		out.flags = from->flags;
		out.text = from->text;
		out.crc = from->crc;
		out.bytes = wheel_in_bytes(m->from, m->member);
	} else if (m->deflated) {
		out.method = ZIP_DEFLATED;
		out.bytes = kp_source_fd(j->collected, m->packed_at, m->packed);
	}
	return out;
}

static kpack_error_t put_member(struct zip_writer *w, const struct wheel_join *j,
				const struct wheel_out_member *m,
				struct kpackx_error *why)
{
	struct zip_member member = describe_member(j, m);
	kpack_error_t err;
	int fd;

	if (!m->file || m->deflated || !m->size)
		return zip_put_member(w, &member, why);
	KP_TRY(below_file_open_again(m->file, &m->identity, &fd, why));
	member.bytes = kp_source_fd(fd, 0, m->size);
	err = zip_put_member(w, &member, why);
	close(fd);
	return err;
}

kpack_error_t wheel_join_run(const struct wheel_join *j, struct kpackx_error *why)
{
	struct zip_writer w = {.sink = {.out = j->out}, .time = j->time};
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; !err && i < j->count; i++)
		err = put_member(&w, j, &j->members[i], why);
	if (!err)
		err = zip_put_end(&w, why);
	zip_writer_fini(&w);
	return err;
}
