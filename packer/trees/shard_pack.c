/* SPDX-License-Identifier: MIT */
/*
 * Pack one part of a run.  Every shard scans all of INPUT and plans the whole run, which is cheap
 * beside packing, so that all come to the same assignment of files, the same volumes and the same
 * digest without talking to each other.  Then it stores the objects and writes the files that are
 * its own, and makes all directories.
 *
 *	line missing, OUTPUT empty ----> "unfinished" ----> packed ----> "part I/N ..."
 *	line of any part, not current -> "unfinished", emptied, as above
 *	line of this very run ---------> nothing to do
 *
 * A part is emptied before it is packed again: merging takes everything that is in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/scheme.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/copy.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "shard.h"

/* --- who packs what ------------------------------------------------------------------- */

struct load {
	uint64_t cost;
	unsigned index;
};

struct cost {
	uint64_t
		rest; /* to the most that there can be: the most costly item comes first */
	size_t item;
};

/* Equal loads by number, so that all machines choose the same. */
static bool is_less(const struct load *a, const struct load *b)
{
	return a->cost != b->cost ? a->cost < b->cost : a->index < b->index;
}

/* The cost of making a file, however small, so that no shard gets all empty ones. */
static const uint64_t FILE_COST = 4096;

/*
 * Returns a flag per entry of the scan: whether this shard packs it.  All paths of one file are
 * one shard's; directories are made by all.  A file costs its bytes, unless only archives are
 * written, and those of its objects.
 *
 * The most costly file comes first (the first of equal ones), and each goes to the least loaded
 * shard (the lowest of equal ones).  So no shard has more than an equal part plus the most costly
 * file.
 */
static bool *assign_files(const struct packing *p)
{
	const struct scan *scan = &p->scan;
	const struct shard *shard = &p->args.shard;
	size_t n = scan->n_entries;
	KP_AUTO_FREE uint64_t *costs = xcalloc(n, sizeof(*costs));
	KP_AUTO_FREE unsigned *owner = xcalloc(n, sizeof(*owner)); /* from 1 */
	KP_AUTO_FREE struct cost *order = xmalloc(n * sizeof(*order));
	/* the least loaded on top */
	KP_AUTO_FREE struct load *heap = xmalloc(shard->count * sizeof(*heap));
	bool *mine = xcalloc(n, sizeof(*mine));

	for (size_t i = 0; i < n && p->args.mode == PACK_TREE; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (!S_ISDIR(e->mode))
			costs[e->first] += FILE_COST;
		if (S_ISREG(e->mode) && e->first == i)
			costs[i] += e->id.size;
	}
	for (size_t i = 0; i < p->plan.n_objects; i++) {
		const struct plan_object *o = &p->plan.objects[i];

		costs[scan->entries[o->input->entry].first] +=
			o->input->images[o->image].size;
	}
	for (unsigned i = 0; i < shard->count; i++)
		heap[i] = (struct load){0, i + 1};
	for (size_t i = 0; i < n; i++)
		order[i] = (struct cost){~costs[i], i};
	kp_sort(order, n, KP_BY_NUMBER(struct cost, rest),
		KP_BY_NUMBER(struct cost, item));
	for (size_t i = 0; i < n; i++) {
		owner[order[i].item] = heap[0].index;
		heap[0].cost += costs[order[i].item];
		for (unsigned at = 0, child = 1; child < shard->count;
		     child = 2 * at + 1) {
			struct load moved = heap[at];

			if (child + 1 < shard->count &&
			    is_less(&heap[child + 1], &heap[child]))
				child++;
			if (!is_less(&heap[child], &heap[at]))
				break;
			heap[at] = heap[child];
			heap[child] = moved;
			at = child;
		}
	}
	for (size_t i = 0; i < n; i++)
		mine[i] = !S_ISDIR(scan->entries[i].mode) &&
			  owner[scan->entries[i].first] == shard->index;
	return mine;
}

/* --- digests -------------------------------------------------------------------------- */

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

/* Frees HASH. */
static void end_digest(struct kp_hasher *hash, char out[SHARD_DIGEST])
{
	struct kp_hash value = kp_hasher_value(hash);

	for (size_t i = 0; i < sizeof(value.bytes); i++)
		sprintf(out + 2 * i, "%02x", value.bytes[i]);
	kp_hasher_free(hash);
}

/*
 * Digest everything that changes a byte of the result: the versions; the command line, without
 * --jobs and --quiet; what identifies each file of INPUT on every machine that has it, of
 * directories no times; and the plan.
 */
static kpack_error_t digest_run(const struct packing *p, char out[SHARD_DIGEST],
				struct kpackx_error *why)
{
	const struct pack_args *args = &p->args;
	const struct kp_choice *chosen = &args->filter.chosen;
	size_t n_chosen = kp_choice_is_all(chosen) ? 0 : chosen->count;
	const uint64_t numbers[] = {
		args->mode,           args->how.scheme,       (uint64_t)args->how.level,
		args->how.chunk,      args->volume_size,      args->databases,
		args->prefer,         args->keep_device_code, args->keep_containers,
		args->drop_signature, args->split_rocfft,     args->rows,
		args->shard.count,    chosen->exact,          n_chosen,
	};
	struct kp_hasher *hash = kp_hasher_new();
	kpack_error_t err = KPACK_SUCCESS;

