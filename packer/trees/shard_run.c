/* SPDX-License-Identifier: MIT */
#include "shard_run.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/attributes.h"
#include "packer/files/below.h"
#include "packer/files/lock.h"
#include "packer/pack/inherited_archives.h"
#include "core/base/bounds.h"
#include "packer/pack/write_tree.h"
#include "packer/pack/drop.h"
#include "packer/pack/interrupted.h"
#include "shard_done.h"
#include "shard_host.h"
#include "shard_files.h"
#include "core/archive/naming.h"

/* --- the digest of the plan ---------------------------------------------------------- */

static void add_text(struct kp_hasher *hash, const char *text)
{
	kp_hasher_add(hash, text, strlen(text) + 1);
}

static void add_number(struct kp_hasher *hash, uint64_t n)
{
	uint8_t bytes[8];

	kp_put_le64(bytes, n);
	kp_hasher_add(hash, bytes, sizeof(bytes));
}

/*
 * Add an entry to the digest.  The times of directories are left out: they do not
 * identify an input.
 */
static kpack_error_t add_entry(struct kp_hasher *hash, const struct scan_entry *e,
			       struct kpackx_error *why)
{
	kpack_error_t err;
	struct stat st;

	add_text(hash, e->relative);
	add_number(hash, e->mode);
	add_number(hash, e->first);
	err = attributes_hash(e->path, hash, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", e->path);
	if (S_ISDIR(e->mode))
		return KPACK_SUCCESS;
	if (below_lstat(e->path, &st) < 0)
		return below_fail(why, "%s: cannot look at it", e->path);
	add_number(hash, (uint64_t)st.st_size);
	add_number(hash, (uint64_t)st.st_mtim.tv_sec);
	add_number(hash, (uint64_t)st.st_mtim.tv_nsec);
	return KPACK_SUCCESS;
}

static void add_object(struct kp_hasher *hash, const struct plan_object *o)
{
	const struct kp_image *image = &o->input->images[o->image];

	add_number(hash, o->binary);
	add_number(hash, o->container);
	add_number(hash, o->chunk);
	add_number(hash, image->size);
	add_text(hash, image->arch);
}

static kpack_error_t digest_plan(const struct packing *p, uint8_t out[16],
				 struct kpackx_error *why)
{
	struct kp_hasher *hash = kp_hasher_new();
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_hash sum;

