/* SPDX-License-Identifier: MIT */
/*
 * rocFFT's kernel caches.  One file has the kernels of all GPUs, which is why it is taken apart:
 * into a database for each GPU, which rocFFT finds under another name, or into an object for
 * each row, under a key that says what the kernel computes.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "arch_name.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "rocfft.h"

#define NAME "rocfft_kernel_cache"

/* Limit of arches whose rows are reported, to keep the metadata short. */
#define REPORTED_ARCHES_MAX 24

/* Limit of rows taken from one cache: as many as one archive can hold. */
#define ROWS_MAX KP_FRAMES_MAX

/* Limit of rows with one key, of other versions or generators: real caches have few. */
#define ROWS_SAME_MAX 1000

/*
 * The summary is read whenever a tree is scanned, so it must not touch the code, which is nearly
 * all of the file.  Everything else opens the cache once more, when it is taken apart.
 */

/* --- the summary ----------------------------------------------------------------------- */

/* Limit of architectures in one cache: far more than exist. */
#define CACHE_ARCHES_MAX 256

struct cache_arch {
	char text[KP_TARGET_TEXT_MAX]; /* as spelled in the rows */
	char canonical[KP_TARGET_TEXT_MAX];
	uint64_t rows;
};

/* What the rows of a cache say, without their code. */
struct cache_summary {
	struct cache_arch arches[CACHE_ARCHES_MAX]; /* sorted by text */
	size_t n_arches;
	int64_t hip_versions[8]; /* sorted */
	size_t n_hip_versions;
	bool more_hip_versions; /* than fit in hip_versions */
	uint64_t rows;
	/* Rows whose arch is no GPU's target ID, or not text; the first such arch */
	uint64_t n_strange;
	char strange[KP_TARGET_TEXT_MAX];
};

bool cache_arch_ok(struct kp_span text, char canonical[KP_TARGET_TEXT_MAX])
{
	struct kp_target target;

	if (!kp_span_starts(text, "gfx", 3) || text.size >= KP_TARGET_TEXT_MAX ||
	    kp_target_parse(text, &target, NULL) != KPACK_SUCCESS)
		return false;
	kp_target_format(&target, canonical);
	return true;
}

/* Keep VERSION among the first few different ones, in order. */
static void add_hip_version(struct cache_summary *s, int64_t version)
{
	size_t n = s->n_hip_versions;

	for (size_t i = 0; i < n; i++)
		if (s->hip_versions[i] == version)
			return;
	if (n == KP_COUNT(s->hip_versions)) {
		s->more_hip_versions = true;
		return;
	}
	for (; n && s->hip_versions[n - 1] > version; n--)
		s->hip_versions[n] = s->hip_versions[n - 1];
	s->hip_versions[n] = version;
	s->n_hip_versions++;
}

/* Count the row under its arch; one that belongs to no GPU is strange. */
static kpack_error_t add_arch(struct cache_summary *s, sqlite3_stmt *row,
			      struct kpackx_error *why)
{
	int type = sqlite3_column_type(row, 0);
	struct kp_span text = sqlite_bytes(row, 0);
	struct cache_arch made = {.rows = 1};

	for (size_t i = 0; type == SQLITE_TEXT && i < s->n_arches; i++)
		if (kp_span_is(text, s->arches[i].text)) {
			s->arches[i].rows++;
			return KPACK_SUCCESS;
		}
	if (type != SQLITE_TEXT || !cache_arch_ok(text, made.canonical)) {
		if (type == SQLITE_NULL)
			text = kp_span_str("NULL");
		if (s->n_strange++ == 0)
			kp_text_escape(text, s->strange, sizeof(s->strange));
		return KPACK_SUCCESS;
	}
	if (s->n_arches == CACHE_ARCHES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: arch: more than %d different ones",
			       CACHE_ARCHES_MAX);
	memcpy(made.text, text.data, text.size);
	s->arches[s->n_arches++] = made;
	return KPACK_SUCCESS;
}

/*
 * Whether there is a table with rocFFT's columns, and what its rows say.  Both columns are in the
 * primary key's index, which is much smaller than the table.
 */
