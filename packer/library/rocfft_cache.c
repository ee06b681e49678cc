/* SPDX-License-Identifier: MIT */
/*
 * rocFFT's kernel caches.  One file has the kernels of all GPUs, which is why it is taken apart:
 * into a database for each GPU, which rocFFT finds under another name, or into an object for
 * each row, under a key that says what the kernel computes.
 *
 *	CREATE TABLE cache_v1 (
 *	    kernel_name TEXT,    -- "fft_rtc_fwd_len100_..." says what the kernel computes
 *	    arch TEXT,           -- a target ID: "gfx90a:xnack+"
 *	    hip_version INTEGER, -- of the compiler
 *	    generator_sum BLOB,  -- hash of the generator's source
 *	    code BLOB,           -- a code object
 *	    timestamp INTEGER,
 *	    PRIMARY KEY (kernel_name, arch, hip_version, generator_sum))
 *
 * The summary of a cache is read whenever a tree is scanned, so it must not touch the code, which is
 * nearly all of the file.  To be taken apart the cache is opened anew: between the scan and then it may
 * have become another file, and all that is used of it is read, and checked, there.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Limit of architectures in one cache: far more than exist. */
#define CACHE_ARCHES_MAX 256

/* Limit of factors of one length: 2^63 has 63, real lengths have up to eight. */
#define FACTORS_MAX 64

/* --- the summary ------------------------------------------------------------------------ */

struct cache_arch {
	char text[KP_TARGET_TEXT_MAX]; /* as spelled in the rows */
	char canonical[KP_TARGET_TEXT_MAX];
	uint64_t rows;
};

/* What the rows of a cache say, without their code. */
struct cache_summary {
	struct cache_arch arches[CACHE_ARCHES_MAX]; /* sorted by text */
	size_t n_arches;
	uint64_t hip_versions[8]; /* sorted */
	size_t n_hip_versions;
	bool unlisted_versions; /* there are more, or negative ones */
	uint64_t rows;
	/* Rows whose arch is no GPU's target ID, or not text; the first such arch */
	uint64_t n_strange;
	char strange[KP_TARGET_TEXT_MAX];
};

bool cache_arch_ok(struct kp_span text, char canonical[KP_TARGET_TEXT_MAX])
{
	struct kp_target target;

	if (!kp_span_begins(text, "gfx") || text.size >= KP_TARGET_TEXT_MAX ||
	    kp_target_parse(text, &target, NULL))
		return false;
	kp_target_format(&target, canonical);
	return true;
}

/*
 * Whether there is a table with rocFFT's columns, and what its rows say.  Both columns are in the
 * primary key's index, which is much smaller than the table.
 */
static kpack_error_t read_summary(struct sqlite_file *f, struct cache_summary *out,
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
	for (;; out->rows++) {
		struct cache_arch made = {.rows = 1};
		struct kp_span text;
		size_t i = 0;
		int64_t version;
		int type;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			break;
		/* the first few different versions */
		version = sqlite3_column_int64(rows.stmt, 1);
		while (i < out->n_hip_versions &&
		       out->hip_versions[i] != (uint64_t)version)
			i++;
		if (version < 0 || i == KP_COUNT(out->hip_versions))
			out->unlisted_versions = true;
		else if (i == out->n_hip_versions)
			out->hip_versions[out->n_hip_versions++] = (uint64_t)version;

		/* the row's arch; one that belongs to no GPU is strange */
		type = sqlite3_column_type(rows.stmt, 0);
		text = sqlite_bytes(rows.stmt, 0);
		for (i = 0; type == SQLITE_TEXT && i < out->n_arches; i++)
			if (kp_span_is(text, out->arches[i].text))
				break;
		if (type == SQLITE_TEXT && i < out->n_arches) {
			out->arches[i].rows++;
		} else if (type != SQLITE_TEXT || !cache_arch_ok(text, made.canonical)) {
			if (type == SQLITE_NULL)
				text = kp_span_str("NULL");
			if (out->n_strange++ == 0)
				kp_text_escape(text, out->strange, sizeof(out->strange));
		} else if (out->n_arches == CACHE_ARCHES_MAX) {
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "cache_v1: arch: more than %d different ones",
				       CACHE_ARCHES_MAX);
		} else {
			memcpy(made.text, text.data, text.size);
			out->arches[out->n_arches++] = made;
		}
	}
	kp_sort(out->arches, out->n_arches, KP_BY_BYTES(struct cache_arch, text));
	kp_sort(out->hip_versions, out->n_hip_versions, KP_AS_NUMBER(uint64_t));
	return KPACK_SUCCESS;
}

