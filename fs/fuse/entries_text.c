/* SPDX-License-Identifier: MIT */
#include "fs/tree/path_owners.h"
#include "fs/tree/entry_facts.h"
#include "entries_text.h"
#include "fs/tree/walk.h"

/* Room for the metadata, and for names in which each byte may become six in JSON. */
#define LINE_MAX_BYTES (KP_JSON_MAX + 8 * 6 * KP_NAME_MAX)

/* Room for a part of a bundle: its archive's path, its architecture, two numbers. */
#define PART_MAX_BYTES (3 * 6 * KP_NAME_MAX)

struct entries_text {
	const struct edition *edition;
	const struct path_owners *claims;
	FILE *out;
};

/* The entry that owns a name, or another entry with the same content. */
static struct claim holder(const struct entries_text *in, uint32_t name)
{
	struct kp_view_name n = kp_view_name(in->edition->view, name);
	struct claim c;

	if (!path_owners_holder(in->claims, name, &c))
		c.archive = kp_view_entry(in->edition->view, n.index, &c.entry);
	return c;
}

/* Write a line: PATH, and the facts of the entry, or of BUNDLE if that is not NULL. */
static bool put_facts(const struct entries_text *in, struct kp_span path, struct claim c,
		      const struct bundle *bundle)
{
	struct kp_span line;
	struct kp_json j;
	bool ok;

	kp_json_init(&j, LINE_MAX_BYTES + (bundle ? bundle->count : 0) * PART_MAX_BYTES);
	kp_json_raw(&j, "{\"path\":");
	kp_json_string(&j, path);
	kp_json_raw(&j, ",");
	if (bundle)
		facts_put_bundle(&j, bundle);
	else
		facts_put(&j, c.archive, c.entry);
	kp_json_raw(&j, "}\n");
	ok = !kp_json_finish(&j, &line, NULL);
	if (ok)
		fwrite(line.data, 1, line.size, in->out);
	kp_json_fini(&j);
	return ok && !ferror(in->out);
}

static bool put_line(void *user, struct kp_span path, uint32_t name)
{
	const struct entries_text *in = user;
	struct kp_view_name n = kp_view_name(in->edition->view, name);
	struct file_content file;
	bool ok;

	if (n.kind != KP_VIEW_BUNDLE)
		return put_facts(in, path, holder(in, name), NULL);
	if (!edition_file(in->edition, n.index, &file))
		return false;
	ok = put_facts(in, path, (struct claim){0}, file.bundle);
	file_content_unref(&file);
	return ok;
}

bool entries_text_put(FILE *f, const struct edition *e, const struct kp_choice *arches)
{
	struct entries_text in = {.edition = e, .out = f};
	struct path_owners *claims = path_owners_new(e, arches);
	bool ok = claims != NULL;

	in.claims = claims;
	ok = ok && walk_files(e->view, e->tree, put_line, &in);
	path_owners_free(claims);
	return ok;
}
