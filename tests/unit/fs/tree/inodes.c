/* SPDX-License-Identifier: MIT */
/*
 * Swapping editions: what inode numbers mean before and after, and the kernel's
 * notifications.
 */
#include "core/archive/entry.h"
#include "fs/tree/inodes.h"
#include "tests/unit/archive_builder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static struct kpackx_error why;
static const struct kp_choice every_arch;
static struct inodes *in;
static const struct origin *idle[16];
static size_t n_idle;

/* An archive with blobs "aaaa", "bbbb", "cccc" and this TOC. */
static struct origin *archive(const char *toc)
{
	struct ab a = ab_new(64);
	struct origin *o = NULL;
	char path[32];

	ab_put(&a, "aaaabbbbcccc", 12);
	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 4}, "
	       "{'offset': 72, 'size': 4}], 'toc': %s}",
	       toc);
	if (origin_new(ab_memfd(a.bytes, a.size, path), "made.kpack", &o, &why))
		fail_msg("%s", why.text);
	ab_free(&a);
	return o;
}

/*
 * An edition of the archives in the list, which ends with NULL; takes over their
 * references.
 */
static struct edition *edition(bool first, ...)
{
	struct logged_conflicts warned = {0};
	struct edition_options options = {
		.arches = &every_arch,
		.look = {.uid = (uid_t)-1, .gid = (gid_t)-1},
		.warned = &warned,
		.first = first,
	};
	struct tree_taken taken = {inodes_taken, in};
	struct holdings h = {0};
	struct edition *e;
	struct origin *o;
	va_list list;

	va_start(list, first);
	while ((o = va_arg(list, struct origin *)))
		assert_true(holdings_add(&h, o));
	va_end(list);
	e = edition_new(&h, &options, first ? NULL : &taken);
	logged_conflicts_fini(&warned);
	assert_non_null(e);
	return e;
}

static void on_idle(void *user, const struct origin *o)
{
	if (n_idle < COUNT(idle))
		idle[n_idle] = o;
	n_idle++;
}

static void begin(struct edition *e)
{
	n_idle = 0;
	in = inodes_new(e, on_idle, NULL);
	assert_non_null(in);
}

static void end(void)
{
	inodes_free(in);
	in = NULL;
}

/* The number at PATH after the kernel looked up each component; 0: not found. */
static uint64_t look_up(const char *path)
{
	const struct edition *e = inodes_enter(in);
	struct tree_node at = tree_root(e->tree);

	while (*path && at.ino) {
		size_t n = strcspn(path, "/");

		if (!tree_lookup(e->tree, at.index,
				 (struct kp_span){(const uint8_t *)path, n}, &at)) {
			at.ino = 0;
			break;
		}
		inodes_count(in, at.ino);
		path += n + (path[n] == '/');
	}
	inodes_leave(in);
	return at.ino;
}

static void notify(void *user, const struct change *c)
{
	struct inode inode;

	/* The kernel may ask back during a notification, so look-ups must work now. */
	inodes_enter(in);
	assert_true(inodes_find(in, c->ino, &inode));
	inodes_leave(in);
}

static void swap(struct edition *e)
{
	size_t names;

	assert_true(inodes_swap(in, e, notify, NULL, &names));
}

static void expect_bytes(uint64_t ino, const char *bytes)
{
	struct file_content file;
	char buf[5] = "";

	inodes_enter(in);
	assert_int_equal(inodes_file(in, ino, &file), 0);
	inodes_leave(in);
	assert_int_equal(
		kp_entry_read(file.entry.origin->archive, file.entry.entry, buf, &why),
		0);
	assert_string_equal(buf, bytes);
	file_content_unref(&file);
}

#define ENTRY(o) "{'gfx90a': {'type': 'co', 'ordinal': " #o ", 'original_size': 4}}"

/* A file that came back is read from the new archive; the old one is unused. */
TEST(back_of_another_archive)
{
	struct origin *old = archive("{'x': " ENTRY(0) "}");
	uint64_t ino;

	begin(edition(true, origin_ref(old), NULL));
	ino = look_up("toc/x/gfx90a.co");
	swap(edition(false, NULL));
	assert_int_equal(n_idle, 0);
	swap(edition(false, archive("{'x': " ENTRY(0) "}"), NULL));
	expect_bytes(ino, "aaaa");
	assert_int_equal(n_idle, 1);
	assert_ptr_equal(idle[0], old);
	assert_int_equal(old->refs, 1);
	origin_unref(old);
	end();
}

/* A reader in the middle of a listing sees each remaining name once. */
TEST(listing_goes_on)
{
	uint64_t dir, at;

	begin(edition(
		true,
		archive("{'b': " ENTRY(0) ", 'd': " ENTRY(1) ", 'f': " ENTRY(2) "}"),
		NULL));
	dir = look_up("toc");
	at = inodes_encode_position(in, 1); /* before d */
	swap(edition(false,
		     archive("{'a': " ENTRY(0) ", 'b': " ENTRY(0) ", 'c': " ENTRY(
			     0) ", 'd': " ENTRY(1) ", 'f': " ENTRY(2) "}"),
		     NULL));
	assert_int_equal(inodes_position(in, dir, at), 3);
	assert_int_equal(inodes_position(in, dir, inodes_encode_position(in, 4)), 4);
	assert_int_equal(inodes_position(in, dir, 3), 5); /* the end */
	assert_int_equal(inodes_position(in, TREE_ROOT, 1), 1);
	swap(edition(false, archive("{'c': " ENTRY(0) ", 'f': " ENTRY(2) "}"), NULL));
	assert_int_equal(inodes_position(in, dir, at), 1); /* d is gone, so f is next */
	swap(edition(false, NULL));
	assert_int_equal(inodes_position(in, dir, at), 0);
	end();
}
