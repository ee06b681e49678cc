/* SPDX-License-Identifier: MIT */
#include "fs/mount/inotify.h"
#include "tests/unit/unit.h"
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
