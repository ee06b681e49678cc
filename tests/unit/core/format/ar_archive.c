/* SPDX-License-Identifier: MIT */
#include "core/format/ar_archive.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <unistd.h>
#include "tests/unit/elf_builder.h"
#include "core/base/bounds.h"

static struct kpackx_error why;

static kpack_error_t read_ar(const void *data, size_t size, struct kp_ar *out)
{
	struct kp_source src = exact_copy(data, size);
	kpack_error_t err = kp_ar_read(&src, out, &why);

	exact_copy_free(&src);
	return err;
}

/* A member as stored in an archive; SIZE is the header's size field. */
struct raw {
	const char *name, *owner, *mode, *size;
	const char *bytes;
	size_t n;
};

#define M(name, size, bytes)                                                             \
	{                                                                                \
		name, "0", "644", size, bytes, sizeof(bytes) - 1                         \
	}
#define INDEX(name, size, bytes)                                                         \
	{                                                                                \
		name, "0", "0", size, bytes, sizeof(bytes) - 1                           \
	}
#define NAMES(size, bytes)                                                               \
	{                                                                                \
		"//", "", "", size, bytes, sizeof(bytes) - 1                             \
	}

static struct bytes archive(const struct raw *rows, size_t n)
{
	struct bytes b = {0};
	char header[80];

	put(&b, "!<arch>\n", 8);
	for (size_t i = 0; i < n; i++) {
		snprintf(header, sizeof(header), "%-16s%-12s%-6s%-6s%-8s%-10s`\n",
			 rows[i].name, rows[i].owner, rows[i].owner, rows[i].owner,
			 rows[i].mode, rows[i].size);
		put(&b, header, 60);
		put(&b, rows[i].bytes, rows[i].n);
	}
	return b;
}

/* The archive of ROWS has exactly these members; each string is "NAME=bytes". */
static void assert_members(const struct raw *rows, size_t n_rows,
			   const char *const *members, size_t n)
{
	struct bytes b = archive(rows, n_rows);
	char got[256];
	struct kp_ar ar;

	if (read_ar(b.data, b.size, &ar))
		fail_msg("%s", why.text);
	assert_int_equal(ar.count, n);
	for (size_t i = 0; i < n; i++) {
		const struct kp_ar_member *m = &ar.items[i];

		assert_true(kp_range_ok(b.size, m->offset, m->size));
		snprintf(got, sizeof(got), "%s=%.*s", m->name, (int)m->size,
			 (const char *)b.data + m->offset);
		assert_string_equal(got, members[i]);
	}
	kp_ar_fini(&ar);
	bytes_free(&b);
}

#define MEMBERS(rows, ...)                                                               \
	assert_members(rows, COUNT(rows), (const char *const[]){__VA_ARGS__},            \
		       COUNT(((const char *const[]){__VA_ARGS__})))

static void assert_refused(const void *data, size_t size, kpack_error_t code,
			   const char *reason)
{
	struct kp_ar ar;

	assert_int_equal(read_ar(data, size, &ar), code);
	assert_has(why.text, reason);
	assert_null(ar.items);
}

/* An archive of ROW, and ROW2 if it has a name, is refused with REASON. */
static void refused(struct raw row, struct raw row2, const char *reason)
{
	struct raw rows[] = {row, row2};
	struct bytes b = archive(rows, row2.name ? 2 : 1);

	assert_refused(b.data, b.size, KPACK_ERROR_INVALID_FORMAT, reason);
	bytes_free(&b);
}

/* ---- reading ---- */

TEST(gnu_archives)
{
	static const struct raw plain[] = {
		M("a.o/", "3", "odd\n"),
		M("with space/", "4", "even"),
		M("empty/", "0", ""),
	};
	/* the symbol index, and names that are long or contain slashes */
	static const struct raw long_names[] = {
		INDEX("/", "4", "\0\0\0\0"),
		NAMES("40", "a_name_of_some_length.o/\ndir/b.o/\nx.c/\n\n"),
		M("/25", "1", "1\n"),
		M("/0", "1", "2\n"),
		M("/34", "1", "3\n"),
	};
	static const struct raw wide[] = {
		INDEX("/SYM64/", "8", "\0\0\0\0\0\0\0\0"),
		M("a/", "2", "AA"),
	};
	/* the line feed after the last member is often missing */
	static const struct raw unpadded[] = {M("a/", "1", "A")};
	/* not BSD's long names */
	static const struct raw numbers[] = {M("#1/", "2", "AA"), M("#1/x", "2", "BB")};
	static const struct raw twice[] = {M("a/", "2", "11"), M("a/", "2", "22")};

	MEMBERS(plain, "a.o=odd", "with space=even", "empty=");
	MEMBERS(long_names, "dir/b.o=1", "a_name_of_some_length.o=2", "x.c=3");
	MEMBERS(wide, "a=AA");
	MEMBERS(unpadded, "a=A");
	MEMBERS(numbers, "#1=AA", "#1/x=BB");
	MEMBERS(twice, "a=11", "a=22");
	assert_members(NULL, 0, NULL, 0);
}