	if (!hash)
		xalloc_fail(0);
	for (size_t i = 0; i < p->scan.n_entries && !err; i++)
		err = add_entry(hash, &p->scan.entries[i], why);
	for (size_t i = 0; i < p->plan.n_binaries; i++)
		add_text(hash, p->plan.binaries[i].input->key);
	for (size_t i = 0; i < p->plan.n_objects; i++)
		add_object(hash, &p->plan.objects[i]);
	for (size_t i = 0; i < p->plan.n_keys; i++) {
		add_number(hash, p->plan.keys[i].object);
		add_text(hash, p->plan.keys[i].key);
		add_text(hash, p->plan.keys[i].arch);
	}
	sum = kp_hasher_value(hash);
	memcpy(out, sum.bytes, sizeof(sum.bytes));
	kp_hasher_free(hash);
	return err;
}

/* --- what the shard owns ------------------------------------------------------------- */

/*
 * Whether the run may need more than one volume.  Existing archives may cause that, too.
 */
static bool volumes_may_change(const struct packing *p)
{
	uint64_t bytes = 0, frames = 0;

	for (size_t i = 0; i < p->plan.n_binaries; i++)
		for (size_t k = 0; k < p->plan.binaries[i].n_needs; k++) {
			bytes += p->plan.binaries[i].needs[k].bytes;
			frames += p->plan.binaries[i].needs[k].frames;
		}
	return p->inherit || bytes > p->args.volume_size || frames > KP_FRAMES_MAX;
}

static void drop_others(const struct shard_run *run, struct packing *p)
{
	bool *drop = xcalloc(p->plan.n_objects, sizeof(*drop));

	for (size_t i = 0; i < p->plan.n_objects; i++)
		drop[i] = !run->mine[p->plan.objects[i].input->entry];
	plan_drop(&p->plan, drop);
	free(drop);
	for (size_t i = 0; i < p->dispositions.count; i++)
		if (!run->mine[i] && !S_ISDIR(p->scan.entries[i].mode))
			p->dispositions.items[i].fate = FATE_NOTHING;
}

/* --- the part's directory ------------------------------------------------------------ */

static int is_content(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
	       strcmp(e->d_name, SHARD_INHERITED) != 0;
}

static kpack_error_t remove_file(const char *dir, const char *name,
				 struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", dir, name);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_unlink(path) < 0 && errno != ENOENT)
		err = below_fail(why, "%s: cannot empty it", dir);
	free(path);
	return err;
}

static kpack_error_t remove_files(const char *dir, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct dirent **names;
	int n = below_scandir(dir, &names, is_content);

	if (n < 0)
		return errno == ENOENT ? KPACK_SUCCESS : below_fail(why, "%s", dir);
	for (int i = 0; i < n; i++) {
		if (!err)
			err = remove_file(dir, names[i]->d_name, why);
		free(names[i]);
	}
	free(names);
	return err;
}

/*
 * Empty the part's directory, the record first: a part without its record counts for
 * nothing.
 */
static kpack_error_t clear_part(const char *dir, struct kpackx_error *why)
{
	char *inherited = xasprintf("%s/" SHARD_INHERITED, dir);
	kpack_error_t err = remove_file(dir, SHARD_RECORD, why);

	if (err)
		goto out;
	err = remove_files(inherited, why);
	if (err)
		goto out;
	if (below_rmdir(inherited) < 0 && errno != ENOENT)
		err = below_fail(why, "%s: cannot remove", inherited);
	else
		err = remove_files(dir, why);
out:
	free(inherited);
	return err;
}

static kpack_error_t lock_part(struct shard_run *run, const struct packing *p,
			       struct kpackx_error *why)
{
	char *path = xasprintf("%s/" KP_ARCHIVES_DIR, p->args.output);
	kpack_error_t err = KPACK_SUCCESS;

	run->lock_fd = below_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (run->lock_fd < 0)
		err = below_fail(why, "%s", path);
	if (!err)
		err = lock_wait(run->lock_fd, path, NULL, why);
	free(path);
	return err;
}

/* Copy the archives that INPUT has to the first shard's part. */
static kpack_error_t bring_inherited(const struct packing *p, struct kpackx_error *why)
{
	char *to;
	kpack_error_t err;

	if (!p->inherit || p->args.shard.index != 1)
		return KPACK_SUCCESS;
	to = xasprintf("%s/" SHARD_INHERITED, p->archives);
	err = below_mkdirs(to, 0777, why);
	if (!err)
		err = inherit_archives(p->inherit, to, why);
	free(to);
	return err;
}

/* Refuse an INPUT that is a part: its files would be taken for files of this run. */
static kpack_error_t check_input(const struct packing *p, struct kpackx_error *why)
{
	char *path = xasprintf("%s/" SHARD_DIR, p->args.input);
	bool part = below_access(path, F_OK) == 0;

	free(path);
	return part ? kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%s: is a part of another run: merge its parts first",
			      p->args.input)
		    : KPACK_SUCCESS;
}

static size_t count_linked(const struct dispositions *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++)
		n += list->items[i].fate == FATE_LINKED;
	return n;
}

static kpack_error_t join_converted(struct packing *p, struct kpackx_error *why)
{
	size_t linked = count_linked(&p->dispositions);

	KP_TRY(resume_join(&p->converter, why));
	if (count_linked(&p->dispositions) == linked)
		return KPACK_SUCCESS;
	return kp_fail(
		why, KPACK_ERROR_INVALID_ARGUMENT,
		"%s: a run of --in-place was interrupted in it: run it again first",
		p->args.input);
}

