/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>
#include "core/archive/naming.h"
#include "core/base/path_step.h"
#include "core/base/path_walk.h"
#include "fs/base/firm_path.h"
#include "fs/base/log.h"
#include "mount_args.h"
#include "option_values.h"
#include "settings.h"
#include "fs/tree/subdir.h"

static const char usage_text[] =
	"Usage: kpackfs [-dfqrsv] [-o opt[,opt]...] SOURCE... MOUNTPOINT\n"
	"       kpackfs --in-place [-qv] [-o opt[,opt]...] [SOURCE...] TREE\n"
	"       kpackfs --in-place --undo TREE\n"
	"       kpackfs --status MOUNTPOINT\n"
	"Mount kpack archives - files, or the *.kpack of directories - as a read-only\n"
	"tree.\n"
	"\n"
	"Options:\n"
	"    -d                   foreground, and show every request\n"
	"    -f                   stay in the foreground, log to stderr\n"
	"    -h, --help           show this text\n"
	"    --in-place           show what was packed at its old places in TREE\n"
	"    -n                   ignored, for mount(8)\n"
	"    -o OPT[,OPT]...      mount options, below\n"
	"    -q                   log errors only\n"
	"    -r                   same as -o ro, which is always on\n"
	"    -s                   answer requests in one thread\n"
	"    --status             print the status of the mount at MOUNTPOINT\n"
	"    --undo               with --in-place: unmount what is mounted in TREE\n"
	"    -v                   log more\n"
	"    -V, --version        show versions\n"
	"\n"
	"Mount options:\n"
	"    -o allow_other       let all users access the mount\n"
	"    -o allow_root        let root access the mount\n"
	"    -o arch=LIST         show only what these GPUs can load; auto: those of "
	"this\n"
	"                         machine; all: everything (default)\n"
	"    -o arch_exact        with arch=: only code for these very target IDs\n"
	"    -o auto_unmount      unmount when the daemon dies\n"
	"    -o bundles           hipfb/: the code of each binary as HIP fat binaries\n"
	"    -o cache_size=BYTES  memory for decoded bytes, with k, m or g (default "
	"256m)\n"
	"    -o clone_fd          a /dev/fuse descriptor for each thread\n"
	"    -o debug             same as -d\n"
	"    -o default_permissions  let the kernel check modes (always on)\n"
	"    -o fsname=NAME       name in the mount table (default: the first SOURCE)\n"
	"    -o gid=N             group of all files\n"
	"    -o idle_timeout=TIME  unmount after TIME without use, with s, m or h\n"
	"    -o max_threads=N     threads that answer requests (default 10)\n"
	"    -o no_ahead          decode only what is read, nothing ahead\n"
	"    -o no_sandbox        keep privileges that serving does not need\n"
	"    -o nonempty          cover files that the archives do not have\n"
	"    -o open              send every open to the daemon\n"
	"    -o poll=TIME         scan for changed archives every TIME, with s, m or h\n"
	"    -o preload=GLOB      read matching files in advance; may be repeated\n"
	"    -o ro                read-only (always on)\n"
	"    -o source=PATH       another source; may be repeated\n"
	"    -o subdir=PATH       show only this directory of the tree\n"
	"    -o subtype=TYPE      type in the mount table after \"fuse.\" (default "
	"kpackfs)\n"
	"    -o threads=N         threads that decode (default: one per processor)\n"
	"    -o topology=DIR      where arch=auto looks for GPUs (default: sysfs)\n"
	"    -o uid=N             owner of all files\n"
	"    -o umask=OCTAL       permission bits to clear\n"
	"    -o xattr             extended attributes user.kpack.*\n";

enum key {
	KEY_HELP,
	KEY_VERSION,
	KEY_STATUS,
	KEY_IN_PLACE,
	KEY_UNDO,
	KEY_FOREGROUND,
	KEY_DEBUG,
	KEY_SINGLE,
	KEY_VERBOSE,
	KEY_QUIET,
	KEY_RW,
	KEY_SOURCE,
	KEY_ARCH,
	KEY_ARCH_EXACT,
	KEY_SUBDIR,
	KEY_TOPOLOGY,
	KEY_CACHE_SIZE,
	KEY_THREADS,
	KEY_MAX_THREADS,
	KEY_UID,
	KEY_GID,
	KEY_UMASK,
	KEY_NO_AHEAD,
	KEY_NO_SANDBOX,
	KEY_NONEMPTY,
	KEY_OPEN,
	KEY_XATTR,
	KEY_BUNDLES,
	KEY_CLONE_FD,
	KEY_FSNAME,
	KEY_SUBTYPE,
	KEY_POLL,
	KEY_IDLE_TIMEOUT,
	KEY_PRELOAD,
	KEY_IO_URING,
	KEY_ALLOW_OTHER,
	KEY_AUTO_UNMOUNT,
};