TEST(bsd_archives)
{
	static const struct raw numbered[] = {
		INDEX("#1/12", "14", "__.SYMDEF\0\0\0xx"),
		M("#1/24", "29",
		  "a_name_of_some_length.o\0"
		  "12345\n"),
		M("short.o", "2", "AB"),
		M("#1/4", "4", "b\0\0\0"),
	};
	static const struct raw indexes[] = {
		INDEX("__.SYMDEF SORTED", "2", "xx"),
		INDEX("__.SYMDEF", "2", "xx"),
		M("a.o", "2", "AA"),
	};

	MEMBERS(numbered, "a_name_of_some_length.o=12345", "short.o=AB", "b=");
	MEMBERS(indexes, "a.o=AA");
}

TEST(damage_is_named)
{
	struct raw none = {0};

	assert_refused("!<arch>", 7, KPACK_ERROR_INVALID_FORMAT, "");
	assert_refused("!<arch>x", 8, KPACK_ERROR_INVALID_FORMAT, "not an ar archive");
	assert_refused("!<arch>\nrest", 12, KPACK_ERROR_INVALID_FORMAT,
		       "read of 60 bytes at offset 8 passes the end");
	refused((struct raw)M("a/", "3", "12"), none,
		"member at offset 8: 3 bytes pass the end at 70");
	refused((struct raw)M("a/", "-1", ""), none, "no header of a member");
	refused((struct raw)M("a/", "", ""), none, "no header of a member");
	refused((struct raw)M("a/", "1 1", "12"), none, "no header of a member");
	refused((struct raw)M("a/", "0", "x"), none, "read of 60 bytes at offset 68");
	refused((struct raw)M("a/", "0", ""), (struct raw)M("b/", "0x1", ""),
		"offset 68: no header");
	refused((struct raw)M("/0", "0", ""), none, "name at 0 of 0 bytes");
	refused((struct raw)NAMES("4", "ab/\n"), (struct raw)M("/4", "0", ""),
		"name at 4 of 4 bytes");
	refused((struct raw)M("#1/4", "3", "ab\n\n"), none, "a name of 4 bytes among 3");
	refused((struct raw)M("#1/4097", "5000", ""), none, "pass the end");
}

/*
 * The members' bytes are in other files; only the index and the name table have bytes
 * here.
 */
TEST(thin_archives_name_files)
{
	const struct raw rows[] = {INDEX("/", "4", "\0\0\0\0"), NAMES("8", "../ab/\n\n"),
				   M("/0", "99999", ""), M("b/", "3", "")};
	const struct raw nested[] = {NAMES("4", "a.a/"), M("/0:94", "3", "")};
	struct bytes b = archive(rows, COUNT(rows));
	struct kp_ar ar;

	memcpy(b.data, "!<thin>\n", 8);
	assert_int_equal(read_ar(b.data, b.size, &ar), KPACK_SUCCESS);
	assert_true(ar.thin);
	assert_int_equal(ar.count, 2);
	assert_string_equal(ar.items[0].name, "../ab");
	assert_int_equal(ar.items[0].size, 99999);
	assert_string_equal(ar.items[1].name, "b");
	kp_ar_fini(&ar);
	bytes_free(&b);
	b = archive(nested, COUNT(nested));
	memcpy(b.data, "!<thin>\n", 8);
	assert_refused(b.data, b.size, KPACK_ERROR_NOT_IMPLEMENTED,
		       "member of another archive, in a thin archive");
	bytes_free(&b);
}

/* ---- writing ---- */

static kpack_error_t to_bytes(void *arg, const void *data, size_t size,
			      struct kpackx_error *error)
{
	put(arg, data, size);
	return KPACK_SUCCESS;
}

static struct bytes written(const struct kp_ar_input *members, size_t n)
{
	struct bytes b = {0};
	struct kp_sink sink = {.write = to_bytes, .arg = &b};

	if (kp_ar_write(members, n, &sink, &why))
		fail_msg("%s", why.text);
	assert_int_equal(sink.size, b.size);
	return b;
}

