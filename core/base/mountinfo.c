/* SPDX-License-Identifier: MIT */
/*
 * A line of /proc/self/mountinfo, as proc(5) describes it:
 *
 *	36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 *	ID parent device root path options any number of tags  type source options
 *
 * The kernel writes blanks, tabs, newlines and backslashes in names as \ooo.
 */
#include "mountinfo.h"
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "text.h"

bool kp_mount_parse(char *line, struct kp_mount *out)
{
	unsigned id = 0, major_number, minor_number;
	bool numbered;
	char *words[6], *word;

	/* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers fit */
	numbered = sscanf(line, "%u %*u %u:%u ", &id, &major_number, &minor_number) == 3;
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < 6; i++)
		words[i] = strsep(&line, " ");
	/* tags, which are for mounts in other namespaces */
	do
		word = strsep(&line, " ");
	while (word && strcmp(word, "-") != 0);
	*out = (struct kp_mount){.id = (long)id, .root = words[3], .path = words[4]};
	out->type = strsep(&line, " ");
	out->source = strsep(&line, " ");
	out->options = line;
	if (!numbered || !line)
		return false;
	out->device = makedev(major_number, minor_number);
	kp_text_unescape(words[3]);
	kp_text_unescape(words[4]);
	return true;
}

bool kp_mount_fuse_user(const struct kp_mount *m, uid_t *user)
{
	static const char key[] = ",user_id=";
	const char *at = strstr(m->options, key);

	if (!at || strncmp(m->type, "fuse", 4) != 0)
		return false;
	*user = (uid_t)strtoul(at + strlen(key), NULL, 10);
	return true;
}

bool kp_mount_is_kpackfs(const struct kp_mount *m)
{
	return strcmp(m->type, "overlay") == 0 ? strcmp(m->source, KP_OVERLAY_SOURCE) == 0
					       : strcmp(m->type, "fuse.kpackfs") == 0;
}

bool kp_mounts_open(struct kp_mounts *out)
{
	*out = (struct kp_mounts){.file = fopen("/proc/self/mountinfo", "re")};
	return out->file != NULL;
}

bool kp_mounts_next(struct kp_mounts *mounts, struct kp_mount *out)
{
	while (mounts->file && getline(&mounts->line, &mounts->room, mounts->file) > 0)
		if (kp_mount_parse(mounts->line, out))
			return true;
	return false;
}

void kp_mounts_close(struct kp_mounts *mounts)
{
	free(mounts->line);
	if (mounts->file)
		fclose(mounts->file);
	*mounts = (struct kp_mounts){0};
}

long kp_fd_info(int fd, const char *key)
{
	char path[64], line[256];
	long number = -1;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && number < 0 && fgets(line, sizeof(line), info))
		if (strncmp(line, key, strlen(key)) == 0)
			number = strtol(line + strlen(key), NULL, 10);
	if (info)
		fclose(info);
	return number;
}
