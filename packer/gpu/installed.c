/* SPDX-License-Identifier: MIT */
/*
 * dpkg's file is read line by line, a paragraph for each package.  It comes from the system,
 * but its names are printed for command lines, so that only names as dpkg allows them pass.
 * A package "base" has its code in packages that enhance it, "base-gfx1100"; which of them a
 * GPU lacks follows from the fields of both.
 */
#include "installed.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"

/* --- dpkg's file ---------------------------------------------------------------- */

static const char separators[] = " \t\n,|";

/* Step to the next word of *LIST; what stands in parentheses is none. */
static bool next_word(const char **list, const char **word, size_t *size)
{
	for (;;) {
		*list += strspn(*list, separators);
		*word = *list;
		if (**list == '(') {
			*list += strcspn(*list, ")");
			*list += **list == ')';
			continue;
		}
		*size = strcspn(*list, " \t\n,|(");
		*list += *size;
		return *size > 0;
	}
}

static void fini_package(struct gpu_installed_package *p)
{
	free(p->name);
	free(p->gpus);
	free(p->suggests);
	free(p->base);
	*p = (struct gpu_installed_package){0};
}

/* No package has that many GPUs: lines beyond this size of a value are dropped. */
enum { VALUE_MAX = 1 << 16 };

/* Append the N bytes at TEXT to *VALUE, which stays NULL while nothing is in it. */
static void append_value(char **value, const char *text, size_t n)
{
	size_t old = *value ? strlen(*value) : 0;

	while (n && strchr(" \t\r", text[n - 1]))
		n--;
	if (n == 0 || n >= VALUE_MAX || old >= VALUE_MAX - n)
		return;
	*value = xrealloc(*value, old + n + 2);
	(*value)[old] = ' ';
	memcpy(*value + old + 1, text, n);
	(*value)[old + 1 + n] = '\0';
}

/* A paragraph that is being read. */
struct paragraph {
	struct gpu_installed_package package;
	char *status;
	char **field; /* the last one; NULL: one that is not needed */
};

static void take_line(struct paragraph *p, const char *line, size_t n)
{
	const struct {
		const char *name;
		char **value;
	} fields[] = {{"Package", &p->package.name},
		      {"Status", &p->status},
		      {"Enhances", &p->package.base},
		      {"Suggests", &p->package.suggests},
		      {"X-Rocm-Gpu-Architecture", &p->package.gpus}};
	const char *colon = memchr(line, ':', n);

	/* a line that begins with a blank continues the field before it */
	if (*line != ' ' && *line != '\t') {
		size_t name = colon ? (size_t)(colon - line) : 0;

		p->field = NULL;
		/* a field counts once */
		for (size_t i = 0; i < KP_COUNT(fields); i++)
			if (name && strlen(fields[i].name) == name &&
			    strncasecmp(fields[i].name, line, name) == 0 &&
			    !*fields[i].value)
				p->field = fields[i].value;
		if (colon) {
			n -= name + 1;
			line = colon + 1;
		}
	}
	if (p->field)
		append_value(p->field, line, n);
}

/* Whether STATUS is "WANTED ERROR STATE" of a package that is installed as a whole. */
static bool is_installed(const char *status)
{
	const char *state = status ? strrchr(status, ' ') : NULL;

	return state && (strcmp(state, " installed") == 0 ||
			 strcmp(state, " triggers-awaited") == 0 ||
			 strcmp(state, " triggers-pending") == 0);
}

/*
 * Replace *VALUE by its first word, or by NULL if that cannot be a package's name, which is
 * printed for command lines.
 */