static struct kp_ar_input member(const char *name, const void *data, size_t size)
{
	return (struct kp_ar_input){kp_span_str(name), kp_source_memory(data, size)};
}

static void assert_bytes(struct bytes b, const char *expected, size_t size)
{
	assert_int_equal(b.size, size);
	assert_memory_equal(b.data, expected, size);
	bytes_free(&b);
}

#define WRITTEN(members, rows)                                                           \
	do {                                                                             \
		struct bytes expected_ = archive(rows, COUNT(rows));                     \
		assert_bytes(written(members, COUNT(members)),                           \
			     (const char *)expected_.data, expected_.size);              \
		bytes_free(&expected_);                                                  \
	} while (0)

/* The output equals llvm-ar's for the same members. */
TEST(members_are_written)
{
	struct kp_ar_input plain[] = {member("a", "odd", 3),
				      member("fifteen_letters", "even", 4)};
	static const struct raw plain_rows[] = {M("a/", "3", "odd\n"),
						M("fifteen_letters/", "4", "even")};
	struct kp_ar_input names[] = {member("a_name_of_some_length", "1", 1),
				      member("sixteen__letters", "2", 1),
				      member("a_name_of_some_length", "3", 1),
				      member("d/a", "4", 1)};
	static const struct raw names_rows[] = {
		NAMES("46", "a_name_of_some_length/\nsixteen__letters/\nd/a/\n"),
		M("/0", "1", "1\n"),
		M("/23", "1", "2\n"),
		M("/0", "1", "3\n"),
		M("/41", "1", "4\n"),
	};

	WRITTEN(plain, plain_rows);
	WRITTEN(names, names_rows);
	assert_bytes(written(NULL, 0), "!<arch>\n", 8);
}

/* An object with the symbols "", local, file, undefined, global, weak, common. */
static struct bytes object_with_symbols(void)
{
	static const char names[] = "\0local\0file\0undefined\0global\0weak\0common";
	static const struct {
		uint32_t name;
		uint8_t info;
		uint16_t section;
	} rows[] = {
		{0, 0, 0},
		{1, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), 1},
		{7, ELF64_ST_INFO(STB_GLOBAL, STT_FILE), SHN_ABS},
		{12, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), SHN_UNDEF},
		{22, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1},
		{29, ELF64_ST_INFO(STB_WEAK, STT_OBJECT), 1},
		{34, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), SHN_COMMON},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_SECTION), 1},
	};
	struct bytes table = {0};
	struct elf_file f;

	for (size_t i = 0; i < COUNT(rows); i++) {
		put_number(&table, rows[i].name, 4);
		put_number(&table, rows[i].info, 2);
		put_number(&table, rows[i].section, 2);
		put_zeros(&table, 16);
	}
	const struct section sections[] = {
		{".symtab", SHT_SYMTAB, 0, 0, bytes_span(&table), 2, 2, 24},
		{".strtab",
		 SHT_STRTAB,
		 0,
		 0,
		 {(const uint8_t *)names, sizeof(names)},
		 0,
		 0,
		 0},
	};

	f = elf_build(ET_REL, EM_X86_64, sections, COUNT(sections));
	bytes_free(&table);
	return f.bytes;
}

static void assert_index(struct bytes b, size_t count, const char *names, size_t size)
{
	const uint8_t *p = b.data + 68;

	assert_memory_equal(b.data + 8, "/ ", 2);
	assert_int_equal(p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3], count);
	assert_memory_equal(p + 4 + 4 * count, names, size);
	bytes_free(&b);
}

TEST(symbols_are_indexed)
{
	struct bytes o = object_with_symbols(), b;
	struct kp_ar_input members[] = {member("text", "text", 4),
					member("a.o", o.data, o.size),
					member("b.o", o.data, o.size)};
	static const char index[] = "global\0weak\0common\0global\0weak\0common\0";
	const uint8_t *p;

	b = written(members, 3);
	assert_memory_equal(b.data + 8, "/               0           0     0     ", 40);
	assert_memory_equal(b.data + 48, "0       66        `\n", 20);
	p = b.data + 68;
	assert_memory_equal(p, "\0\0\0\6\0\0\0\xc6\0\0\0\xc6\0\0\0\xc6", 16);
	assert_memory_equal(b.data + 0xc6, "a.o/ ", 5);
	assert_memory_equal(p + 28, index, sizeof(index) - 1);
	bytes_free(&b);
	bytes_free(&o);
}

/*
 * Objects without symbols still get an index, as LLVM writes it; other members get none.
 */
