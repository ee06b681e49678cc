/* SPDX-License-Identifier: MIT */
/* kpack status: what the policies of trees are, what they did, and what is new. */
#include <stdlib.h>
#include <time.h>
#include "packer/cli/report.h"
#include "packer/command.h"
#include "packer/thin/policy.h"

struct status_command {
	struct policy_places places;
	bool json;
};

static const struct option_help options[] = {
	{0, "policy-dir", "DIR", "the policies (" POLICY_DIR ")",
	 OPTION_PLACE(struct status_command, places.policies)},
	{0, "state-dir", "DIR", "the state of each tree (" STATE_DIR ")",
	 OPTION_PLACE(struct status_command, places.states)},
	{0, "topology", "DIR", "where --arch auto looks for GPUs",
	 OPTION_PLACE(struct status_command, places.topology)},
	{0, "json", NULL, "print one JSON array of objects",
	 OPTION_PLACE(struct status_command, json)},
	{0},
};

const struct command_help cmd_status_help = {
	"status",
	"[OPTION]... [NAME...]",
	"print how far the trees of policies are, and what they saved",
	options,
	NULL,
};

/* Whether kpack apply has nothing to do, or to say. */
static bool is_complete(const struct policy_tree *t, const char *lacking)
{
	return t->missing || (!policy_tree_needs_work(t) && !lacking &&
			      t->n_mounts >= t->state.n_mounts);
}

static void print_tree(const struct policy_tree *t, const char *lacking)
{
	const struct state *s = &t->state;
	const struct policy_sums sums = policy_tree_sums(t);
	time_t when = (time_t)s->when;
	char text[32], size[24];
	struct tm tm;

	report_text(t->policy->name);
	fputs(": ", stdout);
	report_text(t->policy->tree);
	if (t->missing) {
		puts(": does not exist");
		return;
	}
	printf(": for %s\n", t->arch);
	for (size_t i = 0; i < t->policy->n_commands; i++) {
		fputs("  kpack", stdout);
		for (size_t k = 0; k < t->policy->commands[i].n_words; k++) {
			putchar(' ');
			report_text(t->policy->commands[i].words[k]);
		}
		putchar('\n');
	}
	if (when && gmtime_r(&when, &tm) && strftime(text, sizeof(text), "%F %T", &tm))
		printf("  last run: %s UTC\n", text);
	printf("  saved: %s: %zu files changed, %zu removed, %zu packed%s\n",
	       report_size(sums.saved, size), sums.n[STATE_CHANGED],
	       sums.n[STATE_REMOVED], sums.n[STATE_PACKED],
	       s->forgotten ? "; what was changed before the state was lost is not known"
			    : "");
	if (t->anew)
		puts(s->n_gpus
			     ? "  the policy or the GPUs changed, or the last run failed"
			     : "  not applied yet");
	else if (t->n_new)
		printf("  files that changed since: %zu\n", t->n_new);
	if (s->n_mounts || t->n_mounts)
		printf("  mounts: %zu of %zu\n", t->n_mounts, (size_t)s->n_mounts);
	if (t->gone)
		printf("  not in this machine now: %s\n", t->gone);
	if (lacking)
		printf("  lacks code for: %s (kpack apply names the packages)\n",
		       lacking);
	puts(is_complete(t, lacking) ? "  complete" : "  not complete: run kpack apply");
}

static json_t *json_tree(const struct policy_tree *t, const char *lacking)
{
	static const char *const kinds[STATE_KINDS] = {NULL, "changed", "removed",
						       "packed"};
	json_t *files = json_array(), *mounts = json_array(), *commands = json_array();
	const struct state *s = &t->state;

	for (size_t i = 0; i < t->policy->n_commands; i++) {
		json_t *words = json_array();

		for (size_t k = 0; k < t->policy->commands[i].n_words; k++)
			json_array_append_new(
				words, report_json_text(t->policy->commands[i].words[k]));
		json_array_append_new(commands, words);
	}
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i].kind != STATE_SEEN)
			json_array_append_new(
				files,
				json_pack("{so ss sI sI}", "path",
					  report_json_text(s->files[i].path), "status",
					  kinds[s->files[i].kind], "size_before",
					  (json_int_t)s->files[i].before, "size_after",
					  (json_int_t)s->files[i].size));
	for (size_t i = 0; i < t->n_mounts; i++)
		json_array_append_new(mounts, report_json_text(t->mounts[i]));
	return json_pack("{so so so ss sb sI sI sI sb sb so so ss}", "name",
			 report_json_text(t->policy->name), "tree",
			 report_json_text(t->policy->tree), "commands", commands, "arch",
			 t->arch, "complete", is_complete(t, lacking), "last_run",
			 (json_int_t)s->when, "files_new",
			 (json_int_t)(t->anew ? s->n_files : t->n_new), "bytes_saved",
			 (json_int_t)policy_tree_sums(t).saved, "forgotten", s->forgotten,
			 "packed", s->packed, "files", files, "mounts", mounts, "lacking",
			 lacking ? lacking : "");
}

int cmd_status(int argc, char **argv)
{
	struct options o = {.help = &cmd_status_help, .argc = argc, .argv = argv};
	struct status_command c = {
		.places = {.policies = POLICY_DIR, .states = STATE_DIR}};
	struct report_array array = {0};
	int status = options_read(&o, &c);
	struct policies list;

	if (status >= 0)
		return status;
	status = policies_read(c.places.policies, argv + optind, (size_t)(argc - optind),
			       &list)
			 ? EXIT_OK
			 : EXIT_FAULT;
	for (size_t i = 0; i < list.count; i++) {
		struct policy_tree t;
		char *lacking = NULL;

		if (list.items[i].wrong)
			continue;
		if (policy_tree_open(&t, &list.items[i], &c.places) &&
		    (t.missing || policy_tree_look(&t, STATE_SEEN))) {
			if (!t.missing)
				lacking = policy_tree_lacking(&t);
			if (!is_complete(&t, lacking))
				status = EXIT_FAULT;
			if (c.json)
				report_array_add(&array, json_tree(&t, lacking));
			else
				print_tree(&t, lacking);
		} else {
			status = EXIT_FAULT;
		}
		free(lacking);
		policy_tree_fini(&t);
	}
	if (c.json)
		report_array_end(&array);
	policies_fini(&list);
	return report_finish(status);
}