	if (!hash)
		xalloc_fail(0);
	add_text(hash, KP_VERSION);
	add_text(hash, ZSTD_versionString());
	add_text(hash, args->group);
	add_text(hash, args->prefix);
	for (size_t i = 0; i < KP_COUNT(numbers); i++)
		add_number(hash, numbers[i]);
	for (size_t i = 0; i < n_chosen; i++) {
		char arch[KP_TARGET_TEXT_MAX];

		kp_target_format(&chosen->gpus[i], arch);
		add_text(hash, arch);
	}
	for (size_t i = 0; i < args->families.count; i++) {
		const struct family *family = &args->families.items[i];

		add_text(hash, family->name);
		add_number(hash, family->n_arches);
		for (size_t k = 0; k < family->n_arches; k++)
			add_text(hash, family->arches[k]);
	}
	for (size_t i = 0; i < p->scan.n_entries && !err; i++) {
		const struct scan_entry *e = &p->scan.entries[i];

		add_text(hash, e->relative);
		add_number(hash, e->mode);
		add_number(hash, e->first);
		err = attributes_hash(e->path, hash, why);
		if (err)
			kp_fail_prefix(why, err, "%s", e->path);
		if (S_ISDIR(e->mode))
			continue;
		add_number(hash, e->id.size);
		add_number(hash, (uint64_t)e->id.mtime.tv_sec);
		add_number(hash, (uint64_t)e->id.mtime.tv_nsec);
	}
	for (size_t i = 0; i < p->plan.n_objects; i++) {
		const struct plan_object *o = &p->plan.objects[i];
		const struct kp_image *image = &o->input->images[o->image];

		add_text(hash, o->input->key);
		add_text(hash, image->arch);
		add_number(hash, image->size);
		add_number(hash, o->chunk);
	}
	for (size_t i = 0; i < p->plan.n_keys; i++) {
		add_text(hash, p->plan.keys[i].key);
		add_text(hash, p->plan.keys[i].arch);
	}
	end_digest(hash, out);
	return err;
}

kpack_error_t shard_digest_files(const char *dir, char out[SHARD_DIGEST],
				 struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(dir);
	struct kp_hasher *hash = kp_hasher_new();
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item item;

	if (!hash)
		xalloc_fail(0);
	while (!err && tree_list_next(list, &item)) {
		if (item.kind == TREE_FAULT)
			err = kp_fail_errno(why, item.error, "%s", item.path);
		if (item.kind == TREE_DIR)
			add_text(hash, item.rest);
		if (item.kind != TREE_OTHER || strcmp(item.rest, SHARD_LINE) == 0)
			continue;
		add_text(hash, item.rest);
		add_number(hash, item.st.st_mode);
		add_number(hash, (uint64_t)item.st.st_size);
		add_number(hash, (uint64_t)item.st.st_mtim.tv_sec);
		add_number(hash, (uint64_t)item.st.st_mtim.tv_nsec);
	}
	end_digest(hash, out);
	tree_list_close(list);
	return err;
}

/* --- the line -------------------------------------------------------------------------- */

