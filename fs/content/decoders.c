/* SPDX-License-Identifier: MIT */
/*
 * Kept decoders are a stack: the one used last is used next, because its memory is most
 * likely in the processor's cache.
 */
#include "decoders.h"

void decoders_init(struct decoders *ds, uint64_t keep_max)
{
	*ds = (struct decoders){.keep_max = keep_max};
	pthread_mutex_init(&ds->lock, NULL);
}

void decoders_fini(struct decoders *ds)
{
	decoders_trim(ds);
	pthread_mutex_destroy(&ds->lock);
}

/*
 * Take the last used decoder among those of at most MOST bytes: its memory is most
 * likely in the processor's cache.
 */
static struct kp_reader *take_kept(struct decoders *ds, uint64_t most)
{
	struct kp_reader *d = NULL;
	unsigned i;

	pthread_mutex_lock(&ds->lock);
	i = ds->n_kept;
	while (i && ds->kept[i - 1].bytes > most)
		i--;
	if (i) {
		d = ds->kept[i - 1].decoder;
		for (ds->n_kept--; i <= ds->n_kept; i++)
			ds->kept[i - 1] = ds->kept[i];
	}
	pthread_mutex_unlock(&ds->lock);
	return d;
}

kpack_error_t decoders_open(struct decoders *ds, struct origin_entry what,
			    enum kp_read_how how, uint64_t most, struct kp_reader **out,
			    struct kpackx_error *why)
{
	struct kp_reader *d = take_kept(ds, most);
	kpack_error_t err;

	if (!d)
		return kp_reader_open(what.origin->archive, what.entry, how, out, why);
	err = kp_reader_reopen(d, what.origin->archive, what.entry, how, why);
	if (err)
		kp_reader_close(d);
	else
		*out = d;
	return err;
}

void decoders_close(struct decoders *ds, struct kp_reader *d)
{
	uint64_t bytes;

	if (!d)
		return;
	bytes = kp_reader_leave(d);
	if (bytes <= ds->keep_max) {
		pthread_mutex_lock(&ds->lock);
		if (ds->n_kept < DECODERS_KEPT) {
			ds->kept[ds->n_kept].decoder = d;
			ds->kept[ds->n_kept++].bytes = bytes;
			d = NULL;
		}
		pthread_mutex_unlock(&ds->lock);
	}
	kp_reader_close(d);
}

void decoders_trim(struct decoders *ds)
{
	struct kp_reader *d;

	while ((d = take_kept(ds, UINT64_MAX)))
		kp_reader_close(d);
}