/* FUSE_OPT_KEY, without its implicit conversion. */
#define OPTION(t, key)                                                                   \
	{                                                                                \
		t, (unsigned)-1, key                                                     \
	}
/* True if the libfuse of this build can take requests over io_uring. */
#define HAS_IO_URING (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18))
#define KEEP(t) OPTION(t, FUSE_OPT_KEY_KEEP)
#define IGNORE(t) OPTION(t, FUSE_OPT_KEY_DISCARD)

static const struct fuse_opt option_table[] = {
	OPTION("-h", KEY_HELP),
	OPTION("--help", KEY_HELP),
	OPTION("-V", KEY_VERSION),
	OPTION("--version", KEY_VERSION),
	OPTION("--status", KEY_STATUS),
	OPTION("--in-place", KEY_IN_PLACE),
	OPTION("--undo", KEY_UNDO),
	OPTION("-f", KEY_FOREGROUND),
	OPTION("-d", KEY_DEBUG),
	OPTION("debug", KEY_DEBUG),
	OPTION("-s", KEY_SINGLE),
	OPTION("-v", KEY_VERBOSE),
	OPTION("-q", KEY_QUIET),
	OPTION("rw", KEY_RW),
	OPTION("source=", KEY_SOURCE),
	OPTION("arch=", KEY_ARCH),
	OPTION("arch_exact", KEY_ARCH_EXACT),
	OPTION("subdir=", KEY_SUBDIR),
	OPTION("topology=", KEY_TOPOLOGY),
	OPTION("cache_size=", KEY_CACHE_SIZE),
	OPTION("threads=", KEY_THREADS),
	OPTION("max_threads=", KEY_MAX_THREADS),
	OPTION("uid=", KEY_UID),
	OPTION("gid=", KEY_GID),
	OPTION("umask=", KEY_UMASK),
	OPTION("no_ahead", KEY_NO_AHEAD),
	OPTION("no_sandbox", KEY_NO_SANDBOX),
	OPTION("poll=", KEY_POLL),
	OPTION("idle_timeout=", KEY_IDLE_TIMEOUT),
	OPTION("preload=", KEY_PRELOAD),
	OPTION("nonempty", KEY_NONEMPTY),
	OPTION("open", KEY_OPEN),
	OPTION("xattr", KEY_XATTR),
	OPTION("bundles", KEY_BUNDLES),
	OPTION("clone_fd", KEY_CLONE_FD),
	OPTION("fsname=", KEY_FSNAME),
	OPTION("subtype=", KEY_SUBTYPE),
	/* options of libfuse */
	OPTION("allow_other", KEY_ALLOW_OTHER),
	KEEP("allow_root"),
	OPTION("auto_unmount", KEY_AUTO_UNMOUNT),
	KEEP("noexec"),
	KEEP("noatime"),
	KEEP("nodiratime"),
	OPTION("io_uring", KEY_IO_URING),
	OPTION("io_uring_q_depth=", KEY_IO_URING),
	/* always in force */
	IGNORE("-r"),
	IGNORE("ro"),
	IGNORE("nosuid"),
	IGNORE("nodev"),
	IGNORE("exec"),
	IGNORE("default_permissions"),
	/* mount.fuse3 adds these two; the mount has no suid files and no devices */
	IGNORE("suid"),
	IGNORE("dev"),
	/* for mount(8) and fstab, or without meaning on a read-only mount */
	IGNORE("-n"),
	IGNORE("defaults"),
	IGNORE("auto"),
	IGNORE("noauto"),
	IGNORE("user"),
	IGNORE("user="),
	IGNORE("nouser"),
	IGNORE("users"),
	IGNORE("owner"),
	IGNORE("group"),
	IGNORE("nofail"),
	IGNORE("_netdev"),
	IGNORE("comment="),
	IGNORE("atime"),
	IGNORE("diratime"),
	IGNORE("relatime"),
	IGNORE("norelatime"),
	IGNORE("strictatime"),
	IGNORE("nostrictatime"),
	IGNORE("lazytime"),
	IGNORE("nolazytime"),
	IGNORE("sync"),
	IGNORE("async"),
	IGNORE("dirsync"),
	IGNORE("mand"),
	IGNORE("nomand"),
	IGNORE("silent"),
	IGNORE("loud"),
	IGNORE("nosymfollow"),
	IGNORE("symfollow"),
	FUSE_OPT_END,
};

