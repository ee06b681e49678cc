/* SPDX-License-Identifier: MIT */
/*
 * From a command line to struct settings.
 *
 * One table has each option once: how it is written, its help, and what it sets.
 * libfuse's parser of options (fuse_opt) splits the line; for what libfuse itself is to
 * know, the argument stays in the line.  Then the operands become absolute paths, and the
 * mount point of root an open directory.
 */
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
#include "core/base/alloc.h"
#include "core/base/nearest.h"
#include "core/base/walk.h"
#include "fs/base/log.h"
#include "mount.h"

/* True if the libfuse of this build can take requests over io_uring. */
#define HAS_IO_URING (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18))

/* Log TEXT about OPTION.  Returns false. */
static bool option_wrong(const char *option, const char *text)
{
	log_about(LOG_ERR, option, text);
	return false;
}

static bool strings_add(struct strings *s, const char *text)
{
	char **list = reallocarray(s->list, s->count + 1, sizeof(*list));

	if (list)
		s->list = list;
	if (!list || !(list[s->count] = strdup(text)))
		return option_wrong("options", "out of memory");
	s->count++;
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

/*
 * Remove leading, trailing and repeated slashes, and components ".", from TEXT, in place.
 * true: it has a component "..".
 */
static bool clean_path(char *text)
{
	char *to = text;
	bool up = false;

	for (const char *from = text; *from;) {
		size_t n = strcspn(from, "/");

		up = up || (n == 2 && memcmp(from, "..", 2) == 0);
		if (n && !(n == 1 && *from == '.')) {
			if (to != text)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n + (from[n] == '/');
	}
	*to = '\0';
	return up;
}

/* --- the table ------------------------------------------------------------------------ */

enum option_kind {
	HELP_ONLY, /* not parsed by us */
	NOTHING,   /* no effect here */
	FLAG,      /* a bool becomes true */
	GIVEN,     /* the same, if it has a value */
	NUMBER,    /* an unsigned number */
	BYTES,     /* a uint64_t; a letter multiplies it */
	SECONDS,   /* an unsigned number; a letter multiplies it */
	STRING,    /* a string, which is not empty */
	STRINGS,   /* one more of them */
	ARCHES,
	SUBDIR,
	DEBUG,
	FOREGROUND,
	SINGLE,
	VERBOSITY,
	IO_URING,
	READ_WRITE,
};

static const struct option {
	const char *name; /* "-f"; or "arch", after -o; with "=" if it has a value */
	const char *also; /* another way to write it */
	const char *arg;  /* the name of its value in the help */
	const char *help; /* NULL: not in the help */
	enum option_kind kind;
	bool keep; /* libfuse gets it, too */
	size_t at; /* offset in struct settings */
	int base;
	unsigned min, max;
} options[] = {
#define AT(member) .at = offsetof(struct settings, member)
	{"-d", NULL, NULL, "foreground, and show every request", .kind = DEBUG},
	{"-f", NULL, NULL, "stay in the foreground, log to stderr", .kind = FOREGROUND},
	{"-h", "--help", NULL, "show this text", FLAG, AT(help)},
	{"--in-place", NULL, NULL, "show what was packed at its old places in TREE", FLAG,
	 AT(in_place)},
	{"-n", NULL, NULL, "ignored, for mount(8)", .kind = NOTHING},
	{"-o", NULL, "OPT[,OPT]...", "mount options, below", .kind = HELP_ONLY},
	{"-q", NULL, NULL, "log errors only", .kind = VERBOSITY},
	{"-r", NULL, NULL, "same as -o ro, which is always on", .kind = NOTHING},
	{"-s", NULL, NULL, "answer requests in one thread", .kind = SINGLE},
	{"--status", NULL, NULL, "print the status of the mount at MOUNTPOINT", FLAG,
	 AT(status)},
	{"--undo", NULL, NULL, "with --in-place: unmount what is mounted in TREE", FLAG,
	 AT(undo)},
	{"-v", NULL, NULL, "log more", .kind = VERBOSITY},
	{"-V", "--version", NULL, "show versions", FLAG, AT(version)},

	{"allow_other", NULL, NULL, "let all users access the mount", FLAG, true,
	 AT(shared)},
	{"allow_root", NULL, NULL, "let root access the mount", .kind = NOTHING,
	 .keep = true},
	{"arch=", NULL, "LIST",
	 "show only what these GPUs can load; auto: those of this\n"
	 "machine; all: everything (default)",
	 .kind = ARCHES},
	{"arch_exact", NULL, NULL, "with arch=: only code for these very target IDs",
	 FLAG, AT(arches.exact)},
	{"auto_unmount", NULL, NULL, "unmount when the daemon dies", FLAG, true,
	 AT(auto_unmount)},
	{"bundles", NULL, NULL, "hipfb/: the code of each binary as HIP fat binaries",
	 FLAG, AT(bundles)},
	{"cache_size=", NULL, "BYTES",
	 "memory for decoded bytes, with k, m or g (default 256m)", BYTES,
	 AT(cache_size)},
	{"clone_fd", NULL, NULL, "a /dev/fuse descriptor for each thread", FLAG,
	 AT(clone_fd)},
	{"debug", NULL, NULL, "same as -d", .kind = DEBUG},
	{"default_permissions", NULL, NULL, "let the kernel check modes (always on)",
	 .kind = NOTHING},
	{"fsname=", NULL, "NAME", "name in the mount table (default: the first SOURCE)",
	 GIVEN, true, AT(has_fsname)},
	{"gid=", NULL, "N", "group of all files", NUMBER, AT(look.gid), .base = 10,
	 .max = UINT32_MAX - 1},
	{"idle_timeout=", NULL, "TIME", "unmount after TIME without use, with s, m or h",
	 SECONDS, AT(idle_timeout)},
	{"max_threads=", NULL, "N", "threads that answer requests (default 10)", NUMBER,
	 AT(max_threads), .base = 10, .min = 1, .max = 100000},
	{"no_ahead", NULL, NULL, "decode only what is read, nothing ahead", FLAG,
	 AT(no_ahead)},
	{"no_sandbox", NULL, NULL, "keep privileges that serving does not need", FLAG,
	 AT(no_sandbox)},
	{"nonempty", NULL, NULL, "cover files that the archives do not have", FLAG,
	 AT(nonempty)},
	{"open", NULL, NULL, "send every open to the daemon", FLAG, AT(always_open)},
	{"poll=", NULL, "TIME", "scan for changed archives every TIME, with s, m or h",
	 SECONDS, AT(poll)},
	{"preload=", NULL, "GLOB", "read matching files in advance; may be repeated",
	 STRINGS, AT(preload)},
	{"ro", NULL, NULL, "read-only (always on)", .kind = NOTHING},
	{"source=", NULL, "PATH", "another source; may be repeated", STRINGS,
	 AT(more_sources)},
	{"subdir=", NULL, "PATH", "show only this directory of the tree", .kind = SUBDIR},
	{"subtype=", NULL, "TYPE",
	 "type in the mount table after \"fuse.\" (default kpackfs)", GIVEN, true,
	 AT(has_subtype)},
	{"threads=", NULL, "N", "threads that decode (default: one per processor)",
	 NUMBER, AT(threads), .base = 10, .min = 1, .max = 1024},
	{"topology=", NULL, "DIR", "where arch=auto looks for GPUs (default: sysfs)",
	 STRING, AT(topology)},
	{"uid=", NULL, "N", "owner of all files", NUMBER, AT(look.uid), .base = 10,
	 .max = UINT32_MAX - 1},
	{"umask=", NULL, "OCTAL", "permission bits to clear", NUMBER, AT(look.mask),
	 .base = 8, .max = 0777},
	{"xattr", NULL, NULL, "extended attributes user.kpack.*", FLAG, AT(xattr)},

	{"rw", .kind = READ_WRITE},
	{"io_uring", "io_uring_q_depth=", .kind = IO_URING, .keep = true},
	{"noexec", .kind = NOTHING, .keep = true},
	{"noatime", .kind = NOTHING, .keep = true},
	{"nodiratime", .kind = NOTHING, .keep = true},
#undef AT
};

/*
 * Always in force; or from mount.fuse3, as the mount has no set-user-ID files and no devices;
 * or for mount(8) and fstab; or without meaning on a mount that is read-only.
 */
static const char *const ignored[] = {
	"nosuid",     "nodev",       "exec",          "suid",      "dev",
	"defaults",   "auto",        "noauto",        "user",      "user=",
	"nouser",     "users",       "owner",         "group",     "nofail",
	"_netdev",    "comment=",    "atime",         "diratime",  "relatime",
	"norelatime", "strictatime", "nostrictatime", "lazytime",  "nolazytime",
	"sync",       "async",       "dirsync",       "mand",      "nomand",
	"silent",     "loud",        "nosymfollow",   "symfollow",
};

/* A letter behind a number multiplies it. */
static const struct unit {
	char letter;
	uint64_t factor;
} bytes_units[] = {{'k', 1 << 10},
		   {'m', 1 << 20},
		   {'g', 1 << 30},
		   {'t', UINT64_C(1) << 40},
		   {0}},
  time_units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {0}};

/* Read TEXT, the value of the option ARG, which is WHAT if it is right. */
static bool read_number(const char *arg, const char *text, const char *what, int base,
			const struct unit *unit, uint64_t min, uint64_t max,
			uint64_t *out)
{
	unsigned long long n;
	char wrong[32], *end;

	errno = 0;
	n = strtoull(text, &end, base);
	while (*end && unit && unit->letter && unit->letter != (*end | 0x20))
		unit++;
	if (end == text || errno == EINVAL || text[strspn(text, "0123456789")] != *end ||
	    (*end && (!unit || !unit->letter || end[1]))) {
		snprintf(wrong, sizeof(wrong), "not a %s", what);
		return option_wrong(arg, wrong);
	}
	if (errno || n > max / (*end ? unit->factor : 1))
		return option_wrong(arg, "out of range");
	*out = n * (*end ? unit->factor : 1);
	return *out >= min || option_wrong(arg, "out of range");
}

/* Take ARG, which is the option O, as "NAME" or "NAME=VALUE". */
static bool take_option(struct settings *s, const struct option *o, const char *arg)
{
	const char *equals = strchr(arg, '='), *value = equals ? equals + 1 : "";
	void *slot = (char *)s + o->at;
	uint64_t n;

	/* the code that uses the value would take "" for a path or a name */
	if ((o->kind == GIVEN || o->kind == STRING || o->kind == STRINGS) && !*value)
		return option_wrong(arg, "has no value");
	switch (o->kind) {
	case HELP_ONLY:
	case NOTHING:
		return true;
	case FLAG:
	case GIVEN:
		return *(bool *)slot = true;
	case NUMBER:
		if (!read_number(arg, value, "number", o->base, NULL, o->min, o->max, &n))
			return false;
		*(unsigned *)slot = (unsigned)n;
		return true;
	case BYTES:
		return read_number(arg, value, "number", 10, bytes_units, 0,
				   UINT64_MAX / 2, slot);
	case SECONDS:
		if (!read_number(arg, value, "time", 10, time_units, 0, 1000000000, &n))
			return false;
		*(unsigned *)slot = (unsigned)n;
		return true;
	case STRING:
		return replace_string(slot, value);
	case STRINGS:
		return strings_add(slot, value);
	case ARCHES:
		return arches_add(&s->arches, value);
	case SUBDIR:
		if (!replace_string(&s->subdir, value))
			return false;
		if (!*value)
			return option_wrong("subdir=",
					    "is empty; use . for the root without toc");
		return !clean_path(s->subdir) ||
		       option_wrong("subdir=", "may not have a component ..");
	case DEBUG:
		return s->debug = s->foreground = true;
	case FOREGROUND:
		return *(s->helper ? &s->fake : &s->foreground) = true;
	case SINGLE:
		/* from mount(8), -s means to tolerate options; we know which to ignore */
		s->single = !s->helper;
		return true;
	case VERBOSITY:
		log_level(strcmp(arg, "-q") == 0 ? LOG_ERR : LOG_INFO);
		return true;
	case IO_URING:
		s->io_uring = HAS_IO_URING;
		return HAS_IO_URING || option_wrong(arg, "not built into this program");
	case READ_WRITE:
		break;
	}
	return option_wrong(arg, "the mount is always read-only: omit it or use ro");
}

/* fuse_opt's callback: 1 keeps the argument for libfuse, 0 drops it, -1 fails. */
static int parse_option(void *data, const char *arg, int key, struct fuse_args *args)
{
	struct kp_nearest nearest = {.word = arg};
	struct settings *s = data;
	char text[128] = "unknown option; kpackfs --help lists them";

	(void)args;
	if (key == FUSE_OPT_KEY_NONOPT)
		return strings_add(&s->sources, arg) ? 0 : -1;
	if (key != FUSE_OPT_KEY_OPT)
		return take_option(s, &options[key], arg) ? options[key].keep : -1;
	if (strncmp(arg, "x-", 2) == 0 || strncmp(arg, "X-", 2) == 0)
		return 0;
	/* a letter is near to every other letter */
	for (const struct option *o = options; o < options + KP_COUNT(options); o++)
		for (int i = 0; i < 2; i++) {
			const char *name = i ? o->also : o->name;

			if (name && (name[0] != '-' || name[1] == '-'))
				kp_nearest_try(&nearest, name);
		}
	if (nearest.name)
		snprintf(text, sizeof(text), "unknown option; did you mean '%s'?",
			 nearest.name);
	option_wrong(arg, text);
	return -1;
}

/*
 * Undo what mount(8) and mount.fuse3 add, and protect what fuse_opt would split.
 *
 * mount(8) begins its list of options with rw, whatever the user wrote, and mount.fuse3 then
 * adds dev,suid: make such an rw ro.  Only an rw that the user wrote is refused later.
 */
static void mend_arguments(int *argc, char **argv, bool helper)
{
	for (int i = 1; i < *argc; i++) {
		char *list = argv[i] + 2;

		if (strncmp(argv[i], "-o", 2) != 0)
			continue;
		if (!*list && i + 1 < *argc) {
			list = argv[++i];
			if (strncmp(list, "rw", 2) == 0 &&
			    (list[2] == ',' ? helper || strstr(list, ",dev") ||
						      strstr(list, ",nodev")
					    : helper && !list[2]))
				memcpy(list, "ro", 2);
		}
		/* Commas separate options, so arch=LIST would end at its first comma: each comma
		 * that has another architecture behind it becomes a semicolon. */
		for (bool inside = false, more = true; more;) {
			struct kp_span name = {(const uint8_t *)list, strcspn(list, ",")};
			struct kp_target t;

			if (inside &&
			    (kp_span_is(name, "auto") || kp_span_is(name, "all") ||
			     kp_span_is(name, KP_ARCH_GENERIC) ||
			     (kp_target_parse(name, &t, NULL) == KPACK_SUCCESS &&
			      t.known)))
				list[-1] = ';';
			else
				inside = strncmp(list, "arch=", 5) == 0;
			list += name.size;
			more = *list++;
		}
	}
	/* -t TYPE, which mount(8) passes to helpers */
	for (int i = 1; helper && i + 1 < *argc; i++) {
		if (strcmp(argv[i], "-t"))
			continue;
		*argc -= 2;
		memmove(&argv[i], &argv[i + 2], sizeof(*argv) * (size_t)(*argc - i + 1));
		return;
	}
}

/* --- paths ---------------------------------------------------------------------------- */

/*
 * Make the mount point an absolute path.  Root mounts on what is open, as another user may exchange
 * directories of the path meanwhile.
 */
static enum end take_mountpoint(struct settings *s)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {{0}};
	char name[32], path[PATH_MAX], *full = NULL;
	const char *why = NULL;
	struct stat st;
	bool firm;
	ssize_t n;
	int fd;

	/* mount.fuse3 may have mounted already: /dev/fd/N is then its connection. */
	if (strncmp(s->mountpoint, "/dev/fd/", 8) == 0)
		return OK;
	/*
	 * Root mounts by itself.  Without this capability, as in containers, it needs
	 * fusermount3, which takes a path.
	 */
	if (geteuid() != 0 || syscall(SYS_capget, &header, caps) != 0 ||
	    !(caps[0].effective >> CAP_SYS_ADMIN & 1)) {
		full = realpath(s->mountpoint, NULL);
	} else if ((fd = kp_firm_path_open(s->mountpoint, &firm)) >= 0) {
		s->place = fd;
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, path, sizeof(path) - 1);
		path[n < 0 ? 0 : n] = '\0';
		full = n < 0 ? NULL : strdup(path);
	} else if (errno == ELOOP) {
		why = "a symbolic link on the way is not followed, because another user "
		      "may "
		      "have put it there; name the directory that it leads to";
	}
	if (!full) {
		log_about(LOG_ERR, s->mountpoint, why ? why : strerror(errno));
		return NO_MOUNT;
	}
	free(s->mountpoint);
	s->mountpoint = full;
	if (s->place && s->auto_unmount) {
		/* fusermount3 unmounts by the path when the daemon has died: nobody may have
		 * exchanged a directory of the absolute path then */
		settings_leave_place(s);
		fd = kp_firm_path_open(full, &firm);
		if (fd >= 0)
			close(fd);
		if (fd < 0 || !firm) {
			log_about(LOG_ERR, full,
				  "auto_unmount as root needs a path in which no other "
				  "user can exchange a directory");
			return NO_MOUNT;
		}
	}
	/* libfuse would mount on a file, but then the kernel refuses every request. */
	if ((s->place ? fstat(s->place, &st) : stat(full, &st)) == 0 &&
	    !S_ISDIR(st.st_mode)) {
		log_about(LOG_ERR, full, strerror(ENOTDIR));
		return NO_MOUNT;
	}
	return OK;
}