/* Add kernel_count; if they are few, also rows (per arch) and hip_version. */
static void summary_facts(const struct cache_summary *s, struct facts *facts)
{
	KP_AUTO(facts) rows = {0};

	facts_number(facts, "kernel_count", s->rows);
	for (size_t i = 0; i < s->n_arches; i++)
		facts_number(&rows, s->arches[i].text, s->arches[i].rows);
	if (s->n_arches && s->n_arches <= REPORTED_ARCHES_MAX)
		facts_map(facts, "rows", &rows);
	if (s->n_hip_versions && !s->unlisted_versions)
		facts_numbers(facts, "hip_version", s->hip_versions, s->n_hip_versions);
}

kpack_error_t kernel_cache_describe(struct sqlite_file *f, const char *named, bool *is,
				    struct library_object *out, struct kpackx_error *why)
{
	struct cache_summary s;

	KP_TRY(read_summary(f, &s, is, why));
	if (!*is)
		return KPACK_SUCCESS;
	summary_facts(&s, &out->facts);
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

bool kernel_cache_named(const char *path, char arch[KP_TARGET_TEXT_MAX])
{
	struct kp_span name = kp_span_str(kp_path_name(path)), dir;
	struct kp_span above = kp_path_directory(path);
	bool placed = above.size == 0;

	if (!kp_span_take(&name, NAME) || !kp_span_ends(name, ".db"))
		return false;
	/*
	 * It is next to the library, in rocfft/, or one directory below one of these, as
	 * lib/x86_64-linux-gnu is.
	 */
	for (int depth = 0; depth < 2 && above.size; depth++) {
		const uint8_t *slash = memrchr(above.data, '/', above.size);

		dir = slash ? kp_span_tail(above, (size_t)(slash + 1 - above.data))
			    : above;
		placed |= kp_span_is_one_of(dir, "rocfft lib lib64 bin");
		above.size -= dir.size + (slash != NULL);
	}
	arch[0] = 0;
	name.size -= strlen(".db");
	return placed && (name.size == 0 ||
			  (kp_span_take(&name, "_") && cache_arch_ok(name, arch)));
}

/* --- parts ------------------------------------------------------------------------------ */

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
	kp_close_at(&c->fd);
}

static kpack_error_t cache_open(const char *disk, struct cache *c,
				struct kpackx_error *why)
{
	struct kp_source source;
	bool is_one;

	KP_TRY(below_file_open(disk, &c->fd, &c->st, why));
	source = kp_source_fd(c->fd, 0, (uint64_t)c->st.st_size);
	KP_TRY(sqlite_file_open(&source, &c->file, why));
	KP_TRY(read_summary(c->file, &c->summary, &is_one, why));
	if (c->summary.n_strange)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: arch of %llu rows is no target ID: %s",
			       (unsigned long long)c->summary.n_strange,
			       c->summary.strange);
	return KPACK_SUCCESS;
}

/* --- a database for each arch ----------------------------------------------------------- */

kpack_error_t kernel_cache_split(const char *disk, const char *path, const char *tmp,
				 struct cache_files *parts, struct kpackx_error *why)
{
	KP_AUTO(cache) c = {.fd = -1};

	KP_TRY(cache_open(disk, &c, why));
	/* each part is a database as rocFFT would have made on such a machine alone */
	for (size_t i = 0; i < c.summary.n_arches; i++) {
		const struct cache_arch *arch = &c.summary.arches[i];
		struct cache_summary own = c.summary;
		struct library_object *o;
		struct cache_file *part;
		struct stat st;

		KP_TRY(new_part(parts, tmp, path,
				xasprintf("%.*s" NAME "_%s.db",
					  (int)(kp_path_name(path) - path), path,
					  arch->text),
				&part, why));
		KP_TRY(sqlite_copy(c.file, &part->file, parts->called, "cache_v1", "arch",
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
			.mode = c.st.st_mode,
			.at_random = true,
		};
		own.arches[0] = *arch;
		own.n_arches = 1;
		own.rows = arch->rows;
		/* the summary does not say which of the versions are this arch's */
		own.unlisted_versions |= own.n_hip_versions > 1;
		facts_string(&o->facts, "container", "sqlite");
		summary_facts(&own, &o->facts);
		library_add_arch(o, arch->canonical);
	}
	return KPACK_SUCCESS;
}

/* --- names of kernels ------------------------------------------------------------------- */

/* Not isdigit: names are bytes of anybody's, and the locale must not matter. */
static bool parse_number(struct kp_span text, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' ||
		    *out > (UINT64_MAX - 9) / 10)
			return false;
		*out = *out * 10 + (uint64_t)(text.data[i] - '0');
	}
	return text.size > 0;
}

