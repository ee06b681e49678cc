/* SPDX-License-Identifier: MIT */
#include "index_variants.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

static bool any_variant(const struct index_wheel *const *wheels, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (wheels[i]->variant)
			return true;
	return false;
}

static kpack_error_t refuse_wheel(struct kpackx_error *why, const struct index_wheel *w,
				  const char *text)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: variant.json: %s", w->file,
		       text);
}

/* Add the members of FROM to TO; false: a key of both has different values. */
static bool join_object(json_t *to, json_t *from)
{
	const char *key;
	json_t *value;

	json_object_foreach(from, key, value)
	{
		json_t *there = json_object_get(to, key);

		if (there && !json_equal(there, value))
			return false;
		if (!there && json_object_set(to, key, value))
			xalloc_fail(0);
	}
	return true;
}

/*
 * Whether ROOT is of an earlier draft (PEP 817), as in the host wheels of AMD's program:
 * one label stands for all its variants.
 */
static bool is_earlier(json_t *root, json_t *variants, const char *label)
{
	return json_object_get(root, "providers") && json_is_object(variants) && *label &&
	       !json_object_get(variants, label);
}

static kpack_error_t add_wheel(json_t *all, const struct index_wheel *w,
			       struct kpackx_error *why)
{
	json_error_t error;
	json_t *root = json_loads(w->variant, JSON_REJECT_DUPLICATES, &error);
	json_t *variants = json_object_get(root, "variants");
	json_t *known = json_object_get(all, "variants");
	kpack_error_t err = KPACK_SUCCESS;

	if (!root)
		return refuse_wheel(why, w, error.text);
	if (is_earlier(root, variants, w->name.variant)) {
		json_decref(root);
		return KPACK_SUCCESS;
	}
	if (!json_is_object(variants))
		err = refuse_wheel(why, w, "no variants");
	else if (*w->name.variant && !json_object_get(variants, w->name.variant))
		err = refuse_wheel(why, w, "not the label of the wheel's name");
	else if (known && !join_object(known, variants))
		err = refuse_wheel(why, w,
				   "a label has another meaning in another wheel");
	if (!err && known)
		json_object_set(root, "variants", known);
	if (!err && !join_object(all, root))
		err = refuse_wheel(why, w, "it contradicts that of another wheel");
	json_decref(root);
	return err;
}

kpack_error_t index_variants(const struct index_wheel *const *wheels, size_t count,
			     char **text, struct kpackx_error *why)
{
	json_t *all;
	kpack_error_t err = KPACK_SUCCESS;

	*text = NULL;
	if (!any_variant(wheels, count))
		return KPACK_SUCCESS;
	all = json_object();
	for (size_t i = 0; !err && i < count; i++)
		if (wheels[i]->variant)
			err = add_wheel(all, wheels[i], why);
	if (err || json_object_size(all) == 0)
		json_decref(all);
	else
		*text = report_json_new(all, JSON_INDENT(1) | JSON_SORT_KEYS);
	return err;
}
