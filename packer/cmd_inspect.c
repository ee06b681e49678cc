/* SPDX-License-Identifier: MIT */
/* kpack inspect: the device code inside a fat binary or a bare container. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#if KP_WITH_OPENSSL
#include <openssl/evp.h>
#endif
#include "command.h"
#include "fatbin.h"
#include "report.h"

enum { OPT_JSON };

static const struct option_help options[] = {
	[OPT_JSON] = {0, "json", NULL, "print one JSON object"},
	{0},
};

const struct command_help cmd_inspect_help = {
	"inspect",
	"[--json] FILE",
	"tell what device code a file holds",
	options,
	"FILE is a host binary, an offload bundle (plain or compressed) or a code "
	"object.\n",
};

/* What is found out about an image by reading it. */
struct seen {
	const char *type; /* NULL: could not be read */
	bool in_file;
	uint64_t offset; /* in the file, where in_file */
	char sha256[65]; /* "" when it is not known */
};

struct inspect {
	const char *path;
	int fd;
	uint64_t size;
	struct kp_fatbin fat;
	struct seen *seen; /* per image */
	bool failed;
};

/* --- hashing ---------------------------------------------------------------------- */

/* Calls FN with the bytes of SRC, a piece at a time. */
static kpack_error_t for_pieces(const struct kp_source *src,
				bool (*fn)(void *arg, const void *data, size_t size),
				void *arg, struct kpackx_error *why)
{
	enum { PIECE = 1 << 20 };
	void *buf = malloc(PIECE);
	kpack_error_t err = buf ? KPACK_SUCCESS : kp_fail_memory(why, PIECE, "reading");

	for (uint64_t at = 0; !err && at < src->size; at += PIECE) {
		uint64_t left = src->size - at;
		size_t n = (size_t)(left < PIECE ? left : PIECE);

		err = kp_source_read(src, at, buf, n, why);
		if (!err && !fn(arg, buf, n))
			err = kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "SHA-256 failed");
	}
	free(buf);
	return err;
}

#if KP_WITH_OPENSSL
static bool update(void *arg, const void *data, size_t size)
{
	return EVP_DigestUpdate(arg, data, size) == 1;
}

static kpack_error_t sha256(const struct kp_source *src, char out[65],
			    struct kpackx_error *why)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char digest[32];
	kpack_error_t err;

	if (!ctx || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		err = kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "SHA-256 failed");
	else
		err = for_pieces(src, update, ctx, why);
	if (!err && EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
		err = kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "SHA-256 failed");
	EVP_MD_CTX_free(ctx);
	for (size_t i = 0; i < sizeof(digest) && !err; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	return err;
}
#else
static bool nothing(void *arg, const void *data, size_t size)
{
	(void)arg, (void)data, (void)size;
	return true;
}

/* Without libcrypto the bytes are read all the same, and the hash stays unknown. */
static kpack_error_t sha256(const struct kp_source *src, char out[65],
			    struct kpackx_error *why)
{
	out[0] = '\0';
	return for_pieces(src, nothing, NULL, why);
}
#endif

/* --- looking ---------------------------------------------------------------------- */

static kpack_error_t look_at_image(const struct kp_payload *payload,
				   const struct kp_image *image, struct seen *seen,
				   struct kpackx_error *why)
{
	struct kp_source src;
	uint8_t head[64];
	size_t n;

	if (!kp_source_sub(&payload->source, image->offset, image->size, &src))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%" PRIu64 " bytes at %" PRIu64 " in %" PRIu64,
			       image->size, image->offset, payload->source.size);
	n = src.size < sizeof(head) ? (size_t)src.size : sizeof(head);
	KP_TRY(kp_source_read(&src, 0, head, n, why));
	KP_TRY(sha256(&src, seen->sha256, why));
	seen->type = kp_object_type((struct kp_span){head, n});
	seen->in_file = src.fd >= 0 && !payload->heap;
	seen->offset = src.offset;
	return KPACK_SUCCESS;
}

static void look_at_container(struct inspect *in, size_t number)
{
	const struct kp_container *c = &in->fat.containers.items[number];
	struct kp_payload payload = {0};
	struct kpackx_error why = {0};

	if (kp_container_load(&in->fat.source, c, &payload, &why)) {
		report_error(in->path, "container %zu: %s", number, why.text);
		in->failed = true;
		return;
	}
	for (size_t i = c->first_image; i < c->first_image + c->n_images; i++) {
		const struct kp_image *image = &in->fat.containers.images[i];

		if (look_at_image(&payload, image, &in->seen[i], &why) == KPACK_SUCCESS)
			continue;
		report_error(in->path, "container %zu: image %zu: %s", number,
			     i - c->first_image, why.text);
		in->failed = true;
	}
	kp_payload_fini(&payload);
}

/* --- text ------------------------------------------------------------------------- */

