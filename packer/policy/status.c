/* SPDX-License-Identifier: MIT */
#include "status.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "packer/base/xalloc.h"
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
	f->sums = policy_tree_sums(t);
	policy_tree_packages(t, POLICY_CHANGED, &f->owners);
	f->lacking = policy_tree_lacking(t);
	f->n_mounted = 0;
	for (size_t i = 0; i < t->state.n_places; i++)
		f->n_mounted += mount_table_get(&t->mounts, t->state.places[i]) != NULL;
	f->complete = !policy_tree_needs_work(t) && !f->lacking &&
		      f->n_mounted == t->state.n_places &&
		      (t->policy->action == POLICY_PACK || !policy_tree_is_packed(t));
}

static void fini_findings(struct findings *f)
{
	owners_fini(&f->owners);
	free(f->lacking);
}

/* --- text ---------------------------------------------------------------------------- */

static void print_time(int64_t when)
{
	time_t seconds = (time_t)when;
	struct tm tm;
	char text[32];

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%F %T", &tm))
		printf("  last run: %s UTC\n", text);
}

static void print_changed(const struct policy_tree *t, const struct findings *f)
{
	char size[24];

	printf("  saved: %s: %zu files changed, %zu removed, %zu packed%s\n",
	       report_size(policy_sums_saved(&f->sums), size), f->sums.changed,
	       f->sums.removed, f->sums.packed,
	       t->state.forgotten ? "; what was changed before the state was lost is not "
				    "known"
				  : "");
	if (f->owners.count == 0) {
		if (t->state.n_files)
			puts("  if they belong to packages, dpkg -V or rpm -V lists "
			     "them");
		return;
	}
	printf("  dpkg -V lists them: \"??5??????\" for changed, \"missing\" for "
	       "removed%s; "
	       "packages:",
	       f->sums.packed ? " and, while they are not mounted, for packed" : "");
	for (size_t i = 0; i < f->owners.count; i++) {
		putchar(' ');
		report_text(f->owners.names[i]);
	}
	putchar('\n');
}

static void print_rest(const struct policy_tree *t, const struct findings *f)
{
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

static void print_tree(const struct policy_tree *t, const struct findings *f)
{
	report_text(t->policy->name);
	fputs(": ", stdout);
	report_text(t->policy->tree);
	printf(": %s for %s\n", policy_action_name(t->policy->action), t->arch);
	if (t->state.when)
		print_time(t->state.when);
	print_changed(t, f);
	print_rest(t, f);
}

/* --- JSON ---------------------------------------------------------------------------- */

static const char *const kinds[] = {"changed", "removed", "packed", "changed"};

static json_t *json_files(const struct policy_tree *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->state.n_files; i++) {
		const struct state_file *f = &t->state.files[i];

		json_array_append_new(list, json_pack("{so ss sI sI}", "path",
						      report_json_text(f->path), "status",
						      kinds[f->kind], "size_before",
						      (json_int_t)f->before, "size_after",
						      (json_int_t)f->after));
	}
	return list;
}

static json_t *json_places(const struct policy_tree *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->state.n_places; i++)
		json_array_append_new(
			list, json_pack("{so sb}", "path",
					report_json_text(t->state.places[i]), "mounted",
					mount_table_get(&t->mounts, t->state.places[i]) !=
						NULL));
	return list;
}

static json_t *json_owners(const struct owners *owners)
{
	json_t *list = json_array();

	for (size_t i = 0; i < owners->count; i++)
		json_array_append_new(list, report_json_text(owners->names[i]));
	return list;
}

static json_t *json_tree(const struct policy_tree *t, const struct findings *f)
{
	return json_pack("{so so ss ss ss sb sI sI sI sb so so so ss}", "name",
			 report_json_text(t->policy->name), "tree",
			 report_json_text(t->policy->tree), "do",
			 policy_action_name(t->policy->action), "mount",
			 policy_mount_name(t->policy->mount), "arch", t->arch, "complete",
			 f->complete, "last_run", (json_int_t)t->state.when, "files_new",
			 (json_int_t)(t->anew ? t->look.n_files : t->look.n_new),
			 "bytes_saved", (json_int_t)policy_sums_saved(&f->sums),
			 "forgotten", t->state.forgotten, "files", json_files(t),
			 "packages", json_owners(&f->owners), "mounts", json_places(t),
			 "lacking", f->lacking ? f->lacking : "");
}

/* --- all ----------------------------------------------------------------------------- */

int status_print(const struct policies *list, const struct policy_places *places,
		 bool json)
{
	struct report_array array = {0};
	int status = EXIT_OK;

	for (size_t i = 0; i < list->count; i++) {
		struct policy_tree t;
		struct findings f;

		if (!policy_tree_open(&t, &list->items[i], places) ||
		    !policy_tree_look(&t)) {
			policy_tree_fini(&t);
			status = EXIT_FAULT;
			continue;
		}
		find_all(&t, &f);
		if (json)
			report_array_add(&array, json_tree(&t, &f));
		else
			print_tree(&t, &f);
		if (!f.complete)
			status = EXIT_FAULT;
		fini_findings(&f);
		policy_tree_fini(&t);
	}
	if (json)
		report_array_end(&array);
	return status;
}