/* Whether S is 100 or 64x64. */
static bool is_length(struct kp_span s)
{
	bool digit = false;

	for (size_t i = 0; i < s.size; i++) {
		bool before = digit;

		digit = s.data[i] >= '0' && s.data[i] <= '9';
		if (!digit && !(before && s.data[i] == 'x'))
			return false;
	}
	return digit && s.size < 48;
}

/* The part of WORD after PREFIX, or if that is empty, the next word: len100, len_100. */
static struct kp_span value_of(struct kp_span word, const char *prefix,
			       struct kp_span rest)
{
	if (!kp_span_take(&word, prefix))
		return (struct kp_span){0};
	return word.size ? word : kp_span_word(&rest, "_");
}

void kernel_name_length_fact(struct kp_span length, struct facts *facts)
{
	uint64_t n;

	if (parse_number(length, &n))
		facts_number(facts, "length", n);
	else
		facts_text(facts, "length", length);
}

/*
 * A name has words separated by '_' that describe the generated kernel:
 * "fft_rtc_fwd_len100_factors_10_10_wgs_64_tpt_10_dim1_sp_ip_CI_unitstride_sbrr_dirReg".
 */
void kernel_name_describe(struct library_object *o, const char *arch, struct kp_span name)
{
	/* words that mean something by themselves, and the fact that each of them is */
	enum { PRECISION, SCHEME, PLACEMENT, DIRECTION, FIELDS };
	static const char *const facts_of[FIELDS] = {"precision", "scheme", "placement",
						     "direction"};
	static const struct {
		const char *word, *meaning;
		size_t field;
	} words[] = {
		{"fwd", "fwd", DIRECTION},   {"back", "back", DIRECTION},
		{"ip", "ip", PLACEMENT},     {"op", "op", PLACEMENT},
		{"sbrr", "sbrr", SCHEME},    {"sbcc", "sbcc", SCHEME},
		{"sbrc", "sbrc", SCHEME},    {"sbcr", "sbcr", SCHEME},
		{"sp", "single", PRECISION}, {"dp", "double", PRECISION},
		{"half", "half", PRECISION},
	};
	const char *field[FIELDS] = {NULL};
	/* "." and ".." are no components, but all their characters are plain */
	bool dots = kp_span_is(name, ".") || kp_span_is(name, "..");
	KP_AUTO_FREE char *component = xmalloc(3 * name.size + 1);
	char *to = component;
	/* factors of the length, and of the second length of two-dimensional kernels */
	uint64_t factors[2][FACTORS_MAX], factor, batch = 0;
	struct kp_span before = {0}, word, value, length = {0};
	size_t n_factors[2] = {0, 0};

	for (struct kp_span rest = name; rest.size; before = word) {
		word = kp_span_word(&rest, "_");
		for (size_t i = 0; i < KP_COUNT(words); i++)
			if (!field[words[i].field] && kp_span_is(word, words[i].word))
				field[words[i].field] = words[i].meaning;
		/* "parent_len..." is not this kernel's length */
		value = value_of(word, "len", rest);
		if (!length.size && !kp_span_is(before, "parent") && is_length(value))
			length = value;
		value = value_of(word, "batch", rest);
		if (!batch && !parse_number(value, &batch))
			batch = 0;
		/* factors_8_8, factors_8_8_x_4_4: numbers, of up to two lengths */
		if (n_factors[0] == 0 && kp_span_is(word, "factors")) {
			struct kp_span more = rest;
			size_t row = 0;

			while (more.size) {
				value = kp_span_word(&more, "_");
				if (row == 0 && n_factors[0] && kp_span_is(value, "x"))
					row = 1;
				else if (parse_number(value, &factor) &&
					 n_factors[row] < FACTORS_MAX)
					factors[row][n_factors[row]++] = factor;
				else
					break;
			}
		}
	}
	if (length.size)
		kernel_name_length_fact(length, &o->facts);
	if (field[PRECISION])
		facts_string(&o->facts, "precision", field[PRECISION]);
	for (size_t i = 0; i < 2; i++)
		if (n_factors[i])
			facts_numbers(&o->facts, i ? "factors2" : "factors", factors[i],
				      n_factors[i]);
	if (batch)
		facts_number(&o->facts, "batch", batch);
	for (size_t i = SCHEME; i < FIELDS; i++)
		if (field[i])
			facts_string(&o->facts, facts_of[i], field[i]);
	if (!length.size)
		length = kp_span_str("any");
	/* the name as the last component of the key */
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
	library_add_key(o, (struct facts){0}, "fft/%s/%.*s/%s/%s", arch, (int)length.size,
			(const char *)length.data,
			field[PRECISION] ? field[PRECISION] : "any", component);
}