static void keep_name(char **value)
{
	const char *list = *value ? *value : "", *word;
	char *name = NULL;
	size_t size;

	if (next_word(&list, &word, &size) && *word != '-' &&
	    strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789.+-") >= size)
		name = xstrndup(word, size);
	free(*value);
	*value = name;
}

static void end_paragraph(struct paragraph *p, struct gpu_installed *out)
{
	struct gpu_installed_package *q = &p->package;

	keep_name(&q->name);
	keep_name(&q->base);
	if (q->base && !q->gpus) {
		free(q->base);
		q->base = NULL;
	}
	if (q->name && is_installed(p->status) && (q->gpus || q->suggests)) {
		xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
		out->items[out->count++] = *q;
		*q = (struct gpu_installed_package){0};
	}
	fini_package(q);
	free(p->status);
	*p = (struct paragraph){0};
}

void gpu_installed_parse(struct kp_span status, struct gpu_installed *out)
{
	struct paragraph p = {0};
	size_t kept = 0;

	*out = (struct gpu_installed){0};
	while (status.size) {
		const char *line = (const char *)status.data;
		const char *end = memchr(line, '\n', status.size);
		size_t n = end ? (size_t)(end - line) : status.size;

		if (n == 0)
			end_paragraph(&p, out);
		else if (!memchr(line, '\0', n))
			take_line(&p, line, n);
		status = kp_span_tail(status, end ? n + 1 : n);
	}
	end_paragraph(&p, out);
	kp_sort(out->items, out->count, KP_BY_TEXT(struct gpu_installed_package, name));
	/* a package may be installed for several machines */
	for (size_t i = 0; i < out->count; i++) {
		if (kept && strcmp(out->items[kept - 1].name, out->items[i].name) == 0)
			fini_package(&out->items[i]);
		else
			out->items[kept++] = out->items[i];
	}
	out->count = kept;
}

void gpu_installed_fini(struct gpu_installed *list)
{
	for (size_t i = 0; i < list->count; i++)
		fini_package(&list->items[i]);
	free(list->items);
	*list = (struct gpu_installed){0};
}

/* --- which packages GPUs need --------------------------------------------------- */

/* Whether the family WORD, as packages name it, has KIND. */
static bool is_family_of(const char *word, size_t n, const struct gpu_kind *kind)
{
	const struct gpu_subfamily *s = kind->subfamily;
	const char *const names[] = {s ? s->name : "", s ? s->family : "",
				     s ? s->series : ""};

	for (size_t i = 0; i < KP_COUNT(names); i++)
		if (n && names[i] && strlen(names[i]) == n &&
		    strncasecmp(names[i], word, n) == 0)
			return true;
	return false;
}

static bool serves_kind(const struct gpu_installed_package *p,
			const struct gpu_kind *kind)
{
	const char *list = p->gpus ? p->gpus : "", *word;
	struct kp_target code;
	size_t n;

	while (next_word(&list, &word, &n))
		if (is_family_of(word, n, kind) ||
		    (!kp_target_parse((struct kp_span){(const uint8_t *)word, n}, &code,
				      NULL) &&
		     kp_target_fit(&kind->target, &code) != KP_FIT_NONE))
			return true;
	return false;
}

bool gpu_installed_serves(const struct gpu_installed_package *p,
			  const struct gpu_kinds *kinds)
{
	const char *list = p->gpus ? p->gpus : "", *word;
	struct kp_target code;
	size_t n;

	for (size_t i = 0; i < kinds->count; i++)
		if (serves_kind(p, &kinds->items[i]))
			return true;
	while (next_word(&list, &word, &n))
		if (kp_target_parse((struct kp_span){(const uint8_t *)word, n}, &code,
				    NULL) ||
		    !code.known)
			return true;
	return false;
}

char *gpu_installed_lacks(const struct gpu_installed *list,
			  const struct gpu_installed_package *p,
			  const struct gpu_kind *kind)
{
	const struct gpu_names names = {.package = p->name};
	KP_AUTO_FREE char *code = xasprintf("%s-device-code", p->name);
	const char *suggests = p->suggests ? p->suggests : "", *word;
	bool has_parts =
		false; /* packages for GPUs: P suggests them, or one is installed */
	size_t n;

	if (p->base || serves_kind(p, kind))
		return NULL;
	while (!has_parts && next_word(&suggests, &word, &n))
		has_parts = n == strlen(code) && memcmp(word, code, n) == 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct gpu_installed_package *part = &list->items[i];

		if (!part->base || strcmp(part->base, p->name) != 0)
			continue;
		if (serves_kind(part, kind))
			return NULL;
		has_parts = true;
	}
	return has_parts ? gpu_package_name(&names, kind->arch) : NULL;
}

/* --- which archives have code for them ------------------------------------------ */

/* The group of A; if it states none, its file's name. */
static struct kp_span group_of(const struct kpack_archive *a)
{
	struct kp_span group = kp_archive_group(a);

	return group.size ? group : kp_span_str(kp_path_name(kp_archive_path(a)));
}

/* Whether A has entries that are for every GPU (NEUTRAL), or that are not. */
static bool has_entries(const struct kpack_archive *a, bool neutral)
{
	struct kp_target t;

	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if ((!kp_target_parse(kp_span_str(kp_archive_arch(a, i)), &t, NULL) &&
		     kp_target_neutral(&t)) == neutral)
			return true;
	return false;
}

void gpu_served_open(struct gpu_served *served, int n, char **operands, const char *group)
{
	struct archives *set = &served->archives;
	size_t kept = 0;

	*served = (struct gpu_served){0};
	archives_open(set, n, operands);
	for (size_t i = 0; i < set->count; i++) {
		if (!group || kp_span_is(group_of(set->items[i]), group))
			set->items[kept++] = set->items[i];
		else
			kp_archive_close(set->items[i]);
	}
	set->count = kept;
	served->groups = xcalloc(set->count + 1, sizeof(*served->groups));
	/* a group that was requested by name counts even if it has no archive */
	if (group)
		served->groups[served->n_groups++] = kp_span_str(group);
	for (size_t i = 0; i < set->count; i++) {
		bool listed = !has_entries(set->items[i], false);

		for (size_t g = 0; g < served->n_groups && !listed; g++)
			listed = kp_span_eq(served->groups[g], group_of(set->items[i]));
		if (!listed)
			served->groups[served->n_groups++] = group_of(set->items[i]);
	}
}

void gpu_served_close(struct gpu_served *served)
{
	free(served->groups);
	archives_close(&served->archives);
	*served = (struct gpu_served){0};
}

bool gpu_served_by(const struct gpu_served *served, size_t i, const struct gpu_kind *kind)
{
	const struct kpack_archive *a = served->archives.items[i];

	return kp_archive_serves(a, &kind->target) || has_entries(a, true);
}

bool gpu_served_group(const struct gpu_served *served, size_t g,
		      const struct gpu_kind *kind)
{
	for (size_t i = 0; i < served->archives.count; i++)
		if (kp_span_eq(group_of(served->archives.items[i]), served->groups[g]) &&
		    kp_archive_serves(served->archives.items[i], &kind->target))
			return true;
	return false;
}
