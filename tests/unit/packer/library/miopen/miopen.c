/* SPDX-License-Identifier: MIT */
#include "packer/library/miopen/ck_library.h"
#include "packer/library/miopen/ck_name.h"
#include "packer/library/miopen/name.h"
#include "tests/unit/library_ask.h"
#include <unistd.h>
#include "tests/unit/unit.h"

static const char TEXT[] = "key=ConvAsm1x1U:1,8\n";

/* --- names ------------------------------------------------------------------------------ */

TEST(names_give_gpu_and_compute_units)
{
	static const struct {
		const char *name, *arch, *db_id;
		unsigned cu_count;
		const char *role, *backend;
	} names[] = {
		{"gfx942130.db.txt", "gfx942", "gfx942", 304, "perf", NULL},
		{"gfx90a68.db.txt", "gfx90a", "gfx90a", 104, "perf", NULL},
		{"gfx90a6e.HIP.fdb.txt", "gfx90a", "gfx90a", 110, "find", "HIP"},
		{"gfx90a6e.OpenCL.fdb.txt", "gfx90a", "gfx90a", 110, "find", "OpenCL"},
		{"gfx90a6e.fdb.txt", "gfx90a", "gfx90a", 110, "find", NULL},
		{"gfx90878.db.txt", "gfx908", "gfx908", 120, "perf", NULL},
		{"gfx942e4.db.txt", "gfx942", "gfx942", 228, "perf", NULL},
		{"gfx1030_36.db.txt", "gfx1030", "gfx1030", 36, "perf", NULL},
		{"gfx906_60.db.txt", "gfx906", "gfx906", 60, "perf", NULL},
		{"gfx900_56.HIP.fdb.txt", "gfx900", "gfx900", 56, "find", "HIP"},
		{"gfx803_64.db.txt", "gfx803", "gfx803", 64, "perf", NULL},
		{"gfx110060.db.txt", "gfx1100", "gfx1100", 96, "perf", NULL},
		{"gfx1100_48.db.txt", "gfx1100", "gfx1100", 48, "perf", NULL},
		{"gfx950100.db.txt", "gfx950", "gfx950", 256, "perf", NULL},
		{"gfx1250100.db.txt", "gfx1250", "gfx1250", 256, "perf", NULL},
		{"gfx1153_16.db.txt", "gfx1153", "gfx1153", 16, "perf", NULL},
		{"gfx90a.kdb", "gfx90a", "gfx90a", 0, "kernels", NULL},
		{"gfx1030_36.kdb", "gfx1030", "gfx1030", 36, "kernels", NULL},
		{"gfx90a68.kdb", "gfx90a", "gfx90a", 104, "kernels", NULL},
		/* features are part of the DbId */
		{"gfx906_nosramecc_60.db.txt", "gfx906:sramecc-", "gfx906_nosramecc", 60,
		 "perf", NULL},
		{"gfx908_nosramecc78.db.txt", "gfx908:sramecc-", "gfx908_nosramecc", 120,
		 "perf", NULL},
		{"gfx908_nosramecc.kdb", "gfx908:sramecc-", "gfx908_nosramecc", 0,
		 "kernels", NULL},
		{"gfx90a_xnack68.db.txt", "gfx90a:xnack+", "gfx90a_xnack", 104, "perf",
		 NULL},
		{"gfx90a_sramecc_xnack6e.db.txt", "gfx90a:sramecc+:xnack+",
		 "gfx90a_sramecc_xnack", 110, "perf", NULL},
		{"gfx942_sramecc130.db.txt", "gfx942:sramecc+", "gfx942_sramecc", 304,
		 "perf", NULL},
		/*
		 * a feature that the processor does not have is dropped from the target
		 * ID
		 */
		{"gfx1030_xnack_36.db.txt", "gfx1030", "gfx1030_xnack", 36, "perf", NULL},
		/* models have no compute units in their names */
		{"gfx908.tn.model", "gfx908", "gfx908", 0, "model", NULL},
		{"gfx942_metadata.tn.model", "gfx942", "gfx942", 0, "model", NULL},
		{"gfx942_3d.tn.model", "gfx942", "gfx942", 0, "model", NULL},
		{"gfx90a_ConvHipIgemmGroupFwdXdlops_encoder.ktn.model", "gfx90a",
		 "gfx90a", 0, "model", NULL},
		{"gfx1250-strict100.db.txt", "gfx1250", "gfx1250-strict", 256, "perf",
		 NULL},
		{"gfx12-generic.kdb", "gfx12-generic", "gfx12-generic", 0, "kernels",
		 NULL},
		/* names without a GPU */
		{"miopen.db", "", "", 0, "perf", NULL},
		{"readme.txt", "", "", 0, "file", NULL},
		{"gfx", "", "", 0, "file", NULL},
		{".db.txt", "", "", 0, "file", NULL},
		{"gfx942.db.txt.bz2", "gfx942", "gfx942", 0, "file", NULL},
		{"gfx94213012345.db.txt", "gfx942", "gfx942", 0, "perf", NULL},
		{"gfx942130x.db.txt", "gfx942", "gfx942", 0, "perf", NULL},
		{"gfx942", "gfx942", "gfx942", 0, "file", NULL},
		{"gfx94213", "gfx942", "gfx942", 19, "file", NULL},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct miopen_name n = miopen_name(kp_span_str(names[i].name));

		if (strcmp(n.arch, names[i].arch) != 0 ||
		    n.db_id.size != strlen(names[i].db_id) ||
		    (n.db_id.size && !kp_span_is(n.db_id, names[i].db_id)) ||
		    n.cu_count != names[i].cu_count ||
		    strcmp(n.role, names[i].role) != 0 || !n.backend != !names[i].backend)
			fail_msg("%s: '%s' '%.*s' %u %s", names[i].name, n.arch,
				 (int)n.db_id.size, (const char *)n.db_id.data,
				 n.cu_count, n.role);
		if (n.backend)
			assert_string_equal(n.backend, names[i].backend);
	}
}