static bool strings_add(struct strings *s, char *string)
{
	char **list = string ? reallocarray(s->list, s->count + 1, sizeof(*list)) : NULL;

	if (!list) {
		free(string);
		return option_wrong("options", "out of memory");
	}
	s->list = list;
	list[s->count++] = string;
	return true;
}

static void strings_free(struct strings *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->list[i]);
	free(s->list);
}

static bool replace_string(char **string, const char *text)
{
	free(*string);
	*string = strdup(text);
	return *string || option_wrong(text, "out of memory");
}

/* --- the meaning of each option ----------------------------------------------------- */

static const char *value_of(const char *arg)
{
	return strchr(arg, '=') + 1;
}

static bool take_foreground(struct settings *s, const char *arg)
{
	(void)arg;
	return *(s->helper ? &s->fake : &s->foreground) = true;
}

static bool take_debug(struct settings *s, const char *arg)
{
	(void)arg;
	return s->debug = s->foreground = true;
}

/* From mount(8), -s means to tolerate options; we know which to ignore. */
static bool take_single(struct settings *s, const char *arg)
{
	(void)arg;
	s->single = !s->helper;
	return true;
}

static bool take_verbose(struct settings *s, const char *arg)
{
	(void)s, (void)arg;
	log_level(LOG_INFO);
	return true;
}

static bool take_quiet(struct settings *s, const char *arg)
{
	(void)s, (void)arg;
	log_level(LOG_ERR);
	return true;
}

static bool refuse_rw(struct settings *s, const char *arg)
{
	(void)s;
	return option_wrong(arg, "the mount is always read-only: omit it or use ro");
}

static bool take_arches(struct settings *s, const char *arg)
{
	return arches_add(&s->arches, value_of(arg));
}

static bool take_subdir(struct settings *s, const char *arg)
{
	const char *wrong;

	if (!replace_string(&s->subdir, value_of(arg)))
		return false;
	wrong = subdir_clean(s->subdir);
	return !wrong || option_wrong("subdir=", wrong);
}

static bool take_topology(struct settings *s, const char *arg)
{
	return option_has_value(arg) && replace_string(&s->topology, value_of(arg));
}

static bool take_cache_size(struct settings *s, const char *arg)
{
	return option_number(arg, 10, "kmgt", 0, UINT64_MAX / 2, &s->cache_size);
}

static bool take_fsname(struct settings *s, const char *arg)
{
	return s->has_fsname = option_has_value(arg);
}

static bool take_subtype(struct settings *s, const char *arg)
{
	return s->has_subtype = option_has_value(arg);
}

static bool take_io_uring(struct settings *s, const char *arg)
{
	s->io_uring = HAS_IO_URING;
	return HAS_IO_URING || option_wrong(arg, "not built into this program");
}

