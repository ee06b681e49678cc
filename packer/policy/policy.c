/* SPDX-License-Identifier: MIT */
#include "policy.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/target/choice.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

enum { FILE_MAX = 65536 };

static const char *const actions[] = {"thin", "pack", NULL};
static const char *const answers[] = {"no", "yes", NULL};
static const char *const mounts[] = {"none", "in-place", "overlay", NULL};

const char *policy_action_name(enum policy_action action)
{
	return actions[action];
}

const char *policy_mount_name(enum policy_mount mount)
{
	return mounts[mount];
}

/* --- one file ------------------------------------------------------------------------ */

struct parser {
	struct policy *out;
	size_t line;
	bool has_action, has_mount, has_strip;
};

static kpack_error_t fail_line(const struct parser *p, const char *key, const char *value,
			       const char *text, struct kpackx_error *why)
{
	char key_text[64], value_text[256];

	kp_text_escape(kp_span_str(key), key_text, sizeof(key_text));
	kp_text_escape(kp_span_str(value), value_text, sizeof(value_text));
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: %s=%s: %s", p->line,
		       key_text, value_text, text);
}

static kpack_error_t fail_twice(const struct parser *p, const char *key,
				const char *value, struct kpackx_error *why)
{
	return fail_line(p, key, value, "the key is given twice", why);
}

/* Whether TREE is absolute and each component a name. */
static bool tree_ok(const char *tree)
{
	return tree[0] == '/' && (tree[1] == '\0' || kp_path_ok(kp_span_str(tree + 1)));
}

static kpack_error_t take_tree(struct parser *p, char *value, struct kpackx_error *why)
{
	size_t n = strlen(value);

	if (p->out->tree)
		return fail_twice(p, "tree", value, why);
	while (n > 1 && value[n - 1] == '/')
		value[--n] = '\0';
	if (!tree_ok(value))
		return fail_line(p, "tree", value,
				 "not an absolute path without \".\", \"..\" and \"//\"",
				 why);
	p->out->tree = xstrdup(value);
	return KPACK_SUCCESS;
}

static kpack_error_t take_arch(struct parser *p, const char *value,
			       struct kpackx_error *why)
{
	struct kpackx_error reason = {0};
	struct kp_choice choice = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (p->out->arch)
		return fail_twice(p, "arch", value, why);
	if (kp_choice_add(&choice, value, &reason))
		err = fail_line(p, "arch", value, reason.text, why);
	else if (choice.all)
		err = fail_line(p, "arch", value,
				"a policy is for some GPUs, not for all", why);
	else if (kp_choice_check(&choice, KP_CHOICE_GPUS, &reason))
		err = fail_line(p, "arch", value, reason.text, why);
	kp_choice_fini(&choice);
	if (!err)
		p->out->arch = xstrdup(value);
	return err;
}

/* Find VALUE among NAMES, which a NULL ends. */
static bool find_name(const char *const *names, const char *value, int *out)
{
	for (int i = 0; names[i]; i++) {
		*out = i;
		if (strcmp(names[i], value) == 0)
			return true;
	}
	return false;
}

static kpack_error_t take_value(struct parser *p, const char *key, char *value,
				struct kpackx_error *why)
{
	int n;

	if (strcmp(key, "tree") == 0)
		return take_tree(p, value, why);
	if (strcmp(key, "arch") == 0)
		return take_arch(p, value, why);
	if (strcmp(key, "do") == 0) {
		if (p->has_action)
			return fail_twice(p, key, value, why);
		if (!find_name(actions, value, &n))
			return fail_line(p, key, value, "not thin or pack", why);
		p->out->action = (enum policy_action)n;
		p->has_action = true;
		return KPACK_SUCCESS;
	}
	if (strcmp(key, "mount") == 0) {
		if (p->has_mount)
			return fail_twice(p, key, value, why);
		if (!find_name(mounts, value, &n))
			return fail_line(p, key, value, "not none, in-place or overlay",
					 why);
		p->out->mount = (enum policy_mount)n;
		p->has_mount = true;
		return KPACK_SUCCESS;
	}
	if (strcmp(key, "strip_debug") == 0) {
		if (p->has_strip)
			return fail_twice(p, key, value, why);
		if (!find_name(answers, value, &n))
			return fail_line(p, key, value, "not yes or no", why);
		p->out->strip_debug = n;
		p->has_strip = true;
		return KPACK_SUCCESS;
	}
	return fail_line(
		p, key, value,
		"an unknown key: tree, arch, do, mount and strip_debug are known", why);
}

