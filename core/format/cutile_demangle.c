/* SPDX-License-Identifier: MIT */
/*
 * Reading the names of cuTile kernels (cutile.h has the grammar), from left to right
 * without going back.  The reader takes what it understands, in any order and spelling;
 * that the name is the one that cuTile gives the signature is found out by writing the
 * signature again.  So leading zeros, redundant predicates, groups out of order, kinds that
 * the convention does not have, and too many arguments are refused in one place.
 *
 * What is checked here is what memory and the stack depend on: dimensions, depth, and
 * numbers that do not fit.  Memory is allocated only for parts that were read, so that a
 * short name cannot request much; all of it is in a list of pieces that are freed together.
 */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/text.h"
#include "cutile.h"

/* A part of the signature, of any type. */
struct piece {
	struct piece *next;
	_Alignas(max_align_t) uint8_t bytes[];
};

/* Callers of kpackx_demangle have a pointer to the first member. */
struct held_signature {
	struct kpackx_signature signature;
	struct piece *pieces;
};

struct demangler {
	struct kp_span name;
	size_t pos; /* the cursor */
	struct held_signature *held;
	struct kpackx_constraint *stack; /* read, but not yet moved to the parent */
	size_t n_stack, stack_cap;
	uint32_t *ids; /* alias groups of one constraint */
	size_t ids_cap;
	uint8_t *scratch; /* for a string, which is never longer than the name */
	unsigned depth;
	uint32_t parameter;     /* whose launch arguments are listed */
	struct kp_compose path; /* of the constraint among them: "p2[0]" */
	struct kpackx_error *why;
};

static kpack_error_t no_memory(struct kpackx_error *why)
{
	return kp_fail_memory(why, 0, "a cuTile signature");
}

/* Keep a copy of BYTES (NULL: zeros) with a NUL behind it. */
static void *keep(struct held_signature *h, const void *bytes, size_t size)
{
	struct piece *piece = calloc(1, sizeof(*piece) + size + 1);

	if (!piece)
		return NULL;
	piece->next = h->pieces;
	h->pieces = piece;
	return bytes && size ? memcpy(piece->bytes, bytes, size) : piece->bytes;
}

/* ---- characters and numbers ---- */

/* Fail with INVALID_FORMAT; as the interface promises, the text begins with the byte. */
#define FAULT(d, at, ...)                                                                \
	kp_fail_prefix((d)->why,                                                         \
		       kp_fail((d)->why, KPACK_ERROR_INVALID_FORMAT, __VA_ARGS__),       \
		       "offset %zu", (size_t)(at))

/* Fail: WHAT is expected at the cursor, instead of the bytes that are there. */
static kpack_error_t unexpected(struct demangler *d, const char *what)
{
	char rest[64];

	if (d->pos >= d->name.size)
		return FAULT(d, d->pos, "the name ends where %s is expected", what);
	kp_text_escape(kp_span_tail(d->name, d->pos), rest, 24);
	return FAULT(d, d->pos, "%s is expected, not \"%s\"", what, rest);
}

/* The byte at distance AHEAD from the next one; -1 after the end. */
static int peek(const struct demangler *d, size_t ahead)
{
	return d->name.size - d->pos > ahead ? d->name.data[d->pos + ahead] : -1;
}

static bool take(struct demangler *d, char c)
{
	if (peek(d, 0) != c)
		return false;
	d->pos++;
	return true;
}

