/* SPDX-License-Identifier: MIT */
/* Match rules against files.  rules_file.c reads rules from a file. */
#include "rules.h"
#include <fnmatch.h>
#include <stdio.h>
#include "arch_name.h"
#include "core/target/target.h"

/* A rule's result for a file. */
struct answer {
	char arch[KP_TARGET_TEXT_MAX]; /* its GPU; "" if only the content can say */
	struct kp_span variant;        /* name of a stepping's directory; or empty */
};

static bool from_component(struct kp_span rest, size_t n, struct answer *out)
{
	struct kp_span name = path_component(rest, n);
	bool variant;

	if (!arch_of_directory(name, out->arch, &variant))
		return false;
	if (variant)
		out->variant = name;
	return true;
}

/* Look for a GPU in the directories; the last component is the file itself. */
static bool from_directories(struct kp_span rest, bool deep, struct answer *out)
{
	size_t n = path_depth(rest) - 1;

	for (size_t i = 0; i < (deep ? n : n < 1 ? n : 1); i++)
		if (from_component(rest, i, out))
			return true;
	return false;
}

static bool find_rest(const struct rule *r, const char *path, struct kp_span *rest)
{
	if (*r->directory)
		return path_below(path, r->directory, rest);
	*rest = kp_span_str(path);
	return true;
}

static bool match_rule(const struct rule *r, const struct library_question *q,
		       struct answer *out)
{
	struct kp_span rest, name = path_name(q->path);

	*out = (struct answer){0};
	if (fnmatch(r->name, (const char *)name.data, 0) != 0 ||
	    !find_rest(r, q->path, &rest))
		return false;
	switch (r->where) {
	case RULE_DIRECTORY:
	case RULE_BELOW:
		return from_directories(rest, r->where == RULE_BELOW, out);
	case RULE_NAME:
		return arch_of_name(name, out->arch);
	case RULE_TARGET:
		snprintf(out->arch, sizeof(out->arch), "%s", r->target);
		return true;
	case RULE_CONTENT:
	case RULE_GENERIC:
		return true;
	}
	return false;
}

bool rules_probe(const struct library *self, const struct library_question *q)
{
	const struct rule_list *list = self->data;
	struct answer answer;

	for (size_t i = 0; i < list->count; i++)
		if (match_rule(&list->items[i], q, &answer))
			return true;
	return false;
}

/* --- the content ------------------------------------------------------------------------ */

static kpack_error_t states_arch(const struct library_question *q, bool *yes,
				 struct kpackx_error *why)
{
	struct content c;

	KP_TRY(content_look(q, &c, why));
	*yes = c.n_arches > 0;
	content_fini(&c);
	return KPACK_SUCCESS;
}

static kpack_error_t describe_file(const struct rule *r, const struct answer *answer,
				   const struct library_question *q,
				   struct library_object *out, struct kpackx_error *why)
{
	const char *container = content_container(q);
	char named[KP_TARGET_TEXT_MAX];

	out->role = r->role;
	out->at_random =
		strcmp(container, "sqlite") == 0 || strcmp(container, "zip") == 0;
	if (r->where == RULE_GENERIC) {
		if (*container)
			facts_string(&out->facts, "container", container);
		library_add_arch(out, KP_ARCH_GENERIC);
		return KPACK_SUCCESS;
	}
	snprintf(named, sizeof(named), "%s", answer->arch);
	if (r->where == RULE_DIRECTORY || r->where == RULE_BELOW)
		arch_named(q->path, answer->arch, named, out);
	KP_TRY(arch_decide(q, named, out, why));
	if (answer->variant.size)
		facts_text(&out->facts, "variant", answer->variant);
	return KPACK_SUCCESS;
}

kpack_error_t rules_check(const struct library *self, const struct library_question *q,
			  bool *mine, struct library_object *out,
			  struct kpackx_error *why)
{
	const struct rule_list *list = self->data;

	if (!list->host_files && strcmp(content_container(q), "host-elf") == 0)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < list->count; i++) {
		const struct rule *r = &list->items[i];
		struct answer answer;
		bool fit = match_rule(r, q, &answer);

		if (fit && r->where == RULE_CONTENT)
			KP_TRY(states_arch(q, &fit, why));
		if (!fit)
			continue;
		*mine = true;
		return describe_file(r, &answer, q, out, why);
	}
	return KPACK_SUCCESS;
}
