/* SPDX-License-Identifier: MIT */
#include "object.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "elf_object.h"
#include "objcopy.h"
#include "packer/cli/xalloc.h"

#define MAGIC "__CLANG_OFFLOAD_BUNDLE__"

/* ---- temporary files ---- */

/* Temporary files for llvm-objcopy; scratch_fini removes them. */
struct scratch {
	char **names;
	size_t n;
};

/* The name of a new temporary file with the bytes of SRC; NULL after a message. */
static const char *scratch_add(const struct bundler *b, struct scratch *s,
			       const struct kp_source *src)
{
	struct kpackx_error why = {0};

	s->names = xrealloc(s->names, (s->n + 1) * sizeof(*s->names));
	if (bundler_temporary(src, &s->names[s->n], &why)) {
		bundler_fail(b, &why);
		return NULL;
	}
	return s->names[s->n++];
}

static void scratch_fini(struct scratch *s)
{
	for (size_t i = 0; i < s->n; i++) {
		below_unlink(s->names[i]);
		free(s->names[i]);
	}
	free(s->names);
}

/*
 * Copy the file NAME, which the program wrote, to SINK; MODE (or NULL) gets its
 * permissions.
 */
static int take_result(const struct bundler *b, const char *name, struct kp_sink *sink,
		       mode_t *mode)
{
	struct kpackx_error why = {0};
	struct kp_source src;
	struct stat st;
	int fd;

	if (below_file_open_nofollow(name, &fd, &st, &why))
		return bundler_fail_file(b, name, &why);
	src = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	if (kp_sink_copy(sink, &src, &why)) {
		close(fd);
		return bundler_fail(b, &why);
	}
	close(fd);
	if (mode)
		*mode = st.st_mode & 0777;
	return 0;
}

static const struct kp_source empty = {.fd = -1};

static int run_objcopy(const struct bundler *b, const char *program,
		       const struct objcopy *c)
{
	return objcopy_run(program, c)
		       ? 0
		       : llvm_error(b->tool, "'llvm-objcopy' tool failed");
}

/* ---- adding sections ---- */

/*
 * The bytes of entry I: one NUL byte for the host, whose code is the object itself; else
 * IN.
 */
static struct kp_source mark_or(const struct bundler *b, size_t i,
				const struct bundler_input *in)
{
	static const uint8_t zero;

	return i == b->host ? kp_source_memory(&zero, 1) : in->src;
}

/* Room for a name that leads to one of our descriptors. */
enum { OPEN_NAME_SIZE = 48 };

/*
 * A name by which llvm-objcopy opens the file at FD, whatever has its PATH by now.  What
 * -### prints has the path.
 */
static const char *open_name(const struct bundler *b, const char *path, int fd,
			     char out[OPEN_NAME_SIZE])
{
	snprintf(out, OPEN_NAME_SIZE, "/proc/%ld/fd/%d", (long)getpid(), fd);
	return b->print_commands || below_access(out, F_OK) < 0 ? path : out;
}

/* A name by which another program can open input I; NULL after a message. */
static const char *input_name(const struct bundler *b, struct scratch *s, size_t i,
			      const struct bundler_input *in, char out[OPEN_NAME_SIZE])
{
	if (in->regular || (in->fd >= 0 && in->src.size == 0))
		return open_name(b, b->inputs[i], in->fd, out);
	return scratch_add(b, s, &in->src);
}

static int add_sections(const struct bundler *b, const struct bundler_input *inputs,
			struct objcopy *c, struct scratch *s)
{
	for (size_t i = 0; i < b->n_targets; i++) {
		struct kp_source src = mark_or(b, i, &inputs[i]);
		char open[OPEN_NAME_SIZE];
		const char *file = i == b->host ? scratch_add(b, s, &src)
						: input_name(b, s, i, &inputs[i], open);

		if (!file)
			return 1;
		objcopy_print_word(c, "--add-section=" MAGIC "%s=%s", b->targets[i].name,
				   file);
		objcopy_print_word(c, "--set-section-flags=" MAGIC "%s=readonly,exclude",
				   b->targets[i].name);
	}
	return 0;
}