/* The value of a digit, in lower case; at least BASE: not a digit. */
static unsigned digit_value(int c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

/*
 * Read a number of at most MAX and at most MOST digits: escapes have so many, and what
 * follows may be a digit too.
 */
static kpack_error_t read_number(struct demangler *d, unsigned base, size_t most,
				 uint64_t max, const char *what, uint64_t *out)
{
	size_t at = d->pos;
	unsigned digit;

	*out = 0;
	while (d->pos - at < most && (digit = digit_value(peek(d, 0))) < base) {
		if (digit > max || *out > (max - digit) / base)
			return FAULT(d, at, "%s passes the limit of %llu", what,
				     (unsigned long long)max);
		*out = *out * base + digit;
		d->pos++;
	}
	return d->pos > at ? KPACK_SUCCESS : unexpected(d, what);
}

/* '_' is the minus sign.  INT64_MIN has a larger magnitude than INT64_MAX. */
static kpack_error_t read_int64(struct demangler *d, const char *what, int64_t *out)
{
	bool negative = take(d, '_');
	uint64_t n;

	KP_TRY(read_number(d, 10, SIZE_MAX, (uint64_t)INT64_MAX + negative, what, &n));
	*out = negative ? (int64_t)(0 - n) : (int64_t)n;
	return KPACK_SUCCESS;
}

/* Go on to the first byte that is not one of those [0-9a-z] and, with UPPER, [A-Z]. */
static struct kp_span read_word(struct demangler *d, bool upper)
{
	size_t begin = d->pos;

	for (int c; (c = peek(d, 0)) >= '0'; d->pos++)
		if (!(c <= '9' || (c >= 'a' && c <= 'z') ||
		      (upper && c >= 'A' && c <= 'Z' && c != 'K')))
			break;
	return (struct kp_span){d->name.data + begin, d->pos - begin};
}

/* Names of data types are not prefixes of what may follow them: '_' or a capital. */
static kpack_error_t read_dtype(struct demangler *d, kpackx_dtype_t *out)
{
	size_t at = d->pos;
	struct kp_span code = read_word(d, false);

	for (unsigned i = 1; i < KP_CUTILE_DTYPES; i++) {
		if (kp_span_is(code, kp_cutile_dtypes[i].code)) {
			*out = (kpackx_dtype_t)i;
			return KPACK_SUCCESS;
		}
	}
	d->pos = at;
	return unexpected(d, "a data type");
}

/* A string is collected in the scratch buffer: no escape is shorter than its bytes. */
static kpack_error_t read_string(struct demangler *d, struct kpackx_string *out)
{
	size_t n = 0;

	for (;;) {
		struct kp_span plain = read_word(d, true);
		size_t at = d->pos, digits;
		uint64_t c;

		if (plain.size)
			memcpy(d->scratch + n, plain.data, plain.size);
		n += plain.size;
		if (!take(d, '_'))
			return unexpected(d, "a string's end (_z)");
		if (take(d, 'z'))
			break;
		if (take(d, '_') || take(d, 'k')) {
			d->scratch[n++] = d->name.data[d->pos - 1] == 'k' ? 'K' : '_';
			continue;
		}
		digits = take(d, 'u') ? 4 : take(d, 'w') ? 8 : 2;
		KP_TRY(read_number(d, 16, digits, UINT32_MAX,
				   "an escape (_ k z u w or two digits)", &c));
		/* surrogates are characters in Python; of others the name shows */
		if (c > 0x10ffff)
			return FAULT(d, at, "no character is U+%llX",
				     (unsigned long long)c);
		n += kp_python_put((uint32_t)c, d->scratch + n);
	}
	out->data = keep(d->held, d->scratch, n);
	out->size = n;
	return out->data ? KPACK_SUCCESS : no_memory(d->why);
}

/* ---- constraints ---- */

/* Read the alias groups at the cursor, if any, and the 'i' that may follow them. */
static kpack_error_t read_groups(struct demangler *d, struct kpackx_constraint *c)
{
	uint64_t id;
	size_t n = 0;

	while (take(d, 'g')) {
		KP_TRY(read_number(d, 16, SIZE_MAX, UINT32_MAX - 1, "an alias group",
				   &id));
		KP_TRY(kp_room(&d->ids, n, &d->ids_cap, "a cuTile signature", d->why));
		d->ids[n++] = (uint32_t)id;
	}
	c->may_alias = take(d, 'i');
	c->n_alias_groups = n;
	c->alias_groups = n ? keep(d->held, d->ids, n * sizeof(*d->ids)) : NULL;
	return !n || c->alias_groups ? KPACK_SUCCESS : no_memory(d->why);
}

/*
 * Read an array after its letter.  What follows '_' says what comes: a hexadecimal digit a
 * mask, another small letter the extras, a capital the next parameter.
 */
static kpack_error_t read_array(struct demangler *d, struct kpackx_constraint *c)
{
	struct kpackx_axis *axes;
	uint64_t ndim, mask;
	int64_t value;
	int letter;

	KP_TRY(read_number(d, 10, SIZE_MAX, KP_CUTILE_NDIM_MAX,
			   "the number of dimensions", &ndim));
	KP_TRY(read_dtype(d, &c->dtype));
	c->ndim = (uint32_t)ndim;
	c->index_dtype = KPACKX_DTYPE_INT32;
	c->axes = axes = keep(d->held, NULL, (size_t)ndim * sizeof(*axes));
	if (!axes)
		return no_memory(d->why);
	while (peek(d, 0) == '_' && digit_value(peek(d, 1)) < 16) {
		d->pos++;
		/* the predicates of one mask are stated for its dimensions */
		KP_TRY(read_number(d, 16, SIZE_MAX, UINT64_MAX, "a mask", &mask));
		while ((letter = peek(d, 0)) > 0 && strchr("sitvl", letter)) {
			d->pos++;
			KP_TRY(read_int64(d, "a predicate's number", &value));
			for (uint32_t i = 0; i < ndim; i++) {
				struct kpackx_axis *a = &axes[i];

				if (!(mask >> i & 1))
					continue;
				switch (letter) {
				case 's':
					a->has_shape_constant = true;
					a->shape_constant = value;
					break;
				case 'i':
					a->shape_divisible_by = value;
					break;
				case 't':
					a->has_stride_constant = true;
					a->stride_constant = value;
					break;
				case 'v':
					a->stride_divisible_by = value;
					break;
				default:
					a->has_stride_lower_bound = true;
					a->stride_lower_bound = value;
				}
			}
		}
	}
	if (peek(d, 0) != '_' || peek(d, 1) < 'a')
		return KPACK_SUCCESS;
	d->pos++;
	if (take(d, 'p'))
		KP_TRY(read_int64(d, "a base address's divisor",
				  &c->base_addr_divisible_by));
	KP_TRY(read_groups(d, c));
	if (take(d, 'u'))
		c->index_dtype = KPACKX_DTYPE_UINT32;
	else if (take(d, 'w'))
		c->index_dtype = KPACKX_DTYPE_INT64;
	return KPACK_SUCCESS;
}

static kpack_error_t push_constraint(struct demangler *d);

/* Take the newest N constraints off the stack. */
static kpack_error_t pop_constraints(struct demangler *d, size_t n,
				     const struct kpackx_constraint **out)
{
	d->n_stack -= n;
	*out = keep(d->held, n ? d->stack + d->n_stack : NULL, n * sizeof(*d->stack));
	return *out ? KPACK_SUCCESS : no_memory(d->why);
}

/* Read the part of C that PART stands for in kp_cutile_kinds. */
static kpack_error_t read_part(struct demangler *d, char part,
			       struct kpackx_constraint *c)
{
	struct kpackx_constraint *element;
	struct kp_span digits;
	uint64_t count;
	bool negative;
	char *text;

	switch (part) {
	case 'd':
		return read_dtype(d, &c->dtype);
	case 'a':
		return read_array(d, c);
	case 'l':
		c->items = element = keep(d->held, NULL, sizeof(*element));
		if (!element)
			return no_memory(d->why);
		KP_TRY(read_groups(d, c));
		if (!take(d, 'A'))
			return unexpected(d, "the array of a list (A)");
		element->kind = KPACKX_ARRAY;
		c->n_items = 1;
		return read_array(d, element);
	case 'i':
		if (d->depth == KP_CUTILE_DEPTH_MAX)
			return FAULT(d, d->pos, "nested deeper than %d",
				     KP_CUTILE_DEPTH_MAX);
		KP_TRY(read_number(d, 10, SIZE_MAX, d->name.size, "a count of items",
				   &count));
		d->depth++;
		for (uint64_t i = 0; i < count; i++)
			KP_TRY(push_constraint(d));
		d->depth--;
		c->n_items = (size_t)count;
		return pop_constraints(d, c->n_items, &c->items);
	case 'c':
		KP_TRY(read_string(d, &c->module));
		return read_string(d, &c->qualname);
	case 't':
		return read_string(d, &c->text);
	case 'b':
		return read_number(d, 10, 1, 1, "a bool (0 or 1)", &c->bits);
	case 'n': /* a number of any size, kept as its digits */
		negative = take(d, '_');
		digits = kp_span_tail(d->name, d->pos);
		while (digit_value(peek(d, 0)) < 10)
			d->pos++;
		digits.size -= d->name.size - d->pos;
		text = keep(d->held, NULL, digits.size + negative);
		if (!text)
			return no_memory(d->why);
		text[0] = '-';
		memcpy(text + negative, digits.data, digits.size);
		text[negative + digits.size] = '\0';
		c->text = (struct kpackx_string){text, digits.size + negative};
		return KPACK_SUCCESS;
	default:
		return read_number(d, 16, 16, UINT64_MAX, "16 hexadecimal digits",
				   &c->bits);
	}
}

/*
 * Read one more constraint onto the stack.  A tuple's items are on it until all are there:
 * a count that a name states allocates nothing.
 */
static kpack_error_t push_constraint(struct demangler *d)
{
	const struct kp_span rest = kp_span_tail(d->name, d->pos);

	for (unsigned i = 1; i < KP_CUTILE_KINDS; i++) {
		struct kpackx_constraint c = {.kind = (kpackx_constraint_kind_t)i};
		const struct kp_cutile_kind *kind = &kp_cutile_kinds[i];

		if (!kp_span_starts(rest, kind->code, strlen(kind->code)))
			continue;
		d->pos += strlen(kind->code);
		for (const char *part = kind->parts; *part; part++)
			KP_TRY(read_part(d, *part, &c));
		KP_TRY(kp_room(&d->stack, d->n_stack, &d->stack_cap, "a cuTile signature",
			       d->why));
		d->stack[d->n_stack++] = c;
		return KPACK_SUCCESS;
	}
	return unexpected(d, "a parameter (S A L T D B I F C)");
}

/* ---- the launch ---- */

/* Append a C argument of the launch; there is room for what the mangler counted. */
static struct kpackx_argument *add_argument(struct demangler *d, const char *type,
					    uint32_t size, const char *meaning)
{
	struct kpackx_signature *s = &d->held->signature;
	struct kpackx_argument *a =
		(struct kpackx_argument *)s->arguments + s->n_arguments++;

	*a = (struct kpackx_argument){.type = type,
				      .meaning = meaning,
				      .size = size,
				      .parameter = d->parameter};
	a->name = d->path.no_memory ? NULL : keep(d->held, d->path.text, d->path.size);
	d->path.no_memory |= !a->name;
	return a;
}

/* Items of tuples and dataclasses are arguments of their own; constants are none. */
static void add_arguments(struct demangler *d, const struct kpackx_constraint *c)
{
	static const char *const extents[][2] = {
		{"shape", "elements in this dimension"},
		{"stride", "elements from one index of this dimension to the next"}};
	const struct kp_cutile_dtype *dtype = &kp_cutile_dtypes[c->dtype];
	const struct kp_cutile_dtype *index = &kp_cutile_dtypes[c->index_dtype];
	size_t end = d->path.size;

	switch (c->kind) {
	case KPACKX_SCALAR:
		add_argument(d, dtype->c, dtype->size, "value");
		break;
	case KPACKX_ARRAY:
		add_argument(d, dtype->c_pointer, 8,
			     "device pointer to the array's data");
		for (uint32_t i = 0; i < 2 * c->ndim; i++) {
			const char *const *extent = extents[i >= c->ndim];

			kp_compose_print(&d->path, ".%s[%u]", extent[0], i % c->ndim);
			add_argument(d, index->c, index->size, extent[1]);
			kp_compose_cut(&d->path, end);
		}
		break;
	case KPACKX_LIST:
		add_argument(d, "int64_t *", 8,
			     "device pointer to the list: for each array 64-bit words "
			     "with a device pointer, the shape and the strides")
			->words = 1 + 2 * c->items->ndim;
		kp_compose_str(&d->path, ".length");
		add_argument(d, "int32_t", 4, "arrays in the list");
		kp_compose_cut(&d->path, end);
		break;
	default: /* constants have no items */
		for (size_t i = 0; i < c->n_items; i++) {
			kp_compose_print(&d->path, "[%zu]", i);
			add_arguments(d, &c->items[i]);
			kp_compose_cut(&d->path, end);
		}
	}
}

/* ---- the whole name ---- */

/* The offset of the convention, after the last "_K"; 0: none. */
static size_t find_convention(struct kp_span name)
{
	for (size_t i = name.size; i-- > 1;)
		if (name.data[i] == 'K' && name.data[i - 1] == '_')
			return i + 1;
	return 0;
}

bool kp_cutile_named(struct kp_span name)
{
	size_t at = find_convention(name);

	return at && name.size - at > 1 && name.data[at] == 't' &&
	       name.data[at + 1] >= '0' && name.data[at + 1] <= '9';
}

/* The function's name may have any bytes, even "_K", so the convention is found first. */
static kpack_error_t read_name(struct demangler *d, struct kpackx_signature *out)
{
	uint64_t convention;
	size_t at;

	d->pos = at = find_convention(d->name);
	if (at == 0)
		return FAULT(d, d->name.size, "no _K: not the name of a cuTile kernel");
	out->function.size = at - 2;
	out->function.data = keep(d->held, d->name.data, at - 2);
	if (!out->function.data)
		return no_memory(d->why);
	if (!take(d, 't'))
		return unexpected(d, "a calling convention (t1 t2 t3)");
	KP_TRY(read_number(d, 10, SIZE_MAX, UINT32_MAX, "a calling convention",
			   &convention));
	if (convention < 1 || convention > KP_CUTILE_CONVENTION_MAX)
		return kp_fail(d->why, KPACK_ERROR_UNSUPPORTED_VERSION,
			       "offset %zu: calling convention t%llu is not known, only "
			       "t1 to t%d",
			       at, (unsigned long long)convention,
			       KP_CUTILE_CONVENTION_MAX);
	out->convention = (uint32_t)convention;
	while (d->pos < d->name.size) {
		if (!take(d, '_'))
			return unexpected(d, "_ or the end");
		KP_TRY(push_constraint(d));
	}
	out->n_parameters = d->n_stack;
	return pop_constraints(d, d->n_stack, &out->parameters);
}

/*
 * Check that the name is the one of the signature that was read, or say where the two
 * first differ and why.  *ARGUMENTS becomes the number of launch arguments.
 */
static kpack_error_t check_canonical(struct demangler *d, size_t *arguments)
{
	const struct kp_span name = d->name;
	struct kp_compose again = {0};
	struct kpackx_error fault = {0};
	kpack_error_t err =
		kp_cutile_mangle(&d->held->signature, &again, arguments, &fault);
	struct kp_span all = {(const uint8_t *)again.text, again.size};
	size_t at = 0;
	char rest[64];

	while (at < name.size && at < all.size && all.data[at] == name.data[at])
		at++;
	if (err == KPACK_ERROR_OUT_OF_MEMORY) {
		kp_fail(d->why, err, "%s", fault.text);
	} else if (err) {
		err = FAULT(d, at, "%s", fault.text);
	} else if (at < all.size) {
		kp_text_escape(kp_span_tail(all, at), rest, 40);
		err = FAULT(d, at,
			    "cuTile gives this signature another name, which continues "
			    "here with \"%s\"",
			    rest);
	} else if (at < name.size) {
		err = FAULT(d, at,
			    "cuTile gives this signature another name, which ends here");
	}
	kp_compose_fini(&again);
	return err;
}

kpack_error_t kp_cutile_demangle(struct kp_span name, struct kpackx_signature **out,
				 struct kpackx_error *why)
{
	struct held_signature *held = calloc(1, sizeof(*held));
	struct demangler d = {.name = name, .held = held, .why = why};
	const uint8_t *nul = name.size ? memchr(name.data, '\0', name.size) : NULL;
	struct kpackx_signature *s = &held->signature;
	size_t arguments;
	kpack_error_t err;

	if (name.size > KP_CUTILE_NAME_MAX)
		err = FAULT(&d, (size_t)KP_CUTILE_NAME_MAX,
			    "the name has %zu bytes, the limit is %d", name.size,
			    KP_CUTILE_NAME_MAX);
	else if (nul)
		err = FAULT(&d, (size_t)(nul - name.data), "a NUL byte");
	else if (!held || !(d.scratch = malloc(name.size + 1)))
		err = no_memory(why);
	else
		err = read_name(&d, s);
	if (!err)
		err = check_canonical(&d, &arguments);
	if (!err && !(s->arguments = keep(held, NULL, arguments * sizeof(*s->arguments))))
		err = no_memory(why);
	for (size_t i = 0; !err && i < s->n_parameters; i++) {
		d.parameter = (uint32_t)i;
		kp_compose_cut(&d.path, 0);
		kp_compose_print(&d.path, "p%zu", i);
		add_arguments(&d, &s->parameters[i]);
		if (d.path.no_memory)
			err = no_memory(why);
	}
	kp_compose_fini(&d.path);
	free(d.scratch);
	free(d.stack);
	free(d.ids);
	if (err)
		kpackx_signature_free(held ? s : NULL);
	else
		*out = s;
	return err;
}

kpack_error_t kpackx_demangle(const char *symbol, struct kpackx_signature **signature,
			      struct kpackx_error *why)
{
	if (!symbol || !signature)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s is NULL",
			       symbol ? "signature" : "symbol");
	return kp_cutile_demangle(kp_span_str(symbol), signature, why);
}

void kpackx_signature_free(struct kpackx_signature *signature)
{
	struct held_signature *held = (struct held_signature *)(void *)signature;

	while (held && held->pieces) {
		struct piece *next = held->pieces->next;

		free(held->pieces);
		held->pieces = next;
	}
	free(held);
}
