/* SPDX-License-Identifier: MIT */
#include "mount_places.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/shell_word.h"
#include "packer/cli/xalloc.h"

void mounts_add(struct mounts *m, const char *path, enum mounts_kind kind)
{
	xgrow(&m->paths, m->n_paths, &m->paths_cap, sizeof(*m->paths));
	m->paths[m->n_paths++] = (struct mounts_path){xstrdup(path), kind};
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	free(texts);
}

void mounts_fini(struct mounts *m)
{
	for (size_t i = 0; i < m->n_paths; i++)
		free(m->paths[i].path);
	free(m->paths);
	free_texts(m->places, m->n_places);
	free_texts(m->overlays, m->n_overlays);
	*m = (struct mounts){0};
}

/* --- order --------------------------------------------------------------------------- */

/*
 * A slash sorts before every other character, so that a directory's content follows it.
 */
static int rank_of(char c)
{
	return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

static int cmp_path(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return rank_of(*a) - rank_of(*b);
}

static int by_path(const void *a, const void *b)
{
	const struct mounts_path *x = a, *y = b;
	int c = cmp_path(x->path, y->path);

	return c ? c : (int)x->kind - (int)y->kind;
}

/* Whether A and B are both in the directory that is their first N bytes. */
static bool is_beside(const char *a, const char *b, size_t n)
{
	return strncmp(a, b, n) == 0 && a[n] == '/' && !strchr(a + n + 1, '/');
}

/* Whether the directory of paths[AT] is among the paths before it. */
static bool has_parent(const struct mounts *m, size_t at)
{
	const char *path = m->paths[at].path;
	size_t n = kp_path_directory(path).size;

	while (n && at-- > 0) {
		const char *other = m->paths[at].path;

		if (strncmp(other, path, n) == 0 && other[n] == '\0')
			return m->paths[at].kind != MOUNTS_PACKED;
		/* its neighbour was kept, so the directory exists */
		if (m->paths[at].kind == MOUNTS_PACKED && is_beside(other, path, n))
			return true;
		if (strncmp(other, path, n) != 0 || other[n] != '/')
			return false;
	}
	return n == 0;
}

/* Keep each path once, and packed ones only where their directory exists. */
static void tidy_paths(struct mounts *m)
{
	size_t kept = 0;

	qsort(m->paths, m->n_paths, sizeof(*m->paths), by_path);
	for (size_t i = 0; i < m->n_paths; i++) {
		struct mounts_path p = m->paths[i];
		bool twice = kept && strcmp(m->paths[kept - 1].path, p.path) == 0;

		m->paths[kept] = p;
		if (twice || (p.kind == MOUNTS_PACKED && !has_parent(m, kept)))
			free(p.path);
		else
			kept++;
	}
	m->n_paths = kept;
}

/* --- deciding ------------------------------------------------------------------------ */

/* Returns the number of the first path after those below paths[AT]. */
static size_t end_of(const struct mounts *m, size_t at)
{
	size_t end = at + 1;

	while (end < m->n_paths && kp_path_below(m->paths[end].path, m->paths[at].path))
		end++;
	return end;
}

static bool has_packed(const struct mounts *m, size_t first, size_t end)
{
	while (first < end && m->paths[first].kind != MOUNTS_PACKED)
		first++;
	return first < end;
}

/* Whether a mount would hide anything that must stay visible. */
static bool has_kept(const struct mounts *m, size_t first, size_t end)
{
	for (; first < end; first++)
		if (m->paths[first].kind == MOUNTS_KEPT && end_of(m, first) == first + 1)
			return true;
	return false;
}

static bool has_text(char *const *texts, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(texts[i], text) == 0)
			return true;
	return false;
}

/* Add TEXT, which is on the heap and becomes the list's. */
static void append_text(char ***texts, size_t *n, char *text)
{
	*texts = xrealloc(*texts, (*n + 1) * sizeof(char *));
	(*texts)[(*n)++] = text;
}

/*
 * Whether paths[AT] is a library's directory: it holds packed files, or directories of
 * GPUs, which loaders look up from the directory above.
 */
static bool is_library_dir(const struct mounts *m, size_t at, size_t end)
{
	for (size_t i = at + 1; i < end; i = end_of(m, i))
		if (m->paths[i].kind == MOUNTS_PACKED ||
		    strstr(strrchr(m->paths[i].path, '/'), "gfx"))
			return true;
	return false;
}

/*
 * Everything below paths[AT] is packed: mount where a library's files begin, and leave
 * room above.
 */
static void add_places(struct mounts *m, size_t at)
{
	size_t end = end_of(m, at);

	if (!has_packed(m, at, end))
		return;
	if (is_library_dir(m, at, end)) {
		append_text(&m->places, &m->n_places, xstrdup(m->paths[at].path));
		return;
	}
	for (size_t i = at + 1; i < end; i = end_of(m, i))
		add_places(m, i);
}

/*
 * Add an overlay at the directory of PATH, and no higher, so that no other files become
 * read-only.
 */
static void add_overlay(struct mounts *m, const char *path)
{
	char *dir = xstrndup(path, kp_path_directory(path).size);

	if (has_text(m->overlays, m->n_overlays, dir))
		free(dir);
	else
		append_text(&m->overlays, &m->n_overlays, dir);
}