static kpack_error_t cache_summary_read(struct sqlite_file *f, struct cache_summary *out,
					bool *is, struct kpackx_error *why)
{
	static const char *const columns[] = {
		"kernel_name", "arch",      "hip_version", "generator_sum",
		"code",        "timestamp", NULL};
	KP_AUTO(sqlite_rows) rows = {0};
	bool more;

	*out = (struct cache_summary){0};
	KP_TRY(sqlite_file_has(f, "cache_v1", columns, is, why));
	if (!*is)
		return KPACK_SUCCESS;
	KP_TRY(sqlite_rows_open(f, "SELECT arch, hip_version FROM main.cache_v1", &rows,
				why));
	for (;;) {
		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			break;
		out->rows++;
		add_hip_version(out, sqlite3_column_int64(rows.stmt, 1));
		KP_TRY(add_arch(out, rows.stmt, why));
	}
	kp_sort(out->arches, out->n_arches, KP_BY_BYTES(struct cache_arch, text));
	return KPACK_SUCCESS;
}

/* Add kernel_count; if they are few, also rows (per arch) and hip_version. */
static void cache_summary_facts(const struct cache_summary *s, struct facts *facts)
{
	struct facts rows = {0};
	uint64_t versions[KP_COUNT(s->hip_versions)];

	facts_number(facts, "kernel_count", s->rows);
	for (size_t i = 0; i < s->n_arches; i++)
		facts_number(&rows, s->arches[i].text, s->arches[i].rows);
	if (s->n_arches && s->n_arches <= REPORTED_ARCHES_MAX)
		facts_map(facts, "rows", &rows);
	facts_fini(&rows);
	for (size_t i = 0; i < s->n_hip_versions; i++)
		versions[i] = (uint64_t)s->hip_versions[i];
	if (s->n_hip_versions && !s->more_hip_versions && s->hip_versions[0] >= 0)
		facts_numbers(facts, "hip_version", versions, s->n_hip_versions);
}

kpack_error_t kernel_cache_describe(struct sqlite_file *f, const char *named, bool *is,
				    struct library_object *out, struct kpackx_error *why)
{
	struct cache_summary s;

	KP_TRY(cache_summary_read(f, &s, is, why));
	if (!*is)
		return KPACK_SUCCESS;
	cache_summary_facts(&s, &out->facts);
	/* rocFFT does not look for rows of other GPUs there */
	for (size_t i = 0; *named && i < s.n_arches; i++) {
		if (arch_agrees(named, s.arches[i].canonical))
			continue;
		library_warn(out,
			     "its name says %s, but %llu of its %llu rows are for %s",
			     named, (unsigned long long)s.arches[i].rows,
			     (unsigned long long)s.rows, s.arches[i].text);
		return KPACK_SUCCESS;
	}
	if (s.n_strange)
		library_warn(out, "the arch of %llu of its %llu rows is no GPU: %s",
			     (unsigned long long)s.n_strange, (unsigned long long)s.rows,
			     s.strange);
	return KPACK_SUCCESS;
}

/* --- paths of caches ------------------------------------------------------------------- */

bool kernel_cache_named(const char *path, char arch[KP_TARGET_TEXT_MAX])
{
	static const char *const places[] = {"rocfft", "lib", "lib64", "bin"};
	const char *name = kp_path_name(path), *end = name;
	size_t size = strlen(name), n = strlen(NAME);
	bool placed = name == path;

	if (size < n + 3 || strncmp(name, NAME, n) != 0 ||
	    strcmp(name + size - 3, ".db") != 0)
		return false;
	/*
	 * It is next to the library, in rocfft/, or one directory below one of these, as
	 * lib/x86_64-linux-gnu is.
	 */
	for (int depth = 0; depth < 2 && end > path; depth++) {
		const char *begin = end - 1;
		struct kp_span dir;

		while (begin > path && begin[-1] != '/')
			begin--;
		dir = (struct kp_span){(const uint8_t *)begin, (size_t)(end - 1 - begin)};
		for (size_t i = 0; i < KP_COUNT(places); i++)
			placed |= kp_span_is(dir, places[i]);
		end = begin;
	}
	arch[0] = 0;
	return placed && (size == n + 3 ||
			  (name[n] == '_' &&
			   cache_arch_ok((struct kp_span){(const uint8_t *)name + n + 1,
							  size - n - 4},
					 arch)));
}

