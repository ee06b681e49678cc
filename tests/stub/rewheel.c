/* SPDX-License-Identifier: MIT */
/*
 * Read a wheel and rewrite it with the calls that splitting uses: rewheel [-t THREADS]
 * [-l LEVEL] [-c] WHEEL TREE OUT.whl.  Everything is unpacked to TREE and checked;
 * members are added from there, or copied unchanged (-c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "packer/wheel/file/dist_info.h"
#include "packer/wheel/file/record_check.h"
#include "packer/wheel/file/out.h"
#include "packer/wheel/file/unpack.h"

static struct kpackx_error why;
static unsigned threads = 1;
static int level = WHEEL_LEVEL_DEFAULT;
static bool copies;

static void check(kpack_error_t err)
{
	if (!err)
		return;
	fprintf(stderr, "rewheel: %s\n", why.text);
	exit(1);
}

static void add_member(struct wheel_out *out, const struct wheel_in *in, size_t i,
		       const uint8_t digest[32], const char *tree)
{
	size_t count;
	const struct wheel_member *m = &wheel_in_members(in, &count)[i];
	char *file;

	if (copies) {
		check(wheel_out_add_copy(out, m->path, in, i, digest, &why));
		return;
	}
	if (asprintf(&file, "%s/%s", tree, m->path) < 0)
		exit(1);
	check(wheel_out_add_file(out, m->path, m->mode, file, &why));
	free(file);
}

static void write_wheel(const struct wheel_in *in, const struct dist_info *info,
			uint8_t (*digests)[32], const char *tree, const char *path)
{
	char *name = strrchr(path, '/') + 1, *dir = strndup(path, name - 1 - path);
	struct wheel_out_options options = {
		.dir = dir, .name = name, .threads = threads, .level = level};
	struct wheel_out *out;
	char *record = dist_info_path(info, "RECORD");
	size_t count;
	const struct wheel_member *members = wheel_in_members(in, &count);

	check(wheel_out_new(&options, &out, &why));
	for (size_t i = 0; i < count; i++)
		if (!members[i].directory && strcmp(members[i].path, record) != 0)
			add_member(out, in, i, digests[i], tree);
	check(wheel_out_finish(out, info->dir, &why));
	check(wheel_out_publish(out, &why));
	wheel_out_close(out);
	free(record);
	free(dir);
}

static void rewrite(const char *wheel, const char *tree, const char *path)
{
	struct wheel_in *in;
	struct wheel_reader *reader;
	struct wheel_name name;
	struct dist_info info;
	struct record record;
	struct wheel_unpack how = {.dir = tree, .threads = threads};
	const char *file = strrchr(wheel, '/');
	size_t count;

	check(wheel_name_parse(file ? file + 1 : wheel, &name, &why));
	check(wheel_in_open(wheel, &in, &why));
	check(wheel_reader_new(in, &reader, &why));
	check(dist_info_read(in, reader, &name, &info, &why));
	check(record_check(in, reader, info.dir, &record, &why));
	wheel_in_members(in, &count);
	how.digests = calloc(count + 1, sizeof(*how.digests));
	check(wheel_unpack(in, &record, &how, &why));
	write_wheel(in, &info, how.digests, tree, path);
	free(how.digests);
	record_fini(&record);
	dist_info_fini(&info);
	wheel_reader_free(reader);
	wheel_in_close(in);
}

int main(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:l:c")) >= 0) {
		if (c == 't')
			threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'l')
			level = (int)strtol(optarg, NULL, 10);
		else if (c == 'c')
			copies = true;
		else
			return 2;
	}
	if (argc - optind != 3 || !strchr(argv[optind + 2], '/'))
		return 2;
	rewrite(argv[optind], argv[optind + 1], argv[optind + 2]);
	return 0;
}