kpack_error_t shard_line_read(const char *dir, struct shard_line *out,
			      struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/" SHARD_LINE, dir);
	char text[SHARD_LINE_MAX + 1] = "";
	KP_AUTO_CLOSE int fd = -1;
	kpack_error_t err;
	struct stat st;
	int end = 0;

	*out = (struct shard_line){0};
	if (below_lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? KPACK_SUCCESS
			       : below_fail(why, "%s: cannot look at it", path);
	err = below_file_open_nofollow(path, &fd, &st, why);
	if (!err)
		err = kp_file_pread(fd, 0, text,
				    st.st_size < SHARD_LINE_MAX ? (size_t)st.st_size
								: SHARD_LINE_MAX,
				    why);
	if (err)
		return kp_fail_prefix(why, err, "%s", path);
	out->state = SHARD_UNFINISHED;
	out->owner = st.st_uid;
	out->written = st.st_mtim;
	/* NOLINTNEXTLINE(cert-err34-c): the widths keep the numbers small */
	if (sscanf(text,
		   "kpack part %5u/%5u level %2d run %32[0-9a-f] files "
		   "%32[0-9a-f]%n",
		   &out->shard.index, &out->shard.count, &out->level, out->run,
		   out->files, &end) == 5 &&
	    strcmp(text + end, "\n") == 0 && out->shard.index > 0 &&
	    out->shard.index <= out->shard.count && out->shard.count <= SHARDS_MAX &&
	    out->level >= 1 && out->level <= KP_LEVEL_MAX)
		out->state = SHARD_FINISHED;
	return KPACK_SUCCESS;
}

/* --- the part --------------------------------------------------------------------------- */

/* Empty the part DIR, but for its line: merging takes all that is in it. */
static kpack_error_t clear_part(const char *dir, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(dir);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item item;

	while (!err && tree_list_next(list, &item)) {
		int status = 0;

		if (item.kind == TREE_FAULT)
			err = kp_fail_errno(why, item.error, "%s", item.path);
		if (item.kind == TREE_DIR && below_access(item.path, W_OK | X_OK) < 0)
			below_chmod(item.path, 0700);
		else if (item.kind == TREE_DIR_END && item.level > 0)
			status = below_rmdir(item.path);
		else if (item.kind == TREE_OTHER && strcmp(item.rest, SHARD_LINE) != 0)
			status = below_unlink(item.path);
		if (status < 0 && errno != ENOENT)
			err = below_fail(why, "%s: cannot remove", item.path);
	}
	tree_list_close(list);
	return err;
}

/* Pack P's part into OUTPUT, unless it is there. */
static kpack_error_t pack_part(struct packing *p, bool *finished,
			       struct kpackx_error *why)
{
	const char *output = p->args.output;
	KP_AUTO_FREE char *path = xasprintf("%s/" SHARD_LINE, output);
	char run[SHARD_DIGEST], files[SHARD_DIGEST], text[SHARD_LINE_MAX];
	struct kp_outfile out = {.dir_fd = -1};
	KP_AUTO_CLOSE int fd = -1;
	struct shard_line line;
	struct tree_item item;
	kpack_error_t err;
	int n;

	KP_TRY(shard_line_read(p->args.input, &line, why));
	if (line.state != SHARD_NONE)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: is a part of another run: merge its parts first",
			       p->args.input);
	KP_TRY(digest_run(p, run, why));
	KP_TRY(tree_write_root(&p->tree, why));
	KP_TRY(leftovers_lock(p->tree.root, &p->tree.lock, why));
	KP_TRY(shard_line_read(output, &line, why));
	/*
	 * Nothing is to be done if the line is of this run, and nothing was changed since.  The change
	 * times of INPUT also cover what no digest has, as other bytes of the same size and time.
	 * Another user's line would keep us from packing.
	 */
	*finished = !p->args.force && line.state == SHARD_FINISHED &&
		    line.owner == geteuid() && line.shard.index == p->args.shard.index &&
		    strcmp(line.run, run) == 0;
	for (size_t i = 0; i < p->scan.n_entries && *finished; i++) {
		struct stat st;

		*finished = below_lstat(p->scan.entries[i].path, &st) == 0 &&
			    (st.st_ctim.tv_sec < line.written.tv_sec ||
			     (st.st_ctim.tv_sec == line.written.tv_sec &&
			      st.st_ctim.tv_nsec < line.written.tv_nsec));
	}
	*finished = *finished && !shard_digest_files(output, files, NULL) &&
		    strcmp(files, line.files) == 0;
	if (*finished)
		return KPACK_SUCCESS;

	/* an OUTPUT that is no part may have only directories, and what a killed run left */
	if (line.state == SHARD_NONE) {
		struct tree_list *list = tree_list_open(output);

		err = KPACK_SUCCESS;
		while (!err && tree_list_next(list, &item)) {
			if (item.kind == TREE_FAULT)
				err = kp_fail_errno(why, item.error, "%s", item.path);
			else if (item.kind == TREE_OTHER && !kp_is_temp_name(item.name))
				err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					      "%s: has files, and is no part: give "
					      "another OUTPUT",
					      output);
		}
		tree_list_close(list);
		KP_TRY(err);
	}
	/* before anything else is in the part: a killed shard leaves it like this */
	err = below_file_write(path, 0666, kp_span_str("kpack part unfinished\n"), why);
	if (err)
		return kp_fail_prefix(why, err, "%s", path);
	KP_TRY(clear_part(output, why));
	p->mine = assign_files(p);
	KP_TRY(packing_write(p, why));

	/*
	 * The part is finished: the line is written over, so that the time of the directory stays
	 * INPUT's; half a line counts as none.
	 */
	KP_TRY(shard_digest_files(output, files, why));
	n = snprintf(text, sizeof(text), "kpack part %u/%u level %d run %s files %s\n",
		     p->args.shard.index, p->args.shard.count, p->args.how.level, run,
		     files);
	out.fd = fd = below_open(path, O_WRONLY | O_TRUNC, 0);
	if (fd < 0)
		return below_fail(why, "%s: cannot open", path);
	KP_TRY(kp_outfile_pwrite(&out, 0, text, (size_t)n, why));
	while (fsync(fd) < 0)
		if (errno != EINTR)
			return below_fail(why, "%s: cannot flush", path);
	return KPACK_SUCCESS;
}

int shard_pack(struct packing *p, bool *finished)
{
	struct kpackx_error why = {0};
	int status = packing_scan(p);

	if (!status)
		status = packing_plan(p);
	if (!status && pack_part(p, finished, &why)) {
		report_why(NULL, &why);
		status = EXIT_FAULT;
	}
	return status;
}
