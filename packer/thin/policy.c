/* SPDX-License-Identifier: MIT */
#include "policy.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/target/choice.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

enum { FILE_MAX = 65536 };

enum key { KEY_TREE, KEY_ARCH, KEY_DO, KEY_MOUNT, KEY_STRIP, KEYS };

static const struct {
	const char *name, *values[4], *fault;
} keys[KEYS] = {
	[KEY_TREE] = {"tree",
		      {0},
		      "not an absolute path without \".\", \"..\" and \"//\""},
	[KEY_ARCH] = {"arch", {0}, NULL},
	[KEY_DO] = {"do", {"thin", "pack"}, "not thin or pack"},
	[KEY_MOUNT] = {"mount",
		       {"none", "in-place", "overlay"},
		       "not none, in-place or overlay"},
	[KEY_STRIP] = {"strip_debug", {"no", "yes"}, "not yes or no"},
};

const char *policy_action_name(enum policy_action action)
{
	return keys[KEY_DO].values[action];
}

const char *policy_mount_name(enum policy_mount mount)
{
	return keys[KEY_MOUNT].values[mount];
}

/* --- one file ------------------------------------------------------------------------ */

/* What is wrong with a list of GPUs: a text, perhaps in REASON; NULL: nothing. */
static const char *arch_fault(const char *list, struct kpackx_error *reason)
{
	struct kp_choice choice = {0};
	const char *fault = NULL;

	if (kp_choice_add(&choice, list, reason))
		fault = reason->text;
	else if (choice.all)
		fault = "a policy is for some GPUs, not for all";
	else if (kp_choice_check(&choice, KP_CHOICE_GPUS, reason))
		fault = reason->text;
	kp_choice_fini(&choice);
	return fault;
}

/* Take the value of a key into OUT; GIVEN has a bit for each key.  As arch_fault. */
static const char *take_value(struct policy *out, unsigned *given, const char *key,
			      char *value, struct kpackx_error *reason)
{
	size_t n = strlen(value);
	const char *fault = NULL;
	int k = 0, v = 0;

	while (k < KEYS && strcmp(keys[k].name, key) != 0)
		k++;
	if (k == KEYS)
		return "an unknown key: tree, arch, do, mount and strip_debug are known";
	if (*given & 1U << k)
		return "the key is given twice";
	*given |= 1U << k;
	switch (k) {
	case KEY_TREE:
		while (n > 1 && value[n - 1] == '/')
			value[--n] = '\0';
		if (value[0] != '/' || (n > 1 && !kp_path_ok(kp_span_str(value + 1))))
			return keys[k].fault;
		out->tree = xstrdup(value);
		return NULL;
	case KEY_ARCH:
		fault = arch_fault(value, reason);
		if (!fault)
			out->arch = xstrdup(value);
		return fault;
	default:
		while (keys[k].values[v] && strcmp(keys[k].values[v], value) != 0)
			v++;
		if (!keys[k].values[v])
			return keys[k].fault;
		if (k == KEY_DO)
			out->action = (enum policy_action)v;
		else if (k == KEY_MOUNT)
			out->mount = (enum policy_mount)v;
		else
			out->strip_debug = v;
		return NULL;
	}
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

static kpack_error_t take_line(struct policy *out, unsigned *given, size_t number,
			       char *line, struct kpackx_error *why)
{
	char shown[256], *equals;
	struct kpackx_error reason = {0};
	const char *fault;

	line = trim_text(line);
	if (*line == '\0' || *line == '#')
		return KPACK_SUCCESS;
	equals = strchr(line, '=');
	if (equals) {
		char *value = trim_text(equals + 1), *key, *both;

		*equals = '\0';
		key = trim_text(line);
		both = xasprintf("%s=%s", key, value);
		kp_text_escape(kp_span_str(both), shown, sizeof(shown));
		free(both);
		fault = take_value(out, given, key, value, &reason);
	} else {
		kp_text_escape(kp_span_str(line), shown, sizeof(shown));
		fault = "not KEY=VALUE";
	}
	return fault ? kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: %s: %s",
			       number, shown, fault)
		     : KPACK_SUCCESS;
}

kpack_error_t policy_parse(struct kp_span text, struct policy *out,
			   struct kpackx_error *why)
{
	char *copy, *rest, *line;
	kpack_error_t err = KPACK_SUCCESS;
	unsigned given = 0;
	size_t number = 0;

