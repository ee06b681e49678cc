/* SPDX-License-Identifier: MIT */
/*
 * A tree with a policy: what is in it now, compared with its state, which is what the last run of
 * kpack apply left.  Nothing is read but directories: a file is the same if its path, size, time
 * and inode are.  The archives of the tree, and what mounts cover, are left out.
 *
 * A state is /var/lib/kpack/NAME.state, lines of text:
 *
 *	kpack state 4
 *	tree PATH
 *	policy HASH WHEN PACKED MOUNTS
 *	gpus LIST                          the first list of GPUs is number 0
 *	KIND SIZE MTIME INO BEFORE GPUS PATH
 *	end HASH                           of all bytes before
 *
 * Files are sorted by path, bytewise; paths are escaped as kp_text_escape does.  If a state is
 * lost or damaged, the next run looks at all files again, and does not know the earlier changes.
 * The hash is there for what a full disk or an editor leaves, not against anybody: only root writes
 * the file.  A state of another version counts as damaged.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/mountinfo.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "policy.h"

enum { STATE_MAX = 1 << 30 };

static const char first_line[] = "kpack state 4\n";
static const char kinds[STATE_KINDS + 1] = "scrp";

/* --- states -------------------------------------------------------------------------- */

void state_fini(struct state *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		free(s->files[i].path);
	for (size_t i = 0; i < s->n_gpus; i++)
		free(s->gpus[i]);
	free(s->files);
	free(s->gpus);
	free(s->tree);
	*s = (struct state){0};
}

static uint64_t nanoseconds(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

bool state_knows(const struct state *s, const char *path, const struct file_identity *id)
{
	const struct state_file probe = {.path = (char *)path};
	const struct state_file *f = kp_find(s->files, s->n_files, &probe,
					     KP_BY_TEXT(struct state_file, path));

	return f && f->ino == id->ino && f->size == id->size && !f->fresh &&
	       f->mtime == nanoseconds(&id->mtime);
}

kpack_error_t state_parse(struct kp_span data, struct state *out,
			  struct kpackx_error *why)
{
	KP_AUTO_FREE char *text = xstrndup((const char *)data.data, data.size);
	size_t size = strlen(text), end_size = strlen("end \n") + sizeof(policy_hash) - 1;
	char *rest = text + strlen(first_line), *end = text + size, *line;
	policy_hash hash;
	int packed = 0;
	bool fine = size == data.size && size > sizeof(first_line) + end_size &&
		    strncmp(text, first_line, strlen(first_line)) == 0 && *--end == '\n';

	if (fine) {
		*end = '\0';
		end -= end_size - 1;
		policy_hash_of(text, (size_t)(end - text), hash);
		fine = end[-1] == '\n' && strncmp(end, "end ", 4) == 0 &&
		       strcmp(end + 4, hash) == 0;
		end[-1] = '\0';
	}
	if (fine && (line = strsep(&rest, "\n")) && strncmp(line, "tree /", 6) == 0) {
		out->tree = xstrdup(line + 5);
		kp_text_unescape(out->tree);
	}
	fine = fine && out->tree && (line = strsep(&rest, "\n")) &&
	       /* NOLINTNEXTLINE(cert-err34-c): by its hash, this program wrote the file */
	       sscanf(line, "policy %32s %" SCNd64 " %d %" SCNu64, out->policy,
		      &out->when, &packed, &out->n_mounts) == 4;
	out->packed = packed;
	while (fine && (line = strsep(&rest, "\n"))) {
		struct state_file f = {0};
		const char *kind = *line ? strchr(kinds, *line) : NULL;
		int at = 0;

		if (strncmp(line, "gpus ", 5) == 0) { /* it is printed as it is */
			line += 5;
			xgrow(&out->gpus, out->n_gpus, &out->gpus_cap,
			      sizeof(*out->gpus));
			out->gpus[out->n_gpus++] = xstrdup(line);
			fine = !line[strspn(line,
					    "abcdefghijklmnopqrstuvwxyz0123456789:+-,")];
			continue;
		}
		fine = kind &&
		       /* NOLINTNEXTLINE(cert-err34-c): by its hash, this program wrote it */
		       sscanf(line + 1,
			      " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			      "%n",
			      &f.size, &f.mtime, &f.ino, &f.before, &f.gpus, &at) == 5 &&
		       line[1 + at] == ' ';
		if (!fine)
			break;
		line += 2 + at;
		f.kind = (enum state_kind)(kind - kinds);
		kp_text_unescape(line);
		/* what is used without another look is checked here */
		fine = kp_path_inside(line) && f.size <= INT64_MAX &&
		       f.before <= INT64_MAX &&
		       (f.kind == STATE_SEEN ||
			(f.gpus < out->n_gpus && f.before >= f.size)) &&
		       (!out->n_files ||
			strcmp(out->files[out->n_files - 1].path, line) < 0);
		if (!fine)
			break;
		f.path = xstrdup(line);
		xgrow(&out->files, out->n_files, &out->files_cap, sizeof(f));
		out->files[out->n_files++] = f;
	}
	return fine ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "damaged, or not a state of this version");
}