/* Cut blanks off both ends of TEXT. */
static char *trim_text(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n && strchr(" \t", text[n - 1]))
		text[--n] = '\0';
	return text;
}

static kpack_error_t take_line(struct parser *p, char *line, struct kpackx_error *why)
{
	char *equals;

	line = trim_text(line);
	if (*line == '\0' || *line == '#')
		return KPACK_SUCCESS;
	equals = strchr(line, '=');
	if (!equals) {
		char text[256];

		kp_text_escape(kp_span_str(line), text, sizeof(text));
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "line %zu: %s: not KEY=VALUE", p->line, text);
	}
	*equals = '\0';
	return take_value(p, trim_text(line), trim_text(equals + 1), why);
}

static kpack_error_t check_whole(const struct parser *p, struct kpackx_error *why)
{
	const char *missing = !p->out->tree    ? "tree"
			      : !p->out->arch  ? "arch"
			      : !p->has_action ? "do"
					       : NULL;

	if (missing)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "there is no line %s=", missing);
	if (p->out->action == POLICY_THIN && p->out->mount != POLICY_NO_MOUNT)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "mount=%s: do=thin has nothing to mount",
			       policy_mount_name(p->out->mount));
	return KPACK_SUCCESS;
}

kpack_error_t policy_parse(struct kp_span text, struct policy *out,
			   struct kpackx_error *why)
{
	struct parser p = {.out = out};
	char *copy, *line, *end;
	kpack_error_t err = KPACK_SUCCESS;

	if (text.size && memchr(text.data, 0, text.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is no text: it has a NUL");
	copy = xstrndup((const char *)text.data, text.size);
	for (line = copy; line && !err; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		p.line++;
		err = take_line(&p, line, why);
	}
	free(copy);
	return err ? err : check_whole(&p, why);
}

void policy_fini(struct policy *p)
{
	free(p->name);
	free(p->tree);
	free(p->arch);
	*p = (struct policy){0};
}

/* --- the directory ------------------------------------------------------------------- */

static kpack_error_t check_owner(const struct stat *st, struct kpackx_error *why)
{
	if (geteuid() != 0 || (st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH))))
		return KPACK_SUCCESS;
	return kp_fail(
		why, KPACK_ERROR_INVALID_ARGUMENT,
		"users other than root can write it: chown it to root, chmod it go-w");
}

kpack_error_t policy_file_load(const char *path, uint64_t most, uint8_t **out,
			       size_t *size, struct kpackx_error *why)
{
	struct kp_source file;
	kpack_error_t err;
	struct stat st;
	int fd;

	KP_TRY(below_file_open_nofollow(path, &fd, &st, why));
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	err = check_owner(&st, why);
	if (!err)
		err = kp_source_load(&file, most, "its text", out, why);
	close(fd);
	*size = (size_t)st.st_size;
	return err;
}

static kpack_error_t read_policy(const char *path, struct policy *out,
				 struct kpackx_error *why)
{
	kpack_error_t err;
	uint8_t *text;
	size_t size;

	KP_TRY(policy_file_load(path, FILE_MAX, &text, &size, why));
	err = policy_parse((struct kp_span){text, size}, out, why);
	free(text);
	return err;
}

/* The policy's name if FILE is one, on the heap; NULL: it is none. */
static char *name_of(const char *file)
{
	size_t n = strlen(file), end = sizeof(".conf") - 1;

	if (file[0] == '.' || n <= end || strcmp(file + n - end, ".conf") != 0)
		return NULL;
	return xstrndup(file, n - end);
}

