/* SPDX-License-Identifier: MIT */
#include "policy_state.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/file.h"
#include "core/base/strbuf.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

/* JSON, a NUL, the hashes of what was seen, and a hash of all that. */

enum { VERSION = 2, HASH_SIZE = sizeof(struct kp_hash), STATE_MAX = 1 << 30 };

static const char *const kinds[STATE_KINDS] = {"thinned", "converted", "removed",
					       "packed"};

/* --- hashes -------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, HASH_SIZE);
}

void *state_find_hash(const struct kp_hash *hash, const void *items, size_t n,
		      size_t size)
{
	return n ? bsearch(hash, items, n, size, by_bytes) : NULL;
}

void state_sort_hashes(void *items, size_t n, size_t size)
{
	if (n)
		qsort(items, n, size, by_bytes);
}

/* --- lists --------------------------------------------------------------------------- */

char *list_next(const char **list)
{
	const char *name;

	if (!*list || !**list)
		return NULL;
	name = *list;
	*list = strchrnul(name, ',');
	*list += **list == ',';
	return xstrndup(name, strcspn(name, ","));
}

bool list_has(const char *list, const char *name)
{
	bool has = false;
	char *item;

	while (!has && (item = list_next(&list))) {
		has = strcmp(item, name) == 0;
		free(item);
	}
	return has;
}

void list_add(char **list, const char *name)
{
	char *longer;

	if (list_has(*list, name))
		return;
	longer = *list ? xasprintf("%s,%s", *list, name) : xstrdup(name);
	free(*list);
	*list = longer;
}

/* --- files and places ---------------------------------------------------------------- */

static void fini_file(struct state_file *f)
{
	free(f->path);
	free(f->has);
	free(f->lost);
	*f = (struct state_file){0};
}

/* The number of the first file whose path is not less than PATH. */
static size_t files_from(const struct state *s, const char *path)
{
	size_t low = 0, high = s->n_files;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(s->files[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct state_file *state_find_file(const struct state *s, const char *path)
{
	size_t i = files_from(s, path);

	return i < s->n_files && strcmp(s->files[i].path, path) == 0 ? &s->files[i]
								     : NULL;
}

void state_put_file(struct state *s, const struct state_file *file)
{
	size_t i = files_from(s, file->path);

	if (i < s->n_files && strcmp(s->files[i].path, file->path) == 0) {
		fini_file(&s->files[i]);
	} else {
		xgrow(&s->files, s->n_files, &s->files_cap, sizeof(*s->files));
		memmove(&s->files[i + 1], &s->files[i],
			(s->n_files - i) * sizeof(*s->files));
		s->n_files++;
	}
	s->files[i] = *file;
}

void state_drop_files(struct state *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_files; i++) {
		if (s->files[i].path)
			s->files[kept++] = s->files[i];
		else
			fini_file(&s->files[i]);
	}
	s->n_files = kept;
}

void state_add_place(struct state *s, const char *path)
{
	xgrow(&s->places, s->n_places, &s->places_cap, sizeof(*s->places));
	s->places[s->n_places++] = xstrdup(path);
}

void state_clear_places(struct state *s)
{
	for (size_t i = 0; i < s->n_places; i++)
		free(s->places[i]);
	s->n_places = 0;
}

void state_fini(struct state *s)
{
	state_clear_places(s);
	for (size_t i = 0; i < s->n_files; i++)
		fini_file(&s->files[i]);
	free(s->places);
	free(s->files);
	free(s->seen);
	json_decref(s->parts);
	free(s->tree);
	free(s->arch);
	*s = (struct state){0};
}

/* --- reading ------------------------------------------------------------------------- */

/* A list of GPUs, which is printed as it is; NULL: it is empty. */
static bool take_list(const char *text, char **out)
{
	*out = *text ? xstrdup(text) : NULL;
	return !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789:+-,")];
}

/* A path, which report_json_text may have escaped. */
static char *take_path(const char *text)
{
	char *path = xstrdup(text);

	kp_text_unescape(path);
	return path;
}

static bool take_file(json_t *item, struct state *s)
{
	const char *kind, *path, *has, *lost;
	json_int_t before, after, ino, mtime;
	struct state_file f = {0};
	int link, planned, owned, k = 0;
	bool fine;

	if (json_unpack(item, "[s s s s I I I I b b b!]", &kind, &path, &has, &lost,
			&before, &after, &ino, &mtime, &link, &planned, &owned))
		return false;
	while (k < STATE_KINDS && strcmp(kinds[k], kind) != 0)
		k++;
	f = (struct state_file){.kind = (enum state_kind)k,
				.path = take_path(path),
				.link = link,
				.planned = planned,
				.owned = owned,
				.before = (uint64_t)before,
				.after = (uint64_t)after,
				.ino = (uint64_t)ino,
				.mtime = (uint64_t)mtime};
	fine = take_list(has, &f.has) && take_list(lost, &f.lost) && k < STATE_KINDS &&
	       after >= 0 && after <= before && kp_path_inside(f.path);
	if (!fine)
		fini_file(&f);
	else
		state_put_file(s, &f);
	return fine;
}

static bool take_state(json_t *json, struct state *s)
{
	const char *tree, *arch, *action;
	int version, strip, sure, packed, forgotten, mount;
	json_t *files, *places, *parts, *list;
	const char *name;
	json_int_t when;
	bool fine;

	if (json_unpack(json, "{si ss ss ss sb sI sb sb sb si so so so!}", "version",
			&version, "tree", &tree, "arch", &arch, "do", &action, "strip",
			&strip, "when", &when, "sure", &sure, "packed", &packed,
			"forgotten", &forgotten, "mount", &mount, "places", &places,
			"files", &files, "parts", &parts) ||
	    version != VERSION)
		return false;
	s->tree = take_path(tree);
	s->action = strcmp(action, policy_action_name(POLICY_PACK)) == 0 ? POLICY_PACK
									 : POLICY_THIN;
	s->strip = strip;
	s->when = when;
	s->sure = sure;
	s->packed = packed;
	s->forgotten = forgotten;
	s->mount = (enum policy_mount)mount;
	s->parts = json_incref(parts);
	fine = take_list(arch, &s->arch) && mount >= 0 && mount <= POLICY_OVERLAY &&
	       s->tree[0] == '/' && json_is_object(parts);
	json_object_foreach(parts, name, list) fine &= json_is_string(list);
	for (size_t i = 0; i < json_array_size(places) && fine; i++) {
		const char *place = json_string_value(json_array_get(places, i));
		char *path = take_path(place ? place : "");

		fine = path[0] == '/';
		state_add_place(s, path);
		free(path);
	}
	for (size_t i = 0; i < json_array_size(files) && fine; i++)
		fine = take_file(json_array_get(files, i), s);
	return fine;
}

kpack_error_t state_parse(struct kp_span data, struct state *out,
			  struct kpackx_error *why)
{
	const uint8_t *end = data.size ? memchr(data.data, 0, data.size) : NULL;
	size_t rest = end ? data.size - (size_t)(end + 1 - data.data) : 0;
	struct kp_hash sum;
	json_t *json;
	bool fine;

	if (rest < HASH_SIZE || rest % HASH_SIZE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "damaged: not a state of this version");
	sum = kp_hash_of(data.data, data.size - HASH_SIZE);
	if (!kp_hash_is(&sum, data.data + data.size - HASH_SIZE))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "damaged: the checksum does not match");
	out->n_seen = rest / HASH_SIZE - 1;
	out->seen = xmalloc(rest);
	memcpy(out->seen, end + 1, rest - HASH_SIZE);
	state_sort_hashes(out->seen, out->n_seen, HASH_SIZE); /* a look-up relies on it */
	json = json_loadb((const char *)data.data, (size_t)(end - data.data), 0, NULL);
	fine = json && take_state(json, out);
	json_decref(json);
	return fine ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "damaged: not as it was written");
}