static void print_image(const struct kp_image *image, const struct seen *seen)
{
	printf("%9zu  %-8s  %-24s  %12" PRIu64 "  ", image->container,
	       seen->type ? seen->type : "?", image->arch[0] ? image->arch : "-",
	       image->size);
	if (seen->in_file)
		printf("%12" PRIu64, seen->offset);
	else
		printf("%12s", "-");
	printf("  %-64s  ", seen->sha256[0] ? seen->sha256 : "-");
	report_text(image->id ? image->id : "-");
	putchar('\n');
}

static void print_text(const struct inspect *in)
{
	const struct kp_fatbin *fat = &in->fat;

	report_text(in->path);
	printf(": %s, %zu containers, %zu images, %zu wrappers%s\n", fat->format,
	       fat->containers.count, fat->containers.n_images, fat->elf.n_wrappers,
	       fat->kind == KP_FATBIN_CONVERTED ? ", converted" : "");
	if (fat->containers.n_images)
		printf("%9s  %-8s  %-24s  %12s  %12s  %-64s  %s\n", "CONTAINER", "FORMAT",
		       "ARCH", "SIZE", "OFFSET", "SHA256", "TARGET");
	for (size_t i = 0; i < fat->containers.n_images; i++)
		print_image(&fat->containers.images[i], &in->seen[i]);
	if (fat->elf.n_wrappers)
		printf("%9s  %s\n", "WRAPPER", "CONTAINER");
	for (size_t i = 0; i < fat->elf.n_wrappers; i++) {
		printf("%9zu  ", i);
		if (fat->wrapper_container[i] < 0)
			puts("-");
		else
			printf("%td\n", fat->wrapper_container[i]);
	}
}

/* --- JSON ------------------------------------------------------------------------- */

#if KP_WITH_JSON
static json_t *text_or_null(const char *s)
{
	return s && *s ? report_json_text(s) : json_null();
}

static json_t *images_json(const struct inspect *in)
{
	const struct kp_containers *list = &in->fat.containers;
	json_t *images = json_array();

	for (size_t i = 0; i < list->n_images; i++) {
		const struct kp_image *image = &list->images[i];
		const struct seen *seen = &in->seen[i];

		json_array_append_new(
			images,
			json_pack("{sI so so so sI so so}", "container",
				  (json_int_t)image->container, "format",
				  text_or_null(seen->type), "target",
				  image->id ? report_json_text(image->id) : json_null(),
				  "arch", text_or_null(image->arch), "size",
				  (json_int_t)image->size, "offset",
				  seen->in_file ? json_integer((json_int_t)seen->offset)
						: json_null(),
				  "sha256", text_or_null(seen->sha256)));
	}
	return images;
}

static json_t *wrappers_json(const struct kp_fatbin *fat)
{
	json_t *wrappers = json_array();

	for (size_t i = 0; i < fat->elf.n_wrappers; i++) {
		ptrdiff_t c = fat->wrapper_container[i];

		json_array_append_new(wrappers,
				      json_pack("{sI so}", "index", (json_int_t)i,
						"container",
						c < 0 ? json_null() : json_integer(c)));
	}
	return wrappers;
}

static bool print_json(const struct inspect *in)
{
	return report_json(json_pack("{so ss so so}", "file", report_json_text(in->path),
				     "format", in->fat.format, "images", images_json(in),
				     "wrappers", wrappers_json(&in->fat)));
}
#endif

/* --- the command ------------------------------------------------------------------ */

static kpack_error_t open_input(struct inspect *in, struct kpackx_error *why)
{
	struct stat st;

	KP_TRY(kp_file_open(in->path, &in->fd, &st, why));
	in->size = (uint64_t)st.st_size;
	KP_TRY(kp_fatbin_open(in->fd, in->size, &in->fat, why));
	if (in->fat.kind == KP_FATBIN_NONE)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "no device code in it");
	in->seen = calloc(in->fat.containers.n_images + 1, sizeof(*in->seen));
	return in->seen ? KPACK_SUCCESS
			: kp_fail_memory(why, in->fat.containers.n_images, "images");
}

static int inspect(struct inspect *in, bool json)
{
	struct kpackx_error why = {0};

	if (open_input(in, &why)) {
		report_why(in->path, &why);
		return EXIT_FAULT;
	}
	for (size_t c = 0; c < in->fat.containers.count; c++)
		look_at_container(in, c);
	if (!json)
		print_text(in);
#if KP_WITH_JSON
	else if (!print_json(in))
		in->failed = true;
#endif
	return in->failed ? EXIT_FAULT : EXIT_OK;
}

int cmd_inspect(int argc, char **argv)
{
	struct options o = {.help = &cmd_inspect_help, .argc = argc, .argv = argv};
	struct inspect in = {.fd = -1};
	bool json = false;
	int row, status;

	while ((row = options_next(&o)) >= 0)
		json = true;
	if (row == OPTIONS_STOP)
		return o.status;
	if (argc - optind != 1)
		return options_usage(o.help, "one FILE is needed");
	if (json && !report_json_ok())
		return EXIT_USAGE;
	in.path = argv[optind];
	status = report_finish(inspect(&in, json));
	kp_fatbin_fini(&in.fat);
	free(in.seen);
	if (in.fd >= 0)
		close(in.fd);
	return status;
}
