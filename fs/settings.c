/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>
#include "log.h"
#include "settings.h"
#include "subdir.h"

static const char usage_text[] =
	"Usage: kpackfs [-dfqrsv] [-o opt[,opt]...] SOURCE... MOUNTPOINT\n"
	"       kpackfs --status MOUNTPOINT\n"
	"Mount kpack archives - files, or all *.kpack of a directory - as a tree to "
	"read.\n"
	"\n"
	"Options:\n"
	"    -d                   foreground, and show every request\n"
	"    -f                   stay in the foreground, log to stderr\n"
	"    -h, --help           show this text\n"
	"    -n                   ignored, for mount(8)\n"
	"    -o OPT[,OPT]...      mount options, below\n"
	"    -q                   log errors only\n"
	"    -r                   same as -o ro, which is always on\n"
	"    -s                   answer requests in one thread\n"
	"    --status             say how the mount at MOUNTPOINT is\n"
	"    -v                   log more\n"
	"    -V, --version        show versions\n"
	"\n"
	"Mount options:\n"
	"    -o allow_other       let all users in\n"
	"    -o allow_root        let root in\n"
	"    -o arch=LIST         show only what these GPUs can load; auto: those of "
	"this\n"
	"                         machine; all: everything (default)\n"
	"    -o auto_unmount      unmount when the daemon dies\n"
	"    -o cache_size=BYTES  memory for decoded bytes, with k, m or g (default "
	"256m)\n"
	"    -o clone_fd          a /dev/fuse descriptor for each thread\n"
	"    -o debug             same as -d\n"
	"    -o default_permissions  let the kernel check modes (always on)\n"
	"    -o fsname=NAME       name in the mount table (default: the first SOURCE)\n"
	"    -o gid=N             group of all files\n"
	"    -o idle_timeout=TIME  unmount when not used for that long, with s, m or h\n"
	"    -o max_threads=N     threads that take requests (default 10)\n"
	"    -o no_sandbox        keep rights that serving does not need\n"
	"    -o open              ask the daemon at every open\n"
	"    -o poll=TIME         look for changed archives that often, with s, m or h\n"
	"    -o preload=GLOB      read these files at once; may be repeated\n"
	"    -o ro                read-only (always on)\n"
	"    -o source=PATH       one more source; may be repeated\n"
	"    -o subdir=PATH       show only this directory of the tree\n"
	"    -o subtype=TYPE      type in the mount table after \"fuse.\" (default "
	"kpackfs)\n"
	"    -o threads=N         threads that decode (default: one per processor)\n"
	"    -o topology=DIR      where arch=auto looks for GPUs (default: sysfs)\n"
	"    -o uid=N             owner of all files\n"
	"    -o umask=OCTAL       permission bits to take away\n"
	"    -o xattr             extended attributes user.kpack.*\n";

enum key {
	KEY_HELP,
	KEY_VERSION,
	KEY_STATUS,
	KEY_FOREGROUND,
	KEY_DEBUG,
	KEY_SINGLE,
	KEY_VERBOSE,
	KEY_QUIET,
	KEY_RW,
	KEY_SOURCE,
	KEY_ARCH,
	KEY_SUBDIR,
	KEY_TOPOLOGY,
	KEY_CACHE_SIZE,
	KEY_THREADS,
	KEY_MAX_THREADS,
	KEY_UID,
	KEY_GID,
	KEY_UMASK,
	KEY_NO_SANDBOX,
	KEY_OPEN,
	KEY_XATTR,
	KEY_CLONE_FD,
	KEY_FSNAME,
	KEY_SUBTYPE,
	KEY_POLL,
	KEY_IDLE_TIMEOUT,
	KEY_PRELOAD,
	KEY_IO_URING,
};

/* FUSE_OPT_KEY, without its implicit conversion. */
#define OPTION(t, key)                                                                   \
	{                                                                                \
		t, (unsigned)-1, key                                                     \
	}
/* Requests over io_uring, where the library that is built against can. */
#define HAS_IO_URING (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18))
#define KEEP(t) OPTION(t, FUSE_OPT_KEY_KEEP)
#define IGNORE(t) OPTION(t, FUSE_OPT_KEY_DISCARD)