kpack_error_t state_read(const char *path, struct state *out, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *data = NULL;
	struct stat st;
	size_t size;

	if (below_lstat(path, &st) < 0)
		return kp_fail(why, KPACK_ERROR_FILE_NOT_FOUND, "there is none");
	KP_TRY(policy_file_load(path, STATE_MAX, &data, &size, why));
	return state_parse((struct kp_span){data, size}, out, why);
}

/* Write PATH, escaped, and end the line. */
static void put_path(FILE *f, const char *path)
{
	struct kp_span whole = kp_span_str(path);
	KP_AUTO_FREE char *escaped = NULL;

	if (kp_text_plain(whole) < whole.size && !(escaped = kp_text_escape_new(whole)))
		xalloc_fail(0);
	fprintf(f, "%s\n", escaped ? escaped : path);
}

char *state_format(const struct state *s, size_t *size)
{
	policy_hash hash;
	char *text = NULL;
	FILE *f = xmemstream(&text, size);

	fprintf(f, "%stree ", first_line);
	put_path(f, s->tree);
	fprintf(f, "policy %s %" PRId64 " %d %" PRIu64 "\n", s->policy, s->when,
		s->packed, s->n_mounts);
	for (size_t i = 0; i < s->n_gpus; i++)
		fprintf(f, "gpus %s\n", s->gpus[i]);
	for (size_t i = 0; i < s->n_files; i++) {
		const struct state_file *e = &s->files[i];

		fprintf(f,
			"%c %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
			kinds[e->kind], e->size, e->mtime, e->ino, e->before, e->gpus);
		put_path(f, e->path);
	}
	fflush(f);
	policy_hash_of(text, *size, hash);
	fprintf(f, "end %s\n", hash);
	fclose(f);
	return text;
}

bool policy_tree_save(const struct policy_tree *t)
{
	struct kpackx_error why = {0};
	size_t size;
	KP_AUTO_FREE char *data = state_format(&t->state, &size);

	if (!below_file_write(t->state_path, 0644,
			      (struct kp_span){(uint8_t *)data, size}, &why))
		return true;
	report_why(t->state_path, &why);
	return false;
}

/* --- lists of GPUs ------------------------------------------------------------------- */

/*
 * Lists are texts, separated by commas, because the state has them as such and commands take them
 * as such; names are written as kp_target_format does, so that they can be compared.  NULL is an
 * empty list.
 */

/* Step to the next NAME of *LIST.  false: there is none. */
static bool next_gpu(const char **list, struct kp_span *name)
{
	if (!*list || !**list)
		return false;
	*name = (struct kp_span){(const uint8_t *)*list, strcspn(*list, ",")};
	*list += name->size;
	*list += **list == ',';
	return true;
}

static bool has_gpu(const char *list, struct kp_span name)
{
	struct kp_span other;

	while (next_gpu(&list, &other))
		if (kp_span_eq(other, name))
			return true;
	return false;
}

static bool covers_gpus(const char *a, const char *b)
{
	struct kp_span name;

	while (next_gpu(&b, &name))
		if (!has_gpu(a, name))
			return false;
	return true;
}

/* Add the GPUs of MORE that OTHERS does not have to *LIST. */
static void add_gpus(char **list, const char *more, const char *others)
{
	struct kp_span name;

	while (next_gpu(&more, &name)) {
		char *longer;

		if (has_gpu(*list, name) || has_gpu(others, name))
			continue;
		longer = xasprintf("%s%s%.*s", *list ? *list : "", *list ? "," : "",
				   (int)name.size, (const char *)name.data);
		free(*list);
		*list = longer;
	}
}

