/* SPDX-License-Identifier: MIT */
/* The bar is one line, drawn over itself ten times a second at most, and cleared at the end. */
#include "progress.h"
#include <stdio.h>
#include <unistd.h>
#include "core/base/text.h"
#include "report.h"

enum { WIDTH = 30, INTERVAL_MS = 100 };

static void draw_bar(const struct progress *p)
{
	char what[128], done[24], total[24], bar[WIDTH + 1];
	double part = p->total ? (double)p->done / (double)p->total : 1.0;

	for (int i = 0; i < WIDTH; i++)
		bar[i] = i < (int)(part * WIDTH) ? '#' : '.';
	bar[WIDTH] = 0;
	fprintf(stderr, "\r%s [%s] %3d%% %s of %s\033[K",
		kp_text_escape(kp_span_str(p->what), what, sizeof(what)), bar,
		(int)(part * 100), report_size(p->done, done),
		report_size(p->total, total));
	fflush(stderr);
}

void progress_begin(struct progress *p, const char *what, uint64_t total, bool wanted)
{
	*p = (struct progress){.what = what, .total = total};
	p->on = wanted && isatty(STDERR_FILENO);
	if (p->on)
		draw_bar(p);
}

void progress_add(struct progress *p, uint64_t bytes)
{
	struct timespec now;

	p->done += bytes;
	if (!p->on)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((now.tv_sec - p->shown.tv_sec) * 1000 +
		    (now.tv_nsec - p->shown.tv_nsec) / 1000000 <
	    INTERVAL_MS)
		return;
	p->shown = now;
	draw_bar(p);
}

void progress_end(struct progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
	p->on = false;
}