static int add_by_objcopy(const struct bundler *b, const char *program,
			  const struct bundler_input *inputs, struct bundler_output *out,
			  struct objcopy *c, struct scratch *s)
{
	const char *host, *result = NULL;
	char open[OPEN_NAME_SIZE];
	int status;

	objcopy_word(c, "llvm-objcopy");
	status = add_sections(b, inputs, c, s);
	host = status ? NULL : input_name(b, s, b->host, &inputs[b->host], open);
	if (host && !b->print_commands)
		result = scratch_add(b, s, &empty);
	if (!host || (!result && !b->print_commands))
		return 1;
	objcopy_word(c, "--");
	objcopy_word(c, host);
	objcopy_word(c, result ? result : out->path);
	if (b->print_commands) {
		objcopy_print_command(program, c);
		return 0;
	}
	status = run_objcopy(b, program, c);
	return status ? status : take_result(b, result, &out->sink, &out->keep);
}

static int add_ourselves(const struct bundler *b, const struct bundler_input *inputs,
			 struct bundler_output *out)
{
	struct bundler_section *rows = xcalloc(b->n_targets, sizeof(*rows));
	struct kpackx_error why = {0};
	kpack_error_t err;

	for (size_t i = 0; i < b->n_targets; i++) {
		rows[i].bytes = mark_or(b, i, &inputs[i]);
		rows[i].name = xasprintf(MAGIC "%s", b->targets[i].name);
	}
	err = bundler_elf_add(&inputs[b->host].src, rows, b->n_targets, &out->sink, &why);
	for (size_t i = 0; i < b->n_targets; i++)
		free(rows[i].name);
	free(rows);
	return err ? bundler_fail_file(b, b->inputs[b->host], &why) : 0;
}

int bundler_object_add(const struct bundler *b, const struct bundler_input *inputs,
		       struct bundler_output *out)
{
	char *program = objcopy_find(b->program);
	struct objcopy c = {0};
	struct scratch s = {0};
	int status;

	status = program || b->print_commands
			 ? add_by_objcopy(b, program, inputs, out, &c, &s)
			 : add_ourselves(b, inputs, out);
	objcopy_fini(&c);
	scratch_fini(&s);
	free(program);
	return status;
}

/* ---- removing sections ---- */

static int strip_by_objcopy(const struct bundler *b, const char *program,
			    const struct kp_source *object, const char *path,
			    struct kp_sink *sink, struct objcopy *c, struct scratch *s)
{
	char open[OPEN_NAME_SIZE];
	const char *from =
		path ? open_name(b, path, object->fd, open) : scratch_add(b, s, object);
	const char *to = from ? scratch_add(b, s, &empty) : NULL;
	int status;

	if (!to)
		return 1;
	objcopy_word(c, "llvm-objcopy");
	objcopy_word(c, "--regex");
	objcopy_word(c, "--remove-section=" MAGIC ".*");
	objcopy_word(c, "--");
	objcopy_word(c, from);
	objcopy_word(c, to);
	if (b->print_commands) {
		objcopy_print_command(program, c);
		return 0;
	}
	status = run_objcopy(b, program, c);
	return status ? status : take_result(b, to, sink, NULL);
}

static int strip_ourselves(const struct bundler *b, const struct kp_source *object,
			   struct kp_sink *sink)
{
	struct kpackx_error why = {0};

	return bundler_elf_remove(object, MAGIC, sink, &why)
		       ? bundler_fail_file(b, b->inputs[0], &why)
		       : 0;
}

int bundler_object_strip(const struct bundler *b, const struct kp_source *object,
			 const char *path, struct kp_sink *sink)
{
	char *program = objcopy_find(b->program);
	struct objcopy c = {0};
	struct scratch s = {0};
	int status;

	status = program || b->print_commands
			 ? strip_by_objcopy(b, program, object, path, sink, &c, &s)
			 : strip_ourselves(b, object, sink);
	objcopy_fini(&c);
	scratch_fini(&s);
	free(program);
	return status;
}
