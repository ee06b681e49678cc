/* SPDX-License-Identifier: MIT */
#include "fs/supervisor/inotify.h"
#include "tests/unit/unit.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

/* Run a shell command in the directory. */
static void run(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/kpackfs-watch-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	run("mkdir -p opt/r-6/src opt/r-7/src store other && ln -s r-6 opt/r && "
	    "echo a >opt/r-6/src/a.kpack && echo s >store/s.kpack && "
	    "ln -s ../../../store/s.kpack opt/r-6/src/link.kpack");
	return 0;
}

static int teardown(void **state)
{
	run("rm -rf \"$PWD\"");
	return 0;
}

static const char *path_of(const char *name, char path[512])
{
	snprintf(path, 512, "%s/%s", dir, name);
	return path;
}

/* Make one round over one source and, unless NULL, a linked archive in it. */
static void look(struct watch *w, const char *source, const char *archive)
{
	char path[512];

	watch_begin(w);
	watch_source(w, path_of(source, path));
	if (archive)
		watch_archive(w, path_of(archive, path));
	watch_end(w);
	assert_null(watch_blind(w));
}

/* Whether COMMAND is noticed, after all earlier events have been read. */
static bool notices(struct watch *w, const char *command)
{
	watch_read(w);
	run(command);
	return watch_read(w);
}

#define SOURCE "opt/../opt/./r/src/"
#define ARCHIVE "opt/r/src/link.kpack"

