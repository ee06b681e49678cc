/* SPDX-License-Identifier: MIT */
/* Files of databases whose path has other bytes in the output's tree. */
#include <stdlib.h>
#include <unistd.h>
#include "database_clash.h"
#include "core/base/file.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/*
 * Both sides of the files that the output has, too.  Libraries identify files by their
 * neighbours, so those with the same bytes are here as well.
 */
struct sides {
	struct file_tree ours, theirs;
	struct library_found our_found, their_found;
};

static void sides_fini(struct sides *s)
{
	if (s->our_found.objects)
		library_found_fini(&s->our_found);
	if (s->their_found.objects)
		library_found_fini(&s->their_found);
	file_tree_fini(&s->ours);
	file_tree_fini(&s->theirs);
}

/* Whether two files have the same bytes; an unreadable file differs. */
static bool same_files(const char *a, const char *b)
{
	int x = -1, y = -1;
	struct stat st, there;
	bool same = false;

	if (!below_file_open(a, &x, &st, NULL) && !below_file_open(b, &y, &there, NULL)) {
		struct kp_source ours = kp_source_fd(x, 0, (uint64_t)st.st_size);
		struct kp_source theirs = kp_source_fd(y, 0, (uint64_t)there.st_size);

		same = kp_source_same(&ours, &theirs);
	}
	if (x >= 0)
		close(x);
	if (y >= 0)
		close(y);
	return same;
}

static void add_sides(struct sides *s, const struct clash_file *f, const char *to,
		      const struct stat *st)
{
	struct file_tree_item ours = {
		.path = f->path, .disk = (char *)f->disk, .size = f->size};
	struct file_tree_item theirs = {.path = f->path,
					.disk = (char *)to,
					.size = (uint64_t)st->st_size,
					.mode = st->st_mode};

	file_tree_add(&s->ours, &ours);
	file_tree_add(&s->theirs, &theirs);
}

/* Whether F is a whole file: parts of a file are not in the tree. */
static bool is_whole(const struct clash *c, const struct clash_file *f)
{
	return strcmp(f->disk, c->run->scan->entries[f->entry].path) == 0;
}

/* Returns whether any file differs. */
static bool find_different(struct clash *c, struct sides *s)
{
	bool any = false;

	for (size_t i = 0; i < c->n_files; i++) {
		struct clash_file *f = &c->files[i];
		struct stat st;
		char *to;

		if (!is_whole(c, f))
			continue;
		to = xasprintf("%s/%s", c->run->args->output,
			       c->run->scan->entries[f->entry].relative);
		/* a link is replaced, too, and what it leads to disappears from here */
		if (below_stat(to, &st) == 0 && !S_ISDIR(st.st_mode)) {
			f->differs = !same_files(f->disk, to);
			any |= f->differs;
			add_sides(s, f, to, &st);
		}
		free(to);
	}
	return any;
}

/* Faults do not matter here: the file differs anyway. */
static void ignore_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	(void)arg, (void)file, (void)why;
}

static kpack_error_t recognise_files(const struct library_set *set,
				     struct file_tree *tree, struct library_found *found,
				     struct kpackx_error *why)
{
	size_t faults = 0;

	file_tree_sort(tree);
	return library_find_all(set, tree, ignore_fault, NULL, found, &faults, why);
}

/* Whether A is a rebuild of B, for the same GPUs. */
static bool is_rebuilt(const struct library_object *a, const struct library_object *b)
{
	if (!b || a->n_arches != b->n_arches ||
	    strcmp(a->arches[0], KP_ARCH_GENERIC) == 0)
		return false;
	for (size_t i = 0; i < a->n_arches; i++)
		if (strcmp(a->arches[i], b->arches[i]) != 0)
			return false;
	return true;
}

static void report_different(struct clash *c, const struct sides *s)
{
	for (size_t i = 0; i < s->ours.count; i++) {
		const struct library_object *a = s->our_found.objects[i],
					    *b = s->their_found.objects[i];
		struct clash_file *f = clash_find(c, kp_span_str(s->ours.items[i].path));

		if (a && f && f->differs && !is_rebuilt(a, b))
			clash_report(c, f,
				     &(struct clash_other){
					     .path = s->theirs.items[i].disk,
					     .arch = b ? b->arches[0] : "damaged",
					     .is_file = true,
				     });
	}
}

kpack_error_t clash_tree(struct clash *c, struct kpackx_error *why)
{
	const struct library_set *set = &c->run->args->libraries;
	struct sides s = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (find_different(c, &s)) {
		err = recognise_files(set, &s.ours, &s.our_found, why);
		if (!err)
			err = recognise_files(set, &s.theirs, &s.their_found, why);
		if (!err)
			report_different(c, &s);
	}
	sides_fini(&s);
	return err;
}
