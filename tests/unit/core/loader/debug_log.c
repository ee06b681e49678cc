/* SPDX-License-Identifier: MIT */
/* The output of ROCM_KPACK_DEBUG: every line of a load, in order. */
#include "tests/unit/loading.h"
#include "core/base/bounds.h"
#include "tests/unit/unit.h"

/* The reason reported for the damaged archive, in zstd's words. */
static char damage[240];

static void ask_for_damage(void)
{
	static const char entry[] = "lib/x.so#0 gfx900: "; /* the lines print it anyway */
	struct kpackx_error why = {0};
	kpack_archive_t a;
	void *data;
	size_t size;

	assert_int_equal(kpack_open(in_dir("damaged.kpack"), &a), KPACK_SUCCESS);
	assert_int_equal(kpackx_get_kernel(a, "lib/x.so#0", "gfx900", &data, &size, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	kpack_close(a);
	assert_int_equal(strncmp(why.text, entry, strlen(entry)), 0);
	snprintf(damage, sizeof(damage), "%s", why.text + strlen(entry));
}

/* An archive whose entries for indices 0 and 1 have ordinals past the last frame. */
static void write_refusing(void)
{
	struct ab a = ab_new_zstd();

	ab_frame(&a, "0123456789", 10);
	ab_toc(&a,
	       "{'gfx_arches': ['gfx900'], 'compression_scheme': 'zstd-per-kernel', "
	       "'zstd_offset': 64, 'zstd_size': %zu, 'toc': {"
	       "'lib/x.so': {'gfx900': {'ordinal': 7, 'original_size': 10}}, "
	       "'lib/x.so#1': {'gfx900': {'ordinal': 1, 'original_size': 10}}, "
	       "'lib/x.so#11': {'gfx900': {'ordinal': 0, 'original_size': 10}}}}",
	       a.size - 64);
	write_file("refusing.kpack", a.bytes, a.size);
	ab_free(&a);
}

static int make_archives(void **state)
{
	char path[128];

	make_dir(state);
	write_archive("a.kpack", "'gfx900', 'gfx906'",
		      OBJECTS({"lib/x.so#0", "gfx900", "FIRST"},
			      {"lib/x.so#1", "gfx906", "OTHER"}));
	write_archive("other.kpack", "'gfx1100', 'gfx1101'",
		      OBJECTS({"lib/x.so#0", "gfx1100", "OTHER"}));
	write_archive("none.kpack", "", (const struct object[]){{0}});
	write_archive("damaged.kpack", "'gfx900'",
		      OBJECTS({"lib/x.so#0", "gfx900", NULL}));
	write_archive("x_gfx90a.kpack", "'gfx90a'",
		      OBJECTS({"lib/x.so#3", "gfx90a", "GFX90A"}));
	write_refusing();
	write_file("text.kpack", "no archive, only text", 21);
	snprintf(path, sizeof(path), "%s/many", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	write_archive("many/1.kpack", "'gfx900'",
		      OBJECTS({"lib/y.so#0", "gfx900", "WITHOUT"}));
	write_archive("many/2.kpack", "'gfx900'",
		      OBJECTS({"lib/x.so#0", "gfx900", "SECOND"}));
	ask_for_damage();
	snprintf(path, sizeof(path), "%s/empty", dir);
	return mkdir(path, 0755);
}

/* Capture standard error during one look-up through a new cache. */
static void read_stderr(const struct request *r, char *out, size_t cap)
{
	int saved = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	ssize_t n;

	assert_true(saved >= 0 && fd >= 0);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	check_alone(r);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = pread(fd, out, cap - 1, 0);
	assert_true(n >= 0);
	out[n] = '\0';
	close(fd);
}

/*
 * Check the lines of a load with SETTINGS, as "PATH=x".  LINES are without "kpack: ", and what all begin with;
 * +NAME stands for "search path: NAME" and the candidate that it gives, % for the directory, ^ for the damage.
 */
static void expect_log(const char *settings, const struct request *r, const char *lines)
{
	char got[8192], want[8192] = "", archs[64] = "", name[64] = "", value[512] = "";
	size_t n = 0;

	for (const char *c = settings; *c; c++) {
		if (!name[0] && *c == '=') {
			snprintf(name, sizeof(name), "ROCM_KPACK_%.*s",
				 (int)(c - settings), settings);
			continue;
		}
		if (name[0])
			text_add(value, sizeof(value), *c == '%' ? "%s" : "%.1s",
				 *c == '%' ? dir : c);
	}
	for (const char *c = r->archs; *c; c++)
		text_add(archs, sizeof(archs), *c == ' ' ? ", " : "%.1s", c);
	text_add(want, sizeof(want),
		 "kpack: cache created%s%s\nkpack: load: %s/fake.so: for %s\n",
		 name[0] ? ", " : "", name, dir, archs);
	if (r->code != KPACK_ERROR_NOT_IMPLEMENTED)
		text_add(want, sizeof(want), "kpack: key: %s#%u\n", r->name, r->index);
	for (; *lines; lines += n + 1) {
		n = strcspn(lines, "\n");
		text_add(want, sizeof(want), "kpack: ");
		if (lines[0] == '+') {
			text_add(want, sizeof(want),
				 "search path: %.*s\nkpack: candidate: %s/%.*s\n",
				 (int)n - 1, lines + 1, dir, (int)n - 1, lines + 1);
			continue;
		}
		for (size_t i = 0; i <= n; i++)
			text_add(want, sizeof(want),
				 strchr("%^", lines[i]) ? "%s" : "%.1s",
				 lines[i] == '%'   ? dir
				 : lines[i] == '^' ? damage
						   : lines + i);
	}
	if (name[0])
		setenv(name, value, 1);
	setenv("ROCM_KPACK_DEBUG", "1", 1);
	read_stderr(r, got, sizeof(got));
	unsetenv("ROCM_KPACK_DEBUG");
	if (name[0])
		unsetenv(name);
	assert_string_equal(got, want);
}

#define WITHOUT ": lib/x.so#0 gfx900: declared, but without that key\n"

static const struct {
	const char *settings;
	struct request request;
	const char *lines;
} logs[] = {
	{"",
	 {"lib/x.so", 0, "gfx906 gfx900", "a.kpack", "FIRST", 0},
	 "+a.kpack\n"
	 "looked into: %/a.kpack: declares gfx900 gfx906\n"
	 "passed over: %/a.kpack: lib/x.so#0 gfx906: declared, but without that key\n"
	 "chosen: %/a.kpack: lib/x.so#0 gfx900: 5 bytes\n"},
	/* every candidate with the reason */
	{"",
	 {"lib/x.so", 0, "gfx900",
	  "no.kpack text.kpack none.kpack other.kpack damaged.kpack a.kpack", "FIRST", 0},
	 "+no.kpack\n+text.kpack\n+none.kpack\n+other.kpack\n+damaged.kpack\n+a.kpack\n"
	 "passed over: %/no.kpack: cannot open: No such file or directory\n"
	 "passed over: %/text.kpack: header: not a kpack archive (magic 6e6f2061)\n"
	 "passed over: %/none.kpack: not for these archs: declares nothing\n"
	 "passed over: %/other.kpack: not for these archs: declares gfx1100 gfx1101\n"
	 "looked into: %/damaged.kpack: declares gfx900\n"
	 "passed over: %/damaged.kpack: lib/x.so#0 gfx900: "
	 "KPACK_ERROR_DECOMPRESSION_FAILED: ^\n"
	 "looked into: %/a.kpack: declares gfx900 gfx906\n"
	 "chosen: %/a.kpack: lib/x.so#0 gfx900: 5 bytes\n"},
	/* an entry that was refused is there, and has a reason */
	{"",
	 {"lib/x.so", 1, "gfx900", "refusing.kpack", NO_KERNEL},
	 "+refusing.kpack\n"
	 "looked into: %/refusing.kpack: declares gfx900\n"
	 "passed over: %/refusing.kpack: lib/x.so#1 gfx900: refused: toc: lib/x.so#1 "
	 "gfx900: ordinal 1 of 1 frames\n"
	 "KPACK_ERROR_KERNEL_NOT_FOUND: %/refusing.kpack: refused: toc: lib/x.so#1 "
	 "gfx900: ordinal 1 of 1 frames\n"},
	{"",
	 {"lib/x.so", 0, "gfx900 gfx900", "a.kpack ./no/../a.kpack", "FIRST", 0},
	 "+a.kpack\n"
	 "search path: ./no/../a.kpack\n"
	 "candidate: %/a.kpack: named before\n"
	 "looked into: %/a.kpack: declares gfx900 gfx906\n"
	 "chosen: %/a.kpack: lib/x.so#0 gfx900: 5 bytes\n"},
	/* placeholders, as they are filled */
	{"",
	 {"lib/x.so", 3, "amdgcn-amd-amdhsa--gfx90a:xnack-", "x_@GFXARCH@.kpack",
	  "GFX90A", 0},
	 "search path: x_@GFXARCH@.kpack\n"
	 "candidate: %/x_gfx90a:xnack-.kpack\n"
	 "candidate: %/x_gfx90a.kpack\n"
	 "passed over: %/x_gfx90a:xnack-.kpack: cannot open: No such file or directory\n"
	 "looked into: %/x_gfx90a.kpack: declares gfx90a\n"
	 "chosen: %/x_gfx90a.kpack: lib/x.so#3 gfx90a: 6 bytes\n"},
	/* lists, and what they replace */
	{"PATH=%/empty:%/many:/no/such",
	 {"lib/x.so", 0, "gfx900", "a.kpack", "SECOND", 0},
	 "search path: a.kpack: replaced by ROCM_KPACK_PATH\n"
	 "ROCM_KPACK_PATH: %/empty\n"
	 "candidate: %/empty\n"
	 "passed over: %/empty: a directory without *.kpack\n"
	 "ROCM_KPACK_PATH: %/many\n"
	 "candidate: %/many/1.kpack\n"
	 "candidate: %/many/2.kpack\n"
	 "ROCM_KPACK_PATH: /no/such\n"
	 "candidate: /no/such\n"
	 "looked into: %/many/1.kpack: declares gfx900\n"
	 "passed over: %/many/1.kpack" WITHOUT
	 "looked into: %/many/2.kpack: declares gfx900\n"
	 "chosen: %/many/2.kpack: lib/x.so#0 gfx900: 6 bytes\n"},
	{"PATH_PREFIX=%/many",
	 {"lib/x.so", 0, "gfx900", "a.kpack", "SECOND", 0},
	 "ROCM_KPACK_PATH_PREFIX: %/many\n"
	 "candidate: %/many/1.kpack\n"
	 "candidate: %/many/2.kpack\n"
	 "+a.kpack\n"
	 "looked into: %/many/1.kpack: declares gfx900\n"
	 "passed over: %/many/1.kpack" WITHOUT
	 "looked into: %/many/2.kpack: declares gfx900\n"
	 "chosen: %/many/2.kpack: lib/x.so#0 gfx900: 6 bytes\n"},
	/* failures */
	{"",
	 {"lib/x.so", 0, "gfx9999", "other.kpack", NO_ARCH},
	 "+other.kpack\n"
	 "passed over: %/other.kpack: not for these archs: declares gfx1100 gfx1101\n"
	 "KPACK_ERROR_ARCH_NOT_FOUND: no archive offers gfx9999; %/other.kpack offers "
	 "gfx1100 gfx1101\n"},
	{"STRICT=1",
	 {"lib/x.so", 0, "gfx900", "damaged.kpack a.kpack", DAMAGE},
	 "+damaged.kpack\n+a.kpack\n"
	 "looked into: %/damaged.kpack: declares gfx900\n"
	 "damaged, final by ROCM_KPACK_STRICT: %/damaged.kpack: lib/x.so#0 gfx900: "
	 "KPACK_ERROR_DECOMPRESSION_FAILED: ^\n"
	 "KPACK_ERROR_DECOMPRESSION_FAILED: %/damaged.kpack: lib/x.so#0 gfx900: ^\n"},
	{"DISABLE=1",
	 {"lib/x.so", 0, "gfx900", "a.kpack", NULL, KPACK_ERROR_NOT_IMPLEMENTED},
	 "KPACK_ERROR_NOT_IMPLEMENTED: switched off by ROCM_KPACK_DISABLE\n"},
	/* names cannot confuse a terminal */
	{"PATH=/no/\033[2Jx\ny",
	 {"k", 0, "gfx900", "no\\such", NO_ARCHIVE},
	 "search path: no\\134such: replaced by ROCM_KPACK_PATH\n"
	 "ROCM_KPACK_PATH: /no/\\033[2Jx\\012y\n"
	 "candidate: /no/\\033[2Jx\\012y\n"
	 "passed over: /no/\\033[2Jx\\012y: cannot open: No such file or directory\n"
	 "KPACK_ERROR_ARCHIVE_NOT_FOUND: no archive to look for k#0 in; no file "
	 "/no/\\033[2Jx\\012y\n"},
};

TEST(every_step_is_logged)
{
	for (size_t i = 0; i < COUNT(logs); i++)
		expect_log(logs[i].settings, &logs[i].request, logs[i].lines);
}

TEST(entries_that_were_refused_are_named)
{
	struct request r = {"lib/x.so", 1, "gfx900", "refusing.kpack", NO_KERNEL};

	check_text(&r,
		   "@/refusing.kpack: refused: toc: lib/x.so#1 gfx900: ordinal 1 of 1 "
		   "frames");
	r.index = 0; /* stored without an index */
	check_text(&r, "@/refusing.kpack: refused: toc: lib/x.so gfx900: ordinal 7 of 1 "
		       "frames");
	r.index = 2;
	check_text(&r, "no lib/x.so#2 for gfx900; @/refusing.kpack offers gfx900");
	/* another archive has the entry; or damage elsewhere is reported instead */
	r = (struct request){"lib/x.so", 0, "gfx900", "refusing.kpack a.kpack",
			     "FIRST",    0};
	check_alone(&r);
	r = (struct request){"lib/x.so", 0, "gfx900", "refusing.kpack damaged.kpack",
			     DAMAGE};
	check_alone(&r);
}

TEST(search_paths_that_are_too_long_are_logged)
{
	char arch[KP_NAME_MAX], text[3 * KP_NAME_MAX];
	const char *archs[] = {arch};
	struct marker m = marker_of("lib/x.so", "@GFXARCH@.kpack");
	int saved = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	kpack_cache_t cache;
	void *data = NULL;
	size_t size;
	ssize_t n;

	memset(arch, 'a', sizeof(arch) - 1);
	arch[sizeof(arch) - 1] = '\0';
	setenv("ROCM_KPACK_DEBUG", "1", 1);
	dup2(fd, STDERR_FILENO);
	cache = new_cache();
	assert_int_equal(kpack_load_code_object(cache, m.at, in_dir("fake.so"), 0, archs,
						1, &data, &size),
			 KPACK_ERROR_ARCHIVE_NOT_FOUND);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	assert_has(text, "\nkpack: passed over: @GFXARCH@.kpack: search path: "
			 "more than 4096 bytes\n");
	close(fd);
	kpack_cache_destroy(cache);
	unsetenv("ROCM_KPACK_DEBUG");
	marker_free(&m);
}

TEST(nothing_is_logged_unless_asked)
{
	static const char *const off[] = {"0", "", "0yes"};
	static const struct request r = {"lib/x.so", 0, "gfx9999",
					 "damaged.kpack a.kpack no.kpack", NO_ARCH};
	char text[256];

	read_stderr(&r, text, sizeof(text));
	assert_string_equal(text, "");
	for (size_t i = 0; i < COUNT(off); i++) {
		setenv("ROCM_KPACK_DEBUG", off[i], 1);
		read_stderr(&r, text, sizeof(text));
		assert_string_equal(text, "");
	}
	setenv("ROCM_KPACK_DEBUG", "yes", 1);
	read_stderr(&r, text, sizeof(text));
	assert_int_equal(strncmp(text, "kpack: cache created\n", 21), 0);
	unsetenv("ROCM_KPACK_DEBUG");
}

/* A line is never longer than PIPE_BUF, and always ends with a line feed. */
TEST(long_lines_are_cut)
{
	static char list[9000], text[60000];
	static const struct request r = {"lib/x.so", 0, "gfx900", "a.kpack", NO_ARCHIVE};

	memset(list, '\n', sizeof(list) - 1);
	setenv("ROCM_KPACK_PATH", list, 1);
	setenv("ROCM_KPACK_DEBUG", "1", 1);
	read_stderr(&r, text, sizeof(text));
	unsetenv("ROCM_KPACK_DEBUG");
	unsetenv("ROCM_KPACK_PATH");
	for (char *line = text, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		assert_true(end - line < 4096);
		assert_int_equal(strncmp(line, "kpack: ", 7), 0);
	}
}

/* A closed standard error is ignored silently. */
TEST(a_closed_stderr_is_no_failure)
{
	int saved = dup(STDERR_FILENO);
	kpack_cache_t cache;

	setenv("ROCM_KPACK_DEBUG", "1", 1);
	close(STDERR_FILENO);
	cache = new_cache();
	check(cache, &(struct request){"lib/x.so", 0, "gfx900", "a.kpack", "FIRST", 0});
	kpack_cache_destroy(cache);
	dup2(saved, STDERR_FILENO);
	close(saved);
	unsetenv("ROCM_KPACK_DEBUG");
}

SUITE(make_archives, remove_dir);