/* Each command runs in a fresh directory. */
TEST(what_matters_is_noticed, setup, teardown)
{
	static const char *const commands[] = {
		"echo b >opt/r-6/src/b.kpack",
		"ln store/s.kpack opt/r/src/b.kpack",
		"ln -s nowhere opt/r/src/b.kpack",
		"rm opt/r/src/a.kpack",
		"mv opt/r/src/a.kpack opt/r/src/x",
		"mv store/s.kpack opt/r/src/b.kpack",
		"echo more >>opt/r/src/a.kpack",
		": >opt/r/src/a.kpack",
		"chmod 600 opt/r/src/a.kpack",
		"touch opt/r/src/a.kpack",
		"chmod 700 opt/r/src",
		"ln -sfn r-7 opt/r",
		"ln -s r-7 opt/n && mv -T opt/n opt/r",
		"mv opt/r-6 opt/r-5",
		"mv opt gone",
		"rm -r opt/r-6/src",
		"echo more >>store/s.kpack",
		"mv store/s.kpack store/x",
		"mv store/s.kpack store/x && mv store/x store/s.kpack",
		"mv store store2",
		"chmod 600 store/s.kpack",
	};

	for (size_t i = 0; i < COUNT(commands); i++) {
		struct watch *w = watch_new();

		assert_non_null(w);
		look(w, SOURCE, ARCHIVE);
		if (!notices(w, commands[i]))
			fail_msg("not noticed: %s", commands[i]);
		assert_false(watch_read(w));
		watch_free(w);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
}

TEST(what_does_not_is_not, setup, teardown)
{
	static const char *const commands[] = {
		"cat opt/r/src/a.kpack >other/x",
		"echo b >opt/r/src/b.kpack.tmp",
		"echo b >opt/r/src/.b.kpack",
		"echo b >opt/r/src/kpack",
		"echo b >opt/x && echo b >opt/r-6/x && echo b >x",
		"mkdir opt/r-8 && mv opt/r-7 opt/r-9",
		"rm -r other",
		"echo b >store/b.kpack",
		"ls -lR . >/dev/null",
	};
	struct watch *w = watch_new();

	assert_non_null(w);
	look(w, SOURCE, ARCHIVE);
	for (size_t i = 0; i < COUNT(commands); i++)
		if (notices(w, commands[i]))
			fail_msg("noticed: %s", commands[i]);
	watch_free(w);
}

TEST(a_round_forgets_what_it_does_not_name, setup, teardown)
{
	struct watch *w = watch_new();

	look(w, "opt/r/src", ARCHIVE);
	run("ln -sfn r-7 opt/r");
	look(w, "opt/r/src", NULL);
	assert_false(
		notices(w, "echo x >>opt/r-6/src/a.kpack; mv store s2; mv opt/r-6 x"));
	assert_true(notices(w, "echo x >>opt/r-7/src/a.kpack"));
	watch_free(w);
}

TEST(what_is_not_there_is_waited_for, setup, teardown)
{
	struct watch *w = watch_new();

	look(w, "none/of/these", NULL);
	assert_false(notices(w, "mkdir of these"));
	assert_true(notices(w, "mkdir none"));
	look(w, "none/of/these", NULL);
	assert_true(notices(w, "mkdir none/of"));
	look(w, "none/of/these", NULL);
	assert_true(notices(w, "echo x >none/of/these"));
	look(w, "none/of/these", NULL);
	assert_true(notices(w, "echo x >>none/of/these"));
	watch_free(w);
}

TEST(links_in_a_circle_end, setup, teardown)
{
	struct watch *w = watch_new();

	run("ln -s c2 c1 && ln -s c1 c2 && ln -s self/self self");
	look(w, "c1/x", NULL);
	assert_true(notices(w, "rm c2"));
	look(w, "self", NULL);
	assert_true(notices(w, "rm self"));
	watch_free(w);
}

TEST(links_may_be_absolute, setup, teardown)
{
	struct watch *w = watch_new();

	run("ln -s \"$PWD/opt\" abs");
	look(w, "abs/r/src", NULL);
	assert_true(notices(w, "ln -sfn r-7 opt/r"));
	look(w, "abs/r/src", NULL);
	assert_true(notices(w, "rm abs"));
	watch_free(w);
}

TEST(of_many_names_all_matter, setup, teardown)
{
	struct watch *w = watch_new();
	char path[512], name[64];

	run("mkdir farm && cd farm && for i in $(seq 100); do echo $i >$i; "
	    "ln -s ../../../farm/$i ../opt/r-6/src/f$i.kpack; done");
	watch_begin(w);
	watch_source(w, path_of("opt/r/src", path));
	for (int i = 1; i <= 100; i++) {
		snprintf(name, sizeof(name), "opt/r/src/f%d.kpack", i);
		watch_archive(w, path_of(name, path));
	}
	watch_end(w);
	assert_null(watch_blind(w));
	assert_true(notices(w, "echo x >>farm/1"));
	assert_true(notices(w, "echo x >>farm/100"));
	watch_free(w);
}

TEST(too_many_events_are_one_that_matters, setup, teardown)
{
	struct watch *w = watch_new();

	look(w, "opt/r/src", NULL);
	watch_read(w);
	/* more events than fs.inotify.max_queued_events, none of them relevant */
	run("m=$(cat /proc/sys/fs/inotify/max_queued_events) && cd opt/r/src && "
	    "perl -e 'for (0..$ARGV[0]) { open my $f, \">\", \"x\".$_ % 2; close $f }' "
	    "$m");
	assert_true(watch_read(w));
	assert_false(watch_read(w));
	watch_free(w);
}

TEST(file_systems_without_events_are_named, setup, teardown)
{
	struct watch *w = watch_new();

	watch_begin(w);
	watch_source(w, "/nowhere/at/all");
	watch_end(w);
	assert_null(watch_blind(w));
	/* without a descriptor every file system counts as blind */
	close(watch_events(w));
	watch_begin(w);
	watch_source(w, dir);
	assert_non_null(watch_blind(w));
	watch_free(w);
}

TEST(the_mount_table_can_be_polled, setup, teardown)
{
	struct watch *w = watch_new();
	struct pollfd p = {.fd = watch_mounts(w), .events = POLLPRI};

	assert_true(p.fd >= 0);
	assert_true(poll(&p, 1, 0) >= 0);
	watch_free(w);
}
