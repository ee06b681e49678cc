/* SPDX-License-Identifier: MIT */
#include "packer/offload/llvm/options.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TYPE, LIST, COMMAS, COUNT_OF, ALIGN, FLAG, SHORT, OUT, OPERAND, N };

static const struct llvm_option table[N] = {
	[TYPE] = {.name = "type",
		  .kind = LLVM_TEXT,
		  .required = true,
		  .text = "Type:\n  o - object"},
	[LIST] = {.name = "input", .kind = LLVM_LIST, .text = "Inputs."},
	[COMMAS] = {.name = "inputs", .kind = LLVM_COMMAS, .text = "Inputs."},
	[COUNT_OF] = {.name = "level", .kind = LLVM_NUMBER, .arg = "n", .number = 7},
	[ALIGN] = {.name = "align", .kind = LLVM_UNSIGNED},
	[FLAG] = {.name = "###", .text = "Print."},
	[SHORT] = {.name = "h", .hidden = true},
	[OUT] = {.name = "o", .kind = LLVM_TEXT, .arg = "file", .text = "Output."},
	[OPERAND] = {.name = "", .kind = LLVM_TEXT, .text = "Extract from <file>."},
};

static struct llvm_option options[N];
static struct llvm_tool tool;
static char out[8192], err[8192];

static void slurp(FILE *f, char *text, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

/* Read ARGS up to NULL as the arguments of tool ARGV0; its output goes to OUT and ERR. */
static int read_args(const char *argv0, const char *const *args)
{
	FILE *to = tmpfile(), *errors = tmpfile(), *was_out = stdout, *was_err = stderr;
	const char *argv[16] = {argv0};
	int argc = 1, status;

	while (args[argc - 1]) {
		argv[argc] = args[argc - 1];
		argc++;
	}
	llvm_options_fini(&tool);
	memcpy(options, table, sizeof(options));
	tool = (struct llvm_tool){.name = llvm_tool_name(argv0),
				  .overview = "A tool.",
				  .category = "tool options",
				  .options = options,
				  .n_options = N};
	stdout = to;
	stderr = errors;
	status = llvm_options_read(&tool, argc, (char **)argv);
	stdout = was_out;
	stderr = was_err;
	slurp(to, out, sizeof(out));
	slurp(errors, err, sizeof(err));
	return status;
}

#define READ(...) read_args("tool", (const char *const[]){__VA_ARGS__, NULL})

static void assert_said(const char *text)
{
	assert_has(err, text);
}

TEST(takes_values_in_every_way)
{
	assert_int_equal(READ("-type=a", "--input=x", "-input", "y=z", "--inputs", "a,,b",
			      "-inputs=c", "-###", "-o", "-type", "in"),
			 -1);
	assert_string_equal(err, "");
	assert_string_equal(options[TYPE].value, "a");
	assert_int_equal(options[LIST].n_values, 2);
	assert_string_equal(options[LIST].values[1], "y=z");
	assert_int_equal(options[COMMAS].n_values, 4);
	assert_int_equal(options[COMMAS].seen, 2);
	assert_string_equal(options[COMMAS].values[1], "");
	assert_string_equal(options[COMMAS].values[3], "c");
	assert_true(options[FLAG].flag);
	assert_string_equal(options[OUT].value, "-type");
	assert_string_equal(options[OPERAND].value, "in");
	assert_int_equal(options[COUNT_OF].number, 7);
	/*
	 * the last value counts; "" is a value; "--" ends the options; "-" is not an
	 * option
	 */
	assert_int_equal(READ("-type=a", "-type=", "--", "-x"), -1);
	assert_string_equal(options[TYPE].value, "");
	assert_string_equal(options[OPERAND].value, "-x");
	assert_int_equal(READ("-type=a=b", "-"), -1);
	assert_string_equal(options[TYPE].value, "a=b");
	assert_string_equal(options[OPERAND].value, "-");
}

TEST(takes_flags)
{
	static const struct {
		const char *word;
		bool value;
	} cases[] = {{"-###", true},       {"--###=", true},      {"-###=1", true},
		     {"-###=TRUE", true},  {"-###=false", false}, {"-###=0", false},
		     {"-###=False", false}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(READ("-type=a", cases[i].word), -1);
		assert_int_equal(options[FLAG].flag, cases[i].value);
	}
	assert_int_equal(READ("-type=a", "-###", "-###=0"), -1);
	assert_false(options[FLAG].flag);
	assert_int_equal(READ("-type=a", "-###=yes"), 1);
	assert_said("tool: for the --### option: 'yes' is invalid value for boolean "
		    "argument! Try 0 or 1\n");
	assert_int_equal(READ("-type=a", "-h"), -1);
	assert_true(options[SHORT].flag);
}

TEST(takes_numbers)
{
	static const struct {
		const char *word;
		long long value;
	} good[] = {{"-level=3", 3},
		    {"-level=-3", -3},
		    {"-level=0x1F", 31},
		    {"-level=010", 8},
		    {"-level=0b101", 5},
		    {"-level=0o17", 15},
		    {"-level=0", 0},
		    {"-level=2147483647", 2147483647},
		    {"-level=-2147483648", -2147483647 - 1LL}};
	static const char *const bad[] = {
		"-level=",           "-level=x",
		"-level= 3",         "-level=+3",
		"-level=3x",         "-level=0x",
		"-level=09",         "-level=--3",
		"-level=2147483648", "-level=99999999999999999999",
		"-level=0x0x1"};

	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(READ("-type=a", good[i].word), -1);
		assert_int_equal(options[COUNT_OF].number, good[i].value);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(READ("-type=a", bad[i]), 1);
		assert_said("tool: for the --level option: '");
		assert_said("' value invalid for integer argument!\n");
	}
	assert_int_equal(READ("-type=a", "--align=4294967295"), -1);
	assert_int_equal(options[ALIGN].number, 4294967295);
	assert_int_equal(READ("-type=a", "-align", "-1"), 1);
	assert_said("for the --align option: '-1' value invalid for uint argument!\n");
}

