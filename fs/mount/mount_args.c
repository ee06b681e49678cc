/* SPDX-License-Identifier: MIT */
#include "mount_args.h"
#include <string.h>
#include "core/target/target.h"

/*
 * Replace an rw that the user did not write by ro: mount(8) begins its list of options
 * with rw, whatever the user wrote, and mount.fuse3 then adds dev,suid.  Only an rw that
 * the user wrote is refused later.
 */
static void drop_default_rw(int argc, char **argv, bool helper)
{
	for (int i = 1; i + 1 < argc; i++) {
		char *list = argv[i + 1];

		if (strcmp(argv[i], "-o") || strncmp(list, "rw", 2))
			continue;
		if (helper && !list[2])
			strcpy(list, "ro");
		if (list[2] == ',' &&
		    (helper || strstr(list, ",dev") || strstr(list, ",nodev")))
			memcpy(list, "ro", 2);
	}
}

/* True if TEXT, up to a comma, can be another architecture of a list. */
static bool is_architecture(const char *text)
{
	struct kp_span name = {(const uint8_t *)text, strcspn(text, ",")};
	struct kp_target t;

	return kp_span_is(name, "auto") || kp_span_is(name, "all") ||
	       kp_span_is(name, KP_ARCH_GENERIC) ||
	       (kp_target_parse(name, &t, NULL) == KPACK_SUCCESS && t.known);
}

/*
 * Commas separate options, so arch=LIST would end at its first comma: replace each comma
 * that has another architecture behind it.
 */
static void join_arches(char *list)
{
	bool inside = false;

	for (;; list++) {
		if (inside && is_architecture(list))
			list[-1] = ';';
		else
			inside = strncmp(list, "arch=", 5) == 0;
		list += strcspn(list, ",");
		if (!*list)
			return;
	}
}

static void join_all_arches(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
			join_arches(argv[++i]);
		else if (strncmp(argv[i], "-o", 2) == 0)
			join_arches(argv[i] + 2);
	}
}

/* Remove -t TYPE, which mount(8) passes to helpers. */
static void drop_type(int *argc, char **argv)
{
	for (int i = 1; i + 1 < *argc; i++) {
		if (strcmp(argv[i], "-t"))
			continue;
		*argc -= 2;
		memmove(&argv[i], &argv[i + 2], sizeof(*argv) * (size_t)(*argc - i + 1));
		return;
	}
}

void mount_args_mend(int *argc, char **argv, bool helper)
{
	drop_default_rw(*argc, argv, helper);
	join_all_arches(*argc, argv);
	if (helper)
		drop_type(argc, argv);
}