/* --- parts ----------------------------------------------------------------------------- */

static void fini_part(struct cache_file *part)
{
	kp_outfile_close(&part->file);
	for (size_t i = 0; i < part->n_objects; i++)
		library_object_fini(&part->objects[i]);
	free(part->objects);
	free(part->hip_versions);
	free(part->disk);
	free(part->key);
}

void cache_files_fini(struct cache_files *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		fini_part(&parts->items[i]);
	free(parts->items);
	*parts = (struct cache_files){0};
}

/* Add a part of CACHE with an empty file in the directory TMP; takes over KEY. */
static kpack_error_t new_part(struct cache_files *parts, const char *tmp,
			      const char *cache, char *key, struct cache_file **out,
			      struct kpackx_error *why)
{
	struct cache_file *part;
	kpack_error_t err;

	xgrow(&parts->items, parts->count, &parts->cap, sizeof(*part));
	part = &parts->items[parts->count++];
	*part = (struct cache_file){.key = key, .cache = cache};
	snprintf(parts->called, sizeof(parts->called), "a temporary file in %.400s", tmp);
	err = below_outfile_open_in(&part->file, tmp, "kernels", 0600, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", parts->called);
	/* without a name nobody else can exchange it */
	kp_outfile_unname(&part->file);
	part->disk = xasprintf("/proc/self/fd/%d", part->file.fd);
	*out = part;
	return KPACK_SUCCESS;
}

/*
 * The cache is opened anew: between the scan and now it may have become another file, and all
 * that is used of it is read, and checked, here.
 */

/* A cache that is open; without the table, its summary has no rows. */
struct cache {
	int fd;
	struct stat st;
	struct sqlite_file *file;
	struct cache_summary summary;
};

static void cache_fini(struct cache *c)
{
	sqlite_file_close(c->file);
	if (c->fd >= 0)
		close(c->fd);
}

static kpack_error_t cache_open(const char *disk, struct cache *c,
				struct kpackx_error *why)
{
	struct kp_source source;
	bool is_one;

	c->fd = -1;
	KP_TRY(below_file_open(disk, &c->fd, &c->st, why));
	source = kp_source_fd(c->fd, 0, (uint64_t)c->st.st_size);
	KP_TRY(sqlite_file_check_open(&source, &c->file, why));
	KP_TRY(cache_summary_read(c->file, &c->summary, &is_one, why));
	if (c->summary.n_strange)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: arch of %llu rows is no target ID: %s",
			       (unsigned long long)c->summary.n_strange,
			       c->summary.strange);
	return KPACK_SUCCESS;
}

/* --- a database for each arch ---------------------------------------------------------- */

/* Make the part for ARCH: a database as rocFFT would have made on such a machine alone. */
static kpack_error_t split_off(const struct cache *c, const struct cache_arch *arch,
			       const char *path, const char *tmp,
			       struct cache_files *parts, struct kpackx_error *why)
{
	struct cache_summary own = c->summary;
	struct library_object *o;
	struct cache_file *part;
	struct stat st;

	KP_TRY(new_part(parts, tmp, path,
			xasprintf("%.*s" NAME "_%s.db", (int)(kp_path_name(path) - path),
				  path, arch->text),
			&part, why));
	KP_TRY(sqlite_copy(c->file, &part->file, parts->called, "cache_v1", "arch",
			   arch->text, why));
	if (fstat(part->file.fd, &st) < 0)
		return kp_fail_errno(why, errno, "fstat");
	part->objects = o = xcalloc(1, sizeof(*o));
	part->n_objects = 1;
	*o = (struct library_object){
		.library = library_rocfft.name,
		.role = "cache",
		.size = (uint64_t)st.st_size,
		.path = xstrdup(part->key),
		.mode = c->st.st_mode,
		.at_random = true,
	};
	own.arches[0] = *arch;
	own.n_arches = 1;
	own.rows = arch->rows;
	/* the summary does not say which of the versions are this arch's */
	own.more_hip_versions |= own.n_hip_versions > 1;
	facts_string(&o->facts, "container", "sqlite");
	cache_summary_facts(&own, &o->facts);
	library_add_arch(o, arch->canonical);
	return KPACK_SUCCESS;
}

kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_files *parts, struct kpackx_error *why)
{
	KP_AUTO(cache) c = {.fd = -1};

	KP_TRY(cache_open(disk, &c, why));
	for (size_t i = 0; i < c.summary.n_arches; i++)
		KP_TRY(split_off(&c, &c.summary.arches[i], path, tmp, parts, why));
	return KPACK_SUCCESS;
}

/* --- names of kernels ------------------------------------------------------------------ */

/*
 * A name has words separated by '_' that describe the generated kernel:
 * "fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_dim1_sp_ip_CI_unitstride_sbrr_dirReg".
 */

/* Words that mean something by themselves. */
static const struct word {
	const char *word, *meaning;
	size_t field;
} words[] = {
	{"fwd", "fwd", offsetof(struct kernel_name, direction)},
	{"back", "back", offsetof(struct kernel_name, direction)},
	{"ip", "ip", offsetof(struct kernel_name, placement)},
	{"op", "op", offsetof(struct kernel_name, placement)},
	{"sbrr", "sbrr", offsetof(struct kernel_name, scheme)},
	{"sbcc", "sbcc", offsetof(struct kernel_name, scheme)},
	{"sbrc", "sbrc", offsetof(struct kernel_name, scheme)},
	{"sbcr", "sbcr", offsetof(struct kernel_name, scheme)},
	{"sp", "single", offsetof(struct kernel_name, precision)},
	{"dp", "double", offsetof(struct kernel_name, precision)},
	{"half", "half", offsetof(struct kernel_name, precision)},
};

/* Take the next word from *REST, whose data is NULL after the last. */
static bool next_word(struct kp_span *rest, struct kp_span *word)
{
	const uint8_t *end;

	if (!rest->data)
		return false;
	end = rest->size ? memchr(rest->data, '_', rest->size) : NULL;
	*word = kp_span_head(*rest, end ? (size_t)(end - rest->data) : rest->size);
	*rest = end ? kp_span_tail(*rest, word->size + 1) : (struct kp_span){0};
	return true;
}

/* Not isdigit: names are bytes of anybody's, and the locale must not matter. */
static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool parse_number(struct kp_span text, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (!is_digit(text.data[i]) || *out > (UINT64_MAX - 9) / 10)
			return false;
		*out = *out * 10 + (uint64_t)(text.data[i] - '0');
	}
	return text.size > 0;
}

/* 100, 64x64 */
static bool is_length(struct kp_span s)
{
	bool digit = false;

	for (size_t i = 0; i < s.size; i++) {
		if (!is_digit(s.data[i]) && !(digit && s.data[i] == 'x'))
			return false;
		digit = is_digit(s.data[i]);
	}
	return digit && s.size < sizeof(((struct kernel_name *)0)->length);
}

/* The part of WORD after PREFIX, or if that is empty, the next word: len100, len_100. */
static bool value_of(struct kp_span word, const char *prefix, struct kp_span rest,
		     struct kp_span *value)
{
	size_t n = strlen(prefix);

	if (!kp_span_starts(word, prefix, n))
		return false;
	*value = kp_span_tail(word, n);
	return value->size > 0 || next_word(&rest, value);
}

