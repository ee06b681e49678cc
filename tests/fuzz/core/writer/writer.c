/* SPDX-License-Identifier: MIT */
/*
 * Bytes choose options and objects for the public writer.  Each object it accepts is in
 * the finished archive exactly once: the archive opens without a fault and every object
 * is as given.
 */
#include "core/archive/entry.h"
#include "core/rocm_kpack/kpackx.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OBJECTS = 32, TEXTS = 4, NAME = 40 };

/* The rest of the input; reads past its end give zeros. */
struct input {
	const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* One of the usual names, arbitrary bytes, or NULL. */
static const char *name(struct input *in, const char *const usual[8], char buf[NAME])
{
	uint8_t choice = byte(in);
	size_t n = choice % NAME;

	if (choice < 0xc0)
		return usual[choice % 8];
	for (size_t i = 0; i < n; i++)
		buf[i] = (char)byte(in);
	buf[n] = 0;
	return buf;
}

struct object {
	struct kpackx_object o;
	struct kpackx_text texts[TEXTS];
	char binary[NAME], arch[NAME], type[NAME], path[NAME], target[NAME];
	char names[TEXTS][NAME], values[TEXTS][NAME];
	uint8_t *data;
	bool added;
};

static void choose_data(struct input *in, struct object *x)
{
	uint8_t kind = byte(in), fill = byte(in);

	x->o.size = (size_t)kind * (kind & 1 ? 1 : 97);
	x->data = malloc(x->o.size + 1);
	assert(x->data);
	memset(x->data, fill, x->o.size);
	for (size_t i = 0; i < x->o.size && i < (fill & 15); i++)
		x->data[i] = byte(in);
	x->o.data = kind == 254 ? NULL : x->data;
}

static void choose_texts(struct input *in, struct object *x)
{
	static const char *const names[8] = {"a",    "b",    "library", "role",
					     "path", "mode", "",        NULL};

	x->o.n_texts = byte(in) % (TEXTS + 1);
	x->o.texts = x->texts;
	for (size_t i = 0; i < x->o.n_texts; i++) {
		x->texts[i].name = name(in, names, x->names[i]);
		x->texts[i].text = name(in, names, x->values[i]);
	}
}

static void choose(struct input *in, struct object *x)
{
	static const char *const binaries[8] = {"a#0", "a#1", "a",  "lib/b.so#0",
						"b",   "",    NULL, "c"};
	static const char *const arches[8] = {"gfx942",
					      "gfx90a:xnack+",
					      "gfx90a:xnack+:sramecc-",
					      "gfx1100",
					      "gfx90a-xnack+",
					      "generic",
					      "GFX942",
					      NULL};
	static const char *const types[8] = {NULL, "co", "dat", "hsaco",
					     NULL, "",   "a/b", "ptx"};
	static const char *const paths[8] = {NULL, NULL, NULL, "a/b",
					     "c",  "/d", "..", ""};
	static const char *const targets[8] = {NULL, "hip-x", NULL, "",
					       "t",  NULL,    NULL, NULL};
	static const uint32_t chunks[8] = {0, 0, 4096, 4096, 8192, 1, 64 << 20, 0};

	x->o.binary = name(in, binaries, x->binary);
	x->o.arch = name(in, arches, x->arch);
	x->o.type = name(in, types, x->type);
	x->o.path = name(in, paths, x->path);
	x->o.target = name(in, targets, x->target);
	x->o.chunk = chunks[byte(in) % 8];
	x->o.mode = (uint32_t)byte(in) << (byte(in) % 8);
	choose_texts(in, x);
	choose_data(in, x);
}

static void add(kpackx_writer_t w, struct object *x)
{
	struct kpackx_error why = {0};
	kpack_error_t err = kpackx_writer_add(w, &x->o, &why);

	assert(err == KPACK_SUCCESS ||
	       (err == KPACK_ERROR_INVALID_ARGUMENT && why.code == err && why.text[0]));
	x->added = !err;
	/* adding it a second time always fails */
	assert(kpackx_writer_add(w, &x->o, NULL) == KPACK_ERROR_INVALID_ARGUMENT);
}

/* Ignores the spelling of the architecture: the objects of a key differ anyway. */
static bool is_entry(const struct kpack_archive *a, size_t entry, const struct object *x)
{
	struct kp_entry_info info;
	struct kp_meta meta;
	uint8_t *back;
	bool same;

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	if (!kp_span_is(info.key, x->o.binary) || info.size != x->o.size ||
	    meta.mode != x->o.mode ||
	    !kp_span_is(info.type, x->o.type ? x->o.type : "hsaco") ||
	    !kp_span_is(meta.path, x->o.path ? x->o.path : "") ||
	    !kp_span_is(meta.target, x->o.target ? x->o.target : ""))
		return false;
	back = malloc((size_t)info.size + 1);
	assert(back && meta.has_xxh3);
	assert(kp_entry_read(a, entry, back, NULL) == KPACK_SUCCESS);
	same = x->o.size == 0 || memcmp(back, x->o.data, x->o.size) == 0;
	free(back);
	return same;
}

static void check(const char *path, const struct object *objects, size_t n)
{
	struct kpack_archive *a = NULL;
	size_t kept, counted, added = 0;

	assert(kp_archive_open(path, &a, NULL) == KPACK_SUCCESS);
	(void)kp_archive_faults(a, &kept, &counted);
	assert(counted == 0);
	for (size_t i = 0; i < n; i++) {
		size_t entry = 0;

		if (!objects[i].added)
			continue;
		added++;
		while (entry < kp_archive_entry_count(a) &&
		       !is_entry(a, entry, &objects[i]))
			entry++;
		assert(entry < kp_archive_entry_count(a));
	}
	assert(kp_archive_entry_count(a) == added);
	kp_archive_close(a);
}

/* The one file that all runs write; in memory if /dev/shm exists. */
static const char *place(void)
{
	static char path[64];
	char dir[] = "/dev/shm/fuzz-writer-XXXXXX", tmp[] = "/tmp/fuzz-writer-XXXXXX";
	char *made;

	if (path[0])
		return path;
	made = mkdtemp(dir);
	made = made ? made : mkdtemp(tmp);
	assert(made);
	snprintf(path, sizeof(path), "%s/a.kpack", made);
	return path;
}

static void end(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s", place());
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct object objects[OBJECTS];
	struct input in = {data, data + size};
	struct kpackx_writer_options options = {0};
	kpackx_writer_t w = NULL;
	static bool begun;
	size_t n = 0;

	if (!begun)
		atexit(end);
	begun = true;
	options.uncompressed = byte(&in) & 1;
	options.level = 1 + byte(&in) % 3;
	assert(kpackx_writer_open(place(), &options, &w, NULL) == KPACK_SUCCESS);
	memset(objects, 0, sizeof(objects));
	for (; n < OBJECTS && in.at < in.end; n++) {
		choose(&in, &objects[n]);
		add(w, &objects[n]);
	}
	assert(kpackx_writer_finish(w, NULL) == KPACK_SUCCESS);
	check(place(), objects, n);
	for (size_t i = 0; i < n; i++)
		free(objects[i].data);
	return 0;
}
