/* SPDX-License-Identifier: MIT */
#include "file.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/report.h"
#include "core/base/text.h"

/* "TEXT: MORE", or MORE if TEXT is NULL; frees TEXT. */
static char *join_texts(char *text, const char *more)
{
	char *both = text ? xasprintf("%s: %s", text, more) : xstrdup(more);

	free(text);
	return both;
}

/* Whether the names of the images in C make the name of C itself unnecessary. */
static bool names_suffice(const struct kp_container *c)
{
	return c->format->type || kp_format_is_host(c->format) ||
	       c->format == &kp_format_archive;
}

/* The place of IMAGE: the names of all that encloses it; NULL for the file itself. */
static char *place_text(const struct kp_containers *list, size_t image)
{
	const struct kp_image *img;
	const struct kp_container *c;
	char own[64], *text, *id;

	if (image == KP_NOWHERE)
		return NULL;
	img = &list->images[image];
	c = &list->items[img->container];
	text = place_text(list, c->inside);
	if (!names_suffice(c)) {
		snprintf(own, sizeof(own), "%s at offset %" PRIu64, c->format->name,
			 c->offset);
		text = join_texts(text, own);
	}
	if (c->format->type)
		return text;
	snprintf(own, sizeof(own), "image %zu", image - c->first_image);
	id = img->id ? kp_text_escape_new(kp_span_str(img->id)) : NULL;
	text = join_texts(text, id ? id : own);
	free(id);
	return text;
}

static bool was_reported(const struct inspect_file *file, const char *text)
{
	for (size_t i = 0; i < file->n_reported; i++)
		if (strcmp(file->reported[i], text) == 0)
			return true;
	return false;
}

void inspect_fault(struct inspect_file *file, size_t image, const char *text)
{
	char *whole = join_texts(place_text(&file->list, image), text);

	if (was_reported(file, whole)) {
		free(whole);
		return;
	}
	file->faults++;
	if (file->n_reported == KP_FAULTS_MAX) {
		free(whole);
		return;
	}
	report_error(file->path, "%s", whole);
	xgrow(&file->reported, file->n_reported, &file->reported_cap,
	      sizeof(*file->reported));
	file->reported[file->n_reported++] = whole;
}

static void scan_fault(void *arg, const struct kp_containers *list, size_t image,
		       const struct kpackx_error *why)
{
	(void)list; /* it is FILE's */
	inspect_fault(arg, image, why->text);
}

/* Whether the file's wrappers can be read: it is an ELF, and its sections are known. */
static kpack_error_t has_wrappers(const struct inspect_file *f, bool *has,
				  struct kpackx_error *why)
{
	const struct kp_container *c = &f->list.items[0];
	uint8_t bytes[20];
	struct kp_span head;

	*has = false;
	KP_TRY(kp_source_head(&f->source, 0, bytes, sizeof(bytes), &head, why));
	*has = kp_elf_host_probe(head) &&
	       (!c->n_images ||
		strcmp(f->list.images[c->first_image].id, KP_NO_SECTION) != 0);
	return KPACK_SUCCESS;
}

kpack_error_t inspect_file_open(struct inspect_file *f, const char *path,
				struct kpackx_error *why)
{
	struct stat st;
	bool wrappers;

	*f = (struct inspect_file){.path = path, .fd = -1};
	KP_TRY(below_file_open(path, &f->fd, &st, why));
	f->source = kp_source_fd(f->fd, 0, (uint64_t)st.st_size);
	KP_TRY(kp_nest_salvage(&f->source, scan_fault, f, &f->list, why));
	inspect_tree_build(f);
	if (f->list.count == 0)
		return KPACK_SUCCESS;
	f->format = f->list.items[0].format->name;
	KP_TRY(has_wrappers(f, &wrappers, why));
	if (wrappers)
		inspect_wrappers_read(f);
	return KPACK_SUCCESS;
}

void inspect_file_close(struct inspect_file *f)
{
	for (size_t i = 0; i < f->n_reported; i++)
		free(f->reported[i]);
	free(f->reported);
	free(f->rows);
	free(f->jobs);
	free(f->numbers);
	free(f->wrapper_number);
	kp_elf_fini(&f->elf);
	kp_containers_fini(&f->list);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct inspect_file){.fd = -1};
}