TEST(names_of_ck_give_the_target)
{
	static const struct {
		const char *text, *arch; /* NULL: none */
		bool variant;
	} names[] = {
		{"gfx942", "gfx942", false},
		{"gfx90a-xnack+", "gfx90a:xnack+", false},
		{"gfx90a:xnack-", "gfx90a:xnack-", false},
		{"gfx90a_xnack+", "gfx90a:xnack+", false},
		{"gfx90a_xnackp", "gfx90a:xnack+", false},
		{"gfx90a_xnack_", "gfx90a:xnack-", false},
		{"gfx90a_xnack", "gfx90a:xnack+", false},
		{"gfx90a_sramecc__xnack_", "gfx90a:sramecc-:xnack-", false},
		{"gfx90a_xnackp_srameccp", "gfx90a:sramecc+:xnack+", false},
		{"gfx11_generic", "gfx11-generic", false},
		{"gfx9_4_generic", "gfx9-4-generic", false},
		{"gfx9-4-generic", "gfx9-4-generic", false},
		{"gfx1250_strict", "gfx1250", true},
		{"gfx1250-strict", "gfx1250", true},
		{"gfx942_strict_xnackp", "gfx942:xnack+", true},
		{"gfx1100_xnackp", NULL, false},
		{"gfx90a_xnackp_xnackp", NULL, false},
		{"gfx942x", NULL, false},
		{"gfx942_", NULL, false},
		{"gfx942_debug", NULL, false},
		{"gfx94", NULL, false},
		{"gfx", NULL, false},
		{"", NULL, false},
		{"fiji", NULL, false},
		{"gfx9-4-generic-and-a-name-that-is-too-long-for-it", NULL, false},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		char arch[KP_TARGET_TEXT_MAX] = "";
		bool variant = false;
		bool is = ck_target(kp_span_str(names[i].text), arch, &variant);

		if (is != !!names[i].arch || (is && (strcmp(arch, names[i].arch) != 0 ||
						     variant != names[i].variant)))
			fail_msg("%s: %d %s %d", names[i].text, is, arch, variant);
	}
}