TEST(objects_without_symbols_have_an_index)
{
	struct elf_file o = elf_build(ET_REL, EM_X86_64, NULL, 0);
	struct kp_ar_input members[] = {member("text", "text", 4),
					member("a.o", o.bytes.data, o.bytes.size),
					member("a.bc", "BC\xc0\xde", 4)};
	struct bytes b;

	assert_index(written(members, 2), 0, "\0\0\0\0text/", 9);
	assert_index(written(members + 2, 1), 0, "\0\0\0\0a.bc/", 9);
	b = written(members, 1);
	assert_memory_equal(b.data + 8, "text/", 5);
	bytes_free(&b);
	bytes_free(&o.bytes);
}

/* Members that are not objects, or are damaged, have no symbols. */
TEST(damaged_objects_are_members)
{
	struct bytes o = object_with_symbols(), b;
	struct kp_ar_input m = member("a.o", o.data, o.size);

	for (size_t i = 0; i < o.size; i++) {
		for (int k = 0; k < 2; k++) {
			o.data[i] ^= k ? 0x80 : 0xff;
			b = written(&m, 1);
			assert_true(b.size >= 8 + 60 + o.size);
			assert_memory_equal(b.data + b.size - o.size, o.data, o.size);
			bytes_free(&b);
			o.data[i] ^= k ? 0x80 : 0xff;
		}
	}
	for (size_t n = 0; n < o.size; n++) {
		m = member("a.o", o.data, n);
		b = written(&m, 1);
		bytes_free(&b);
	}
	bytes_free(&o);
}

/* ---- bitcode ---- */

struct bit_writer {
	struct bytes b;
	unsigned used;
};

static void bits(struct bit_writer *w, uint32_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (w->used % 8 == 0)
			put_zeros(&w->b, 1);
		w->b.data[w->b.size - 1] |= (uint8_t)((value >> i & 1) << w->used % 8);
		w->used++;
	}
}

/* A block with one blob, as LLVM's writer lays it out. */
static void put_blob_block(struct bytes *out, unsigned number, struct kp_span blob)
{
	struct bit_writer w = {{0}, 0};
	size_t n = blob.size;

	bits(&w, 2, 3); /* define an abbreviation of two operands: 1, a blob */
	bits(&w, 2, 5);
	bits(&w, 1, 1);
	bits(&w, 1, 8);
	bits(&w, 0, 1);
	bits(&w, 5, 3);
	bits(&w, 4, 3); /* a record with this abbreviation */
	for (; n >= 32; n >>= 5)
		bits(&w, (n & 31) | 32, 6);
	bits(&w, (uint32_t)n, 6);
	put_padding(&w.b, 4);
	put(&w.b, blob.data, blob.size);
	put_padding(&w.b, 4);
	put_zeros(&w.b, 4); /* the end of the block */
	put_number(out, 1 | number << 2 | 3 << 10, 4);
	put_number(out, w.b.size / 4, 4);
	put(out, w.b.data, w.b.size);
	bytes_free(&w.b);
}

static void put_bitcode_symbol(struct bytes *b, uint32_t name, uint32_t size,
			       uint32_t flags)
{
	put_number(b, name, 4);
	put_number(b, size, 4);
	put_zeros(b, 12);
	put_number(b, flags, 4);
}

static struct bytes bitcode(void)
{
	static const char strings[] = "producerfirstsecondundefinedlocalllvm.used";
	struct bytes b = {0}, table = {0};

	put_number(&table, 4, 4);
	put_zeros(&table, 24);
	put_number(&table, 36, 4); /* symbols */
	put_number(&table, 5, 4);
	put_bitcode_symbol(&table, 8, 5, 1 << 10);
	put_bitcode_symbol(&table, 28 - 9, 9, 1 << 10 | 1 << 3);
	put_bitcode_symbol(&table, 28, 5, 0);
	put_bitcode_symbol(&table, 33, 9, 1 << 10 | 1 << 11);
	put_bitcode_symbol(&table, 13, 6, 1 << 10 | 1 << 4 | 1 << 12);
	put(&b, "BC\xc0\xde", 4);
	put_blob_block(&b, 13, kp_span_str("identification"));
	put_blob_block(&b, 25, bytes_span(&table));
	put_blob_block(&b, 23, kp_span_str(strings));
	bytes_free(&table);
	return b;
}

