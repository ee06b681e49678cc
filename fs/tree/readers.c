/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "readers.h"

const struct readers no_readers = {0, 0, 0};

/* --- access control lists ---------------------------------------------------------- */

/* The attribute of an access control list: a version, then entries. */
#define ACL_ATTRIBUTE "system.posix_acl_access"
enum { ACL_HEAD = 4, ACL_ENTRY = 8, ACL_BYTES = ACL_HEAD + 1024 * ACL_ENTRY };
enum { ACL_VERSION = 2, ACL_READ = 4 };
/* Tags of entries. */
enum { OWNER = 1, USER = 2, GROUP_OWNER = 4, GROUP = 8, MASK = 16, OTHER = 32 };

/* Which of these entries let read. */
struct acl {
	bool group, mask, named_refused;
};

static struct acl parse_acl(const uint8_t *bytes, size_t size)
{
	struct acl acl = {.mask = true};
	bool all_named = true;

	for (size_t at = ACL_HEAD; at + ACL_ENTRY <= size; at += ACL_ENTRY) {
		unsigned tag = bytes[at] | (unsigned)bytes[at + 1] << 8;
		bool read = bytes[at + 2] & ACL_READ;

		if (tag == GROUP_OWNER)
			acl.group = read;
		else if (tag == MASK)
			acl.mask = read;
		else if (tag != OWNER && tag != OTHER)
			all_named = all_named && read;
	}
	acl.named_refused = !all_named;
	return acl;
}

/* The bits of MODE that an access control list in BYTES leaves. */
static mode_t limited_mode(mode_t mode, const uint8_t *bytes, size_t size)
{
	struct acl acl;

	if (size < ACL_HEAD || bytes[0] != ACL_VERSION)
		return mode & 0400;
	acl = parse_acl(bytes, size);
	if (acl.named_refused)
		return mode & 0400;
	/* With a list, the group's bits of the mode are the mask. */
	return acl.group && acl.mask ? mode : mode & ~(mode_t)0040;
}

struct readers readers_of(int fd, const struct stat *st)
{
	struct readers r = {st->st_uid, st->st_gid, st->st_mode & 0444};
	uint8_t bytes[ACL_BYTES];
	ssize_t n = fgetxattr(fd, ACL_ATTRIBUTE, bytes, sizeof(bytes));

	if (n >= 0)
		r.mode = limited_mode(r.mode, bytes, (size_t)n);
	else if (errno != ENODATA && errno != EOPNOTSUPP && errno != ENOSYS)
		r.mode &= 0400;
	return r;
}

bool readers_same(struct readers a, struct readers b)
{
	return a.uid == b.uid && a.gid == b.gid && a.mode == b.mode;
}

/* --- classes ------------------------------------------------------------------------ */

bool classes_init(struct classes *c, size_t n)
{
	c->of = calloc(n + 1, sizeof(*c->of));
	c->values = calloc(n + 1, sizeof(*c->values));
	return c->of && c->values;
}

void classes_fini(struct classes *c)
{
	free(c->of);
	free(c->values);
	*c = (struct classes){0};
}

unsigned classes_add(struct classes *c, struct readers r)
{
	if (c->known >= CLASSES_MAX - 1)
		r = no_readers;
	for (unsigned i = 0; i < c->known; i++)
		if (readers_same(c->list[i].readers, r))
			return i;
	c->list[c->known].readers = r;
	return c->known++;
}

static bool is_newer(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

void classes_note(struct classes *c, size_t i, unsigned class, const struct stat *st)
{
	struct reader_class *of = &c->list[class];
	const uint32_t facts[] = {of->readers.uid, of->readers.gid, of->readers.mode};

	c->of[i] = (uint8_t) class;
	c->values[i] = kp_hash64(facts, sizeof(facts), 0);
	if (is_newer(st->st_mtim, of->newest))
		of->newest = st->st_mtim;
	of->bytes += (uint64_t)st->st_size;
}

struct timespec classes_public_time(const struct classes *c)
{
	struct timespec newest = {0};

	for (unsigned i = 0; i < c->count; i++)
		if (c->list[i].readers.mode == 0444 &&
		    is_newer(c->list[i].newest, newest))
			newest = c->list[i].newest;
	return newest;
}

/* --- callers ------------------------------------------------------------------------ */

bool readers_need_groups(const struct readers *r, const struct caller *caller)
{
	return caller->uid != r->uid && caller->gid != r->gid &&
	       !(r->mode & 0040) != !(r->mode & 0004);
}

/* As the kernel decides: the first of owner, group and others that fits. */
static bool may_read(const struct readers *r, const struct caller *caller, bool in_group)
{
	if (caller->uid == r->uid)
		return r->mode & 0400;
	return r->mode & (in_group || caller->gid == r->gid ? 0040 : 0004);
}

uint64_t classes_read_by(const struct classes *c, const struct caller *caller)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < c->known; i++)
		if (may_read(&c->list[i].readers, caller, caller->groups >> i & 1))
			set |= UINT64_C(1) << i;
	return set;
}