static bool is_wanted(const char *name, char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return n == 0;
}

/*
 * The tree of P gets the path without links, which is that of mounts and of packages' files.
 * One that cannot be found keeps its path.
 */
static void resolve_tree(struct policy *p)
{
	char *real = below_real(p->tree);

	if (!real)
		return;
	free(p->tree);
	p->tree = real;
}

static bool add_file(struct policies *list, const char *dir, const char *file, char *name)
{
	char *path = xasprintf("%s/%s", dir, file);
	struct kpackx_error why = {0};
	struct policy *p;
	bool fine;

	xgrow(&list->items, list->count, &list->cap, sizeof(*p));
	p = &list->items[list->count++];
	*p = (struct policy){.name = name};
	fine = read_policy(path, p, &why) == KPACK_SUCCESS;
	if (!fine) {
		report_why(path, &why);
		policy_fini(p);
		list->count--;
	} else {
		resolve_tree(p);
	}
	free(path);
	return fine;
}

/* Whether the tree A is B, or B is below it. */
static bool has_tree(const char *a, const char *b)
{
	size_t n = strcmp(a, "/") ? strlen(a) : 0;

	return strncmp(a, b, n) == 0 && (b[n] == '/' || b[n] == '\0');
}

static bool check_apart(struct policies *list, const char *dir)
{
	bool fine = true;

	for (size_t i = 0; i < list->count; i++)
		for (size_t k = 0; k < list->count; k++) {
			struct policy *a = &list->items[i], *b = &list->items[k];

			if (i == k || !has_tree(a->tree, b->tree) ||
			    (i > k && has_tree(b->tree, a->tree)))
				continue;
			report_error(dir,
				     "%s.conf and %s.conf: the trees %s and %s overlap: "
				     "remove one of the policies",
				     a->name, b->name, a->tree, b->tree);
			a->overlaps = b->overlaps = true;
			fine = false;
		}
	return fine;
}

static bool has_name(const struct policies *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].name, name) == 0)
			return true;
	return false;
}

/* Remove the policies that are not among the N NAMES.  false: one of them is missing. */
static bool keep_named(struct policies *list, const char *dir, char *const *names,
		       size_t n)
{
	bool fine = true;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!has_name(list, names[i])) {
			report_error(dir, "there is no %s.conf", names[i]);
			fine = false;
		}
	for (size_t i = 0; i < list->count; i++) {
		if (is_wanted(list->items[i].name, names, n))
			list->items[kept++] = list->items[i];
		else
			policy_fini(&list->items[i]);
	}
	list->count = kept;
	return fine;
}

static bool check_dir(const char *dir)
{
	struct kpackx_error why = {0};
	struct stat st;
	kpack_error_t err = below_root(dir, &why);

	if (!err && below_lstat(dir, &st) < 0)
		err = below_fail(&why, "cannot look at it");
	if (!err)
		err = check_owner(&st, &why);
	if (err)
		report_why(dir, &why);
	return !err;
}

bool policies_read(const char *dir, char *const *names, size_t n, struct policies *out)
{
	struct dirent **files;
	struct stat st;
	bool fine;
	int count;

	*out = (struct policies){0};
	if (below_stat(dir, &st) < 0 && errno == ENOENT)
		return keep_named(out, dir, names, n);
	if (!check_dir(dir))
		return false;
	count = below_scandir(dir, &files, NULL);
	if (count < 0) {
		report_error(dir, "%s", strerror(errno));
		return false;
	}
	fine = true;
	for (int i = 0; i < count; i++) {
		char *name = name_of(files[i]->d_name);

		if (name)
			fine &= add_file(out, dir, files[i]->d_name, name);
		free(files[i]);
	}
	free(files);
	fine &= check_apart(out, dir);
	return keep_named(out, dir, names, n) && fine;
}

void policies_fini(struct policies *list)
{
	for (size_t i = 0; i < list->count; i++)
		policy_fini(&list->items[i]);
	free(list->items);
	*list = (struct policies){0};
}
