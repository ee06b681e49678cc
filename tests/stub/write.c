/* SPDX-License-Identifier: MIT */
/*
 * write [-g GROUP] [-f FAMILY] [-l LEVEL] [-u] [-S] OUT: write an archive as a compiler
 * would, with only the public headers.  -u selects scheme none, -S zstd-shared.
 *
 * A line of standard input is one object, its members separated by tabs:
 *   binary=KEY arch=ARCH file=DATA [type= path= target= mode=OCTAL chunk=N
 *   text:NAME=TEXT...]
 * The result of each is printed at once: "added", or the code and the message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/rocm_kpack/kpackx.h"

#define TEXTS 16

/* An object, and the program's own data about it. */
struct line {
	struct kpackx_object object;
	struct kpackx_text texts[TEXTS];
	char *data;
};

static __attribute__((noreturn)) void die(const char *what, const char *text)
{
	fprintf(stderr, "write: %s: %s\n", what, text);
	exit(2);
}

static void read_file(const char *path, struct line *l)
{
	FILE *f = fopen(path, "rb");
	long size = -1;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0)
		die(path, strerror(errno));
	rewind(f);
	l->data = malloc((size_t)size + 1);
	if (!l->data || fread(l->data, 1, (size_t)size, f) != (size_t)size)
		die(path, "cannot read");
	fclose(f);
	l->object.data = l->data;
	l->object.size = (size_t)size;
}

static void add_text(struct line *l, const char *name, const char *text)
{
	if (l->object.n_texts == TEXTS)
		die(name, "too many texts");
	l->texts[l->object.n_texts++] = (struct kpackx_text){name, text};
	l->object.texts = l->texts;
}

static void set_member(struct line *l, char *member)
{
	struct kpackx_object *o = &l->object;
	const struct {
		const char *name;
		const char **to;
	} strings[] = {
		{"binary", &o->binary}, {"arch", &o->arch},     {"type", &o->type},
		{"path", &o->path},     {"target", &o->target},
	};
	char *value = strchr(member, '=');

	if (!value)
		die(member, "no '='");
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		if (strcmp(member, strings[i].name) == 0) {
			*strings[i].to = value;
			return;
		}
	}
	if (strcmp(member, "file") == 0)
		read_file(value, l);
	else if (strcmp(member, "mode") == 0)
		o->mode = (uint32_t)strtoul(value, NULL, 8);
	else if (strcmp(member, "chunk") == 0)
		o->chunk = (uint32_t)strtoul(value, NULL, 10);
	else if (strncmp(member, "text:", 5) == 0)
		add_text(l, member + 5, value);
	else
		die(member, "no such member");
}

static void print_failure(const struct kpackx_error *why)
{
	printf("%s: %s\n", kpackx_error_name(why->code), why->text);
}

static void add_line(kpackx_writer_t w, char *text)
{
	struct kpackx_error why = {0};
	struct line l = {0};
	char *next = text, *member;

	while ((member = strsep(&next, "\t")))
		set_member(&l, member);
	if (kpackx_writer_add(w, &l.object, &why))
		print_failure(&why);
	else
		puts("added");
	free(l.data);
}

static void add_lines(kpackx_writer_t w)
{
	char *text = NULL;
	size_t cap = 0;

	for (ssize_t n; (n = getline(&text, &cap, stdin)) > 0;) {
		text[n - 1] = '\0';
		add_line(w, text);
		fflush(stdout);
	}
	free(text);
}

static void parse_options(int argc, char **argv, struct kpackx_writer_options *o)
{
	int c;

	while ((c = getopt(argc, argv, "g:f:l:uS")) != -1) {
		if (c == 'g')
			o->group = optarg;
		else if (c == 'f')
			o->family = optarg;
		else if (c == 'l')
			o->level = atoi(optarg);
		else if (c == 'u')
			o->uncompressed = true;
		else if (c == 'S')
			o->shared = 1;
		else
			exit(2);
	}
	if (optind + 1 != argc)
		die("usage", "write [OPTION]... OUT");
}

int main(int argc, char **argv)
{
	struct kpackx_writer_options options = {0};
	struct kpackx_error why = {0};
	kpackx_writer_t w = NULL;

	parse_options(argc, argv, &options);
	if (kpackx_writer_open(argv[optind], &options, &w, &why)) {
		print_failure(&why);
		return 1;
	}
	add_lines(w);
	if (kpackx_writer_finish(w, &why)) {
		print_failure(&why);
		return 1;
	}
	return 0;
}
