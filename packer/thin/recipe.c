/* SPDX-License-Identifier: MIT */
#include "recipe.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

void recipe_fini(struct recipe *r)
{
	free(r->parts);
	*r = (struct recipe){0};
}

void recipe_add(struct recipe *r, uint64_t offset, uint64_t size)
{
	struct recipe_part *last = r->n_parts ? &r->parts[r->n_parts - 1] : NULL;

	if (last &&
	    (offset == RECIPE_KEPT ? last->offset == RECIPE_KEPT
				   : last->offset != RECIPE_KEPT &&
					     last->offset + last->size == offset)) {
		last->size += size;
		return;
	}
	xgrow(&r->parts, r->n_parts, &r->parts_cap, sizeof(*r->parts));
	r->parts[r->n_parts++] = (struct recipe_part){offset, size};
}

/* --- writing ------------------------------------------------------------------------- */

static json_t *json_hash(const uint8_t hash[16])
{
	char text[33];

	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	return json_string(text);
}

char *recipe_write(const struct recipe *r)
{
	json_t *parts = json_array(), *object;

	for (size_t i = 0; i < r->n_parts; i++)
		json_array_append_new(parts,
				      json_pack("[II]",
						r->parts[i].offset == RECIPE_KEPT
							? (json_int_t)-1
							: (json_int_t)r->parts[i].offset,
						(json_int_t)r->parts[i].size));
	object = json_pack(
		"{si sI so sb sI so si si si sI sI sI sI so}", "version", 1, "size",
		(json_int_t)r->size, "xxh3", json_hash(r->xxh3), "removed", r->removed,
		"changed_size", (json_int_t)r->changed_size, "changed_xxh3",
		json_hash(r->changed_xxh3), "mode", (int)r->mode, "uid", (int)r->uid,
		"gid", (int)r->gid, "mtime", (json_int_t)r->mtime.tv_sec, "mtime_ns",
		(json_int_t)r->mtime.tv_nsec, "kept", (json_int_t)r->kept.tv_sec,
		"kept_ns", (json_int_t)r->kept.tv_nsec, "parts", parts);
	return report_json_new(object, JSON_COMPACT);
}

/* --- reading ------------------------------------------------------------------------- */

static bool read_hash(const char *text, uint8_t hash[16])
{
	static const char digits[] = "0123456789abcdef";

	if (strlen(text) != 32)
		return false;
	for (int i = 0; i < 32; i++) {
		const char *at = strchr(digits, text[i]);

		if (!at)
			return false;
		hash[i / 2] = (uint8_t)(hash[i / 2] << 4 | (at - digits));
	}
	return true;
}

/* Whether the parts are inside the files; sums of sizes are compared by subtraction. */
static bool read_parts(const json_t *list, struct recipe *r)
{
	uint64_t left = r->size;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_int_t offset, size;

		if (json_unpack((json_t *)json_array_get(list, i), "[II!]", &offset,
				&size) ||
		    offset < -1 || size < 1 || (uint64_t)size > left)
			return false;
		if (offset >= 0 && ((uint64_t)offset > r->changed_size ||
				    (uint64_t)size > r->changed_size - (uint64_t)offset))
			return false;
		left -= (uint64_t)size;
		recipe_add(r, offset < 0 ? RECIPE_KEPT : (uint64_t)offset,
			   (uint64_t)size);
	}
	return left == 0;
}

static bool read_object(json_t *object, struct recipe *r)
{
	json_int_t size, changed, mtime, mtime_ns, kept, kept_ns, mode, uid, gid;
	const char *hash, *changed_hash;
	int version, removed;
	json_t *parts;

	if (json_unpack(object, "{si sI ss sb sI ss sI sI sI sI sI sI sI so}", "version",
			&version, "size", &size, "xxh3", &hash, "removed", &removed,
			"changed_size", &changed, "changed_xxh3", &changed_hash, "mode",
			&mode, "uid", &uid, "gid", &gid, "mtime", &mtime, "mtime_ns",
			&mtime_ns, "kept", &kept, "kept_ns", &kept_ns, "parts", &parts) ||
	    version != 1 || size < 0 || changed < 0 || mtime_ns < 0 ||
	    mtime_ns >= 1000000000 || kept_ns < 0 || kept_ns >= 1000000000)
		return false;
	r->size = (uint64_t)size;
	r->removed = removed;
	r->changed_size = (uint64_t)changed;
	r->mode = (mode_t)mode & 07777;
	r->uid = (uid_t)uid;
	r->gid = (gid_t)gid;
	r->mtime = (struct timespec){mtime, mtime_ns};
	r->kept = (struct timespec){kept, kept_ns};
	return json_is_array(parts) && read_hash(hash, r->xxh3) &&
	       read_hash(changed_hash, r->changed_xxh3) && read_parts(parts, r);
}

kpack_error_t recipe_parse(struct kp_span text, struct recipe *out,
			   struct kpackx_error *why)
{
	json_t *object = json_loadb((const char *)text.data, text.size, 0, NULL);
	struct recipe r = {0};
	bool right = object && read_object(object, &r);

	json_decref(object);
	if (!right) {
		recipe_fini(&r);
		return kp_fail(why, KPACK_ERROR_INVALID_METADATA,
			       "not a recipe of kpack thin --keep");
	}
	*out = r;
	return KPACK_SUCCESS;
}