static const struct fuse_opt option_table[] = {
	OPTION("-h", KEY_HELP),
	OPTION("--help", KEY_HELP),
	OPTION("-V", KEY_VERSION),
	OPTION("--version", KEY_VERSION),
	OPTION("--status", KEY_STATUS),
	OPTION("-f", KEY_FOREGROUND),
	OPTION("-d", KEY_DEBUG),
	OPTION("debug", KEY_DEBUG),
	OPTION("-s", KEY_SINGLE),
	OPTION("-v", KEY_VERBOSE),
	OPTION("-q", KEY_QUIET),
	OPTION("rw", KEY_RW),
	OPTION("source=", KEY_SOURCE),
	OPTION("arch=", KEY_ARCH),
	OPTION("subdir=", KEY_SUBDIR),
	OPTION("topology=", KEY_TOPOLOGY),
	OPTION("cache_size=", KEY_CACHE_SIZE),
	OPTION("threads=", KEY_THREADS),
	OPTION("max_threads=", KEY_MAX_THREADS),
	OPTION("uid=", KEY_UID),
	OPTION("gid=", KEY_GID),
	OPTION("umask=", KEY_UMASK),
	OPTION("no_sandbox", KEY_NO_SANDBOX),
	OPTION("poll=", KEY_POLL),
	OPTION("idle_timeout=", KEY_IDLE_TIMEOUT),
	OPTION("preload=", KEY_PRELOAD),
	OPTION("open", KEY_OPEN),
	OPTION("xattr", KEY_XATTR),
	OPTION("clone_fd", KEY_CLONE_FD),
	OPTION("fsname=", KEY_FSNAME),
	OPTION("subtype=", KEY_SUBTYPE),
	/* libfuse's own */
	KEEP("allow_other"),
	KEEP("allow_root"),
	KEEP("auto_unmount"),
	KEEP("noexec"),
	KEEP("noatime"),
	KEEP("nodiratime"),
	OPTION("io_uring", KEY_IO_URING),
	OPTION("io_uring_q_depth=", KEY_IO_URING),
	/* always so */
	IGNORE("-r"),
	IGNORE("ro"),
	IGNORE("nosuid"),
	IGNORE("nodev"),
	IGNORE("exec"),
	IGNORE("default_permissions"),
	/* mount.fuse3 asks for these two; there is no suid file and no device here */
	IGNORE("suid"),
	IGNORE("dev"),
	/* mount(8), fstab, and what means nothing on a read-only mount */
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

static bool complain(const char *option, const char *text)
{
	log_about(LOG_ERR, option, text);
	return false;
}

static bool strings_add(struct strings *s, char *string)
{
	char **list = string ? reallocarray(s->list, s->count + 1, sizeof(*list)) : NULL;

	if (!list) {
		free(string);
		return complain("options", "out of memory");
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

/* A number in BASE with an optional suffix out of SUFFIXES, each 1024 times the last. */
static bool parse_number(const char *option, int base, const char *suffixes, uint64_t min,
			 uint64_t max, uint64_t *out)
{
	const char *text = strchr(option, '=') + 1, *suffix;
	unsigned long long n;
	unsigned shift = 0;
	char *end;

	errno = 0;
	n = strtoull(text, &end, base);
	if (end == text || errno || text[strspn(text, "0123456789")] != *end)
		return complain(option, "not a number");
	if (*end) {
		suffix = strchr(suffixes, *end | 0x20);
		if (!suffix || end[1])
			return complain(option, "not a number");
		shift = 10 * (unsigned)(suffix - suffixes + 1);
	}
	if (n > max >> shift || n << shift < min)
		return complain(option, "out of range");
	*out = n << shift;
	return true;
}

static bool parse_unsigned(const char *option, int base, uint64_t min, uint64_t max,
			   unsigned *out)
{
	uint64_t n;

	if (!parse_number(option, base, "", min, max, &n))
		return false;
	*out = (unsigned)n;
	return true;
}

/* A time of s, m or h; seconds where none is said. */
static bool parse_seconds(const char *option, unsigned *out)
{
	static const struct {
		char letter;
		unsigned seconds;
	} units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}};
	const char *text = strchr(option, '=') + 1;
	size_t digits = strspn(text, "0123456789");
	unsigned long n = strtoul(text, NULL, 10);

	for (size_t i = 0; digits && i < sizeof(units) / sizeof(*units); i++) {
		if (text[digits] != units[i].letter || (text[digits] && text[digits + 1]))
			continue;
		if (n > 1000000000 / units[i].seconds)
			return complain(option, "out of range");
		*out = (unsigned)n * units[i].seconds;
		return true;
	}
	return complain(option, "not a time");
}

static bool replace(char **string, const char *text)
{
	free(*string);
	*string = strdup(text);
	return *string || complain(text, "out of memory");
}

static bool parse_subdir(struct settings *s, const char *path)
{
	const char *wrong;

	if (!replace(&s->subdir, path))
		return false;
	wrong = subdir_clean(s->subdir);
	return !wrong || complain("subdir=", wrong);
}

/* What is empty would be taken for a path or a name by whoever gets it. */
static bool has_value(const char *option)
{
	return strchr(option, '=')[1] || complain(option, "has no value");
}

static bool parse_key(struct settings *s, int key, const char *arg)
{
	const char *value = strchr(arg, '=');

	value = value ? value + 1 : arg;
	switch ((enum key)key) {
	case KEY_HELP:
		s->help = true;
		return true;
	case KEY_VERSION:
		s->version = true;
		return true;
	case KEY_STATUS:
		s->status = true;
		return true;
	case KEY_FOREGROUND:
		*(s->helper ? &s->fake : &s->foreground) = true;
		return true;
	case KEY_DEBUG:
		s->debug = s->foreground = true;
		return true;
	case KEY_SINGLE: /* mount(8)'s -s: tolerate options; we know which to ignore */
		s->single = !s->helper;
		return true;
	case KEY_VERBOSE:
		log_level(LOG_INFO);
		return true;
	case KEY_QUIET:
		log_level(LOG_ERR);
		return true;
	case KEY_RW:
		return complain("rw", "archives are only read: leave it out or say ro");
	case KEY_SOURCE:
		return has_value(arg) && strings_add(&s->more_sources, strdup(value));
	case KEY_ARCH:
		return arches_add(&s->arches, value);
	case KEY_SUBDIR:
		return parse_subdir(s, value);
	case KEY_TOPOLOGY:
		return has_value(arg) && replace(&s->topology, value);
	case KEY_CACHE_SIZE:
		return parse_number(arg, 10, "kmgt", 0, UINT64_MAX / 2, &s->cache_size);
	case KEY_THREADS:
		return parse_unsigned(arg, 10, 1, 1024, &s->threads);
	case KEY_MAX_THREADS:
		return parse_unsigned(arg, 10, 1, 100000, &s->max_threads);
	case KEY_UID:
		return parse_unsigned(arg, 10, 0, UINT32_MAX - 1, &s->look.uid);
	case KEY_GID:
		return parse_unsigned(arg, 10, 0, UINT32_MAX - 1, &s->look.gid);
	case KEY_UMASK:
		return parse_unsigned(arg, 8, 0, 0777, &s->look.mask);
	case KEY_NO_SANDBOX:
		s->no_sandbox = true;
		return true;
	case KEY_OPEN:
		s->always_open = true;
		return true;
	case KEY_XATTR:
		s->xattr = true;
		return true;
	case KEY_CLONE_FD:
		s->clone_fd = true;
		return true;
	case KEY_FSNAME:
		return s->has_fsname = has_value(arg);
	case KEY_SUBTYPE:
		return s->has_subtype = has_value(arg);
	case KEY_POLL:
		return parse_seconds(arg, &s->poll);
	case KEY_IDLE_TIMEOUT:
		return parse_seconds(arg, &s->idle_timeout);
	case KEY_PRELOAD:
		return has_value(arg) && strings_add(&s->preload, strdup(value));
	case KEY_IO_URING:
		s->io_uring = HAS_IO_URING;
		return HAS_IO_URING || complain(arg, "not built into this program");
	}
	return false;
}

/* fuse_opt's callback: 1 keeps the argument for libfuse, 0 takes it, -1 fails. */
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
		complain(arg, "unknown option; kpackfs --help lists them");
		return -1;
	}
	if (!parse_key(s, key, arg))
		return -1;
	return key == KEY_FSNAME || key == KEY_SUBTYPE || key == KEY_IO_URING;
}

