/* SPDX-License-Identifier: MIT */
/*
 * kpack mark strip-safe: in converted binaries whose program headers another tool moved,
 * move them back to where the ELF header in memory says; or only find such binaries.
 */
#include <string.h>
#include "mark.h"
#include "packer/cli/report.h"
#include "packer/archives/binary.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

struct strip_safe {
	bool check;
	size_t n_seen; /* host binaries of any kind */
	size_t n_programs, n_faults;
};

static const struct option_help options[] = {
	{0, "check", NULL, "only find the binaries that need it, in trees, too",
	 OPTION_PLACE(struct strip_safe, check)},
	{0},
};

const struct command_help mark_strip_safe_help = {
	"mark strip-safe",
	"FILE...|--check ROOT...",
	"repair converted binaries after strip and its like",
	options,
	"Linux before 5.18 does not start a program whose program headers were moved,"
	" and\nprofiling runtimes do not find them.",
};

/* --- repairing ------------------------------------------------------------------ */

static bool repair_file(const char *path)
{
	struct kpackx_error why = {0};
	struct rewrite r = {0};
	struct binary b;
	bool changed = false;
	kpack_error_t err = binary_open(path, &b, &why);

	if (!err)
		err = rewrite_open(&r, &b, path, &why);
	if (!err)
		err = kp_convert_normalise(b.fd, b.size, &b.fat, &r.out, &changed, &why);
	if (!err && changed)
		err = rewrite_publish(&r, &why);
	rewrite_close(&r);
	binary_close(&b);
	if (err) {
		report_why(path, &why);
		return false;
	}
	report_text(path);
	printf(": %s\n", changed ? "repaired" : "ok");
	return true;
}

/* --- checking ------------------------------------------------------------------- */

/*
 * Files that are not converted are looked at, too, but may be of any kind; a library among
 * them matters to nobody here.
 */
static void check_headers(struct strip_safe *s, const struct binary *b)
{
	bool converted = b->fat.kind == KP_FATBIN_CONVERTED, program, right;
	struct kpackx_error why = {0};

	if (kp_convert_headers(b->fd, b->size, &program, &right, &why)) {
		if (converted)
			report_why(b->path, &why);
		s->n_faults += converted;
		return;
	}
	s->n_programs += program;
	if (right || (!program && !converted))
		return;
	s->n_faults++;
	report_error(b->path, "its program headers are %s%s",
		     program ? "where Linux before 5.18 does not look"
			     : "not where the ELF header in memory says",
		     converted ? ": repair it by kpack mark strip-safe"
			       : ", and it is not converted");
}

static void check_file(struct strip_safe *s, const char *path)
{
	struct kpackx_error why = {0};
	struct binary b;
	char magic[4];

	if (binary_open(path, &b, &why)) {
		report_why(path, &why);
		s->n_faults++;
		return;
	}
	if (b.size >= sizeof(magic) &&
	    !kp_file_pread(b.fd, 0, magic, sizeof(magic), NULL) &&
	    memcmp(magic, "\177ELF", sizeof(magic)) == 0) {
		s->n_seen++;
		check_headers(s, &b);
	}
	binary_close(&b);
}

static void check_root(struct strip_safe *s, const char *root)
{
	struct tree_list *list;
	struct tree_item item;

	if (!below_hold(root)) {
		s->n_faults++;
		return;
	}
	list = tree_list_open(root);
	while (tree_list_next(list, &item)) {
		bool file = item.kind == TREE_OTHER && S_ISREG(item.st.st_mode);
		struct stat st;

		/* an operand may be a link */
		if (item.kind == TREE_OTHER && item.level == 0)
			file = below_stat(item.path, &st) == 0 && S_ISREG(st.st_mode);
		if (file) {
			check_file(s, item.path);
		} else if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			s->n_faults++;
		}
	}
	tree_list_close(list);
}

/* --- the command ---------------------------------------------------------------- */

int mark_strip_safe(int argc, char **argv)
{
	struct options o = {.help = &mark_strip_safe_help, .argc = argc, .argv = argv};
	struct strip_safe s = {0};
	int status = options_read(&o, &s);

	if (status >= 0)
		return status;
	if (optind == argc)
		return options_usage(o.help, "a file is missing");
	for (int i = optind; i < argc; i++) {
		if (s.check)
			check_root(&s, argv[i]);
		else
			s.n_faults += !repair_file(argv[i]);
	}
	if (s.check && s.n_seen == 0 && s.n_faults == 0) {
		report_error(argv[optind],
			     argc - optind == 1
				     ? "there is no binary to check"
				     : "there is no binary to check, nor in the "
				       "others");
		s.n_faults++;
	}
	if (s.check)
		printf("%zu programs, %zu faults\n", s.n_programs, s.n_faults);
	return report_finish(s.n_faults ? EXIT_FAULT : EXIT_OK);
}