/* --- an object for each row ------------------------------------------------------------- */

/* The columns in the order of the query. */
enum { KERNEL_NAME, ARCH, HIP_VERSION, GENERATOR_SUM, TIMESTAMP, CODE };

/*
 * Write the code of all rows to PART's file (CALLED in errors), one after another, from which archives
 * are packed as from any other file, and give PART their objects, also after an error.  Rows that
 * differ only in columns that are not part of the key get equal keys.
 */
static kpack_error_t write_rows(struct sqlite_file *f, const char *called,
				struct cache_file *part, struct kpackx_error *why)
{
	KP_AUTO(sqlite_rows) rows = {0};
	size_t cap = 0, versions_cap = 0;
	uint64_t off = 0;
	bool more;

	KP_TRY(sqlite_rows_open(f,
				"SELECT kernel_name, arch, hip_version, generator_sum, "
				"timestamp, code FROM main.cache_v1 NOT INDEXED",
				&rows, why));
	for (;;) {
		struct library_object *o;
		struct kp_span name, generator, code;
		char arch[KP_TARGET_TEXT_MAX];
		const char *fault = NULL;
		bool is_text, is_blob, has_generator;
		kpack_error_t err;

		KP_TRY(sqlite_rows_next(&rows, &more, why));
		if (!more)
			return KPACK_SUCCESS;
		/* the types first: asking for text changes them */
		is_text = sqlite3_column_type(rows.stmt, KERNEL_NAME) == SQLITE_TEXT;
		is_blob = sqlite3_column_type(rows.stmt, CODE) == SQLITE_BLOB;
		has_generator =
			sqlite3_column_type(rows.stmt, GENERATOR_SUM) == SQLITE_BLOB;
		name = sqlite_bytes(rows.stmt, KERNEL_NAME);
		generator = sqlite_bytes(rows.stmt, GENERATOR_SUM);
		code = sqlite_bytes(rows.stmt, CODE);
		if (part->n_objects == ROWS_MAX)
			fault = "there are more than an archive can hold";
		else if (!is_text)
			fault = "kernel_name: no text";
		else if (name.size == 0)
			fault = "kernel_name: empty";
		/* escaping may triple the name; the rest of the key is short */
		else if (name.size > KP_NAME_MAX / 4)
			fault = "kernel_name: too long for a key";
		else if (has_generator && generator.size > 64)
			fault = "generator_sum: more than 64 bytes";
		else if (!is_blob)
			fault = "code: no blob";
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "cache_v1: row %zu: %s", part->n_objects + 1,
				       fault);
		xgrow(&part->objects, part->n_objects, &cap, sizeof(*o));
		xgrow(&part->hip_versions, part->n_objects, &versions_cap,
		      sizeof(*part->hip_versions));
		part->hip_versions[part->n_objects] =
			sqlite3_column_int64(rows.stmt, HIP_VERSION);
		o = &part->objects[part->n_objects++];
		*o = (struct library_object){
			.library = library_rocfft.name,
			.role = "kernel",
			.offset = off,
			.size = code.size,
		};
		/* the summary has checked the arch of every row */
		if (!cache_arch_ok(sqlite_bytes(rows.stmt, ARCH), arch))
			snprintf(arch, sizeof(arch), "%s", KP_ARCH_GENERIC);
		kernel_name_describe(o, arch, name);
		facts_text(&o->facts, "arch", sqlite_bytes(rows.stmt, ARCH));
		if (sqlite3_column_type(rows.stmt, HIP_VERSION) == SQLITE_INTEGER)
			facts_signed(&o->facts, "hip_version",
				     part->hip_versions[part->n_objects - 1]);
		if (has_generator)
			facts_bytes(&o->facts, "generator_sum", generator);
		if (sqlite3_column_type(rows.stmt, TIMESTAMP) == SQLITE_INTEGER)
			facts_signed(&o->facts, "timestamp",
				     sqlite3_column_int64(rows.stmt, TIMESTAMP));
		library_add_arch(o, arch);
		err = kp_outfile_pwrite(&part->file, off, code.data, code.size, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", called);
		off += code.size;
	}
}