/*
 * mount(8) begins its list of options with rw, whatever the user said; mount.fuse3
 * then adds dev,suid.  Only who wrote rw himself is to be told.
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

/* Can TEXT, up to a comma, be one more architecture of a list? */
static bool goes_on(const char *text)
{
	struct kp_span name = {(const uint8_t *)text, strcspn(text, ",")};
	struct kp_target t;

	return kp_span_is(name, "auto") || kp_span_is(name, "all") ||
	       kp_span_is(name, "generic") ||
	       (kp_target_parse(name, &t, NULL) == KPACK_SUCCESS && t.known);
}

/*
 * Commas separate options, so arch=LIST would end at its first one: hide those with another
 * architecture behind them.
 */
static void join_arches(char *list)
{
	bool inside = false;

	for (;; list++) {
		if (inside && goes_on(list))
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

/* mount(8) also passes -t TYPE to helpers. */
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

/* Make PATH absolute; the working directory will change. */
static char *absolute(const char *path)
{
	char *full = realpath(path, NULL);

	if (!full)
		log_about(LOG_ERR, path, strerror(errno));
	return full;
}

/* Take "." and what is of no use between slashes out; the meaning stays. */
static void tidy(char *path)
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

/* The same for a source, whose links are followed anew whenever it is looked at. */
static char *absolute_name(const char *path)
{
	char *here = path[0] == '/' ? strdup("") : getcwd(NULL, 0), *full = NULL;
	struct stat st;

	if (stat(path, &st) || !here || asprintf(&full, "%s/%s", here, path) < 0) {
		log_about(LOG_ERR, path, strerror(errno));
		free(here);
		return NULL;
	}
	free(here);
	tidy(full);
	return full;
}

static enum end take_mountpoint(struct settings *s)
{
	struct stat st;
	char *full;

	/* mount.fuse3 may have mounted already: /dev/fd/N is then its connection. */
	if (strncmp(s->mountpoint, "/dev/fd/", 8) == 0)
		return OK;
	full = absolute(s->mountpoint);
	if (!full)
		return NO_MOUNT;
	free(s->mountpoint);
	s->mountpoint = full;
	/* libfuse would mount on a file, and the kernel then refuse every request. */
	if (stat(full, &st) == 0 && !S_ISDIR(st.st_mode)) {
		log_about(LOG_ERR, full, strerror(ENOTDIR));
		return NO_MOUNT;
	}
	return OK;
}

static enum end take_paths(struct settings *s)
{
	struct strings *p = &s->sources;

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

/* For --status: the mount point is looked at with care, and not here. */
static enum end take_mountpoint_alone(struct settings *s)
{
	struct strings *p = &s->sources;

	if (p->count != 1 || s->more_sources.count) {
		log_print(LOG_ERR, "--status wants a mount point");
		return USAGE;
	}
	s->mountpoint = p->list[--p->count];
	return OK;
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
	drop_default_rw(argc, argv, s->helper);
	join_all_arches(argc, argv);
	if (s->helper)
		drop_type(&argc, argv);
	s->args = (struct fuse_args)FUSE_ARGS_INIT(argc, argv);
	if (fuse_opt_parse(&s->args, s, option_table, parse_option))
		return USAGE;
	if (s->help || s->version)
		return OK;
	if (s->status)
		return take_mountpoint_alone(s);
	end = take_paths(s);
	if (end != OK)
		return end;
	if (!arches_find(&s->arches, s->topology))
		return SYSTEM;
	return add_defaults(s) ? OK : SYSTEM;
}

void settings_free(struct settings *s)
{
	strings_free(&s->sources);
	strings_free(&s->more_sources);
	strings_free(&s->preload);
	free(s->mountpoint);
	free(s->subdir);
	free(s->topology);
	arches_free(&s->arches);
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
