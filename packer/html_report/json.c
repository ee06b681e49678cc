/* SPDX-License-Identifier: MIT */
#include "json.h"
#include "packer/cli/report.h"

#if KP_WITH_JSON

static json_t *number(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *row(const struct page_row *r, const char *name, const char *second)
{
	json_t *o =
		json_pack("{so so so so so}", name, report_json_span(r->name), "objects",
			  number(r->objects), "entries", number(r->entries), "decoded",
			  number(r->decoded), "stored", number(r->stored));

	if (second)
		json_object_set_new(o, second, report_json_span(r->second));
	return o;
}

static json_t *rows(const struct page_rows *rows, const char *name, const char *second)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(list, row(&rows->items[i], name, second));
	return list;
}

static json_t *libraries(const struct page_figures *f)
{
	json_t *list = rows(&f->libraries, "library", NULL);

	for (size_t i = 0; i < f->libraries.count; i++)
		json_object_set_new(json_array_get(list, i), "database",
				    json_boolean(f->libraries.items[i].database));
	return list;
}

static json_t *object(const struct page *page, uint32_t number_of)
{
	const struct page_object *o = &page->figures->objects[number_of];
	const struct page_archive *a = &page->in->archives[o->archive];
	struct kp_entry_info e;

	kp_archive_entry(a->archive, o->entry, &e);
	return json_pack("{so so so so so so}", "archive", report_json_text(a->name),
			 "key", report_json_span(e.key), "arch", report_json_span(e.arch),
			 "entries", number(o->entries), "decoded", number(o->size),
			 "stored", number(o->stored));
}

static json_t *largest(const struct page *page)
{
	const struct page_figures *f = page->figures;
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_objects && i < PAGE_LARGEST; i++)
		json_array_append_new(list, object(page, f->largest[i]));
	return list;
}

static json_t *twice(const struct page *page)
{
	const struct page_figures *f = page->figures;
	json_t *list = json_array();

	for (size_t i = 0; i < f->n_twice && i < PAGE_LARGEST; i++) {
		const struct page_twice *t = &f->twice[i];
		json_t *o = object(page, t->first);

		json_object_set_new(o, "copies", number(t->copies));
		json_object_set_new(o, "saving", number(t->saving));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *family(const struct page *page, const struct page_family *f)
{
	json_t *members = json_array();

	for (size_t i = 0; i < f->n_members; i++)
		json_array_append_new(
			members,
			report_json_span(
				page->figures->arches.items[f->members[i]].name));
	return json_pack("{so ss so so so so so}", "name", report_json_text(f->name),
			 "by", f->kind, "arches", members, "apart", number(f->apart),
			 "together", number(f->together), "least", number(f->least),
			 "most", number(f->most));
}

static json_t *families(const struct page *page)
{
	json_t *list = json_array();

	for (size_t i = 0; i < page->families->count; i++)
		json_array_append_new(list, family(page, &page->families->items[i]));
	return list;
}

static json_t *archives(const struct page_input *in)
{
	json_t *list = json_array();

	for (size_t i = 0; i < in->count; i++) {
		const struct page_archive *a = &in->archives[i];

		json_array_append_new(
			list,
			json_pack("{so so so}", "name", report_json_text(a->name),
				  "entries", number(kp_archive_entry_count(a->archive)),
				  "bytes", number(a->bytes)));
	}
	return list;
}

static json_t *faults(const struct kp_faults *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->kept; i++)
		json_array_append_new(list, report_json_text(f->items[i].text));
	return list;
}

static json_t *host(const struct page_input *in)
{
	return in->trees ? json_pack("{so so}", "files", number(in->host_files), "bytes",
				     number(in->host_bytes))
			 : json_null();
}

static json_t *measured(const struct page_input *in)
{
	return in->measured ? json_pack("{so so}", "files", number(in->coded_files),
					"bytes", number(in->coded_bytes))
			    : json_null();
}

bool page_json(const struct page *page)
{
	const struct page_figures *f = page->figures;
	json_t *all = json_pack("{so so so so so so so so so so so so so}", "title",
				report_json_text(page->title), "archive_bytes",
				number(page->in->archive_bytes), "architectures",
				number(f->arches.count), "binaries", number(f->binaries),
				"objects", number(f->n_objects), "entries",
				number(f->n_items), "decoded", number(f->decoded),
				"stored", number(f->stored), "shared", number(f->shared),
				"saved", number(f->saved), "saving", number(f->saving),
				"host", host(page->in), "measured", measured(page->in));

	json_object_set_new(all, "arches", rows(&f->arches, "arch", NULL));
	json_object_set_new(all, "libraries", libraries(f));
	json_object_set_new(all, "databases", rows(&f->databases, "library", "role"));
	json_object_set_new(all, "families", families(page));
	json_object_set_new(all, "largest", largest(page));
	json_object_set_new(all, "duplicates", twice(page));
	json_object_set_new(all, "archives", archives(page->in));
	json_object_set_new(all, "faults", faults(&page->in->faults));
	return report_json(all);
}

#else

bool page_json(const struct page *page)
{
	(void)page;
	return false; /* report_json_ok refused --json */
}

#endif
