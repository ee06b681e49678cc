/* SPDX-License-Identifier: MIT */
/*
 * What supervisor and server say to each other: messages over a pair of sockets, one
 * after the other and whole, some with a descriptor.  Each side takes the other for an
 * enemy as far as lengths go.
 */
#ifndef FS_BASE_PROCESS_LINK_H
#define FS_BASE_PROCESS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum link_word {
	/* The supervisor's.  A survey is any number of archives and an end. */
	/* Path; fresh: the file in fd, or text says why not; number: its last serial, or 0. */
	LINK_ARCHIVE,
	LINK_SURVEYED, /* st of the first source, number of archives */
	LINK_PING,
	LINK_LEAVING, /* nobody listens any more; what is in use is served to the end */
	/* The server's. */
	LINK_MOUNTED, /* number: minor of the mount's device, 0: unknown; fd: connection */
	LINK_READY,   /* requests are answered; text for people */
	LINK_TAKEN, /* a survey is shown; number of names that changed; text for people */
	LINK_REFUSED, /* serial: what it stands for cannot be served */
	LINK_RESCAN,  /* an archive is not what it was; number: try refused ones, too */
	LINK_SIGNAL,  /* number: a signal meant for the supervisor */
	LINK_PONG,    /* number of requests so far */
	LINK_WORDS
};

struct link_message {
	enum link_word word;
	uint32_t serial; /* of an archive; 0: none */
	uint64_t number;
	int fd;     /* -1: none */
	bool fresh; /* an archive that is new under this serial */
	struct stat st;
	/* Never NULL once received; valid until the next message is. */
	const char *path, *text;
};

/* Room for one message.  Zeroed at first. */
struct link_buffer {
	char bytes[12288];
};

enum link_result {
	LINK_DONE,
	LINK_FULL,  /* nothing was sent: the other side is slow */
	LINK_EMPTY, /* nothing is there yet */
	LINK_OVER,  /* the other side has gone */
	LINK_WRONG, /* no message of ours; it was dropped */
};

/* Two ends, closed by exec.  false: see errno. */
bool link_pair(int ends[2]);

/* Never blocks; safe in a signal handler.  The descriptor stays the caller's. */
enum link_result link_send(int end, const struct link_message *m);

/* The same, but waits while the other side is slow. */
enum link_result link_send_all(int end, const struct link_message *m);

/*
 * Never blocks, unless WAIT.  The caller closes out->fd.  A descriptor that came with a
 * word that has none, or could not be taken for want of room, is not there.
 */
enum link_result link_receive(int end, bool wait, struct link_buffer *room,
			      struct link_message *out);

#endif
