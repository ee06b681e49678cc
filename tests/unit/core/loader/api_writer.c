/* SPDX-License-Identifier: MIT */
/* The public writer.  tests/integration/writer.bats has its archives read by others. */
#include "core/rocm_kpack/kpackx.h"
#include "tests/unit/archive_builder.h"
#include "core/base/file.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "tests/unit/unit.h"
#include "tests/unit/count_names.h"

static char dir[] = "/tmp/kpackx-writer-XXXXXX";
static struct kpackx_error why;

/* The archive that most tests write, in the directory. */
static char path[64];

static int make_dir(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a.kpack", dir);
	return 0;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

static kpackx_writer_t opened_writer(const struct kpackx_writer_options *options)
{
	kpackx_writer_t w = NULL;

	if (kpackx_writer_open(path, options, &w, &why))
		fail_msg("%s", why.text);
	return w;
}

static void add_ok(kpackx_writer_t w, struct kpackx_object o)
{
	if (kpackx_writer_add(w, &o, &why))
		fail_msg("%s", why.text);
}

static void finish_ok(kpackx_writer_t w)
{
	if (kpackx_writer_finish(w, &why))
		fail_msg("%s", why.text);
}

/* Return the bytes of FROM and remove the file. */
static struct ab taken(const char *from)
{
	struct ab a = {0};
	struct stat st;
	int fd;

	assert_int_equal(kp_file_open(from, &fd, &st, &why), KPACK_SUCCESS);
	a.size = (size_t)st.st_size;
	a.bytes = malloc(a.size + 1);
	assert_non_null(a.bytes);
	assert_int_equal(kp_file_pread(fd, 0, a.bytes, a.size, &why), KPACK_SUCCESS);
	close(fd);
	unlink(from);
	return a;
}

static struct ab finished(kpackx_writer_t w)
{
	finish_ok(w);
	assert_int_equal(count_names(dir), 1);
	return taken(path);
}

static void assert_same(struct ab *a, struct ab *b)
{
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->bytes, b->bytes, a->size);
	ab_free(a);
	ab_free(b);
}

static struct kpack_archive *read_back(const struct ab *a)
{
	struct kpack_archive *archive = NULL;
	size_t counted;