/* --- opening ------------------------------------------------------------------------- */

char *policy_tree_path(const struct policy_tree *t, const char *relative)
{
	const char *tree = t->policy->tree;

	return xasprintf("%s/%s", strcmp(tree, "/") ? tree : "", relative);
}

bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places)
{
	struct state *s = &t->state;
	const char *topology = places->topology, *last;
	KP_AUTO(kp_choice) choice = {0};
	KP_AUTO(kp_gpus) gpus = {0};
	struct kpackx_error why = {0};
	kpack_error_t err;
	struct stat st;

	*t = (struct policy_tree){.policy = p};
	t->state_path = xasprintf("%s/%s.state", places->states, p->name);
	t->missing = below_stat(p->tree, &st) < 0 && errno == ENOENT;
	if (t->missing) {
		t->arch = xstrdup(p->arch);
		return true;
	}
	if (below_root(p->tree, &why)) {
		report_error(p->name, "%s: %s", p->tree, why.text);
		return false;
	}
	err = state_read(t->state_path, s, &why);
	/* a link that leads to another version of a tree now makes it another tree */
	if (err || strcmp(s->tree, p->tree) != 0) {
		bool none = err == KPACK_ERROR_FILE_NOT_FOUND;

		if (!none)
			report_error(t->state_path,
				     "note: %s: all files are looked at again%s",
				     err ? why.text : "the state is that of another tree",
				     err ? ", and what was changed before is not known "
					   "any more"
					 : "");
		state_fini(s);
		s->tree = xstrdup(p->tree);
		strcpy(s->policy, "-");
		s->forgotten = err && !none;
	}

	/*
	 * The GPUs of the policy; with "auto" also those that an earlier run found: the code of a
	 * GPU that is missing now, because its driver failed or the card was taken out, stays.
	 */
	last = s->n_gpus ? s->gpus[s->n_gpus - 1] : NULL;
	err = kp_choice_add(&choice, p->arch, &why);
	if (!err && choice.find) {
		err = kp_gpus_read(topology, &gpus, &why);
		for (size_t i = 0; i < gpus.faults.kept; i++)
			report_error(NULL, "%s", gpus.faults.items[i].text);
		if (err == KPACK_ERROR_FILE_NOT_FOUND)
			err = KPACK_SUCCESS; /* no driver: no GPU */
		if (!err)
			err = kp_choice_add_found(&choice, &gpus, &why);
	}
	if (!err && choice.all)
		add_gpus(&t->arch, "all", NULL);
	for (size_t i = 0; i < choice.count && !err && !choice.all; i++) {
		char text[KP_TARGET_TEXT_MAX];

		kp_target_format(&choice.gpus[i], text);
		add_gpus(&t->arch, text, NULL);
	}
	if (!err && choice.find) {
		add_gpus(&t->gone, last, t->arch);
		add_gpus(&t->arch, last, NULL);
	}
	if (!err && !t->arch)
		err = kp_fail(&why, KPACK_ERROR_ARCH_NOT_FOUND,
			      "--arch auto: no GPU in %s: name the GPUs, as in --arch "
			      "gfx1100",
			      topology ? topology : KP_TOPOLOGY);
	if (err) {
		report_why(p->name, &why);
		return false;
	}
	t->anew = !last || strcmp(s->policy, p->hash) != 0 ||
		  !covers_gpus(t->arch, last) || !covers_gpus(last, t->arch);
	return true;
}

static void forget_mounts(struct policy_tree *t)
{
	for (size_t i = 0; i < t->n_mounts; i++)
		free(t->mounts[i]);
	t->n_mounts = 0;
}

void policy_tree_fini(struct policy_tree *t)
{
	forget_mounts(t);
	free(t->mounts);
	free(t->state_path);
	free(t->arch);
	free(t->gone);
	state_fini(&t->state);
}

/* --- looking ------------------------------------------------------------------------- */

bool policy_tree_find_mounts(struct policy_tree *t)
{
	const char *tree = t->policy->tree;
	struct kp_mounts table;
	struct kp_mount m;
	bool fine;

	forget_mounts(t);
	errno = 0;
	kp_mounts_open(&table);
	while (kp_mounts_next(&table, &m)) {
		if (!kp_mount_is_kpackfs(&m) ||
		    (strcmp(tree, "/") != 0 &&
		     !kp_path_within(kp_span_str(m.path), tree)))
			continue;
		xgrow(&t->mounts, t->n_mounts, &t->mounts_cap, sizeof(*t->mounts));
		t->mounts[t->n_mounts++] = xstrdup(m.path);
	}
	fine = table.file && feof(table.file);
	if (!fine)
		report_error(tree, "cannot read /proc/self/mountinfo: %s",
			     strerror(errno));
	kp_mounts_close(&table);
	return fine;
}