TEST(names_of_ck_libraries)
{
	static const struct {
		const char *name, *arch; /* NULL: not a CK library */
	} names[] = {
		{"libMIOpenCKGroupedConv_gfx942.so", "gfx942"},
		{"libMIOpenCKGroupedConv_gfx90a.so.1", "gfx90a"},
		{"libMIOpenCKGroupedConv_gfx90a.so.1.0.60400", "gfx90a"},
		{"libMIOpenCKGroupedConv_gfx90a-xnack+.so", "gfx90a:xnack+"},
		{"libMIOpenCKGroupedConv_gfx90a_xnackp.so", "gfx90a:xnack+"},
		{"MIOpenCKGroupedConv_gfx942.dll", "gfx942"},
		{"MIOpenCKGroupedConv_gfx942-xnack-.dll", "gfx942:xnack-"},
		{"libMIOpenCK_gfx1151.so", "gfx1151"},
		{"libMIOpen.so", NULL},
		{"libMIOpen.so.1", NULL},
		{"libMIOpenCKGroupedConv.so", NULL},
		{"libMIOpenCKGroupedConv_gfx942.so.debug", NULL},
		{"libMIOpenCKGroupedConv_gfx942.so.", NULL},
		{"libMIOpenCKGroupedConv_gfx942.sox", NULL},
		{"libMIOpenCKGroupedConv_gfx942.a", NULL},
		{"libMIOpenCKGroupedConv_gfx942", NULL},
		{"MIOpen.dll", NULL},
		{"xlibMIOpenCK_gfx942.so", NULL},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct ck_library_name n;
		bool is = ck_library_name(kp_span_str(names[i].name), &n);

		if (is != !!names[i].arch || (is && strcmp(n.arch, names[i].arch) != 0))
			fail_msg("%s: %d", names[i].name, is);
	}
}

/* --- files ------------------------------------------------------------------------------ */

TEST(files_below_the_directory_are_miopens)
{
	static const struct {
		const char *path, *role, *arches, *facts;
	} files[] = {
		{"share/miopen/db/gfx942130.db.txt", "perf", "gfx942",
		 "{\"container\":\"text\",\"db_id\":\"gfx942\",\"cu_count\":304,"
		 "\"kind\":\"perf\"}"},
		{"torch/share/miopen/db/gfx90a6e.HIP.fdb.txt", "find", "gfx90a",
		 "{\"container\":\"text\",\"db_id\":\"gfx90a\",\"cu_count\":110,"
		 "\"kind\":\"find\",\"backend\":\"HIP\"}"},
		{"share/miopen/db/gfx908_3d.tn.model", "model", "gfx908",
		 "{\"container\":\"text\",\"db_id\":\"gfx908\",\"kind\":\"model\"}"},
		{"share/miopen/db/gfx908.tn.model", "model", "generic",
		 "{\"container\":\"text\",\"db_id\":\"gfx908\",\"kind\":\"model\"}"},
		{"share/miopen/db/gfx908_metadata.tn.model", "model", "generic",
		 "{\"container\":\"text\",\"db_id\":\"gfx908\",\"kind\":\"model\"}"},
		{"miopen/db/deep/x.txt", "file", "generic", "{\"container\":\"text\"}"},
		{"miopen/db/gfx942/x.txt", "file", "gfx942", "{\"container\":\"text\"}"},
		{"miopen/db/miopen_gfx942.db.txt", "perf", "gfx942",
		 "{\"container\":\"text\",\"kind\":\"perf\"}"},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct asked a =
			ask(&library_miopen, files[i].path, TEXT, sizeof(TEXT) - 1);

		assert_int_equal(a.err, 0);
		assert_true(a.mine);
		assert_string_equal(a.object.role, files[i].role);
		assert_string_equal(asked_arches(&a), files[i].arches);
		assert_facts(&a.object.facts, files[i].facts);
		assert_null(a.object.warning);
		assert_false(a.object.at_random);
		asked_fini(&a);
	}
}

