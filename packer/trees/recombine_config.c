/* SPDX-License-Identifier: MIT */
#include "recombine_config.h"
#include <stdlib.h>
#include <unistd.h>
#include "core/base/file.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/report.h"
#include "core/target/target.h"
#include "core/base/text.h"

void recombine_config_fini(struct recombine_config *config)
{
	for (size_t i = 0; i < config->n_groups; i++) {
		struct recombine_group *g = &config->groups[i];

		for (size_t j = 0; j < g->n_arches; j++)
			free(g->arches[j]);
		free(g->arches);
		free(g->name);
		free(g->display_name);
	}
	free(config->groups);
	free(config->primary);
	kp_faults_fini(&config->warnings);
	*config = (struct recombine_config){0};
}

static const char *type_of(const json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",  [JSON_INTEGER] = "a number",
		[JSON_REAL] = "a number",    [JSON_TRUE] = "true",
		[JSON_FALSE] = "false",      [JSON_NULL] = "null",
	};

	return names[json_typeof(value)];
}

/* Escape the name of a field or a value, for messages. */
static const char *escape_name(const char *text, char out[80])
{
	return kp_text_escape(kp_span_str(text), out, 80);
}

static kpack_error_t refuse_value(struct kpackx_error *why, const char *field,
				  const json_t *value, const char *wanted)
{
	return value ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: is %s, not %s",
			       field, type_of(value), wanted)
		     : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: is missing",
			       field);
}

static kpack_error_t take_text(const json_t *value, const char *field, char **out,
			       struct kpackx_error *why)
{
	if (!json_is_string(value))
		return refuse_value(why, field, value, "a string");
	if (strlen(json_string_value(value)) != json_string_length(value))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: has a NUL in it",
			       field);
	*out = xstrdup(json_string_value(value));
	return KPACK_SUCCESS;
}

/* --- names ------------------------------------------------------------------------- */

static bool is_gpu_name(const char *name)
{
	return strncmp(name, "gfx", 3) == 0 && name[3] >= '0' && name[3] <= '9';
}

/* The name becomes part of a tree's name, which tree_component_size must parse. */
static kpack_error_t check_group_name(const char *name, const char *field,
				      struct kpackx_error *why)
{
	if (!is_gpu_name(name) || !kp_component_ok(kp_span_str(name)) ||
	    !kp_text_ok(kp_span_str(name)))
		return kp_fail(
			why, KPACK_ERROR_INVALID_ARGUMENT,
			"%s: a group's name begins with 'gfx' and a digit, and has "
			"no '/'",
			field);
	return KPACK_SUCCESS;
}

static kpack_error_t check_arch(const char *arch, const char *field,
				struct kpackx_error *why)
{
	char text[80];
	struct kp_target target;
	struct kpackx_error reason = {0};

	if (!is_gpu_name(arch))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: '%s' does not begin with 'gfx' and a digit", field,
			       escape_name(arch, text));
	if (kp_target_parse(kp_span_str(arch), &target, &reason))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: '%s': %s", field,
			       escape_name(arch, text), reason.text);
	return KPACK_SUCCESS;
}

static bool same_arch(const char *a, const char *b)
{
	char x[KP_TARGET_TEXT_MAX], y[KP_TARGET_TEXT_MAX];

	kp_target_canonical(kp_span_str(a), x);
	kp_target_canonical(kp_span_str(b), y);
	return strcmp(x, y) == 0;
}

static kpack_error_t check_once(const struct recombine_config *config, const char *arch,
				const char *field, struct kpackx_error *why)
{
	char text[80];

	for (size_t i = 0; i < config->n_groups; i++)
		for (size_t j = 0; j < config->groups[i].n_arches; j++)
			if (same_arch(arch, config->groups[i].arches[j]))
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "%s: %s is in group %s already", field,
					       arch,
					       escape_name(config->groups[i].name, text));
	return KPACK_SUCCESS;
}

/* --- groups ------------------------------------------------------------------------ */

static kpack_error_t take_arches(struct recombine_config *config,
				 struct recombine_group *g, const json_t *list,
				 const char *field, struct kpackx_error *why)
{
	char name[240];
	size_t n = json_array_size(list);

	if (!json_is_array(list))
		return refuse_value(why, field, list, "an array");
	if (n == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: is empty", field);
	g->arches = xcalloc(n, sizeof(*g->arches));
	for (size_t i = 0; i < n; i++) {
		char *arch;

		snprintf(name, sizeof(name), "%s[%zu]", field, i);
		KP_TRY(take_text(json_array_get(list, i), name, &arch, why));
		kpack_error_t err = check_arch(arch, name, why);
		if (!err)
			err = check_once(config, arch, name, why);
		if (err) {
			free(arch);
			return err;
		}
		g->arches[g->n_arches++] = arch;
	}
	return KPACK_SUCCESS;
}

static void warn_unknown(struct recombine_config *config, const json_t *object,
			 const char *field, const char *const *known)
{
	void *at = json_object_iter((json_t *)object);
	char text[80];

	for (; at; at = json_object_iter_next((json_t *)object, at)) {
		const char *key = json_object_iter_key(at);
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i])
			kp_faults_add(&config->warnings, false,
				      "%s%s: unknown field; ignored", field,
				      escape_name(key, text));
	}
}

