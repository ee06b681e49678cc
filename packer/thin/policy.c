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
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/base/walk.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

enum { FILE_MAX = 65536 };

void policy_hash_of(const char *text, size_t size, policy_hash out)
{
	struct kp_hash hash = kp_hash_of(text, size);

	for (size_t i = 0; i < sizeof(hash.bytes); i++)
		sprintf(out + 2 * i, "%02x", hash.bytes[i]);
}

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

static void add_word(struct policy_command *c, const char *word, size_t size)
{
	xgrow(&c->words, c->n_words, &c->words_cap, sizeof(*c->words));
	c->words[c->n_words++] = xstrndup(word, size);
}

/*
 * Take a command from a LINE, which is changed; an empty one has none.  Returns what is wrong with
 * it, a text that may be in REASON; NULL: nothing.
 */
static const char *parse_line(struct policy *p, char *line, struct kpackx_error *reason)
{
	/* what needs a person, or what `kpack apply` has no place for */
	static const char *const refused[] = {
		"-h",     "--help",        "-n",          "--dry-run", "--json",
		"--undo", "--archive-dir", "--key-prefix"};
	struct kp_choice choice = {0};
	bool in_place = false, fine;
	struct policy_command *c;
	const char *fault = NULL, *list;
	char *word = cut_word(&line, &fault), *tree;
	size_t n;

	if (!word)
		return NULL;
	xgrow(&p->commands, p->n_commands, &p->commands_cap, sizeof(*p->commands));
	c = &p->commands[p->n_commands++];
	*c = (struct policy_command){0};
	for (; word; word = cut_word(&line, &fault)) {
		/* the last list counts, as "--arch LIST" or "--arch=LIST" */
		if (c->n_words && strncmp(word, "--arch=", 7) == 0) {
			add_word(c, word, 6);
			word += 7;
		}
		add_word(c, word, strlen(word));
	}
	c->packs = strcmp(c->words[0], "pack") == 0;
	if (fault)
		return fault;
	if (!c->packs && strcmp(c->words[0], "thin") != 0)
		return "not a command of thin or pack";
	for (size_t i = 1; i < c->n_words; i++) {
		n = strcspn(c->words[i], "=");
		for (size_t k = 0; k < KP_COUNT(refused); k++)
			if (strlen(refused[k]) == n &&
			    strncmp(c->words[i], refused[k], n) == 0)
				return "it has an option that is not for policies: "
				       "--help, "
				       "--dry-run, --json, --undo, --archive-dir or "
				       "--key-prefix";
		in_place |= strcmp(c->words[i], "--in-place") == 0;
		if (strcmp(c->words[i], "--arch") == 0)
			c->arch = i + 1;
	}
	if (c->arch == 0 || c->arch + 1 >= c->n_words)
		return "--arch LIST is missing";
	if (c->packs && !in_place)
		return "pack is for policies with --in-place only";
	tree = c->words[c->n_words - 1];
	n = strlen(tree);
	while (n > 1 && tree[n - 1] == '/')
		tree[--n] = '\0';
	if (tree[0] != '/' || (n > 1 && !kp_path_ok(kp_span_str(tree + 1))))
		return "the tree, its last word, is not an absolute path without \".\", "
		       "\"..\" and \"//\"";
	list = c->words[c->arch];
	fine = !kp_choice_add(&choice, list, reason) &&
	       (choice.all || !kp_choice_check(&choice, KP_CHOICE_GPUS, reason));
	kp_choice_fini(&choice);
	if (!fine)
		return reason->text;
	if (p->tree && (strcmp(p->tree, tree) != 0 || strcmp(p->arch, list) != 0))
		return "the tree and the list of --arch are not those of the first "
		       "command";
	if (!p->tree) {
		p->tree = xstrdup(tree);
		p->arch = xstrdup(list);
	}
	return NULL;
}

kpack_error_t policy_parse(struct kp_span text, struct policy *out,
			   struct kpackx_error *why)
{
	struct kpackx_error reason = {0};
	KP_AUTO_FREE char *copy = NULL;
	char *rest, *line, shown[256];
	const char *fault;
	size_t number = 0;

