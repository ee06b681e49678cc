/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/strbuf.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"

/* Add PATH as one word of a unit's list: systemd.syntax(7), and % of systemd.unit(5). */
static void put_word(struct kp_compose *c, const char *path)
{
	kp_compose_str(c, "\"");
	for (; *path; path++) {
		const char text[2] = {*path, '\0'};

		if (*path == '"' || *path == '\\')
			kp_compose_str(c, "\\");
		kp_compose_str(c, *path == '%' ? "%%" : text);
	}
	kp_compose_str(c, "\"");
}

/* The same in a command, where $ has a meaning, too. */
static void put_argument(struct kp_compose *c, const char *path)
{
	const char *rest;

	while ((rest = strchr(path, '$'))) {
		char *part = xstrndup(path, (size_t)(rest - path));

		put_word(c, part);
		free(part);
		kp_compose_str(c, "$$");
		path = rest + 1;
	}
	put_word(c, path);
}

static void put_command(struct kp_compose *c, const char *key, const char *program,
			const char *dir, const char *option)
{
	kp_compose_print(c, "%s=", key);
	put_argument(c, program);
	kp_compose_str(c, " apply ");
	if (strcmp(dir, POLICY_DIR) != 0) {
		kp_compose_str(c, "--policy-dir ");
		put_argument(c, dir);
		kp_compose_str(c, " ");
	}
	kp_compose_print(c, "%s\n", option);
}

char *unit_make(const char *program, const char *dir, const struct policies *list)
{
	struct kp_compose c = {0};
	char *text;
	size_t n = 0;

	kp_compose_str(&c, "[Unit]\n"
			   "Description=Kernels in the trees that have policies\n"
			   "Documentation=man:kpack-apply(1)\n");
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].mount == POLICY_NO_MOUNT)
			continue;
		n++;
		kp_compose_str(&c, "RequiresMountsFor=");
		put_word(&c, list->items[i].tree);
		kp_compose_str(&c, "\n");
	}
	kp_compose_str(&c, "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
	put_command(&c, "ExecStart", program, dir, "--mounts");
	put_command(&c, "ExecStop", program, dir, "--unmount");
	/* the daemons stay, and serve open files even after the mounts are gone */
	kp_compose_str(&c, "KillMode=process\n");
	if (kp_compose_take(&c, &text, NULL))
		xalloc_fail(0);
	if (n)
		return text;
	free(text);
	return NULL;
}

bool unit_print(const char *dir, const struct policies *list)
{
	char *program = below_real("/proc/self/exe"), *real = below_real(dir);
	char *unit = program ? unit_make(program, real ? real : dir, list) : NULL;

	if (!program)
		report_error(NULL, "/proc is not mounted");
	if (unit)
		fputs(unit, stdout);
	free(unit);
	free(real);
	if (!program)
		return false;
	free(program);
	return true;
}
