/* SPDX-License-Identifier: MIT */
#include "disposition.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"

static const char *const names[] = {
	[FATE_NOTHING] = "nothing",     [FATE_COPIED] = "copied",
	[FATE_UNCHANGED] = "unchanged", [FATE_LINKED] = "linked",
	[FATE_SYMLINK] = "symlink",     [FATE_SPECIAL] = "special",
	[FATE_CONVERTED] = "converted", [FATE_ALREADY_CONVERTED] = "already converted",
	[FATE_REFUSED] = "refused",     [FATE_LEFT_ALONE] = "left alone",
	[FATE_LEFT_OUT] = "left out",   [FATE_PACKED] = "packed",
	[FATE_KEPT] = "kept",           [FATE_REMOVED] = "removed",
	[FATE_NOT_WANTED] = "left out",
};

const char *disposition_name(enum fate fate)
{
	return names[fate];
}

static enum fate expected_fate(const struct scan *scan, size_t entry, bool in_place)
{
	const struct scan_entry *e = &scan->entries[entry];

	if (e->leftover)
		return FATE_LEFT_OUT;
	if (S_ISDIR(e->mode) || (in_place && e->archive))
		return FATE_NOTHING;
	if (e->first != entry)
		return FATE_LINKED;
	if (S_ISLNK(e->mode))
		return FATE_SYMLINK;
	if (!S_ISREG(e->mode))
		return FATE_SPECIAL;
	if (e->input && !e->database)
		return e->input->kind == INPUT_HOST ? FATE_CONVERTED : FATE_KEPT;
	if (e->converted)
		return FATE_ALREADY_CONVERTED;
	if (e->note)
		return FATE_LEFT_ALONE;
	return in_place ? FATE_UNCHANGED : FATE_COPIED;
}

static const char *reason_of(const struct scan_entry *e, enum fate fate)
{
	if (fate == FATE_LEFT_OUT)
		return "a temporary file of a run that was killed";
	return fate == FATE_LEFT_ALONE ? e->note : NULL;
}

void disposition_set(struct disposition *o, enum fate fate, const char *reason)
{
	free(o->reason);
	o->reason = reason ? xstrdup(reason) : NULL;
	o->fate = fate;
}

void dispositions_open(const struct scan *scan, bool in_place, struct dispositions *out)
{
	*out = (struct dispositions){
		.items = xcalloc(scan->n_entries, sizeof(*out->items)),
		.count = scan->n_entries};
	for (size_t i = 0; i < scan->n_entries; i++) {
		enum fate fate = expected_fate(scan, i, in_place);

		disposition_set(&out->items[i], fate, reason_of(&scan->entries[i], fate));
	}
}

void dispositions_close(struct dispositions *list)
{
	for (size_t i = 0; list->items && i < list->count; i++)
		free(list->items[i].reason);
	free(list->items);
	*list = (struct dispositions){0};
}