	if (text.size && memchr(text.data, 0, text.size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is no text: it has a NUL");
	policy_hash_of((const char *)text.data, text.size, out->hash);
	copy = xstrndup((const char *)text.data, text.size);
	rest = copy;
	while ((line = strsep(&rest, "\n"))) {
		number++;
		kp_text_escape(kp_span_str(line + strspn(line, " \t")), shown,
			       sizeof(shown));
		fault = parse_line(out, line, &reason);
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "line %zu: %s: %s", number, shown, fault);
	}
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
	if (geteuid() != 0 || kp_only_root_writes(st))
		return KPACK_SUCCESS;
	return kp_fail(
		why, KPACK_ERROR_INVALID_ARGUMENT,
		"users other than root can write it: chown it to root, chmod it go-w");
}

kpack_error_t policy_file_load(const char *path, uint64_t most, uint8_t **out,
			       size_t *size, struct kpackx_error *why)
{
	KP_AUTO_FREE char *real = NULL;
	KP_AUTO_CLOSE int fd = -1;
	struct kp_source file;
	struct stat st;

	/* what is opened is never a link, so that nobody can exchange it after this look */
	if (below_lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
		real = below_real(path);
		if (!real)
			return below_fail(why, "cannot follow the symbolic link");
		if (geteuid() == 0 && (st.st_uid != 0 || !below_is_firm(real)))
			return kp_fail(
				why, KPACK_ERROR_INVALID_ARGUMENT,
				"a symbolic link: it and the file must be root's alone: "
				"chown both to root, or put the file itself here");
	}
	KP_TRY(below_file_open_nofollow(real ? real : path, &fd, &st, why));
	KP_TRY(check_owner(&st, why));
	file = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	*size = (size_t)st.st_size;
	return kp_source_load(&file, most, "its text", out, why);
}

bool policies_read(const char *dir, char *const *names, size_t n, struct policies *out)
{
	KP_AUTO_FREE bool *found = xcalloc(n + 1, sizeof(*found));
	struct kpackx_error why = {0};
	struct dirent **files = NULL;
	bool fine = true;
	size_t kept = 0;
	struct stat st;
	int count = 0;

	*out = (struct policies){0};
	/* packages make the directory; without it there is nothing to apply */
	if (below_stat(dir, &st) == 0 || errno != ENOENT) {
		if (!below_root(dir, &why) && below_stat(dir, &st) == 0)
			check_owner(&st, &why);
		if (!why.code && (count = below_scandir(dir, &files, NULL)) < 0)
			below_fail(&why, "cannot list it");
		if (why.code) {
			report_why(dir, &why);
			return false;
		}
	}
	for (int i = 0; i < count; i++) {
		const char *file = files[i]->d_name, *end = strrchr(file, '.');

		/* what dpkg and editors leave beside a file has another ending */
		if (file[0] != '.' && end && strcmp(end, ".conf") == 0) {
			KP_AUTO_FREE char *path = xasprintf("%s/%s", dir, file);
			KP_AUTO_FREE uint8_t *text = NULL;
			struct policy p = {0};
			size_t size = 0;
			char *real;

			why = (struct kpackx_error){0};
			if (policy_file_load(path, FILE_MAX, &text, &size, &why) ||
			    policy_parse((struct kp_span){text, size}, &p, &why)) {
				report_why(path, &why);
				policy_fini(&p);
				p.wrong = true;
				fine = false;
			} else if ((real = below_real(p.tree))) {
				/* without links, as mounts and packages have it */
				free(p.tree);
				p.tree = real;
			}
			p.name = xstrndup(file, (size_t)(end - file));
			xgrow(&out->items, out->count, &out->cap, sizeof(p));
			out->items[out->count++] = p;
		}
		free(files[i]);
	}
	free(files);
	/*
	 * Two policies of one file would undo each other's work at each run, and each would take what
	 * the other one did for an upgrade.
	 */
	for (size_t i = 0; i < out->count; i++)
		for (size_t k = 0; k < out->count; k++) {
			struct policy *outer = &out->items[i], *inner = &out->items[k];

			if (i == k || outer->wrong || inner->wrong ||
			    (strcmp(outer->tree, "/") != 0 &&
			     !kp_path_within(kp_span_str(inner->tree), outer->tree)) ||
			    (i > k && strcmp(inner->tree, outer->tree) == 0))
				continue;
			report_error(dir,
				     "%s.conf and %s.conf: the trees %s and %s overlap: "
				     "remove one of the policies",
				     outer->name, inner->name, outer->tree, inner->tree);
			outer->overlaps = inner->overlaps = true;
			fine = false;
		}
	for (size_t k = 0; k < out->count; k++) {
		bool named = n == 0;

		for (size_t i = 0; i < n; i++)
			if (strcmp(out->items[k].name, names[i]) == 0)
				named = found[i] = true;
		if (named)
			out->items[kept++] = out->items[k];
		else
			policy_fini(&out->items[k]);
	}
	out->count = kept;
	for (size_t i = 0; i < n; i++)
		if (!found[i]) {
			report_error(dir, "there is no %s.conf", names[i]);
			fine = false;
		}
	return fine;
}

void policies_fini(struct policies *list)
{
	for (size_t i = 0; i < list->count; i++)
		policy_fini(&list->items[i]);
	free(list->items);
	*list = (struct policies){0};
}