kpack_error_t state_read(const char *path, struct state *out, struct kpackx_error *why)
{
	struct stat st;
	uint8_t *data;
	kpack_error_t err;
	size_t size;

	if (below_lstat(path, &st) < 0)
		return kp_fail(why, KPACK_ERROR_FILE_NOT_FOUND, "there is none");
	KP_TRY(policy_file_load(path, STATE_MAX, &data, &size, why));
	err = state_parse((struct kp_span){data, size}, out, why);
	free(data);
	return err;
}

/* --- writing ------------------------------------------------------------------------- */

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

uint8_t *state_format(const struct state *s, size_t *size)
{
	json_t *files = json_array(), *places = json_array();
	size_t seen = s->n_seen * HASH_SIZE;
	struct kp_hash sum;
	uint8_t *data;
	char *json;

	for (size_t i = 0; i < s->n_places; i++)
		json_array_append_new(places, report_json_text(s->places[i]));
	for (size_t i = 0; i < s->n_files; i++) {
		const struct state_file *f = &s->files[i];

		json_array_append_new(
			files,
			json_pack("[s o s s I I I I b b b]", kinds[f->kind],
				  report_json_text(f->path), or_empty(f->has),
				  or_empty(f->lost), (json_int_t)f->before,
				  (json_int_t)f->after, (json_int_t)f->ino,
				  (json_int_t)f->mtime, f->link, f->planned, f->owned));
	}
	json = report_json_new(
		json_pack("{si so ss ss sb sI sb sb sb si so so so}", "version", VERSION,
			  "tree", report_json_text(or_empty(s->tree)), "arch",
			  or_empty(s->arch), "do", policy_action_name(s->action), "strip",
			  s->strip, "when", (json_int_t)s->when, "sure", s->sure,
			  "packed", s->packed, "forgotten", s->forgotten, "mount",
			  s->mount, "places", places, "files", files, "parts",
			  s->parts ? json_incref(s->parts) : json_object()),
		JSON_COMPACT);
	*size = strlen(json) + 1;
	data = xrealloc(json, *size + seen + HASH_SIZE);
	if (seen)
		memcpy(data + *size, s->seen, seen);
	*size += seen;
	sum = kp_hash_of(data, *size);
	memcpy(data + *size, sum.bytes, HASH_SIZE);
	*size += HASH_SIZE;
	return data;
}

kpack_error_t state_write(const char *path, const struct state *s,
			  struct kpackx_error *why)
{
	size_t size;
	uint8_t *data = state_format(s, &size);
	kpack_error_t err =
		below_file_write(path, 0644, (struct kp_span){data, size}, why);

	free(data);
	return err;
}