/* The operands, which are in S's sources: the last is the mount point. */
static enum end take_operands(struct settings *s)
{
	struct strings *p = &s->sources;

	if (s->in_place ? s->status || s->foreground || s->helper || s->auto_unmount
			: s->undo) {
		log_print(LOG_ERR, s->in_place
					   ? "--in-place makes several mounts: -d, -f, "
					     "--status and auto_unmount are for one"
					   : "--undo goes with --in-place only");
		return USAGE;
	}
	if (s->status || s->undo) {
		if (p->count != 1 || s->more_sources.count) {
			log_print(LOG_ERR, "%s, and no source",
				  s->undo ? "--undo needs one tree"
					  : "--status needs one mount point");
			return USAGE;
		}
		s->mountpoint = p->list[--p->count];
		/* a mount point is not accessed here, because it may not answer; a tree is */
		return s->undo ? take_mountpoint(s) : OK;
	}
	if (s->in_place && p->count == 1 && s->more_sources.count == 0) {
		/* the archives that packing put into the tree */
		char *own = NULL;
		bool added = asprintf(&own, "%s/" KP_ARCHIVES_DIR, p->list[0]) > 0 &&
			     strings_add(&s->more_sources, own);

		free(own);
		if (!added)
			return SYSTEM;
	}
	if (p->count == 0 || p->count + s->more_sources.count < 2) {
		log_print(LOG_ERR, "no %s given; kpackfs --help explains",
			  p->count ? "mount point" : "source and mount point");
		return USAGE;
	}
	s->mountpoint = p->list[--p->count];
	for (size_t i = 0; i < s->more_sources.count; i++)
		if (!strings_add(p, s->more_sources.list[i]))
			return SYSTEM;
	/* Absolute paths, because the working directory will change.  Links are kept: each scan
	 * follows them again. */
	for (size_t i = 0; i < p->count; i++) {
		const char *path = p->list[i];
		KP_AUTO_FREE char *here = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
		char *full = NULL;
		struct stat st;

		if (stat(path, &st) || !here ||
		    asprintf(&full, "%s/%s", here, path) < 0) {
			log_about(LOG_ERR, path, strerror(errno));
			return NO_MOUNT;
		}
		clean_path(full + 1);
		free(p->list[i]);
		p->list[i] = full;
	}
	return take_mountpoint(s);
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

enum end settings_parse(struct settings *s, int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	struct fuse_opt table[2 * KP_COUNT(options) + KP_COUNT(ignored) + 1];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct fuse_args *args = &s->args;
	enum end end;
	size_t n = 0;

	s->helper = strncmp(slash ? slash + 1 : argv[0], "mount.", 6) == 0;
	s->look.uid = (uid_t)-1;
	s->look.gid = (gid_t)-1;
	s->cache_size = 256 << 20;
	s->threads = cores > 0 && cores < 1024 ? (unsigned)cores : 1;
	mend_arguments(&argc, argv, s->helper);
	s->args = (struct fuse_args)FUSE_ARGS_INIT(argc, argv);
	for (size_t i = 0; i < KP_COUNT(options); i++) {
		if (options[i].kind == HELP_ONLY)
			continue;
		table[n++] = (struct fuse_opt){options[i].name, -1U, (int)i};
		if (options[i].also)
			table[n++] = (struct fuse_opt){options[i].also, -1U, (int)i};
	}
	for (size_t i = 0; i < KP_COUNT(ignored); i++)
		table[n++] = (struct fuse_opt){ignored[i], -1U, FUSE_OPT_KEY_DISCARD};
	table[n] = (struct fuse_opt){NULL, 0, 0};
	/* the operands become sources */
	if (fuse_opt_parse(args, s, table, parse_option))
		return USAGE;
	/* If libfuse keeps an option, it keeps the "--" before the operands, too, and then
	 * does not know it. */
	if (args->argc >= 2 && strcmp(args->argv[args->argc - 1], "--") == 0) {
		free(args->argv[--args->argc]);
		args->argv[args->argc] = NULL;
	}
	if (s->help || s->version)
		return OK;
	end = take_operands(s);
	if (end != OK || s->status || s->undo)
		return end;
	if (s->arches.exact && !s->arches.limited) {
		option_wrong("arch_exact", "it needs arch=LIST, which is missing");
		return USAGE;
	}
	if (!arches_find(&s->arches, s->topology))
		return SYSTEM;
	if ((!s->has_fsname && !add_named_option(s, "fsname", s->sources.list[0])) ||
	    (!s->has_subtype && !add_named_option(s, "subtype", "kpackfs")) ||
	    fuse_opt_add_arg(&s->args, "-oro,nosuid,nodev,default_permissions") ||
	    (s->debug && fuse_opt_add_arg(&s->args, "-odebug")))
		return SYSTEM;
	return OK;
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
	char label[64];

	if (!s->help) {
		printf("kpackfs %s\nlibfuse %s\nlibzstd %s\n", KP_VERSION,
		       fuse_pkgversion(), ZSTD_versionString());
		return fflush(stdout) ? 1 : 0;
	}
	fputs("Usage: kpackfs [-dfqrsv] [-o opt[,opt]...] SOURCE... MOUNTPOINT\n"
	      "       kpackfs --in-place [-qv] [-o opt[,opt]...] [SOURCE...] TREE\n"
	      "       kpackfs --in-place --undo TREE\n"
	      "       kpackfs --status MOUNTPOINT\n"
	      "Mount kpack archives - files, or the *.kpack of directories - as a "
	      "read-only\n"
	      "tree.\n"
	      "\n"
	      "Options:\n",
	      stdout);
	for (size_t i = 0; i < KP_COUNT(options) && options[i].help; i++) {
		const struct option *o = &options[i];
		const char *help = o->help, *line = strchr(help, '\n');
		bool is_mount = *o->name != '-';

		if (is_mount && i && *o[-1].name == '-')
			fputs("\nMount options:\n", stdout);
		snprintf(label, sizeof(label), "%s%s%s%s%s%s", is_mount ? "-o " : "",
			 o->name, o->also ? ", " : "", o->also ? o->also : "",
			 o->arg && !is_mount ? " " : "", o->arg ? o->arg : "");
		if (line)
			printf("    %-19s  %.*s\n%25s%s\n", label, (int)(line - help),
			       help, "", line + 1);
		else
			printf("    %-19s  %s\n", label, help);
	}
	return fflush(stdout) ? 1 : 0;
}
