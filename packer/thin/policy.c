/* SPDX-License-Identifier: MIT */
/*
 * The files of /etc/kpack/policy.d.  A line is a command as one would type it behind `kpack`:
 *
 *	thin --arch auto --strip-debug /opt/rocm
 *	pack --in-place --arch auto /opt/rocm
 *
 * Blanks separate words, "..." holds blanks together, a backslash takes the next character as it
 * is, and what follows a word that begins with # is a comment.  The commands check their options
 * themselves; what is checked here is what kpack apply has to know: the tree and the GPUs.
 */
#include "policy.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

enum { FILE_MAX = 65536 };

/* --- one file ------------------------------------------------------------------------ */

/* Cut the next word off *AT, in place.  NULL: there is none.  FAULT: a quote is not closed. */
static char *cut_word(char **at, const char **fault)
{
	char *word = *at + strspn(*at, " \t"), *from = word, *to = word;
	bool quoted = false, none = *word == '\0' || *word == '#';

	for (; *from && !none && (quoted || !strchr(" \t", *from)); from++) {
		if (*from == '"') {
			quoted = !quoted;
			continue;
		}
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	*at = from + (*from && !none);
	*to = '\0';
	if (quoted)
		*fault = "a quotation mark is missing";
	return none ? NULL : word;
}

/* Whether WORD is the option NAME, also with its value behind "=". */
static bool is_option(const char *word, const char *name)
{
	size_t n = strlen(name);

	return strncmp(word, name, n) == 0 && (word[n] == '\0' || word[n] == '=');
}

/* What is wrong with the list of GPUs: a text, perhaps in REASON; NULL: nothing. */
static const char *arch_fault(const char *list, struct kpackx_error *reason)
{
	struct kp_choice choice = {0};
	const char *fault = NULL;

	if (kp_choice_add(&choice, list, reason) ||
	    (!choice.all && kp_choice_check(&choice, KP_CHOICE_GPUS, reason)))
		fault = reason->text;
	kp_choice_fini(&choice);
	return fault;
}

/* Find the tree and the list of GPUs of the command C, which are to be those of P.  As arch_fault. */
static const char *check_command(struct policy *p, struct policy_command *c,
				 struct kpackx_error *reason)
{
	/* what needs a person, or what `kpack apply` has no place for */
	static const char *const refused[] = {
		"-h",     "--help",        "-n",          "--dry-run", "--json",
		"--undo", "--archive-dir", "--key-prefix"};
	char *tree = c->words[c->n_words - 1];
	size_t n = strlen(tree);
	bool in_place = false;
	const char *list, *fault;

	c->packs = strcmp(c->words[0], "pack") == 0;
	if (!c->packs && strcmp(c->words[0], "thin") != 0)
		return "not a command of thin or pack";
	for (size_t i = 1; i < c->n_words; i++) {
		for (size_t k = 0; k < KP_COUNT(refused); k++)
			if (is_option(c->words[i], refused[k]))
				return "it has an option that is not for policies: "
				       "--help, "
				       "--dry-run, --json, --undo, --archive-dir or "
				       "--key-prefix";
		in_place |= strcmp(c->words[i], "--in-place") == 0;
		/* the last one counts, as "--arch LIST" or "--arch=LIST" */
		if (is_option(c->words[i], "--arch")) {
			c->arch_skip = strcspn(c->words[i], "=");
			c->arch_skip += c->words[i][c->arch_skip] == '=';
			c->arch = c->words[i][c->arch_skip - 1] == '=' ? i : i + 1;
			if (c->arch == i + 1)
				c->arch_skip = 0;
		}
	}
	if (c->arch == 0 || c->arch + 1 >= c->n_words)
		return "--arch LIST is missing";
	if (c->packs && !in_place)
		return "pack is for policies with --in-place only";
	while (n > 1 && tree[n - 1] == '/')
		tree[--n] = '\0';
	if (tree[0] != '/' || (n > 1 && !kp_path_ok(kp_span_str(tree + 1))))
		return "the tree, its last word, is not an absolute path without \".\", "
		       "\"..\" and \"//\"";
	list = c->words[c->arch] + c->arch_skip;
	fault = arch_fault(list, reason);
	if (fault)
		return fault;
	if (p->tree && (strcmp(p->tree, tree) != 0 || strcmp(p->arch, list) != 0))
		return "the tree and the list of --arch are not those of the first "
		       "command";
	if (!p->tree) {
		p->tree = xstrdup(tree);
		p->arch = xstrdup(list);
	}
	return NULL;
}

/* Take a line of P; an empty one has no command.  As arch_fault. */
static const char *take_line(struct policy *p, char *line, struct kpackx_error *reason)
{
	struct policy_command *c;
	const char *fault = NULL;
	char *word = cut_word(&line, &fault);

	if (!word)
		return NULL;
	xgrow(&p->commands, p->n_commands, &p->commands_cap, sizeof(*p->commands));
	c = &p->commands[p->n_commands++];
	*c = (struct policy_command){0};
	for (; word; word = cut_word(&line, &fault)) {
		xgrow(&c->words, c->n_words, &c->words_cap, sizeof(*c->words));
		c->words[c->n_words++] = xstrdup(word);
	}
	return fault ? fault : check_command(p, c, reason);
}

kpack_error_t policy_parse(struct kp_span text, struct policy *out,
			   struct kpackx_error *why)
{
	char *copy, *rest, *line, shown[256];
	struct kpackx_error reason = {0};
	const char *fault = NULL;
	size_t number = 0;

	if (text.size && memchr(text.data, 0, text.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is no text: it has a NUL");
	out->hash = kp_hash_of(text.data, text.size);
	copy = rest = xstrndup((const char *)text.data, text.size);
	while (!fault && (line = strsep(&rest, "\n"))) {
		number++;
		kp_text_escape(kp_span_str(line + strspn(line, " \t")), shown,
			       sizeof(shown));
		fault = take_line(out, line, &reason);
	}
	free(copy);
	if (fault)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "line %zu: %s: %s",
			       number, shown, fault);
	return out->n_commands
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "there is no command");
}

void policy_fini(struct policy *p)
{
	for (size_t i = 0; i < p->n_commands; i++) {
		for (size_t k = 0; k < p->commands[i].n_words; k++)
			free(p->commands[i].words[k]);
		free(p->commands[i].words);
	}
	free(p->commands);
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
	char *real = NULL;
	struct kp_source file;
	kpack_error_t err;
	struct stat st;
	int fd = -1;

	/* what is opened is never a link, so that nobody can exchange it after this look */
	if (below_lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
		real = below_real(path);
		if (!real)
			return below_fail(why, "cannot follow the symbolic link");
		if (geteuid() == 0 && (st.st_uid != 0 || !below_is_firm(real))) {
			free(real);
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"a symbolic link: it and the file must be root's alone: "
				"chown both to root, or put the file itself here");
		}
	}
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

static bool is_in_tree(const char *path, const char *tree)
{
	return strcmp(tree, "/") == 0 || kp_path_within(kp_span_str(path), tree);
}

/*
 * Two policies of one file would undo each other's work at each run, and each would take what the
 * other one did for an upgrade.
 */
static bool check_apart(struct policies *list, const char *dir)
{
	bool fine = true;

	for (size_t i = 0; i < list->count; i++)
		for (size_t k = i + 1; k < list->count; k++) {
			struct policy *a = &list->items[i], *b = &list->items[k];

			if (a->wrong || b->wrong ||
			    (!is_in_tree(a->tree, b->tree) &&
			     !is_in_tree(b->tree, a->tree)))
				continue;
			if (!is_in_tree(b->tree, a->tree)) {
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
	bool *found = xcalloc(n, sizeof(*found)), fine = true;
	size_t kept = 0;

	for (size_t k = 0; k < list->count; k++) {
		bool named = n == 0;

		for (size_t i = 0; i < n; i++)
			if (strcmp(list->items[k].name, names[i]) == 0)
				named = found[i] = true;
		if (named)
			list->items[kept++] = list->items[k];
		else
			policy_fini(&list->items[k]);
	}
	list->count = kept;
	for (size_t i = 0; i < n; i++)
		if (!found[i]) {
			report_error(dir, "there is no %s.conf", names[i]);
			fine = false;
		}
	free(found);
	return fine;
}

bool policies_read(const char *dir, char *const *names, size_t n, struct policies *out)
{
	static const char end[] = ".conf";
	struct kpackx_error why = {0};
	struct dirent **files = NULL;
	bool fine = true;
	struct stat st;
	int count;

	*out = (struct policies){0};
	/* packages make the directory; without it there is nothing to apply */
	if (below_stat(dir, &st) < 0 && errno == ENOENT)
		return keep_named(out, dir, names, n);
	if (!below_root(dir, &why) && below_stat(dir, &st) == 0)
		check_owner(&st, &why);
	count = why.code ? 0 : below_scandir(dir, &files, NULL);
	if (count < 0)
		below_fail(&why, "cannot list it");
	if (why.code) {
		report_why(dir, &why);
		return false;
	}
	for (int i = 0; i < count; i++) {
		const char *file = files[i]->d_name;
		size_t size = strlen(file), stem = size - (sizeof(end) - 1);

		/* what dpkg and editors leave beside a file has another ending */
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