void kernel_name_parse(struct kp_span name, struct kernel_name *out)
{
	struct kp_span before = {0}, word, value;
	uint64_t factor;

	*out = (struct kernel_name){0};
	while (next_word(&name, &word)) {
		for (size_t i = 0; i < KP_COUNT(words); i++) {
			const char **field =
				(const char **)(void *)((char *)out + words[i].field);

			if (!*field && kp_span_is(word, words[i].word))
				*field = words[i].meaning;
		}
		/* "parent_len..." is not this kernel's length */
		if (!out->length[0] && !kp_span_is(before, "parent") &&
		    value_of(word, "len", name, &value) && is_length(value))
			memcpy(out->length, value.data, value.size);
		if (!out->batch && value_of(word, "batch", name, &value) &&
		    !parse_number(value, &out->batch))
			out->batch = 0;
		/* factors_8_8, factors_8_8_x_4_4: numbers, of up to two lengths */
		if (out->n_factors[0] == 0 && kp_span_is(word, "factors")) {
			struct kp_span rest = name;
			size_t row = 0;

			while (next_word(&rest, &value)) {
				if (row == 0 && out->n_factors[0] &&
				    kp_span_is(value, "x"))
					row = 1;
				else if (parse_number(value, &factor) &&
					 out->n_factors[row] < KERNEL_NAME_FACTORS_MAX)
					out->factors[row][out->n_factors[row]++] = factor;
				else
					break;
			}
		}
		before = word;
	}
	if (!out->precision)
		out->precision = "any";
	if (!out->length[0])
		memcpy(out->length, "any", sizeof("any"));
}

void kernel_name_length_fact(struct kp_span length, struct facts *facts)
{
	uint64_t n;

	if (parse_number(length, &n))
		facts_number(facts, "length", n);
	else
		facts_text(facts, "length", length);
}

void kernel_name_facts(const struct kernel_name *name, struct facts *facts)
{
	const char *const texts[][2] = {{"scheme", name->scheme},
					{"placement", name->placement},
					{"direction", name->direction}};

	if (strcmp(name->length, "any") != 0)
		kernel_name_length_fact(kp_span_str(name->length), facts);
	if (strcmp(name->precision, "any") != 0)
		facts_string(facts, "precision", name->precision);
	for (size_t i = 0; i < 2; i++)
		if (name->n_factors[i])
			facts_numbers(facts, i ? "factors2" : "factors", name->factors[i],
				      name->n_factors[i]);
	if (name->batch)
		facts_number(facts, "batch", name->batch);
	for (size_t i = 0; i < KP_COUNT(texts); i++)
		if (texts[i][1])
			facts_string(facts, texts[i][0], texts[i][1]);
}

char *kernel_name_component(struct kp_span name)
{
	/* "." and ".." are no components, but all their characters are plain */
	bool dots = kp_span_is(name, ".") || kp_span_is(name, "..");
	char *text = xmalloc(3 * name.size + 1), *to = text;

	while (name.size) {
		uint32_t c;
		size_t n = kp_text_char(name, &c);

		if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) || c == '/' ||
		    c == '%' || c == '@' || c == '#' || (dots && c == '.')) {
			snprintf(to, 4, "%%%02X", name.data[0]);
			to += 3;
			n = 1;
		} else {
			to = mempcpy(to, name.data, n);
		}
		name = kp_span_tail(name, n);
	}
	*to = 0;
	return text;
}

/* --- an object for each row ------------------------------------------------------------ */

/*
 * The code of rows is written into one file, from which archives are packed as from any other;
 * rows are objects in it.
 */

/* The columns in the order of the query. */
enum { KERNEL_NAME, ARCH, HIP_VERSION, GENERATOR_SUM, TIMESTAMP, CODE };

static const char query[] =
	"SELECT kernel_name, arch, hip_version, generator_sum, timestamp, "
	"code FROM main.cache_v1 NOT INDEXED";

/* What is wrong with the row; NULL: nothing. */
static const char *row_fault(sqlite3_stmt *row)
{
	size_t name;

	/* the type first: asking for text changes it */
	if (sqlite3_column_type(row, KERNEL_NAME) != SQLITE_TEXT)
		return "kernel_name: no text";
	name = sqlite_bytes(row, KERNEL_NAME).size;
	if (name == 0)
		return "kernel_name: empty";
	/* escaping may triple the name; the rest of the key is short */
	if (name > KP_NAME_MAX / 4)
		return "kernel_name: too long for a key";
	if (sqlite3_column_type(row, GENERATOR_SUM) == SQLITE_BLOB &&
	    sqlite_bytes(row, GENERATOR_SUM).size > 64)
		return "generator_sum: more than 64 bytes";
	if (sqlite3_column_type(row, CODE) != SQLITE_BLOB)
		return "code: no blob";
	return NULL;
}

