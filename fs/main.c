/* SPDX-License-Identifier: MIT */
/* kpackfs: from the command line to two processes.  ARCHITECTURE.md has the map. */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>
#include "fs/base/log.h"
#include "fs/base/process_link.h"
#include "fs/mount/mount.h"

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The exit codes of each enum end are our own, or those of mount(8). */
static int exit_code(const struct settings *s, enum end end)
{
	static const int codes[2][4] = {{0, 2, 1, 1}, {0, 1, 2, 32}};

	return codes[s->helper][end];
}

/*
 * The server is the child, so that the program that started us deals with the supervisor,
 * which lives longer.  Nothing was read before the fork, so the supervisor stays small.
 */
static enum end run_processes(struct settings *s, struct daemon *d)
{
	enum end end;
	pid_t server;
	int link[2];

	notify_begin();
	supervisor_block_signals();
	if (!link_pair(link) || (server = fork()) < 0) {
		log_about(LOG_ERR, "fork", strerror(errno));
		return SYSTEM;
	}
	close(link[server != 0]);
	if (server) {
		/* only the server holds the connection that mount.fuse3 opened, so that the
		 * mount ends with the server */
		if (strncmp(s->mountpoint, "/dev/fd/", 8) == 0)
			close((int)strtol(s->mountpoint + 8, NULL, 10));
		settings_leave_place(s);
		return supervise(s, server, link[0], d);
	}
	if (d)
		close(d->ready);
	end = serve(s, link[1]);
	settings_free(s);
	exit(end);
}

static int run_in_background(struct settings *s)
{
	struct daemon d;
	int code;

	if (!daemon_fork(&d))
		return exit_code(s, SYSTEM);
	if (d.child == 0)
		return exit_code(s, run_processes(s, &d));
	settings_leave_place(s);
	code = daemon_await(&d);
	return code < 0 ? exit_code(s, SYSTEM) : code;
}

static void __attribute__((format(printf, 2, 0)))
log_libfuse(enum fuse_log_level level, const char *fmt, va_list args)
{
	char line[1024], *end;

	vsnprintf(line, sizeof(line), fmt, args);
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	/* Debug lines only come with -d, so they are always shown. */
	log_print(level > FUSE_LOG_WARNING ? LOG_WARNING : (int)level, "%s", line);
}

int main(int argc, char **argv)
{
	const bool raised = getauxval(AT_SECURE);
	struct settings s = {0};
	struct rlimit limit;
	enum end end;
	int code;

	if (argc < 1 || !daemon_reserve_fds())
		return 1;
	/*
	 * Environments are not trusted further than the users they come from.  A program with
	 * more rights than its caller forgets the whole environment; and root's programs are
	 * those of the system, wherever a PATH leads that su or sudo left.
	 */
	if (raised && clearenv())
		return 1;
	if ((raised || geteuid() == 0) && setenv("PATH", SYSTEM_PATH, 1))
		return 1;
	log_begin();
	fuse_set_log_func(log_libfuse);
	end = settings_parse(&s, argc, argv);
	code = exit_code(&s, end);
	if (end != OK || s.fake)
		goto out;
	/* every archive needs a descriptor */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (s.help || s.version)
		code = settings_show(&s);
	else if (s.status)
		code = status_show(s.mountpoint);
	else if (s.in_place)
		code = exit_code(&s, s.undo ? in_place_undo(&s)
					    : in_place_mount(&s, run_in_background));
	else if (s.foreground)
		code = exit_code(&s, run_processes(&s, NULL));
	else
		code = run_in_background(&s);
out:
	settings_free(&s);
	return code;
}