static const struct meaning {
	enum { OTHER, FLAG, NUMBER, SECONDS, STRINGS } kind;
	bool (*take)(struct settings *s, const char *arg); /* OTHER */
	size_t at; /* all other kinds: offset in struct settings */
	int base;
	unsigned min, max;
} meanings[] = {
#define AT(member) .at = offsetof(struct settings, member)
	[KEY_HELP] = {FLAG, AT(help)},
	[KEY_VERSION] = {FLAG, AT(version)},
	[KEY_STATUS] = {FLAG, AT(status)},
	[KEY_IN_PLACE] = {FLAG, AT(in_place)},
	[KEY_UNDO] = {FLAG, AT(undo)},
	[KEY_FOREGROUND] = {OTHER, take_foreground},
	[KEY_DEBUG] = {OTHER, take_debug},
	[KEY_SINGLE] = {OTHER, take_single},
	[KEY_VERBOSE] = {OTHER, take_verbose},
	[KEY_QUIET] = {OTHER, take_quiet},
	[KEY_RW] = {OTHER, refuse_rw},
	[KEY_SOURCE] = {STRINGS, AT(more_sources)},
	[KEY_ARCH] = {OTHER, take_arches},
	[KEY_ARCH_EXACT] = {FLAG, AT(arches.exact)},
	[KEY_SUBDIR] = {OTHER, take_subdir},
	[KEY_TOPOLOGY] = {OTHER, take_topology},
	[KEY_CACHE_SIZE] = {OTHER, take_cache_size},
	[KEY_THREADS] = {NUMBER, AT(threads), 10, 1, 1024},
	[KEY_MAX_THREADS] = {NUMBER, AT(max_threads), 10, 1, 100000},
	[KEY_UID] = {NUMBER, AT(look.uid), 10, 0, UINT32_MAX - 1},
	[KEY_GID] = {NUMBER, AT(look.gid), 10, 0, UINT32_MAX - 1},
	[KEY_UMASK] = {NUMBER, AT(look.mask), 8, 0, 0777},
	[KEY_NO_AHEAD] = {FLAG, AT(no_ahead)},
	[KEY_NO_SANDBOX] = {FLAG, AT(no_sandbox)},
	[KEY_NONEMPTY] = {FLAG, AT(nonempty)},
	[KEY_OPEN] = {FLAG, AT(always_open)},
	[KEY_XATTR] = {FLAG, AT(xattr)},
	[KEY_BUNDLES] = {FLAG, AT(bundles)},
	[KEY_CLONE_FD] = {FLAG, AT(clone_fd)},
	[KEY_FSNAME] = {OTHER, take_fsname},
	[KEY_SUBTYPE] = {OTHER, take_subtype},
	[KEY_POLL] = {SECONDS, AT(poll)},
	[KEY_IDLE_TIMEOUT] = {SECONDS, AT(idle_timeout)},
	[KEY_PRELOAD] = {STRINGS, AT(preload)},
	[KEY_IO_URING] = {OTHER, take_io_uring},
	[KEY_ALLOW_OTHER] = {FLAG, AT(shared)},
	[KEY_AUTO_UNMOUNT] = {FLAG, AT(auto_unmount)},
#undef AT
};

static bool take_option(struct settings *s, const struct meaning *m, const char *arg)
{
	void *slot = (char *)s + m->at;

	switch (m->kind) {
	case FLAG:
		return *(bool *)slot = true;
	case NUMBER:
		return option_unsigned(arg, m->base, m->min, m->max, slot);
	case SECONDS:
		return option_seconds(arg, slot);
	case STRINGS:
		return option_has_value(arg) && strings_add(slot, strdup(value_of(arg)));
	case OTHER:
		break;
	}
	return m->take(s, arg);
}

/* fuse_opt's callback: 1 keeps the argument for libfuse, 0 drops it, -1 fails. */
static int parse_option(void *data, const char *arg, int key, struct fuse_args *args)
{
	struct settings *s = data;

	(void)args;
	if (key == FUSE_OPT_KEY_NONOPT)
		return strings_add(&s->sources, strdup(arg)) ? 0 : -1;
	if (key == FUSE_OPT_KEY_OPT &&
	    (strncmp(arg, "x-", 2) == 0 || strncmp(arg, "X-", 2) == 0))
		return 0;
	if (key == FUSE_OPT_KEY_OPT) {
		option_wrong(arg, "unknown option; kpackfs --help lists them");
		return -1;
	}
	if (!take_option(s, &meanings[key], arg))
		return -1;
	return key == KEY_FSNAME || key == KEY_SUBTYPE || key == KEY_IO_URING ||
	       key == KEY_ALLOW_OTHER || key == KEY_AUTO_UNMOUNT;
}

/* Make PATH absolute; the working directory will change. */
static char *absolute_path(const char *path)
{
	char *full = realpath(path, NULL);

	if (!full)
		log_about(LOG_ERR, path, strerror(errno));
	return full;
}