TEST(refuses_as_llvm_does)
{
	static const struct {
		const char *words[3], *text;
	} cases[] = {
		{{"-###"},
		 "tool: for the --type option: must be specified at least once!\n"},
		{{"-type"}, "tool: for the -type option: requires a value!\n"},
		{{"-type=a", "-o"}, "tool: for the -o option: requires a value!\n"},
		{{"-type=a", "-ofile"}, "Unknown command line argument '-ofile'."},
		{{"-type=a", "--typ=x"},
		 "tool: Unknown command line argument '--typ=x'.  Try: '/bin/tool "
		 "--help'\n"},
		{{"-type=a", "-ty", "x"}, "Unknown command line argument '-ty'."},
		{{"-type=a", "-hx"}, "tool: Unknown command line argument '-hx'."},
		{{"-type=a", "---o=x"}, "Unknown command line argument '---o=x'."},
		{{"-type=a", "--=x"}, "Unknown command line argument '--=x'."},
		{{"-type=a", "-help-l"}, "Unknown command line argument '-help-l'."},
		{{"-type=a", "--help=1"}, "Unknown command line argument '--help=1'."},
		{{"-type=a", "x", "y"}, "tool: Too many positional arguments specified!"},
		{{"-type=a", "-\x1b[2J"}, "argument '-\\033[2J'"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *args[] = {cases[i].words[0], cases[i].words[1],
				      cases[i].words[2], NULL};

		assert_int_equal(read_args("/bin/tool", args), 1);
		assert_said(cases[i].text);
	}
}

TEST(answers_help)
{
	static const char help[] =
		"OVERVIEW: A tool.\n\n"
		"USAGE: tool [options] Extract from <file>.\n\n"
		"OPTIONS:\n\n"
		"Generic Options:\n\n"
		"  --help            - Display available options (--help-hidden for "
		"more)\n"
		"  --help-list       - Display list of available options "
		"(--help-list-hidden for more)\n"
		"  --version         - Display the version of this program\n\n"
		"tool options:\n\n"
		"  --###             - Print.\n"
		"  --align=<uint>    - \n"
		"  --input=<string>  - Inputs.\n"
		"  --inputs=<string> - Inputs.\n"
		"  --level=<n>       - \n"
		"  -o <file>         - Output.\n"
		"  --type=<string>   - Type:\n"
		"                        o - object\n";

	assert_int_equal(READ("-foo", "--help", "-bar"), 0);
	assert_string_equal(out, help);
	assert_said("'-foo'");
	assert_null(strstr(err, "-bar"));
	assert_int_equal(READ("-help-list-hidden"), 0);
	assert_has(out, "OPTIONS:\n  --###  ");
	assert_has(out, "\n  -h  ");
	assert_has(out, "\n  --help-list-hidden ");
	assert_int_equal(READ("--version"), 0);
	assert_int_equal(strncmp(out, "kpack tool version ", 19), 0);
	assert_int_equal(READ("-type=a", "--print-options", "--print-all-options"), -1);
}

TEST(names_the_program)
{
	const char *const args[] = {"-x", NULL};

	assert_string_equal(llvm_tool_name("/usr/bin/clang-offload-bundler"),
			    "clang-offload-bundler");
	assert_string_equal(llvm_tool_name("offload-bundler"), "kpack offload-bundler");
	assert_int_equal(read_args("offload-packager", args), 1);
	assert_said("kpack offload-packager: Unknown command line argument '-x'.  "
		    "Try: 'kpack offload-packager --help'\n");
}

/* ---- response files ---- */

static char dir[] = "/tmp/llvm_options.XXXXXX";

static void put_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

TEST(reads_response_files)
{
	put_file("words",
		 "\xef\xbb\xbf-type=\"a b\"\n -input='c\\'d' \"\" -input=e\\ f\r\n"
		 "-input=\"x\\\"y\"z @more\t# last");
	put_file("more", "-inputs=1,2\n@absent");
	assert_int_equal(READ("@words"), 1); /* "#" and "last" are superfluous operands */
	assert_string_equal(options[TYPE].value, "a b");
	assert_int_equal(options[LIST].n_values, 3);
	assert_string_equal(options[LIST].values[0], "c'd");
	assert_string_equal(options[LIST].values[1], "e f");
	assert_string_equal(options[LIST].values[2], "x\"yz");
	assert_int_equal(options[COMMAS].n_values, 2);
	assert_string_equal(options[OPERAND].value, "@absent");
	assert_int_equal(READ("-type=a", "@absent"), -1);
	assert_string_equal(options[OPERAND].value, "@absent");
	assert_int_equal(READ("-type", "@more"), -1);
	assert_string_equal(options[TYPE].value, "-inputs=1,2");
}

TEST(bounds_response_files)
{
	put_file("one", "@two");
	put_file("two", "@one");
	assert_int_equal(READ("@one"), 1);
	assert_said("tool: error: recursive expansion of: 'one'");
	/* including a file twice is allowed, but not within itself */
	put_file("twice", "@three @three");
	put_file("three", "-type=a");
	assert_int_equal(READ("@twice"), -1);
	assert_int_equal(options[TYPE].seen, 2);
	assert_int_equal(READ("@."), 1);
	assert_said("error: '.': is a directory");
	/* each file includes the next one ten times: 10^20 inclusions without a limit */
	for (int i = 0; i < 20; i++) {
		char name[16], text[256] = "";

		snprintf(name, sizeof(name), "n%d", i);
		for (int j = 0; j < 10; j++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "@n%d ", i + 1);
		put_file(name, text);
	}
	put_file("n20", "");
	assert_int_equal(READ("@n0"), 1);
	assert_said("response files of more than");
}

static int enter(void **state)
{
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	char command[64];

	llvm_options_fini(&tool);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return chdir("/") || system(command);
}

SUITE(enter, leave);
