/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "archives_text.h"
#include "core/base/text.h"

static void put_escaped(FILE *f, struct kp_span s)
{
	char *text = kp_text_escape_new(s);

	fputs(text ? text : "?", f);
	free(text);
}

static void put_string(FILE *f, const char *s)
{
	put_escaped(f, kp_span_str(s));
}

static void put_arches(FILE *f, struct kpack_archive *a)
{
	size_t count = 0;
	const char *arch;

	kpack_get_architecture_count(a, &count);
	for (size_t i = 0; i < count; i++) {
		if (kpack_get_architecture(a, i, &arch))
			continue;
		if (i)
			fputc(',', f);
		put_string(f, arch);
	}
}

/*
 * Columns: path, scheme, architectures, entries, bytes, inode number, time of the last
 * change; or the path and the refusal's reason.
 */
void archives_text_put(FILE *f, const struct edition *e)
{
	const struct holdings *h = &e->holdings;

	for (size_t i = 0; i < h->count; i++) {
		struct kpack_archive *a = e->archives[i];
		const struct stat *st = kp_archive_stat(a);

		put_string(f, kp_archive_path(a));
		fprintf(f, "\t%s\t", kp_archive_scheme(a));
		put_arches(f, a);
		fprintf(f, "\t%zu\t%lld\t%llu\t%lld.%09ld\n", kp_archive_entry_count(a),
			(long long)st->st_size, (unsigned long long)st->st_ino,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	}
	for (size_t i = 0; i < h->n_refused; i++) {
		put_string(f, h->refused[i].path);
		fputs("\trefused: ", f);
		put_string(f, h->refused[i].text);
		fputc('\n', f);
	}
}

static void put_more(FILE *f, size_t kept, size_t counted)
{
	if (counted > kept)
		fprintf(f, "and %zu more\n", counted - kept);
}

static void put_faults(FILE *f, const struct kpack_archive *a)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	for (size_t i = 0; i < kept; i++) {
		if (!faults[i].refused)
			continue;
		put_string(f, kp_archive_path(a));
		fputs(": ", f);
		put_string(f, faults[i].text);
		fputc('\n', f);
	}
	put_more(f, kept, counted);
}

void archives_text_put_conflicts(FILE *f, const struct edition *e)
{
	const struct holdings *h = &e->holdings;
	size_t kept, counted;
	const char *const *lines = kp_view_conflicts(e->view, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		fprintf(f, "%s\n", lines[i]);
	put_more(f, kept, counted);
	for (size_t i = 0; i < h->count; i++)
		put_faults(f, e->archives[i]);
	for (size_t i = 0; i < h->n_refused; i++) {
		put_string(f, h->refused[i].path);
		fputs(": ", f);
		put_string(f, h->refused[i].text);
		fputc('\n', f);
	}
}

static size_t count_faults(const struct kpack_archive *a)
{
	size_t kept, counted, n;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);

	n = counted - kept;
	for (size_t i = 0; i < kept; i++)
		n += faults[i].refused;
	return n;
}

size_t archives_text_count_conflicts(const struct edition *e)
{
	size_t kept, n;

	kp_view_conflicts(e->view, &kept, &n);
	for (size_t i = 0; i < e->holdings.count; i++)
		n += count_faults(e->archives[i]);
	return n;
}
