/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "index_page.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"

static json_t *meta_json(void)
{
	return json_pack("{ss}", "api-version", "1.1");
}

/* Takes ownership of VALUE. */
static void put_json(FILE *out, json_t *value)
{
	report_json_put(out, value, JSON_INDENT(1));
	fputc('\n', out);
}

static json_t *url_json(const char *above, const char *file)
{
	char *text;
	size_t size;
	FILE *out = xmemstream(&text, &size);
	json_t *value;

	if (above) {
		index_page_url(out, above);
		fputc('/', out);
	}
	index_page_url(out, file);
	fclose(out);
	value = json_string(text);
	free(text);
	return value;
}

static json_t *wheel_json(const struct index_wheel *w, const char *above)
{
	json_t *file =
		json_pack("{ss so sI s{ss} s{ss}}", "filename", w->file, "url",
			  url_json(above, w->file), "size", (json_int_t)w->size, "hashes",
			  "sha256", w->sha256, "core-metadata", "sha256", w->metadata);

	if (file && w->requires_python)
		json_object_set_new(file, "requires-python",
				    json_string(w->requires_python));
	return file;
}

static bool has_text(json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
			return true;
	return false;
}

void index_json_project(FILE *out, const struct index_project *p, const char *above)
{
	json_t *files = json_array(), *versions = json_array();

	for (size_t i = 0; i < p->count; i++) {
		json_array_append_new(files, wheel_json(&p->wheels[i], above));
		if (!has_text(versions, p->wheels[i].version))
			json_array_append_new(versions,
					      json_string(p->wheels[i].version));
	}
	for (size_t i = 0; i < p->n_extras; i++)
		json_array_append_new(files,
				      json_pack("{ss so sI s{ss}}", "filename",
						p->extras[i].file, "url",
						url_json(NULL, p->extras[i].file), "size",
						(json_int_t)strlen(p->extras[i].text),
						"hashes", "sha256", p->extras[i].sha256));
	put_json(out,
		 json_pack("{so ss so so}", "meta", meta_json(), "name",
			   p->wheels->project, "versions", versions, "files", files));
}

void index_json_root(FILE *out, const struct index_wheel *wheels, size_t count)
{
	json_t *projects = json_array();

	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(wheels[i].project, wheels[i - 1].project) != 0)
			json_array_append_new(
				projects, json_pack("{ss}", "name", wheels[i].project));
	put_json(out, json_pack("{so so}", "meta", meta_json(), "projects", projects));
}
