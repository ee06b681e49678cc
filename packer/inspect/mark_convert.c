/* SPDX-License-Identifier: MIT */
/* kpack mark convert: remove the device code from a fat binary and add a marker. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "mark.h"
#include "core/restore/recipe.h"
#include "packer/archives/binary.h"
#include "packer/cli/report.h"
#include "packer/gpu/runtimes.h"

struct convert {
	struct kp_marker marker;
	bool keep;
	const char *in, *out;
};

static const struct option_help options[] = {
	{0, "kernel-name", "NAME", "key of its objects in the archives, without #n",
	 OPTION_TAKE(struct convert, marker, mark_take_name)},
	{0, "search-path", "PATH",
	 "path of an archive, relative to OUT's directory; may be "
	 "repeated",
	 OPTION_TAKE(struct convert, marker, mark_take_path)},
	{0, "keep-device-code", NULL, "leave the device code in the file",
	 OPTION_PLACE(struct convert, keep)},
	{0},
};

const struct command_help mark_convert_help = {
	"mark convert",
	"--kernel-name NAME --search-path PATH... [--keep-device-code] IN OUT",
	"convert one fat binary: device code out, marker in",
	options,
	"A PATH may have @GFXARCH@, which stands for the architecture.  OUT may be IN.",
};

static void print_done(const struct convert *c, uint64_t before, uint64_t after)
{
	char a[24], b[24];

	report_text(c->out);
	printf(": converted, %s became %s\n", report_size(before, a),
	       report_size(after, b));
}

static kpack_error_t write_converted(const struct convert *c, const struct binary *b,
				     struct kp_outfile *out, struct kpackx_error *why)
{
	struct kp_recipe recipe = {0};
	struct kp_recipe_maker maker = {.recipe = &recipe, .fd = b->fd, .size = b->size};
	struct kp_convert_options o = {.recipe = kp_recipe_complete,
				       .recipe_arg = &maker,
				       .keep_device_code = c->keep};
	uint8_t *marker = NULL;
	size_t size = 0;
	kpack_error_t err = kp_marker_write(&c->marker, &marker, &size, why);

	if (!err)
		err = kp_recipe_describe(&b->fat, NULL, NULL,
					 KP_RECIPE_COMPUTE |
						 (c->keep ? KP_RECIPE_IN_FILE : 0),
					 &recipe, why);
	o.marker = (struct kp_span){marker, size};
	if (!err)
		err = kp_convert(b->fd, b->size, &b->fat, &o, out, why);
	free((void *)maker.bytes.data);
	kp_recipe_fini(&recipe);
	free(marker);
	return err;
}

/* Copy an already converted binary to OUT. */
static kpack_error_t copy_binary(const struct binary *b, struct rewrite *r,
				 struct kpackx_error *why)
{
	KP_TRY(kp_outfile_copy(&r->out, 0, b->fd, 0, b->size, why));
	return rewrite_publish(r, why);
}

static kpack_error_t convert_binary(const struct convert *c, const struct binary *b,
				    struct rewrite *r, struct kpackx_error *why)
{
	struct stat st;

	KP_TRY(write_converted(c, b, &r->out, why));
	if (fstat(r->out.fd, &st) < 0)
		return kp_fail_errno(why, errno, "cannot stat");
	KP_TRY(rewrite_publish(r, why));
	print_done(c, b->size, (uint64_t)st.st_size);
	return KPACK_SUCCESS;
}

static kpack_error_t convert_open(const struct convert *c, const struct binary *b,
				  struct kpackx_error *why)
{
	bool converted = b->fat.kind == KP_FATBIN_CONVERTED;
	struct rewrite r;
	kpack_error_t err;

	if (!converted)
		KP_TRY(kp_convert_check(b->fd, b->size, &b->fat, c->keep, why));
	if (converted)
		report_error(c->in, "is converted already; its marker stays");
	if (converted && rewrite_is_same(b, c->out))
		return KPACK_SUCCESS;
	KP_TRY(rewrite_open(&r, b, c->out, why));
	err = converted ? copy_binary(b, &r, why) : convert_binary(c, b, &r, why);
	rewrite_close(&r);
	return err;
}

/* Warn if this system's HIP runtimes refuse what was converted. */
static void warn_of_runtimes(const char *file)
{
	struct hip_runtimes list = {0};

	runtimes_judge(&list, file, false);
	runtimes_fini(&list);
}

static int convert_file(const struct convert *c)
{
	struct kpackx_error why = {0};
	struct binary b;
	kpack_error_t err = binary_open(c->in, &b, &why);

	if (!err)
		err = convert_open(c, &b, &why);
	if (err)
		report_why(c->in, &why);
	else if (b.fat.kind != KP_FATBIN_CONVERTED)
		warn_of_runtimes(c->in);
	binary_close(&b);
	return err ? EXIT_FAULT : EXIT_OK;
}

/* Returns the exit status to leave with, or -1. */
static int read_options(struct convert *c, struct options *o)
{
	int status = options_read(o, c);

	if (status >= 0)
		return status;
	if (!c->marker.kernel_name || c->marker.n_search_paths == 0)
		return options_usage(o->help, "--kernel-name and --search-path are "
					      "needed");
	if (o->argc - optind != 2)
		return options_usage(o->help, "IN and OUT are needed");
	c->in = o->argv[optind];
	c->out = o->argv[optind + 1];
	return -1;
}

int mark_convert(int argc, char **argv)
{
	struct options o = {.help = &mark_convert_help, .argc = argc, .argv = argv};
	struct convert c = {0};
	int status = read_options(&c, &o);

	if (status < 0)
		status = report_finish(convert_file(&c));
	kp_marker_fini(&c.marker);
	return status;
}