TEST(bitcode_is_indexed)
{
	struct bytes bc = bitcode(), wrapped = {0}, b;
	struct kp_ar_input m = member("a.bc", bc.data, bc.size);

	assert_index(written(&m, 1), 2, "first\0second", 13);
	put_number(&wrapped, 0x0b17c0de, 4);
	put_number(&wrapped, 0, 4);
	put_number(&wrapped, 20, 4);
	put_number(&wrapped, bc.size, 4);
	put_number(&wrapped, 7, 4);
	put(&wrapped, bc.data, bc.size);
	put_zeros(&wrapped, 8);
	m = member("a.bc", wrapped.data, wrapped.size);
	assert_index(written(&m, 1), 2, "first\0second", 13);
	for (size_t i = 0; i < bc.size; i++) {
		bc.data[i] ^= 0xff;
		m = member("a.bc", bc.data, bc.size);
		b = written(&m, 1);
		bytes_free(&b);
		bc.data[i] ^= 0xff;
		m = member("a.bc", bc.data, i);
		b = written(&m, 1);
		bytes_free(&b);
	}
	bytes_free(&wrapped);
	bytes_free(&bc);
}

/* An object with embedded bitcode is indexed by its own symbols only. */
TEST(carried_bitcode_is_no_index)
{
	struct bytes bc = bitcode(), b;
	const struct section sections[] = {
		{".llvmbc", SHT_PROGBITS, 0, 0, bytes_span(&bc), 0, 0, 0}};
	struct elf_file o = elf_build(ET_REL, EM_X86_64, sections, 1);
	struct kp_ar_input m = member("a.o", o.bytes.data, o.bytes.size);

	b = written(&m, 1);
	assert_index(b, 0, "\0\0\0\0a.o/", 8);
	bytes_free(&o.bytes);
	bytes_free(&bc);
}

TEST(what_is_written_is_read)
{
	struct bytes o = object_with_symbols(), b;
	struct kp_ar_input members[] = {member("a.o", o.data, o.size),
					member("a_name_of_some_length.o", "x", 1),
					member("__.SYMDEF", "not BSD's", 9),
					member("#1/2", "12", 2),
					member("#1", "12", 2),
					member("d/e", "", 0),
					member("a.o", "again", 5)};
	struct kp_ar ar;

	b = written(members, COUNT(members));
	assert_int_equal(read_ar(b.data, b.size, &ar), KPACK_SUCCESS);
	assert_int_equal(ar.count, COUNT(members));
	for (size_t i = 0; i < ar.count; i++) {
		assert_true(kp_span_is(members[i].name, ar.items[i].name));
		assert_int_equal(ar.items[i].size, members[i].bytes.size);
		assert_memory_equal(b.data + ar.items[i].offset, members[i].bytes.mem,
				    ar.items[i].size);
	}
	kp_ar_fini(&ar);
	bytes_free(&b);
	bytes_free(&o);
}

TEST(names_have_a_bound)
{
	char name[KP_NAME_MAX + 3] = "";
	struct kp_sink sink = {.write = to_bytes};
	struct kp_ar_input m = member(name, "x", 1);
	struct kp_ar ar;
	struct bytes b;

	memset(name, 'n', sizeof(name));
	m.name.size = KP_NAME_MAX - 1;
	assert_int_equal(kp_ar_write(&m, 1, &sink, &why), KPACK_ERROR_INVALID_ARGUMENT);
	m.name.size = KP_NAME_MAX - 2;
	b = written(&m, 1);
	assert_int_equal(read_ar(b.data, b.size, &ar), KPACK_SUCCESS);
	assert_int_equal(strlen(ar.items[0].name), KP_NAME_MAX - 2);
	kp_ar_fini(&ar);
	bytes_free(&b);
	name[KP_NAME_MAX] = '\0';
	refused((struct raw){"//", "", "", "4096", name, KP_NAME_MAX},
		(struct raw)M("/0", "0", ""), "or more");
}

TEST(what_has_no_place_is_refused)
{
	struct kp_sink sink = {.write = to_bytes};
	struct kp_ar_input m = member("a\nb", "", 0);

	assert_int_equal(kp_ar_write(&m, 1, &sink, &why), KPACK_ERROR_INVALID_ARGUMENT);
	m = member("", "", 0);
	assert_int_equal(kp_ar_write(&m, 1, &sink, &why), KPACK_ERROR_INVALID_ARGUMENT);
	m = member("a", "text that is longer than it is", 30);
	m.bytes.size = UINT64_C(10000000000);
	assert_int_equal(kp_ar_write(&m, 1, &sink, &why), KPACK_ERROR_INVALID_ARGUMENT);
	assert_has(why.text, "at most 9999999999");
}