TEST(other_files_are_not)
{
	static const char *const paths[] = {
		"share/miopen/db",       "share/miopen/gfx942130.db.txt",
		"miopen/dbx/gfx942.kdb", "xmiopen/db/gfx942.kdb",
		"lib/libMIOpen.so",
	};
	uint8_t elf[64] = "\177ELF\2\1\1";
	struct asked a;

	for (size_t i = 0; i < COUNT(paths); i++)
		assert_false(ask(&library_miopen, paths[i], TEXT, 10).probed);
	/* a host program in this directory is not taken */
	elf[18] = 62;
	a = ask(&library_miopen, "share/miopen/db/tool", elf, sizeof(elf));
	assert_int_equal(a.err, 0);
	assert_false(a.mine);
	asked_fini(&a);
}

TEST(an_unknown_gpu_is_reported)
{
	struct asked a = ask(&library_miopen, "miopen/db/gfx77130.db.txt", TEXT, 10);

	assert_true(a.mine);
	assert_string_equal(asked_arches(&a), "generic");
	assert_non_null(a.object.warning);
	asked_fini(&a);
}

/* --- databases -------------------------------------------------------------------------- */

/* A database header for PAGES pages of 4096 bytes. */
static uint8_t *database(size_t pages)
{
	uint8_t *db = calloc(pages + 1, 4096);

	assert_non_null(db);
	memcpy(db, "SQLite format 3", 16);
	db[16] = 16; /* big-endian */
	db[18] = db[19] = 1;
	db[21] = 64;
	db[22] = db[23] = 32;
	db[27] = db[95] = 1;
	db[31] = (uint8_t)pages;
	db[47] = 4;
	db[59] = 1;
	return db;
}

TEST(databases_are_read_at_random)
{
	uint8_t *db = database(3);
	static const char *const paths[] = {"miopen/db/gfx90a.kdb",
					    "miopen/db/miopen.db"};

	for (size_t i = 0; i < COUNT(paths); i++) {
		struct asked a = ask(&library_miopen, paths[i], db, 3 * 4096);

		assert_int_equal(a.err, 0);
		assert_true(a.mine && a.object.at_random);
		assert_string_equal(asked_arches(&a), i ? "generic" : "gfx90a");
		asked_fini(&a);
	}
	free(db);
}

static void assert_fault(const char *path, const void *bytes, size_t size,
			 const char *words)
{
	struct asked a = ask(&library_miopen, path, bytes, size);

	assert_int_equal(a.err, KPACK_ERROR_INVALID_FORMAT);
	if (!strstr(a.why.text, words))
		fail_msg("%s", a.why.text);
	asked_fini(&a);
}

TEST(databases_that_no_loader_opens_are_faults)
{
	uint8_t *db = database(3);

	assert_fault("miopen/db/gfx90a.kdb", db, 2 * 4096, "page");
	assert_fault("miopen/db/gfx90a.kdb", db, 511, "below 512");
	assert_fault("miopen/db/gfx90a.kdb", db, 0, "0 bytes");
	assert_fault("miopen/db/gfx90a.kdb", TEXT, sizeof(TEXT), "below 512");
	assert_fault("miopen/db/gfx90a.db", TEXT, sizeof(TEXT), "not an SQLite database");
	db[18] = db[19] = 2;
	assert_fault("miopen/db/gfx90a.kdb", db, 3 * 4096, "WAL");
	free(db);
}