/* What a mount covers cannot be seen, nor be changed by packages: it is as it was. */
static bool is_covered(const struct policy_tree *t, const char *relative)
{
	KP_AUTO_FREE char *path = t->n_mounts ? policy_tree_path(t, relative) : NULL;

	for (size_t i = 0; i < t->n_mounts; i++)
		if (kp_path_within(kp_span_str(path), t->mounts[i]))
			return true;
	return false;
}

/*
 * OLD of the state and NOW of the tree have one path, or one of them is NULL: make OLD or NOW
 * what the new state has of it, and return that; NULL: nothing.
 *
 *	old   now      before a command (SEEN)       after one (REMOVED, PACKED)
 *	-     new      others brought it             others did meanwhile: forgotten, to be new again
 *	there same     nothing                       nothing
 *	there other    others replaced it            CHANGED, unless it grew: then as above
 *	there gone     others removed it             WORK took it
 *	taken gone     nothing, or its package went  nothing
 */
static struct state_file *settle_file(struct policy_tree *t, struct state_file *old,
				      struct state_file *now, enum state_kind work)
{
	bool was_there = old && (old->kind == STATE_SEEN || old->kind == STATE_CHANGED);
	size_t gpus = t->state.n_gpus - 1;

	/* others removed it, or WORK did; what WORK took stays known until its package goes */
	if (!now) {
		KP_AUTO_FREE char *dir = policy_tree_path(t, old->path);
		struct stat st;
		char *slash;

		if (is_covered(t, old->path) || (!was_there && work != STATE_SEEN))
			return old;
		/*
		 * A package was removed if the directory of its file is gone, and the one
		 * around it: kpack thin itself removes directories that it empties.
		 */
		for (int i = 0;
		     i < 2 && !was_there && (slash = strrchr(dir, '/')) && slash != dir;
		     i++) {
			*slash = '\0';
			if (below_lstat(dir, &st) == 0 ||
			    (errno != ENOENT && errno != ENOTDIR))
				return old;
		}
		t->n_gone++;
		if (work == STATE_SEEN)
			return NULL;
		*old = (struct state_file){
			.path = old->path,
			.kind = work,
			.before = old->kind == STATE_SEEN ? old->size : old->before,
			.gpus = gpus,
			.fresh = true};
		return old;
	}
	if (old && now->size == old->size && now->mtime == old->mtime &&
	    now->ino == old->ino)
		return old;
	now->fresh = true;
	t->n_new++;
	if (work == STATE_SEEN)
		return now;
	/* a command only makes files smaller: others brought this, and the next run takes it for new */
	if (!old || now->size > old->size)
		return NULL;
	now->kind = STATE_CHANGED;
	now->before = old->kind == STATE_SEEN ? old->size : old->before;
	now->gpus = gpus;
	return now;
}