static kpack_error_t begin_part(struct shard_run *run, struct packing *p,
				struct kpackx_error *why)
{
	run->lock_fd = -1;
	KP_TRY(check_input(p, why));
	run->log = shard_log_new();
	KP_TRY(digest_plan(p, run->plan, why));
	run->hosts = p->args.mode == PACK_TREE && volumes_may_change(p);
	run->mine = shard_assign(&p->scan, &p->plan, p->args.mode == PACK_ARCHIVES,
				 &p->args.shard);
	drop_others(run, p);
	KP_TRY(lock_part(run, p, why));
	run->finished_before = !p->args.force && shard_done(p, run->plan);
	if (run->finished_before)
		return KPACK_SUCCESS;
	KP_TRY(clear_part(p->archives, why));
	return bring_inherited(p, why);
}

/* --- the record ---------------------------------------------------------------------- */

/* Record a file of the part: its KIND, and its size and times. */
static kpack_error_t record_item(const struct shard_run *run, enum shard_kind kind,
				 const char *dir, const char *path, const char *first,
				 struct kpackx_error *why)
{
	struct shard_item item = {.kind = kind, .path = path, .first = first};
	kpack_error_t err;

	err = kind == SHARD_ABSENT ? KPACK_SUCCESS
				   : shard_files_look(dir, path, &item, why);
	if (!err)
		shard_log_item(run->log, &item);
	return err;
}

static kpack_error_t is_there(const struct packing *p, const char *path, struct stat *st,
			      bool *there, struct kpackx_error *why)
{
	char *full = xasprintf("%s/%s", p->args.output, path);
	kpack_error_t err = KPACK_SUCCESS;

	*there = below_lstat(full, st) == 0;
	if (!*there && errno != ENOENT)
		err = below_fail(why, "%s: cannot look at it", full);
	free(full);
	return err;
}

static enum shard_kind kind_of(mode_t mode)
{
	if (S_ISDIR(mode))
		return SHARD_DIRECTORY;
	if (S_ISREG(mode))
		return SHARD_FILE;
	return S_ISLNK(mode) ? SHARD_SYMLINK : SHARD_SPECIAL;
}

static kpack_error_t record_entry(const struct shard_run *run, const struct packing *p,
				  size_t entry, struct kpackx_error *why)
{
	const struct scan_entry *e = &p->scan.entries[entry];
	enum fate fate = p->dispositions.items[entry].fate;
	const char *output = p->args.output;
	struct stat st;
	bool there;

	if (output_is_inherited(e) || (!S_ISDIR(e->mode) && !run->mine[entry]))
		return KPACK_SUCCESS;
	if (fate == FATE_PACKED)
		return record_item(run, SHARD_ABSENT, output, e->relative, NULL, why);
	if (fate == FATE_LEFT_OUT || fate == FATE_NOT_WANTED)
		return KPACK_SUCCESS;
	KP_TRY(is_there(p, e->relative, &st, &there, why));
	if (!there)
		return KPACK_SUCCESS;
	if (fate == FATE_LINKED)
		return record_item(run, SHARD_LINK, output, e->relative,
				   p->scan.entries[e->first].relative, why);
	return record_item(run, kind_of(st.st_mode), output, e->relative, NULL, why);
}

static kpack_error_t record_converted(const struct shard_run *run,
				      const struct packing *p, uint32_t number,
				      struct kpackx_error *why)
{
	struct input *in = p->plan.binaries[number].input;
	char *path;
	kpack_error_t err;

	if (in->kind != INPUT_HOST ||
	    p->dispositions.items[in->entry].fate != FATE_CONVERTED ||
	    p->plan.binaries[number].n_needs == 0)
		return KPACK_SUCCESS;
	shard_log_converted(run->log, number, p->scan.entries[in->entry].relative);
	if (!run->hosts)
		return KPACK_SUCCESS;
	path = xasprintf("%s/" SHARD_HOST, p->archives, number);
	err = shard_host_save(in, p->args.keep_device_code, path, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	free(path);
	return err;
}

static kpack_error_t record_tree(const struct shard_run *run, const struct packing *p,
				 struct kpackx_error *why)
{
	struct stat st;