/* --- unique keys ------------------------------------------------------------------------ */

/* A row, by its key before it was renamed, which appends '@' and a version. */
struct named_row {
	struct kp_span key;
	size_t place; /* its number among all rows */
	struct library_object *object;
	const struct cache_file *part;
	int64_t hip_version;
};

/*
 * Name the rows of the part LAST among N rows with one key: the first of all keeps it, the next
 * are named after their versions.  A tree may have a cache for all GPUs and one for a GPU beside it,
 * and the rows of that GPU in both.  Equal rows are stored once; rows that claim to be equal and have
 * other code are a fault, because which of them a program got would depend on the order of files.
 */
static kpack_error_t name_rows(struct named_row *s, size_t n,
			       const struct cache_file *last, struct kpackx_error *why)
{
	if (n > ROWS_SAME_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "cache_v1: more than %d rows for %s", ROWS_SAME_MAX,
			       s->object->keys[0]);
	for (size_t i = 1; i < n; i++) {
		struct library_object *o = s[i].object;
		char *old, number[24] = "";
		size_t same = 0;
		bool twin = false;

		if (s[i].part != last)
			continue;
		for (const struct named_row *t = s; t < s + i && !twin; t++) {
			struct kp_source a, b;

			if (!t->object || t->part == last ||
			    t->object->facts.size != o->facts.size ||
			    memcmp(t->object->facts.pairs, o->facts.pairs,
				   o->facts.size) != 0)
				continue;
			a = kp_source_fd(t->part->file.fd, t->object->offset,
					 t->object->size);
			b = kp_source_fd(last->file.fd, o->offset, o->size);
			KP_TRY(kp_source_compare(&a, &b, &twin, why));
			if (!twin)
				return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					       "cache_v1: other code than in %s for %s",
					       t->part->cache, o->keys[0]);
		}
		if (twin) {
			library_object_fini(o);
			s[i].object = NULL;
			continue;
		}
		for (size_t k = 1; k < i; k++)
			same += s[k].object && s[k].hip_version == s[i].hip_version;
		if (same)
			snprintf(number, sizeof(number), ".%zu", same + 1);
		old = o->keys[0];
		o->keys[0] =
			xasprintf("%s@%lld%s", old, (long long)s[i].hip_version, number);
		free(old);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kernel_cache_rows(const char *disk, const char *path, const char *tmp,
				struct cache_files *parts, struct kpackx_error *why)
{
	KP_AUTO(cache) c = {.fd = -1};
	KP_AUTO_FREE struct named_row *rows = NULL;
	size_t n = 0, cap = 0, kept = 0;
	struct cache_file *part;

	KP_TRY(cache_open(disk, &c, why));
	if (!c.summary.rows)
		return KPACK_SUCCESS;
	KP_TRY(new_part(parts, tmp, path, xasprintf("%s@rows", path), &part, why));
	KP_TRY(write_rows(c.file, parts->called, part, why));
	for (const struct cache_file *p = parts->items; p <= part; p++)
		for (size_t i = 0; p->hip_versions && i < p->n_objects; i++) {
			const char *key = p->objects[i].keys[0];

			xgrow(&rows, n, &cap, sizeof(*rows));
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
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && kp_span_eq(rows[end].key, rows[i].key);)
			end++;
		KP_TRY(name_rows(&rows[i], end - i, part, why));
	}
	/* close the gaps of rows that another cache has too */
	for (size_t i = 0; i < part->n_objects; i++)
		if (part->objects[i].n_keys) {
			part->hip_versions[kept] = part->hip_versions[i];
			part->objects[kept++] = part->objects[i];
		}
	part->n_objects = kept;
	if (part->n_objects == 0)
		fini_part(&parts->items[--parts->count]);
	return KPACK_SUCCESS;
}