bool policy_tree_look(struct policy_tree *t, enum state_kind work)
{
	struct state *s = &t->state;
	struct state_file *now = NULL, *all;
	size_t n = 0, cap = 0, n_all = 0, i = 0, k = 0;
	struct tree_list *list;
	struct tree_item item;
	bool fine = true;

	if (!policy_tree_find_mounts(t))
		return false;
	list = tree_list_open(t->policy->tree);
	while (tree_list_next(list, &item)) {
		if (item.kind == TREE_FAULT) { /* what cannot be looked at is not gone */
			report_error(item.path, "%s", strerror(item.error));
			fine = false;
		} else if (item.kind == TREE_DIR) {
			/* archives change whenever a command packs, and kpackfs notices */
			if ((item.level == 1 &&
			     strcmp(item.rest, KP_ARCHIVES_DIR) == 0) ||
			    (item.level && is_covered(t, item.rest)))
				tree_list_skip(list);
		} else if (item.kind == TREE_OTHER && S_ISREG(item.st.st_mode)) {
			xgrow(&now, n, &cap, sizeof(*now));
			now[n++] = (struct state_file){
				.path = xstrdup(item.rest),
				.size = (uint64_t)item.st.st_size,
				.mtime = nanoseconds(&item.st.st_mtim),
				.ino = item.st.st_ino};
		}
	}
	tree_list_close(list);
	kp_sort(now, n, KP_BY_TEXT(struct state_file, path));
	if (work == STATE_SEEN)
		t->n_new = t->n_gone = 0;
	all = xcalloc(n + s->n_files + 1, sizeof(*all));
	while (fine && (i < s->n_files || k < n)) {
		int order = i == s->n_files ? 1
			    : k == n        ? -1
					    : strcmp(s->files[i].path, now[k].path);
		struct state_file *a = order <= 0 ? &s->files[i++] : NULL;
		struct state_file *b = order >= 0 ? &now[k++] : NULL;
		struct state_file *kept = settle_file(t, a, b, work);

		if (kept)
			all[n_all++] = *kept;
		if (a && a != kept)
			free(a->path);
		if (b && b != kept)
			free(b->path);
	}
	while (!fine && k < n)
		free(now[k++].path);
	free(now);
	free(fine ? s->files : all);
	if (!fine)
		return false;
	s->files = all;
	s->n_files = s->files_cap = n_all;
	return true;
}

/* --- what was found ------------------------------------------------------------------ */

bool policy_tree_needs_work(const struct policy_tree *t)
{
	/* archives may have what only files needed that are gone */
	return t->anew || t->n_new || (t->state.packed && t->n_gone);
}

uint64_t policy_tree_archives(const struct policy_tree *t, size_t *n)
{
	KP_AUTO_FREE char *dir = policy_tree_path(t, KP_ARCHIVES_DIR);
	char **paths = NULL;
	uint64_t sum = 0;
	struct stat st;

	*n = 0;
	if (below_archives_find(dir, &paths, n, NULL))
		return 0;
	for (size_t i = 0; i < *n; i++) {
		if (below_lstat(paths[i], &st) == 0)
			sum += (uint64_t)st.st_size;
		free(paths[i]);
	}
	free(paths);
	return sum;
}

/*
 * Which code a file lost is not known, only for which GPUs it was done: those wanted since may
 * lack something until the file comes again with its package.
 */
bool policy_tree_lacks(const struct policy_tree *t, const struct state_file *f)
{
	return f->kind != STATE_SEEN &&
	       !has_gpu(t->state.gpus[f->gpus], kp_span_str("all")) &&
	       !covers_gpus(t->state.gpus[f->gpus], t->arch);
}

char *policy_tree_lacking(const struct policy_tree *t)
{
	char *lacking = NULL;

	for (size_t i = 0; i < t->state.n_files; i++)
		if (policy_tree_lacks(t, &t->state.files[i]))
			add_gpus(&lacking, t->arch,
				 t->state.gpus[t->state.files[i].gpus]);
	return lacking;
}

void policy_tree_forget_gpus(struct policy_tree *t)
{
	struct state *s = &t->state;

	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i].kind != STATE_SEEN &&
		    !covers_gpus(t->arch, s->gpus[s->files[i].gpus]))
			s->files[i].gpus = s->n_gpus - 1;
}

struct saving {
	uint64_t ino, bytes;
};

struct policy_sums policy_tree_sums(const struct policy_tree *t)
{
	const struct state *s = &t->state;
	KP_AUTO_FREE struct saving *savings = xcalloc(s->n_files + 1, sizeof(*savings));
	uint64_t saved = 0, archives;
	struct policy_sums sums = {0};
	size_t n = 0, n_archives;

	for (size_t i = 0; i < s->n_files; i++) {
		const struct state_file *f = &s->files[i];

		sums.n[f->kind]++;
		sums.fresh[f->kind] += f->fresh;
		if (f->kind != STATE_SEEN)
			savings[n++] = (struct saving){f->ino, f->before - f->size};
	}
	/* a file with several names is freed once */
	kp_sort(savings, n, KP_BY_NUMBER(struct saving, ino));
	for (size_t i = 0; i < n; i++)
		if (!savings[i].ino || i == 0 || savings[i - 1].ino != savings[i].ino)
			saved += savings[i].bytes;
	archives = s->packed ? policy_tree_archives(t, &n_archives) : 0;
	sums.saved = saved > archives ? saved - archives : 0;
	return sums;
}