/* Remove "." components and repeated slashes; PATH stays the same file. */
static void tidy_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from += strcspn(from, "/")) {
		size_t n;

		from += strspn(from, "/");
		n = strcspn(from, "/");
		if (n == 0 || (n == 1 && *from == '.'))
			continue;
		*to++ = '/';
		memmove(to, from, n);
		to += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

/* Why an access to a path failed. */
static const char *reason(void)
{
	return errno == EREMOTE ? KP_STEP_REFUSED : strerror(errno);
}

/* The absolute path of a source.  Links are kept: each scan follows them again. */
static char *absolute_name(const char *path)
{
	char *here = path[0] == '/' ? strdup("") : getcwd(NULL, 0), *full = NULL;
	struct stat st;

	if (kp_path_stat(path, true, &st) || !here ||
	    asprintf(&full, "%s/%s", here, path) < 0) {
		log_about(LOG_ERR, path, reason());
		free(here);
		return NULL;
	}
	free(here);
	tidy_path(full);
	return full;
}

/*
 * Whether this process mounts by itself, as root.  Root without this capability, as in
 * containers, needs fusermount3, which takes a path.
 */
static bool mounts_as_root(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return geteuid() == 0 && syscall(SYS_capget, &header, caps) == 0 &&
	       caps[0].effective >> CAP_SYS_ADMIN & 1;
}

/*
 * fusermount3 unmounts by the path when the daemon has died.  false: another user may
 * exchange directories of the path.
 */
static bool may_unmount_by_path(struct settings *s, const char *path, bool firm)
{
	if (firm)
		settings_leave_place(s);
	else
		log_about(LOG_ERR, path,
			  "auto_unmount as root needs a path in which no other user can "
			  "exchange a directory");
	return firm;
}

/*
 * Open the mount point and return its absolute path.  Root mounts on what is open, as
 * another user may exchange directories of the path meanwhile.
 */
static char *open_place(struct settings *s)
{
	char name[32], path[PATH_MAX];
	bool firm;
	int fd = firm_path_open(s->mountpoint, &firm);
	ssize_t n;

	if (fd < 0) {
		log_about(LOG_ERR, s->mountpoint,
			  errno == ELOOP ? "a symbolic link on the way is not followed, "
					   "because another user may have put it there; "
					   "name the directory that it leads to"
					 : reason());
		return NULL;
	}
	s->place = fd;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, path, sizeof(path) - 1);
	if (n < 0) {
		log_about(LOG_ERR, name, strerror(errno));
		return NULL;
	}
	path[n] = '\0';
	if (!s->auto_unmount)
		return strdup(path);
	close(fd);
	s->place = firm_path_open(path, &firm); /* by its absolute path */
	if (s->place < 0) {
		s->place = 0;
		firm = false;
	}
	return may_unmount_by_path(s, path, firm) ? strdup(path) : NULL;
}

static enum end take_mountpoint(struct settings *s)
{
	struct stat st;
	char *full;

	/* mount.fuse3 may have mounted already: /dev/fd/N is then its connection. */
	if (strncmp(s->mountpoint, "/dev/fd/", 8) == 0)
		return OK;
	full = mounts_as_root() ? open_place(s) : absolute_path(s->mountpoint);
	if (!full)
		return NO_MOUNT;
	free(s->mountpoint);
	s->mountpoint = full;
	/* libfuse would mount on a file, but then the kernel refuses every request. */
	if ((s->place ? fstat(s->place, &st) : stat(full, &st)) == 0 &&
	    !S_ISDIR(st.st_mode)) {
		log_about(LOG_ERR, full, strerror(ENOTDIR));
		return NO_MOUNT;
	}
	return OK;
}

static enum end find_paths(struct settings *s)
{
	struct strings *p = &s->sources;
	char *own = NULL; /* the archives that packing put into the tree */

	if (s->in_place && p->count == 1 && s->more_sources.count == 0 &&
	    (asprintf(&own, "%s/" KP_ARCHIVES_DIR, p->list[0]) < 0 ||
	     !strings_add(&s->more_sources, own)))
		return SYSTEM;
	if (p->count == 0 || p->count + s->more_sources.count < 2) {
		log_print(LOG_ERR, "no %s given; kpackfs --help explains",
			  p->count ? "mount point" : "source and mount point");
		return USAGE;
	}
	s->mountpoint = p->list[--p->count];
	for (size_t i = 0; i < s->more_sources.count; i++) {
		if (!strings_add(p, s->more_sources.list[i]))
			return SYSTEM;
		s->more_sources.list[i] = NULL;
	}
	for (size_t i = 0; i < p->count; i++) {
		char *full = absolute_name(p->list[i]);

		if (!full)
			return NO_MOUNT;
		free(p->list[i]);
		p->list[i] = full;
	}
	return take_mountpoint(s);
}

