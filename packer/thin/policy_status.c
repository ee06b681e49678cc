/* SPDX-License-Identifier: MIT */
/* How far the trees of policies are, as text and as JSON. */
#include <stdlib.h>
#include <time.h>
#include "policy_apply.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"

/* The findings about one tree. */
struct findings {
	struct policy_sums sums;
	struct owners owners; /* of the changed files */
	char *lacking;
	size_t n_mounted; /* of the places of the last run */
	bool complete;
};

static void find_all(const struct policy_tree *t, struct findings *f)
{
	*f = (struct findings){.complete = t->missing};
	if (t->missing)
		return;
	f->sums = policy_tree_sums(t);
	policy_tree_packages(t, policy_file_any, &f->owners);
	f->lacking = policy_tree_lacking(t);
	for (size_t i = 0; i < t->state.n_places; i++)
		f->n_mounted += mount_table_get(&t->mounts, t->state.places[i]) != NULL;
	f->complete = !policy_tree_needs_work(t) && !f->lacking &&
		      f->n_mounted == t->state.n_places &&
		      (t->policy->action == POLICY_PACK || !policy_tree_is_packed(t));
}

static void print_changed(const struct policy_tree *t, const struct findings *f)
{
	char size[24];

	printf("  saved: %s: %zu files changed, %zu removed, %zu packed%s\n",
	       report_size(f->sums.saved, size), f->sums.changed, f->sums.removed,
	       f->sums.packed,
	       t->state.forgotten ? "; what was changed before the state was lost is not "
				    "known"
				  : "");
	if (f->owners.count) {
		printf("  dpkg -V lists them: \"??5??????\" for changed, \"missing\" for "
		       "removed%s; packages:",
		       f->sums.packed ? " and, while they are not mounted, for packed"
				      : "");
		for (size_t i = 0; i < f->owners.count; i++) {
			putchar(' ');
			report_text(f->owners.names[i]);
		}
		putchar('\n');
	} else if (t->state.n_files) {
		puts("  if they belong to packages, dpkg -V or rpm -V lists them");
	}
}

static void print_tree(const struct policy_tree *t, const struct findings *f)
{
	time_t when = (time_t)t->state.when;
	struct tm tm;
	char text[32];

	report_text(t->policy->name);
	fputs(": ", stdout);
	report_text(t->policy->tree);
	if (t->missing) {
		puts(": does not exist");
		return;
	}
	printf(": %s for %s\n", policy_action_name(t->policy->action), t->arch);
	if (when && gmtime_r(&when, &tm) && strftime(text, sizeof(text), "%F %T", &tm))
		printf("  last run: %s UTC\n", text);
	print_changed(t, f);
	if (t->interrupted)
		puts("  the last run did not end");
	if (t->anew)
		puts(t->state.arch ? "  the policy or the GPUs changed since"
				   : "  not applied yet");
	else if (t->look.n_new)
		printf("  files that changed since: %zu\n", t->look.n_new);
	if (t->policy->mount != POLICY_NO_MOUNT)
		printf("  mounted: %zu of %zu places\n", f->n_mounted, t->state.n_places);
	if (t->gone)
		printf("  not in this machine now: %s\n", t->gone);
	if (f->lacking)
		printf("  lacks code for: %s (kpack apply names the packages)\n",
		       f->lacking);
	puts(f->complete ? "  complete" : "  not complete: run kpack apply");
}

static json_t *json_tree(const struct policy_tree *t, const struct findings *f)
{
	static const char *const kinds[STATE_KINDS] = {"changed", "changed", "removed",
						       "packed"};
	json_t *files = json_array(), *places = json_array(), *packages = json_array();

	for (size_t i = 0; i < t->state.n_files && !t->missing; i++) {
		const struct state_file *file = &t->state.files[i];

		json_array_append_new(files,
				      json_pack("{so ss sI sI}", "path",
						report_json_text(file->path), "status",
						kinds[file->kind], "size_before",
						(json_int_t)file->before, "size_after",
						(json_int_t)file->after));
	}
	for (size_t i = 0; i < t->state.n_places && !t->missing; i++) {
		const char *path = t->state.places[i];

		json_array_append_new(
			places,
			json_pack("{so sb}", "path", report_json_text(path), "mounted",
				  mount_table_get(&t->mounts, path) != NULL));
	}
	for (size_t i = 0; i < f->owners.count; i++)
		json_array_append_new(packages, report_json_text(f->owners.names[i]));
	return json_pack("{so so ss ss ss sb sI sI sI sb so so so ss}", "name",
			 report_json_text(t->policy->name), "tree",
			 report_json_text(t->policy->tree), "do",
			 policy_action_name(t->policy->action), "mount",
			 policy_mount_name(t->policy->mount), "arch", t->arch, "complete",
			 f->complete, "last_run", (json_int_t)t->state.when, "files_new",
			 (json_int_t)(t->anew ? t->look.count : t->look.n_new),
			 "bytes_saved", (json_int_t)f->sums.saved, "forgotten",
			 t->state.forgotten, "files", files, "packages", packages,
			 "mounts", places, "lacking", f->lacking ? f->lacking : "");
}

int status_print(const struct policies *list, const struct policy_places *places,
		 bool json)
{
	struct report_array array = {0};
	int status = EXIT_OK;

	for (size_t i = 0; i < list->count; i++) {
		struct policy_tree t;
		struct findings f;

		if (list->items[i].wrong)
			continue;
		if (policy_tree_open(&t, &list->items[i], places) &&
		    policy_tree_look(&t)) {
			find_all(&t, &f);
			if (json)
				report_array_add(&array, json_tree(&t, &f));
			else
				print_tree(&t, &f);
			if (!f.complete)
				status = EXIT_FAULT;
			owners_fini(&f.owners);
			free(f.lacking);
		} else {
			status = EXIT_FAULT;
		}
		policy_tree_fini(&t);
	}
	if (json)
		report_array_end(&array);
	return status;
}