/* Give O the key and the facts of the row. */
static void describe_row(struct library_object *o, sqlite3_stmt *row)
{
	struct kp_span name = sqlite_bytes(row, KERNEL_NAME);
	KP_AUTO_FREE char *component = kernel_name_component(name);
	struct facts *facts = &o->facts;
	char arch[KP_TARGET_TEXT_MAX];
	struct kernel_name parsed;

	kernel_name_parse(name, &parsed);
	/* the summary has checked the arch of every row */
	if (!cache_arch_ok(sqlite_bytes(row, ARCH), arch))
		snprintf(arch, sizeof(arch), "%s", KP_ARCH_GENERIC);
	kernel_name_facts(&parsed, facts);
	facts_text(facts, "arch", sqlite_bytes(row, ARCH));
	if (sqlite3_column_type(row, HIP_VERSION) == SQLITE_INTEGER)
		facts_signed(facts, "hip_version",
			     sqlite3_column_int64(row, HIP_VERSION));
	if (sqlite3_column_type(row, GENERATOR_SUM) == SQLITE_BLOB)
		facts_bytes(facts, "generator_sum", sqlite_bytes(row, GENERATOR_SUM));
	if (sqlite3_column_type(row, TIMESTAMP) == SQLITE_INTEGER)
		facts_signed(facts, "timestamp", sqlite3_column_int64(row, TIMESTAMP));
	library_add_key(o, "fft/%s/%s/%s/%s", arch, parsed.length, parsed.precision,
			component);
	library_add_arch(o, arch);
}

/*
 * Write the code of all rows to PART's file (CALLED in errors), one after another, and give PART
 * their objects, also after an error.  Rows that differ only in columns that are not part of
 * the key get equal keys.
 */
static kpack_error_t write_rows(struct sqlite_file *f, const char *called,
				struct cache_file *part, struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) rows = {0};
	size_t cap = 0, versions_cap = 0;
	uint64_t off = 0;
	bool more;

	KP_TRY(sqlite_rows_open(f, query, &rows, why));
	for (;;) {
		struct library_object *o;
		const char *fault;
		struct kp_span code;
		kpack_error_t err;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		fault = part->n_objects == ROWS_MAX
				? "there are more than an archive can hold"
				: row_fault(rows.stmt);
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "cache_v1: row %zu: %s", part->n_objects + 1,
				       fault);
		xgrow(&part->objects, part->n_objects, &cap, sizeof(*o));
		xgrow(&part->hip_versions, part->n_objects, &versions_cap,
		      sizeof(*part->hip_versions));
		code = sqlite_bytes(rows.stmt, CODE);
		part->hip_versions[part->n_objects] =
			sqlite3_column_int64(rows.stmt, HIP_VERSION);
		o = &part->objects[part->n_objects++];
		*o = (struct library_object){
			.library = library_rocfft.name,
			.role = "kernel",
			.offset = off,
			.size = code.size,
		};
		describe_row(o, rows.stmt);
		err = kp_outfile_pwrite(&part->file, off, code.data, code.size, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", called);
		off += code.size;
	}
}

/* --- unique keys ----------------------------------------------------------------------- */

/* A row, by its key before it was renamed, which appends '@' and a version. */
struct named_row {
	struct kp_span key;
	size_t place; /* its number among all rows */
	struct library_object *object;
	const struct cache_file *part;
	int64_t hip_version;
};

/*
 * A tree may have a cache for all GPUs and one for a GPU beside it, and the rows of that GPU in
 * both.  Equal rows are stored once; rows that claim to be equal and have other code are a
 * fault, because which of them a program got would depend on the order of files.
 */

/* Whether another cache than S[N]'s has the same row; S has rows with one key. */
static kpack_error_t has_twin(const struct named_row *s, size_t n, bool *found,
			      struct kpackx_error *why)
{
	const struct library_object *o = s[n].object;