static enum end take_paths(struct settings *s)
{
	enum end end = find_paths(s);

	kp_step_forget(); /* the server would keep what is open */
	return end;
}

/*
 * For --status and --undo.  A mount point is not accessed here, because it may not answer; a
 * tree is.
 */
static enum end take_mountpoint_alone(struct settings *s)
{
	struct strings *p = &s->sources;

	if (p->count != 1 || s->more_sources.count) {
		log_print(LOG_ERR, "%s, and no source",
			  s->undo ? "--undo needs one tree"
				  : "--status needs one mount point");
		return USAGE;
	}
	s->mountpoint = p->list[--p->count];
	return s->undo ? take_mountpoint(s) : OK;
}

static bool add_named_option(struct settings *s, const char *name, const char *value)
{
	char *option = NULL, *list = NULL;
	bool ok = asprintf(&option, "%s=%s", name, value) > 0 &&
		  fuse_opt_add_opt_escaped(&list, option) == 0 &&
		  fuse_opt_add_arg(&s->args, "-o") == 0 &&
		  fuse_opt_add_arg(&s->args, list) == 0;

	free(option);
	free(list);
	return ok;
}

static bool add_defaults(struct settings *s)
{
	return (s->has_fsname || add_named_option(s, "fsname", s->sources.list[0])) &&
	       (s->has_subtype || add_named_option(s, "subtype", "kpackfs")) &&
	       fuse_opt_add_arg(&s->args, "-oro,nosuid,nodev,default_permissions") == 0 &&
	       (!s->debug || fuse_opt_add_arg(&s->args, "-odebug") == 0);
}

/*
 * Remove the "--" before the operands: if libfuse keeps an option, it keeps the "--" too,
 * and then does not know it.
 */
static void drop_end_of_options(struct fuse_args *args)
{
	if (args->argc < 2 || strcmp(args->argv[args->argc - 1], "--") != 0)
		return;
	free(args->argv[--args->argc]);
	args->argv[args->argc] = NULL;
}

enum end settings_parse(struct settings *s, int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	enum end end;

	s->helper = strncmp(slash ? slash + 1 : argv[0], "mount.", 6) == 0;
	s->look.uid = (uid_t)-1;
	s->look.gid = (gid_t)-1;
	s->cache_size = 256 << 20;
	s->threads = cores > 0 && cores < 1024 ? (unsigned)cores : 1;
	mount_args_mend(&argc, argv, s->helper);
	s->args = (struct fuse_args)FUSE_ARGS_INIT(argc, argv);
	if (fuse_opt_parse(&s->args, s, option_table, parse_option))
		return USAGE;
	drop_end_of_options(&s->args);
	if (s->help || s->version)
		return OK;
	if (s->in_place ? s->status || s->foreground || s->helper || s->auto_unmount
			: s->undo) {
		log_print(LOG_ERR, s->in_place
					   ? "--in-place makes several mounts: -d, -f, "
					     "--status and auto_unmount are for one"
					   : "--undo goes with --in-place only");
		return USAGE;
	}
	if (s->status || s->undo)
		return take_mountpoint_alone(s);
	end = take_paths(s);
	if (end != OK)
		return end;
	if (s->arches.exact && !s->arches.limited) {
		option_wrong("arch_exact", "it needs arch=LIST, which is missing");
		return USAGE;
	}
	if (!arches_find(&s->arches, s->topology))
		return SYSTEM;
	return add_defaults(s) ? OK : SYSTEM;
}

void settings_leave_place(struct settings *s)
{
	if (s->place)
		close(s->place);
	s->place = 0;
}

void settings_free(struct settings *s)
{
	settings_leave_place(s);
	strings_free(&s->sources);
	strings_free(&s->more_sources);
	strings_free(&s->preload);
	free(s->mountpoint);
	free(s->subdir);
	free(s->topology);
	kp_choice_fini(&s->arches);
	fuse_opt_free_args(&s->args);
}

int settings_show(const struct settings *s)
{
	if (s->help)
		fputs(usage_text, stdout);
	else
		printf("kpackfs %s\nlibfuse %s\nlibzstd %s\n", KP_VERSION,
		       fuse_pkgversion(), ZSTD_versionString());
	return fflush(stdout) ? 1 : 0;
}