	if (text.size && memchr(text.data, 0, text.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is no text: it has a NUL");
	copy = rest = xstrndup((const char *)text.data, text.size);
	while (!err && (line = strsep(&rest, "\n")))
		err = take_line(out, &given, ++number, line, why);
	free(copy);
	KP_TRY(err);
	for (int k = KEY_TREE; k <= KEY_DO; k++)
		if (!(given & 1U << k))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "there is no line %s=", keys[k].name);
	if (out->action == POLICY_THIN && out->mount != POLICY_NO_MOUNT)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "mount=%s: do=thin has nothing to mount",
			       policy_mount_name(out->mount));
	return KPACK_SUCCESS;
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

/* Set *REAL to what PATH leads to if it is a link, which root follows only if it is root's. */
static kpack_error_t follow_link(const char *path, char **real, struct kpackx_error *why)
{
	struct stat st;

	if (below_lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return KPACK_SUCCESS;
	*real = below_real(path);
	if (!*real)
		return below_fail(why, "cannot follow the symbolic link");
	if (geteuid() != 0 || (st.st_uid == 0 && below_is_firm(*real)))
		return KPACK_SUCCESS;
	return kp_fail(
		why, KPACK_ERROR_INVALID_ARGUMENT,
		"a symbolic link: it and the file must be root's alone: chown both "
		"to root, or put the file itself here");
}

kpack_error_t policy_file_load(const char *path, uint64_t most, uint8_t **out,
			       size_t *size, struct kpackx_error *why)
{
	struct kp_source file;
	char *real = NULL;
	kpack_error_t err = follow_link(path, &real, why);
	struct stat st;
	int fd = -1;

	if (!err)
		err = below_file_open_nofollow(real ? real : path, &fd, &st, why);
	free(real);
	KP_TRY(err);
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	err = check_owner(&st, why);
	if (!err)
		err = kp_source_load(&file, most, "its text", out, why);
	close(fd);
	*size = (size_t)st.st_size;
	return err;
}

/* Read NAME.conf of DIR; its tree gets the path without links, as mounts and packages have it. */
static bool add_policy(struct policies *list, const char *dir, char *name)
{
	char *path = xasprintf("%s/%s.conf", dir, name), *real;
	struct policy p = {.name = name};
	struct kpackx_error why = {0};
	uint8_t *text = NULL;
	size_t size = 0;

	if (policy_file_load(path, FILE_MAX, &text, &size, &why) ||
	    policy_parse((struct kp_span){text, size}, &p, &why)) {
		report_why(path, &why);
		p.name = NULL;
		policy_fini(&p);
		p = (struct policy){.name = name, .wrong = true};
	} else if ((real = below_real(p.tree))) {
		free(p.tree);
		p.tree = real;
	}
	free(text);
	free(path);
	xgrow(&list->items, list->count, &list->cap, sizeof(p));
	list->items[list->count++] = p;
	return !p.wrong;
}

bool policy_is_in_tree(const char *path, const char *tree)
{
	return strcmp(tree, "/") == 0 || kp_path_within(kp_span_str(path), tree);
}

static bool check_apart(struct policies *list, const char *dir)
{
	bool fine = true;

	for (size_t i = 0; i < list->count; i++)
		for (size_t k = i + 1; k < list->count; k++) {
			struct policy *a = &list->items[i], *b = &list->items[k];

			if (a->wrong || b->wrong ||
			    (!policy_is_in_tree(a->tree, b->tree) &&
			     !policy_is_in_tree(b->tree, a->tree)))
				continue;
			if (!policy_is_in_tree(b->tree, a->tree)) {
				a = &list->items[k];
				b = &list->items[i];
			}
			report_error(dir,
				     "%s.conf and %s.conf: the trees %s and %s overlap: "
				     "remove one of the policies",
				     a->name, b->name, a->tree, b->tree);
			a->overlaps = b->overlaps = true;
			fine = false;
		}
	return fine;
}

/* Remove the policies that are not among the N NAMES.  false: one of these is missing. */
static bool keep_named(struct policies *list, const char *dir, char *const *names,
		       size_t n)
{
	bool fine = true;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < list->count && strcmp(list->items[k].name, names[i]) != 0)
			k++;
		if (k < list->count)
			continue;
		report_error(dir, "there is no %s.conf", names[i]);
		fine = false;
	}
	for (size_t k = 0; k < list->count; k++) {
		bool named = n == 0;

		for (size_t i = 0; i < n; i++)
			named |= strcmp(list->items[k].name, names[i]) == 0;
		if (named)
			list->items[kept++] = list->items[k];
		else
			policy_fini(&list->items[k]);
	}
	list->count = kept;
	return fine;
}

bool policies_read(const char *dir, char *const *names, size_t n, struct policies *out)
{
	static const char end[] = ".conf";
	struct kpackx_error why = {0};
	struct dirent **files;
	kpack_error_t err;
	bool fine = true;
	struct stat st;
	int count = 0;

	*out = (struct policies){0};
	if (below_stat(dir, &st) < 0 && errno == ENOENT)
		return keep_named(out, dir, names, n);
	err = below_root(dir, &why);
	if (!err && below_stat(dir, &st) == 0)
		err = check_owner(&st, &why);
	if (!err && (count = below_scandir(dir, &files, NULL)) < 0)
		err = below_fail(&why, "cannot list it");
	if (err) {
		report_why(dir, &why);
		return false;
	}
	for (int i = 0; i < count; i++) {
		const char *file = files[i]->d_name;
		size_t size = strlen(file), stem = size - (sizeof(end) - 1);

		if (file[0] != '.' && size >= sizeof(end) &&
		    strcmp(file + stem, end) == 0)
			fine &= add_policy(out, dir, xstrndup(file, stem));
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
