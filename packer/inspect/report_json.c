/* SPDX-License-Identifier: MIT */
#include "report_json.h"
#include "packer/cli/report.h"

static json_t *number_json(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *row_json(const struct page_row *r, const char *name, const char *second)
{
	json_t *o = json_pack("{so so so so so}", name, report_json_span(r->name),
			      "objects", number_json(r->objects), "entries",
			      number_json(r->entries), "decoded", number_json(r->decoded),
			      "stored", number_json(r->stored));

	if (second)
		json_object_set_new(o, second, report_json_span(r->second));
	return o;
}

static json_t *choice_json(const struct page_row *r)
{
	return json_pack("{so so so so}", "objects", number_json(r->objects), "entries",
			 number_json(r->entries), "decoded", number_json(r->decoded),
			 "stored", number_json(r->stored));
}

static json_t *rows_json(const struct page_rows *rows, const char *name,
			 const char *second)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(list, row_json(&rows->items[i], name, second));
	return list;
}

static json_t *libraries_json(const struct page_figures *f)
{
	json_t *list = rows_json(&f->libraries, "library", NULL);

	for (size_t i = 0; i < f->libraries.count; i++)
		json_object_set_new(json_array_get(list, i), "database",
				    json_boolean(f->libraries.items[i].database));
	return list;
}

static json_t *object_json(const struct page *page, uint32_t number_of)
{
	const struct page_object *o = &page->figures->objects[number_of];
	const struct page_archive *a = &page->in->archives[o->archive];
	struct kp_entry_info e;

	kp_archive_entry(a->archive, o->entry, &e);
	return json_pack("{so so so so so so}", "archive", report_json_text(a->name),
			 "key", report_json_span(e.key), "arch", report_json_span(e.arch),
			 "entries", number_json(o->entries), "decoded",
			 number_json(o->size), "stored", number_json(o->stored));
}

static json_t *largest_json(const struct page *page)
{
	const struct page_figures *f = page->figures;
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_objects && i < PAGE_LARGEST; i++)
		json_array_append_new(list, object_json(page, f->largest[i]));
	return list;
}

static json_t *twice_json(const struct page *page)
{
	const struct page_figures *f = page->figures;
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_twice && i < PAGE_LARGEST; i++) {
		const struct page_twice *t = &f->twice[i];
		json_t *o = object_json(page, t->first);

		json_object_set_new(o, "copies", number_json(t->copies));
		json_object_set_new(o, "saving", number_json(t->saving));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *family_json(const struct page *page, const struct page_family *f)
{
	json_t *members = json_array();

	for (size_t i = 0; i < f->n_members; i++)
		json_array_append_new(
			members,
			report_json_span(
				page->figures->arches.items[f->members[i]].name));
	return json_pack("{so ss so so so so so}", "name", report_json_text(f->name),
			 "by", f->kind, "arches", members, "apart", number_json(f->apart),
			 "together", number_json(f->together), "least",
			 number_json(f->least), "most", number_json(f->most));
}

static json_t *families_json(const struct page *page)
{
	json_t *list = json_array();

	for (size_t i = 0; i < page->families->count; i++)
		json_array_append_new(list, family_json(page, &page->families->items[i]));
	return list;
}

static json_t *archives_json(const struct page_input *in)
{
	json_t *list = json_array();

	for (size_t i = 0; i < in->count; i++) {
		const struct page_archive *a = &in->archives[i];

		json_array_append_new(
			list, json_pack("{so so so}", "name", report_json_text(a->name),
					"entries",
					number_json(kp_archive_entry_count(a->archive)),
					"bytes", number_json(a->bytes)));
	}
	return list;
}

static json_t *faults_json(const struct kp_faults *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->kept; i++)
		json_array_append_new(list, report_json_message(f->items[i].text));
	return list;
}

static json_t *host_json(const struct page_input *in)
{
	return in->trees ? json_pack("{so so}", "files", number_json(in->host_files),
				     "bytes", number_json(in->host_bytes))
			 : json_null();
}

static json_t *measured_json(const struct page_input *in)
{
	return in->measured ? json_pack("{so so}", "files", number_json(in->coded_files),
					"bytes", number_json(in->coded_bytes))
			    : json_null();
}

bool page_json(const struct page *page)
{
	const struct page_figures *f = page->figures;
	json_t *all = json_pack(
		"{so so so so so so so so so so so so so}", "title",
		report_json_text(page->title), "archive_bytes",
		number_json(page->in->archive_bytes), "architectures",
		number_json(f->arches.count), "binaries", number_json(f->binaries),
		"objects", number_json(f->n_objects), "entries", number_json(f->n_items),
		"decoded", number_json(f->decoded), "stored", number_json(f->stored),
		"shared", number_json(f->shared), "saved", number_json(f->saved),
		"saving", number_json(f->saving), "host", host_json(page->in), "measured",
		measured_json(page->in));

	if (page->choice) {
		json_object_set_new(all, "kept", choice_json(&page->choice->kept));
		json_object_set_new(all, "freed", choice_json(&page->choice->freed));
	}
	json_object_set_new(all, "arches", rows_json(&f->arches, "arch", NULL));
	json_object_set_new(all, "libraries", libraries_json(f));
	json_object_set_new(all, "databases",
			    rows_json(&f->databases, "library", "role"));
	json_object_set_new(all, "families", families_json(page));
	json_object_set_new(all, "largest", largest_json(page));
	json_object_set_new(all, "duplicates", twice_json(page));
	json_object_set_new(all, "archives", archives_json(page->in));
	json_object_set_new(all, "faults", faults_json(&page->in->faults));
	return report_json(all);
}