/* Decide for the paths of one directory. */
static void visit_dir(struct mounts *m, size_t first, size_t end)
{
	size_t next;

	for (size_t i = first; i < end; i = next) {
		next = end_of(m, i);
		if (m->paths[i].kind == MOUNTS_PACKED)
			add_overlay(m, m->paths[i].path);
		else if (!has_packed(m, i, next))
			continue;
		else if (has_kept(m, i + 1, next))
			visit_dir(m, i + 1, next);
		else
			add_places(m, i);
	}
}

/* Whether PLACE is below an overlay, which shows everything there. */
static bool is_covered(const struct mounts *m, const char *place)
{
	for (size_t i = 0; i < m->n_overlays; i++) {
		const char *dir = m->overlays[i];

		if (*dir ? kp_path_below(place, dir) != NULL : *place != '\0')
			return true;
	}
	return false;
}

/* Remove the TEXTS that an overlay covers.  All are checked before any is freed. */
static void drop_covered(const struct mounts *m, char **texts, size_t *n)
{
	bool *covered = xcalloc(*n, sizeof(*covered));
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++)
		covered[i] = is_covered(m, texts[i]);
	for (size_t i = 0; i < *n; i++) {
		if (covered[i])
			free(texts[i]);
		else
			texts[kept++] = texts[i];
	}
	*n = kept;
	free(covered);
}

void mounts_decide(struct mounts *m)
{
	if (m->n_paths == 0)
		return;
	tidy_paths(m);
	visit_dir(m, 0, m->n_paths);
	drop_covered(m, m->places, &m->n_places);
	drop_covered(m, m->overlays, &m->n_overlays);
}

/* --- the command --------------------------------------------------------------------- */

/* Text that is written to a stream: the command, or one word of it. */
struct text {
	FILE *f;
	char *text;
	size_t size;
};

static void begin_text(struct text *t)
{
	t->f = xmemstream(&t->text, &t->size);
}

/* Returns what was written, on the heap. */
static char *end_text(struct text *t)
{
	fclose(t->f);
	return t->text;
}

/*
 * Write ROOT and BELOW, joined by a slash, without an empty one; characters in ESCAPE get
 * a backslash.
 */
static void put_path(FILE *f, const char *root, const char *below, const char *escape)
{
	const char *parts[] = {root, below};
	bool begun = false;

	for (size_t i = 0; i < 2; i++) {
		if (!*parts[i])
			continue;
		if (begun && strcmp(root, "/") != 0)
			fputc('/', f);
		begun = true;
		for (const char *p = parts[i]; *p; p++) {
			if (strchr(escape, *p))
				fputc('\\', f);
			fputc(*p, f);
		}
	}
}

/* Write the word W, a path or an option with paths in it, to OUT, after a space. */
static void end_word(struct text *w, FILE *out)
{
	char *text = end_text(w), *quoted = shell_word(text);

	fprintf(out, " %s", quoted);
	free(text);
	free(quoted);
}

static void put_word(FILE *out, const char *root, const char *below)
{
	struct text w;

	begin_text(&w);
	put_path(w.f, root, below, "");
	end_word(&w, out);
}

/* Commas in a path are escaped, because they separate options. */
static void put_place(FILE *out, const struct mounts_names *names, const char *place)
{
	struct text w;

	fputs("kpackfs -o", out);
	begin_text(&w);
	fputs("subdir=", w.f);
	put_path(w.f, names->prefix, place, ",\\");
	end_word(&w, out);
	put_word(out, names->archives, "");
	put_word(out, names->root, place);
}

static void put_overlay(FILE *out, const struct mounts_names *names, const char *mount,
			const char *dir)
{
	static const char special[] = ",:\\";
	struct text w;

	fputs("mount -t overlay overlay -o", out);
	begin_text(&w);
	fputs("ro,lowerdir=", w.f);
	put_path(w.f, names->root, dir, special);
	fputc(':', w.f);
	put_path(w.f, mount, names->prefix, special);
	if (*dir)
		fputc('/', w.f);
	put_path(w.f, dir, "", special);
	end_word(&w, out);
	put_word(out, names->root, dir);
}

static void put_overlays(FILE *out, const struct mounts *m,
			 const struct mounts_names *names)
{
	char *mount = xasprintf("/run/kpackfs/%s", names->group);

	fputs("mkdir -p", out);
	put_word(out, mount, "");
	fputs(" && kpackfs", out);
	/* the mount's directory toc/ does not belong to the tree */
	if (has_text(m->overlays, m->n_overlays, "") && !*names->prefix)
		fputs(" -o subdir=.", out);
	put_word(out, names->archives, "");
	put_word(out, mount, "");
	for (size_t i = 0; i < m->n_overlays; i++) {
		fputs(" && ", out);
		put_overlay(out, names, mount, m->overlays[i]);
	}
	free(mount);
}

char *mounts_command(const struct mounts *m, const struct mounts_names *names)
{
	struct text command;

	if (m->n_places + m->n_overlays == 0)
		return NULL;
	begin_text(&command);
	for (size_t i = 0; i < m->n_places; i++) {
		fputs(i ? " && " : "", command.f);
		put_place(command.f, names, m->places[i]);
	}
	if (m->n_places && m->n_overlays)
		fputs(" && ", command.f);
	if (m->n_overlays)
		put_overlays(command.f, m, names);
	return end_text(&command);
}