	/* nothing of OUTPUT is recorded for a file given by itself */
	if (below_stat(p->args.input, &st) < 0)
		return below_fail(why, "%s: cannot look at it", p->args.input);
	if (S_ISDIR(st.st_mode))
		KP_TRY(record_item(run, SHARD_DIRECTORY, p->args.output, "", NULL, why));
	for (size_t i = 0; i < p->scan.n_entries; i++)
		KP_TRY(record_entry(run, p, i, why));
	for (size_t i = 0; i < p->plan.n_binaries; i++)
		KP_TRY(record_converted(run, p, (uint32_t)i, why));
	return KPACK_SUCCESS;
}

/*
 * Whether a name in SHARD_DIR is recorded: temporary files of a killed run are hidden,
 * and directories are recorded by themselves.
 */
static int is_own(const struct dirent *e)
{
	return e->d_name[0] != '.' && strcmp(e->d_name, SHARD_INHERITED) != 0;
}

/* Record the files of SHARD_DIR, or of the directory SUB in it. */
static kpack_error_t record_own(const struct shard_run *run, const struct packing *p,
				const char *sub, struct kpackx_error *why)
{
	char *dir = xasprintf("%s/%s", p->archives, sub);
	struct dirent **names;
	kpack_error_t err = KPACK_SUCCESS;
	int n = below_scandir(dir, &names, is_own);

	if (n < 0 && errno != ENOENT)
		err = below_fail(why, "%s: cannot read the directory", dir);
	free(dir);
	for (int i = 0; i < n; i++) {
		char *path = xasprintf("%s%s", sub, names[i]->d_name);

		if (!err)
			err = record_item(run, SHARD_OWN, p->archives, path, NULL, why);
		free(path);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return err;
}

static kpack_error_t end_part(const struct shard_run *run, const struct packing *p,
			      struct kpackx_error *why)
{
	if (p->args.mode == PACK_TREE)
		KP_TRY(record_tree(run, p, why));
	KP_TRY(record_own(run, p, "", why));
	KP_TRY(record_own(run, p, SHARD_INHERITED "/", why));
	return shard_log_write(run->log, &p->args, run->plan, p->archives, why);
}

/* --- the run ------------------------------------------------------------------------- */

static void observe_binary(void *log, uint32_t number, const struct plan_binary *binary)
{
	shard_log_binary(log, number, binary);
}

static void observe_object(void *log, const struct archive_object *object)
{
	shard_log_object(log, object);
}

static void observe_entry(void *log, const char *arch, struct kp_span key,
			  const struct kp_writer_entry *entry)
{
	shard_log_entry(log, arch, key, entry);
}

/* Only INPUT's archives can clash: the output of the whole run is new. */
static kpack_error_t write_part(struct shard_run *run, struct packing *p,
				struct kpackx_error *why)
{
	bool tree = p->args.mode == PACK_TREE;

	if (p->inherit)
		KP_TRY(packing_check_clashes(p, clash_archives, p->inherit, why));
	KP_TRY(packing_make_dirs(p, why));
	KP_TRY(begin_part(run, p, why));
	if (run->finished_before)
		return KPACK_SUCCESS;
	run->observer = (struct store_observer){.arg = run->log,
						.binary = observe_binary,
						.object = observe_object,
						.entry = observe_entry};
	p->args.how.observer = &run->observer;
	KP_TRY(packing_open_set(p, NULL, false, why));
	KP_TRY(packing_store(p, why));
	if (tree)
		KP_TRY(join_converted(p, why));
	KP_TRY(archive_set_publish(p->set, why));
	if (tree) {
		KP_TRY(output_write(&p->converter, p->args.input, &p->tree, why));
		KP_TRY(tree_write_finish(&p->tree, why));
	}
	return end_part(run, p, why);
}

int shard_run(struct shard_run *run, struct packing *p)
{
	struct kpackx_error why = {0};
	int status = packing_scan(p);

	p->archives = xasprintf("%s/" SHARD_DIR, p->args.output);
	if (!status)
		status = packing_prepare(p);
	return status ? status : packing_status(write_part(run, p, &why), &why);
}

void shard_run_fini(struct shard_run *run)
{
	if (!run->log)
		return;
	lock_close(run->lock_fd);
	shard_log_free(run->log);
	free(run->mine);
}