/* --- libraries of Composable Kernel ----------------------------------------------------- */

TEST(ck_libraries_stay_whole)
{
	uint8_t elf[64] = "\177ELF\2\1\1", dll[64] = "MZ";
	struct asked a;

	elf[18] = 62;
	a = ask(&library_miopen, "lib/libMIOpenCKGroupedConv_gfx942.so.1", elf, 64);
	assert_int_equal(a.err, 0);
	assert_true(a.mine);
	assert_string_equal(a.object.role, "library");
	assert_string_equal(asked_arches(&a), "gfx942");
	assert_facts(&a.object.facts, "{\"container\":\"host-elf\"}");
	asked_fini(&a);

	a = ask(&library_miopen, "bin/MIOpenCKGroupedConv_gfx1250-strict.dll", dll, 64);
	assert_true(a.mine);
	assert_string_equal(asked_arches(&a), "gfx1250");
	assert_facts(&a.object.facts,
		     "{\"container\":\"dll\",\"variant\":\"gfx1250-strict\"}");
	asked_fini(&a);

	a = ask(&library_miopen, "lib/libMIOpenCKGroupedConv_gfx942.so", TEXT, 10);
	assert_int_equal(a.err, 0);
	assert_false(a.mine);
	asked_fini(&a);
}

/* An unreadable library is packed unchanged, with a warning. */
TEST(damaged_ck_libraries_are_reported)
{
	static const struct file_tree none;
	char name[] = "/tmp/kpack-miopen-XXXXXX";
	uint8_t elf[64] = "\177ELF\2\1\1";
	int fd = mkstemp(name);
	struct asked a;

	elf[16] = 3;
	elf[18] = 62;
	memset(elf + 40, 0xff, 24);
	assert_int_equal(write(fd, elf, sizeof(elf)), sizeof(elf));
	a = ask_source(&library_miopen, &none, "lib/libMIOpenCKGroupedConv_gfx942.so",
		       kp_source_fd(fd, 0, sizeof(elf)));
	assert_int_equal(a.err, 0);
	assert_true(a.mine);
	assert_string_equal(asked_arches(&a), "gfx942");
	assert_non_null(a.object.warning);
	asked_fini(&a);
	close(fd);
	unlink(name);
}

TEST(archives_of_ck)
{
	static const char ar[] = "!<arch>\n";
	static const struct {
		const char *path, *arch; /* NULL: no library takes it */
	} files[] = {
		{"lib/libdevice_conv_operations_gfx942.a", "gfx942"},
		{"lib/libdevice_conv_operations_gfx90a_xnackp.a", "gfx90a:xnack+"},
		{"lib/device_conv_operations_gfx1250_strict.lib", "gfx1250"},
		{"lib/libdevice_conv_operations_gfx11_generic.a", "gfx11-generic"},
		{"lib/libMIOpenCKGroupedConv_gfx942.a", "gfx942"},
		{"lib/libdevice_conv_operations.a", NULL},
		{"lib/libdevice_conv_operations_gfx942.so", NULL},
		{"lib/libdevice_gemm_operations_gfx942.a", NULL},
		{"lib/libdevice_conv_operations_gfx942x.a", NULL},
		{"lib/libdevice_conv_operations_.a", NULL},
	};
	struct asked a;

	for (size_t i = 0; i < COUNT(files); i++) {
		a = ask(&library_composablekernel, files[i].path, ar, sizeof(ar) - 1);
		if (a.mine != !!files[i].arch)
			fail_msg("%s", files[i].path);
		if (a.mine) {
			assert_string_equal(asked_arches(&a), files[i].arch);
			assert_string_equal(a.object.role, "archive");
		}
		asked_fini(&a);
	}
	a = ask(&library_composablekernel, files[0].path, TEXT, sizeof(TEXT));
	assert_true(a.probed && !a.mine);
	asked_fini(&a);
}