	*found = false;
	for (const struct named_row *t = s; t < s + n; t++) {
		struct kp_source a, b;
		bool same;

		if (!t->object || t->part == s[n].part ||
		    t->object->facts.size != o->facts.size ||
		    memcmp(t->object->facts.pairs, o->facts.pairs, o->facts.size) != 0)
			continue;
		a = kp_source_fd(t->part->file.fd, t->object->offset, t->object->size);
		b = kp_source_fd(s[n].part->file.fd, o->offset, o->size);
		KP_TRY(kp_source_compare(&a, &b, &same, why));
		if (!same)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "cache_v1: other code than in %s for %s",
				       t->part->cache, o->keys[0]);
		*found = true;
		break;
	}
	return KPACK_SUCCESS;
}

/*
 * Name the rows of the part LAST among N rows with one key: the first of all keeps it, the next
 * are named after their versions, and one that another cache has too is removed.
 */
static kpack_error_t name_rows(struct named_row *s, size_t n,
			       const struct cache_file *last, struct kpackx_error *why)
{
	if (n > ROWS_SAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: more than %d rows for %s", ROWS_SAME_MAX,
			       s->object->keys[0]);
	for (size_t i = 1; i < n; i++) {
		char **key, *old, number[24] = "";
		size_t same = 0;
		bool twin;

		if (s[i].part != last)
			continue;
		KP_TRY(has_twin(s, i, &twin, why));
		if (twin) {
			library_object_fini(s[i].object);
			s[i].object = NULL;
			continue;
		}
		for (size_t k = 1; k < i; k++)
			same += s[k].object && s[k].hip_version == s[i].hip_version;
		if (same)
			snprintf(number, sizeof(number), ".%zu", same + 1);
		key = &s[i].object->keys[0];
		old = *key;
		*key = xasprintf("%s@%lld%s", old, (long long)s[i].hip_version, number);
		free(old);
	}
	return KPACK_SUCCESS;
}

/* Make the keys of the rows of the last of PARTS differ from all others. */
static kpack_error_t name_last_part(struct cache_files *parts, struct kpackx_error *why)
{
	struct cache_file *last = &parts->items[parts->count - 1];
	KP_AUTO_FREE struct named_row *rows = NULL;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < parts->count; i++)
		n += parts->items[i].n_objects;
	rows = xcalloc(n + 1, sizeof(*rows));
	n = 0;
	for (const struct cache_file *p = parts->items; p <= last; p++)
		for (size_t i = 0; p->hip_versions && i < p->n_objects; i++) {
			const char *key = p->objects[i].keys[0];

			rows[n] = (struct named_row){
				{(const uint8_t *)key, strcspn(key, "@")},
				n,
				&p->objects[i],
				p,
				p->hip_versions[i]};
			n++;
		}
	kp_sort(rows, n, KP_BY_SPAN(struct named_row, key),
		KP_BY_NUMBER(struct named_row, place));
	for (size_t i = 0, end; !err && i < n; i = end) {
		for (end = i + 1; end < n && kp_span_eq(rows[end].key, rows[i].key);)
			end++;
		err = name_rows(&rows[i], end - i, last, why);
	}
	/* close the gaps of removed rows */
	for (size_t i = 0; i < last->n_objects; i++)
		if (last->objects[i].n_keys) {
			last->hip_versions[kept] = last->hip_versions[i];
			last->objects[kept++] = last->objects[i];
		}
	last->n_objects = kept;
	return err;
}

kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_files *parts, struct kpackx_error *why)
{
	KP_AUTO(cache) c = {.fd = -1};
	struct cache_file *part;

	KP_TRY(cache_open(disk, &c, why));
	if (!c.summary.rows)
		return KPACK_SUCCESS;
	KP_TRY(new_part(parts, tmp, path, xasprintf("%s@rows", path), &part, why));
	KP_TRY(write_rows(c.file, parts->called, part, why));
	KP_TRY(name_last_part(parts, why));
	if (part->n_objects == 0)
		fini_part(&parts->items[--parts->count]);
	return KPACK_SUCCESS;
}