static kpack_error_t take_group(struct recombine_config *config, const char *name,
				const json_t *value, struct kpackx_error *why)
{
	static const char *const known[] = {"display_name", "architectures", NULL};
	struct recombine_group *g = &config->groups[config->n_groups];
	char text[80], field[120], inner[160];

	snprintf(field, sizeof(field), "architecture_groups.%s", escape_name(name, text));
	if (!json_is_object(value))
		return refuse_value(why, field, value, "an object");
	KP_TRY(check_group_name(name, field, why));
	config->n_groups++;
	g->name = xstrdup(name);
	snprintf(inner, sizeof(inner), "%s.display_name", field);
	KP_TRY(take_text(json_object_get(value, "display_name"), inner, &g->display_name,
			 why));
	snprintf(inner, sizeof(inner), "%s.architectures", field);
	KP_TRY(take_arches(config, g, json_object_get(value, "architectures"), inner,
			   why));
	snprintf(inner, sizeof(inner), "%s.", field);
	warn_unknown(config, value, inner, known);
	return KPACK_SUCCESS;
}

static kpack_error_t take_groups(struct recombine_config *config, const json_t *groups,
				 struct kpackx_error *why)
{
	size_t n = json_object_size(groups);
	void *at;

	if (!json_is_object(groups))
		return refuse_value(why, "architecture_groups", groups, "an object");
	if (n == 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "architecture_groups: is empty");
	config->groups = xcalloc(n, sizeof(*config->groups));
	for (at = json_object_iter((json_t *)groups); at;
	     at = json_object_iter_next((json_t *)groups, at))
		KP_TRY(take_group(config, json_object_iter_key(at),
				  json_object_iter_value(at), why));
	return KPACK_SUCCESS;
}

/* --- the whole --------------------------------------------------------------------- */

static kpack_error_t take_flag(const json_t *validation, const char *name, bool *out,
			       struct kpackx_error *why)
{
	const json_t *value = json_object_get(validation, name);
	char field[80];

	snprintf(field, sizeof(field), "validation.%s", name);
	if (!value)
		return KPACK_SUCCESS;
	if (!json_is_boolean(value))
		return refuse_value(why, field, value, "true or false");
	*out = json_is_true(value);
	return KPACK_SUCCESS;
}

static kpack_error_t take_validation(struct recombine_config *config,
				     const json_t *validation, struct kpackx_error *why)
{
	static const char *const known[] = {"error_on_duplicate_device_code",
					    "verify_generic_artifacts_match",
					    "error_on_missing_architecture", NULL};

	if (!validation)
		return KPACK_SUCCESS;
	if (!json_is_object(validation))
		return refuse_value(why, "validation", validation, "an object");
	KP_TRY(take_flag(validation, known[0], &config->error_on_duplicate, why));
	KP_TRY(take_flag(validation, known[1], &config->verify_generic, why));
	KP_TRY(take_flag(validation, known[2], &config->error_on_missing, why));
	warn_unknown(config, validation, "validation.", known);
	return KPACK_SUCCESS;
}

static kpack_error_t take_all(struct recombine_config *config, const json_t *root,
			      struct kpackx_error *why)
{
	static const char *const known[] = {"primary_shard", "architecture_groups",
					    "validation", NULL};

	if (!json_is_object(root))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "the file is %s, not an object", type_of(root));
	KP_TRY(take_text(json_object_get(root, "primary_shard"), "primary_shard",
			 &config->primary, why));
	if (!kp_component_ok(kp_span_str(config->primary)))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "primary_shard: cannot be the name of a directory");
	KP_TRY(take_groups(config, json_object_get(root, "architecture_groups"), why));
	KP_TRY(take_validation(config, json_object_get(root, "validation"), why));
	warn_unknown(config, root, "", known);
	return KPACK_SUCCESS;
}

kpack_error_t recombine_config_parse(struct kp_span text, struct recombine_config *out,
				     struct kpackx_error *why)
{
	json_error_t fault;
	kpack_error_t err;
	json_t *root;

	*out = (struct recombine_config){.error_on_duplicate = true};
	root = json_loadb((const char *)text.data, text.size,
			  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &fault);
	if (!root)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "line %d, column %d: %s", fault.line, fault.column,
			       fault.text);
	err = take_all(out, root, why);
	json_decref(root);
	return err;
}

kpack_error_t recombine_config_read(const char *path, struct recombine_config *out,
				    struct kpackx_error *why)
{
	kpack_error_t err;
	uint8_t *text;
	size_t size;

	*out = (struct recombine_config){0};
	KP_TRY(below_file_load(path, RECOMBINE_CONFIG_MAX, "the configuration", &text,
			       &size, why));
	err = recombine_config_parse((struct kp_span){text, size}, out, why);
	free(text);
	return err;
}