	if (ab_open(a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	(void)kp_archive_faults(archive, &(size_t){0}, &counted);
	assert_int_equal(counted, 0);
	return archive;
}

/* --- reading back --------------------------------------------------------------------- */

/* How each is spelled is in the golden case target-ids. */
TEST(architectures_are_spelled_one_way)
{
	static const struct kpackx_object again = {.binary = "k",
						   .arch = "gfx90a:xnack-"};
	kpackx_writer_t w = opened_writer(NULL);
	struct ab a;

	add_ok(w, (struct kpackx_object){.binary = "k", .arch = "gfx90a-xnack-"});
	assert_int_equal(kpackx_writer_add(w, &again, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	/* what is no target ID stays as it is */
	add_ok(w, (struct kpackx_object){.binary = "k", .arch = "gfx90a"});
	add_ok(w, (struct kpackx_object){.binary = "k", .arch = "GFX90A"});
	a = finished(w);
	ab_free(&a);
}

/* --- refusals ------------------------------------------------------------------------- */

static char long_name[KP_NAME_MAX + 2], longest_name[KP_NAME_MAX + 1];

static const struct kpackx_object good = {
	.binary = "lib/x.so#0", .arch = "gfx942", .data = "bytes", .size = 5};

/* TEXT must be in the message; every message begins with binary and arch. */
struct refusal {
	struct kpackx_object object;
	const char *text;
};

static void assert_one_line(const char *text)
{
	for (const char *p = text; *p; p++)
		assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void assert_refused(kpackx_writer_t w, const struct kpackx_object *o,
			   const char *text)
{
	why = (struct kpackx_error){0};
	assert_int_equal(kpackx_writer_add(w, o, &why), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(why.code, KPACK_ERROR_INVALID_ARGUMENT);
	assert_has(why.text, text);
	assert_one_line(why.text);
	assert_int_equal(kpackx_writer_add(w, o, NULL), KPACK_ERROR_INVALID_ARGUMENT);
}

#define OBJECT(...) ((struct kpackx_object){__VA_ARGS__})
#define NAMED(...) OBJECT(.binary = "k", .arch = "gfx906", __VA_ARGS__)
#define TEXTS(n, ...)                                                                    \
	NAMED(.n_texts = (n), .texts = (const struct kpackx_text[]){__VA_ARGS__})

/* All are refused, and leave no trace in the archive. */
TEST(improper_objects_are_refused)
{
	const struct refusal refusals[] = {
		{OBJECT(.arch = "gfx906"), "? gfx906: binary is NULL"},
		{OBJECT(.binary = "k"), "k ?: arch is NULL"},
		{OBJECT(.binary = "", .arch = "gfx906"), " gfx906: binary is empty"},
		{OBJECT(.binary = "k", .arch = ""), "k : arch is empty"},
		{OBJECT(.binary = "a\n", .arch = "x"), "a\\012 x: binary is not UTF-8"},
		{OBJECT(.binary = "k", .arch = "\xff"), "arch is not UTF-8"},
		{OBJECT(.binary = "k", .arch = "a/b"), "'/'"},
		{OBJECT(.binary = long_name, .arch = "x"), "binary is longer than 4096"},
		{OBJECT(.binary = "k", .arch = long_name), "arch is longer than 4096"},
		{NAMED(.type = ""), "k gfx906: type is empty"},
		{NAMED(.type = "\x1b"), "type is not UTF-8"},
		{NAMED(.type = "a/b"), "'/'"},
		{NAMED(.type = long_name), "type is longer"},
		{NAMED(.size = 1), "data is NULL for 1 bytes"},
		{NAMED(.data = "", .size = (size_t)KP_OBJECT_MAX + 1),
		 "limit 4294967296"},
		{NAMED(.data = "", .size = (size_t)KP_OBJECT_MAX + 1, .chunk = 1),
		 "chunk 1 is outside 4096..67108864"},
		{NAMED(.path = ""), "path"},
		{NAMED(.path = "/etc/passwd"), "path /etc/passwd is not a path inside"},
		{NAMED(.path = "a/../b"), "path a/../b is"},
		{NAMED(.path = "a\nb"), "path a\\012b is"},
		{NAMED(.target = ""), "target is empty"},
		{NAMED(.target = "\xc3"), "target is not UTF-8"},
		{NAMED(.mode = 0100644), "mode 0100644"},
		{NAMED(.chunk = 4095), "chunk 4095"},
		{NAMED(.chunk = (64 << 20) + 1), "chunk 67108865"},
		{NAMED(.n_texts = 1), "texts is NULL for 1"},
		{TEXTS(1, {NULL, "x"}), "name of a text is NULL"},
		{TEXTS(1, {"", "x"}), "name of a text is empty"},
		{TEXTS(1, {"a\n", "x"}), "name of a text is not UTF-8"},
		{TEXTS(1, {"a", NULL}), "a is NULL"},
		{TEXTS(1, {"a", "\xff"}), "a is not UTF-8"},
		{TEXTS(1, {"a", long_name}), "a is longer"},
		{TEXTS(1, {"path", "x"}), "path: a field of the format"},
		{TEXTS(1, {"target", "x"}), "target: a field of the format"},
		{TEXTS(1, {"xxh3", "x"}), "xxh3: a field of the format"},
		{TEXTS(1, {"mode", "x"}), "mode: a field of the format"},
		{TEXTS(2, {"a", "x"}, {"chunk", "x"}), "chunk: a field of the format"},
		{TEXTS(3, {"b", "x"}, {"a", "y"}, {"b", "z"}), "b was given twice"},
		{NAMED(.reserved = {0, 0, 0, 1}), "reserved"},
		{good, "lib/x.so#0 gfx942: was added before"},
	};

	for (int plain = 0; plain < 2; plain++) {
		struct kpackx_writer_options options = {.uncompressed = plain};
		kpackx_writer_t w = opened_writer(&options);
		struct ab tried, not_tried;

		add_ok(w, good);
		assert_int_equal(kpackx_writer_add(w, NULL, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		for (size_t i = 0; i < COUNT(refusals); i++)
			assert_refused(w, &refusals[i].object, refusals[i].text);
		add_ok(w, OBJECT(.binary = longest_name, .arch = "gfx906"));
		tried = finished(w);
		w = opened_writer(&options);
		add_ok(w, good);
		add_ok(w, OBJECT(.binary = longest_name, .arch = "gfx906"));
		not_tried = finished(w);
		assert_same(&tried, &not_tried);
	}
	assert_int_equal(kpackx_writer_add(NULL, &good, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_writer_finish(NULL, &why), KPACK_ERROR_INVALID_ARGUMENT);
	kpackx_writer_abort(NULL);
}

/*
 * As many different architectures and types as an archive can have, which then opens; one
 * more is refused.
 */
TEST(architectures_and_types_have_a_limit)
{
	kpackx_writer_t w =
		opened_writer(&(struct kpackx_writer_options){.uncompressed = 1});
	struct kpack_archive *archive;
	char arch[32];
	struct ab a;

	for (unsigned i = 0; i < KP_STRINGS_MAX - 1; i++) { /* and the type "hsaco" */
		snprintf(arch, sizeof(arch), "gfx%u", i);
		add_ok(w, OBJECT(.binary = "a", .arch = arch));
	}
	assert_refused(w, &OBJECT(.binary = "a", .arch = "gfx99999"), "");
	assert_refused(w, &OBJECT(.binary = "b", .arch = "gfx0", .type = "co"), "");
	add_ok(w,
	       OBJECT(.binary = "b", .arch = "gfx0", .type = "gfx1")); /* no new name */
	a = finished(w);
	archive = read_back(&a);
	assert_int_equal(kp_archive_entry_count(archive), KP_STRINGS_MAX);
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(improper_options_are_refused)
{
	const struct kpackx_writer_options options[] = {
		{.level = -1},        {.level = 23},      {.group = "a\n"},
		{.group = long_name}, {.family = "\xff"}, {.family = long_name},
		{.reserved = {1}},    {.shared = 2},
	};
	kpackx_writer_t w = NULL;

	for (size_t i = 0; i < COUNT(options); i++) {
		assert_int_equal(kpackx_writer_open(path, &options[i], &w, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_has(why.text, path);
	}
	assert_int_equal(kpackx_writer_open(NULL, NULL, &w, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_writer_open(path, NULL, NULL, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_null(w);
	assert_int_equal(count_names(dir), 0);
}

/* --- output paths --------------------------------------------------------------------- */

TEST(improper_places_are_refused)
{
	static char long_file[260] = "/", long_dir[260] = "/";
	static const struct {
		const char *name; /* below the directory */
		kpack_error_t code;
		const char *text;
	} places[] = {
		{"", KPACK_ERROR_INVALID_ARGUMENT, "names no file"},
		{"/", KPACK_ERROR_IO_ERROR, "is a directory"},
		{"/.", KPACK_ERROR_IO_ERROR, "is a directory"},
		{"/a.kpack/", KPACK_ERROR_INVALID_ARGUMENT, "names no file"},
		{"/none/a.kpack", KPACK_ERROR_FILE_NOT_FOUND, "/none"},
		{"/fifo", KPACK_ERROR_IO_ERROR, "is no regular file"},
		{"/fifo/a", KPACK_ERROR_IO_ERROR, "Not a directory"},
		{"/a\n.kpack", KPACK_ERROR_INVALID_ARGUMENT, "group"},
		{"/no\n/a", KPACK_ERROR_FILE_NOT_FOUND, "/no\\012: cannot open"},
		{long_file, KPACK_ERROR_IO_ERROR, "File name too long"},
		{long_dir, KPACK_ERROR_FILE_NOT_FOUND, "No such file or directory"},
	};
	char at[400];

	memset(long_file + 1, 'n', 256); /* refused before anything is written */
	memset(long_dir + 1, 'n', 200);
	strcpy(long_dir + 201, "/a");
	snprintf(at, sizeof(at), "%s/fifo", dir);
	assert_int_equal(mkfifo(at, 0600), 0);
	for (size_t i = 0; i < COUNT(places); i++) {
		kpackx_writer_t w = NULL;

		snprintf(at, sizeof(at), "%s%s", *places[i].name ? dir : "",
			 places[i].name);
		assert_int_equal(kpackx_writer_open(at, NULL, &w, &why), places[i].code);
		assert_has(why.text, places[i].text);
		assert_one_line(why.text);
		assert_null(w);
	}
	snprintf(at, sizeof(at), "%s/fifo", dir);
	unlink(at);
	assert_int_equal(count_names(dir), 0);
}

static void assert_group(const char *name, const char *group)
{
	struct kpack_archive *archive;
	kpackx_writer_t w = NULL;
	struct ab a;

	assert_int_equal(kpackx_writer_open(name, NULL, &w, &why), KPACK_SUCCESS);
	finish_ok(w);
	assert_int_equal(count_names(dir), 1);
	a = taken(name);
	archive = read_back(&a);
	assert_true(kp_span_is(kp_archive_group(archive), group));
	kp_archive_close(archive);
	ab_free(&a);
}

TEST(the_group_is_the_name_of_the_file)
{
	int cwd = open(".", O_RDONLY | O_DIRECTORY);

	assert_int_equal(chdir(dir), 0);
	assert_group("torch_gfx942.kpack", "torch_gfx942");
	assert_group("./plain", "plain");
	assert_group("a.kpack.old", "a.kpack.old");
	assert_group(".kpack", ".kpack");
	assert_group(path, "a");
	assert_int_equal(fchdir(cwd), 0);
	close(cwd);
}

/* --- what remains --------------------------------------------------------------------- */

static struct ab earlier_archive(void)
{
	kpackx_writer_t w = opened_writer(NULL);
	struct stat st;
	struct ab a;

	add_ok(w, good);
	finish_ok(w);
	assert_int_equal(stat(path, &st), 0);
	a = (struct ab){.bytes = malloc(1), .size = (size_t)st.st_ino};
	return a;
}

static void assert_stays(struct ab *earlier)
{
	struct stat st;

	assert_int_equal(count_names(dir), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, earlier->size);
	unlink(path);
	ab_free(earlier);
}

TEST(an_aborted_archive_leaves_what_was)
{
	struct ab earlier = earlier_archive();
	kpackx_writer_t w = opened_writer(NULL);

	add_ok(w, good);
	kpackx_writer_abort(w);
	assert_stays(&earlier);
	kpackx_writer_abort(opened_writer(NULL));
	assert_int_equal(count_names(dir), 0);
}

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Add N objects or until one fails; returns the first error. */
static kpack_error_t add_many(kpackx_writer_t w, uint8_t *data, size_t size, int n)
{
	kpack_error_t err = KPACK_SUCCESS;
	char key[16];

	for (int i = 0; i < n && !err; i++) {
		data[0] = (uint8_t)i;
		snprintf(key, sizeof(key), "%d", i);
		err = kpackx_writer_add(w,
					&OBJECT(.binary = key, .arch = "gfx906",
						.data = data, .size = size),
					&why);
	}
	return err;
}

TEST(a_full_disk_loses_the_archive)
{
	static const rlim_t limits[] = {0, 100, 3 << 20};
	uint8_t *data = ab_data(1 << 20, 3);

	for (size_t i = 0; i < COUNT(limits); i++) {
		struct ab earlier = earlier_archive();
		kpackx_writer_t w = opened_writer(NULL);
		kpack_error_t err;

		limit_files(limits[i]);
		err = add_many(w, data, 1 << 20, 8);
		if (err) {
			assert_int_equal(err, KPACK_ERROR_IO_ERROR);
			assert_int_equal(why.sys_errno, EFBIG);
			assert_has(why.text, " gfx906: ");
			limit_files(RLIM_INFINITY);
			/* there is room again, but the writer stays failed */
			why = (struct kpackx_error){0};
			assert_int_equal(kpackx_writer_add(w, &good, &why),
					 KPACK_ERROR_IO_ERROR);
			assert_has(why.text, " gfx906: ");
		}
		assert_int_equal(kpackx_writer_finish(w, &why), KPACK_ERROR_IO_ERROR);
		limit_files(RLIM_INFINITY);
		assert_int_equal(why.sys_errno, EFBIG);
		assert_stays(&earlier);
	}
	free(data);
}

/* --- repeatable output ---------------------------------------------------------------- */

static struct ab written_with_texts(const struct kpackx_text *texts, size_t n)
{
	kpackx_writer_t w = opened_writer(NULL);

	add_ok(w, NAMED(.texts = texts, .n_texts = n));
	return finished(w);
}

TEST(the_order_of_texts_does_not_matter)
{
	const struct kpackx_text one[] = {{"a", "1"}, {"b", "2"}, {"c", "3"}},
				 other[] = {{"c", "3"}, {"a", "1"}, {"b", "2"}};
	struct ab a = written_with_texts(one, 3), b = written_with_texts(other, 3);

	assert_same(&a, &b);
}

static int begin_suite(void **state)
{
	memset(long_name, 'n', sizeof(long_name) - 1);
	memset(longest_name, 'n', sizeof(longest_name) - 1);
	return make_dir(state);
}

SUITE(begin_suite, remove_dir);
