/* SPDX-License-Identifier: MIT */
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

/* The decoder that was used last, whose memory is most likely in the processor's cache. */
static struct kp_decode *take_kept(struct decoders *ds)
{
	struct kp_decode *d;

	pthread_mutex_lock(&ds->lock);
	d = ds->n_kept ? ds->kept[--ds->n_kept] : NULL;
	pthread_mutex_unlock(&ds->lock);
	return d;
}

kpack_error_t decoders_open(struct decoders *ds, struct origin_entry what,
			    enum kp_decode_how how, struct kp_decode **out,
			    struct kpackx_error *why)
{
	struct kp_decode *d = take_kept(ds);
	kpack_error_t err;

	if (!d)
		return kp_decode_open(what.origin->archive, what.entry, how, out, why);
	err = kp_decode_reopen(d, what.origin->archive, what.entry, how, why);
	if (err)
		kp_decode_close(d);
	else
		*out = d;
	return err;
}

void decoders_close(struct decoders *ds, struct kp_decode *d)
{
	if (!d)
		return;
	if (kp_decode_leave(d) <= ds->keep_max) {
		pthread_mutex_lock(&ds->lock);
		if (ds->n_kept < DECODERS_KEPT) {
			ds->kept[ds->n_kept++] = d;
			d = NULL;
		}
		pthread_mutex_unlock(&ds->lock);
	}
	kp_decode_close(d);
}

void decoders_trim(struct decoders *ds)
{
	struct kp_decode *d;

	while ((d = take_kept(ds)))
		kp_decode_close(d);
}
