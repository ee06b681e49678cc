/* SPDX-License-Identifier: MIT */
/*
 * The messages between supervisor and server, over a pair of sockets that keep order and
 * message boundaries.  Some messages carry a descriptor.  Neither side trusts the lengths
 * that the other sends.
 */
#ifndef FS_BASE_PROCESS_LINK_H
#define FS_BASE_PROCESS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum link_word {
	/* Sent by the supervisor.  A survey is any number of LINK_ARCHIVE, then
	 * LINK_SURVEYED. */
	/* path; fresh: fd is the file, or text says why there is none; not fresh: text says
	 * why it cannot be looked at now; number: the last serial of this file, or 0 */
	LINK_ARCHIVE,
	/* st: of the first source; number: of archives; fresh: the survey differs from the
	 * last one, or is to be shown anyway; not fresh: it only has archives tried again */
	LINK_SURVEYED,
	LINK_SEEN, /* answers LINK_LOOK, behind the survey if any; number: 1: it succeeded */
	LINK_PING,
	LINK_LEAVING, /* the supervisor ends; the server serves files in use to the end */
	/* Sent by the server. */
	LINK_MOUNTED, /* number: minor of the device, 0: unknown; fd: the connection */
	LINK_READY,   /* requests are answered; text: for people */
	LINK_TAKEN,   /* a survey is shown; number: of changed names; text: for people */
	/* serial: of an archive that cannot be served; number: errno, if reading it failed */
	LINK_REFUSED,
	LINK_RESCAN, /* an archive has changed; number: 1: retry refused ones, too */
	LINK_LOOK,   /* look at the sources now */
	LINK_SIGNAL, /* number: a signal meant for the supervisor */
	LINK_PONG,   /* number: of requests so far */
	LINK_WORDS
};

struct link_message {
	enum link_word word;
	uint32_t serial; /* of an archive; 0: none */
	uint64_t number;
	int fd;     /* -1: none */
	bool fresh; /* the archive is to be opened: it is new, or is tried again */
	struct stat st;
	/* In a received message: never NULL, and valid until the next is received. */
	const char *path, *text;
};

/* Room for one message.  The caller zeroes it before the first use. */
struct link_buffer {
	char bytes[12288];
};

enum link_result {
	LINK_DONE,
	LINK_FULL,  /* nothing was sent: the other side is slow */
	LINK_EMPTY, /* no message has come yet */
	LINK_OVER,  /* the other side has gone */
	LINK_WRONG, /* a malformed message came, and was dropped */
};

/* Open two ends, close-on-exec.  false: see errno. */
bool link_pair(int ends[2]);

/* Never blocks; safe in a signal handler.  The descriptor stays the caller's. */
enum link_result link_send(int end, const struct link_message *m);

/* As link_send, but waits while the other side is slow. */
enum link_result link_send_all(int end, const struct link_message *m);

/*
 * Never blocks, unless WAIT.  The caller closes out->fd.  A message with a descriptor
 * whose word has none is LINK_WRONG; a descriptor that could not be received is -1.
 */
enum link_result link_receive(int end, bool wait, struct link_buffer *room,
			      struct link_message *out);

#endif
