# SPDX-License-Identifier: MIT
#
# MODE selects the flags and the build directory, so that modes never mix:
#   release  debug  asan (address + undefined)  tsan  fuzz (clang, libFuzzer)
# core, fs and packer are components: every .c file below one of them belongs to it.
#
#   make                          build/release/{kpack,kpackfs,librocm_kpack.*}
#   make debug                    build/debug/...; also asan, tsan
#   make MODE=asan CC=clang       build/asan/...
#   make WITH_LZ4=0               without what needs liblz4
#   make CFLAGS=-O3 V=1           user flags come last; V=1 shows the commands

MAKEFLAGS += --no-builtin-rules

MODE   ?= release
O      ?= build/$(MODE)
PREFIX ?= /usr/local
LIBDIR ?= lib# below PREFIX, or absolute
VERSION := 0.1.0# and KPACKX_VERSION_...
API_VERSION := 0.1.0# the version of AMD's library whose interface this one has

modes := release debug asan tsan fuzz
ifeq ($(filter $(MODE),$(modes)),)
$(error MODE=$(MODE): one of $(modes))
endif

# GNU's names, for packages; all below DESTDIR when they are used.
prefix      = $(PREFIX)
bindir      = $(prefix)/bin
sbindir     = $(prefix)/sbin
libexecdir  = $(prefix)/libexec
datadir     = $(prefix)/share
mandir      = $(datadir)/man
includedir  = $(prefix)/include
libdir      = $(if $(filter /%,$(LIBDIR)),$(LIBDIR),$(prefix)/$(LIBDIR))

# Commands use these values unquoted: a second word in one of them would be another file to remove.
places := DESTDIR PREFIX LIBDIR prefix bindir sbindir libexecdir datadir mandir includedir libdir
unsafe  = $(filter-out 1,$(words .$(1).))$(strip $(foreach c,' " ` \ * ? [ & ; | < > ( ),$(findstring $c,$(1))))
$(foreach p,$(places),$(if $(call unsafe,$($(p))),$(error $(p)=$($(p)): no spaces, and nothing the shell reads)))

# Optional libraries
WITH_ZLIB    ?= 1# read zlib-compressed bundles (old CCOB); librocm_kpack never does
WITH_LZ4     ?= 1# read LZ4-compressed entries of CUDA fatbins
WITH_SECCOMP ?= 1# kpackfs makes only the system calls it needs
switches := ZLIB LZ4 SECCOMP

# ---- configuration ----------------------------------------------------------

PKG_CONFIG ?= pkg-config
# msgpack-c renamed its module after the release in Debian 12
msgpack := $(shell $(PKG_CONFIG) --exists msgpack-c 2>/dev/null && echo msgpack-c || echo msgpack)

# librocm_kpack needs only these; of msgpack-c it uses headers
pkgs_library := libzstd libxxhash
pkgs_core   := $(pkgs_library) $(msgpack) $(if $(filter 1,$(WITH_ZLIB)),zlib) \
	$(if $(filter 1,$(WITH_LZ4)),liblz4)
pkgs_fs     := fuse3 $(if $(filter 1,$(WITH_SECCOMP)),libseccomp)
pkgs_packer := libelf jansson libcrypto sqlite3 yaml-0.1 zlib
pkgs        := $(pkgs_core) $(pkgs_fs) $(pkgs_packer)
missing     := $(strip $(foreach p,$(pkgs),$(shell $(PKG_CONFIG) --exists $(p) 2>/dev/null || echo $(p))))

pkg_libs    = $(if $(strip $(1)),$(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null))
libs_library := $(call pkg_libs,$(pkgs_library))
libs_core   := $(call pkg_libs,$(pkgs_core))
libs_fs     := $(call pkg_libs,$(pkgs_fs)) $(libs_core) -ldl
libs_packer := $(call pkg_libs,$(pkgs_packer)) $(libs_core) -ldl
libs_test   := -lcmocka $(call pkg_libs,$(pkgs_packer)) $(libs_fs)

# -isystem: the warnings below are for our own code
pkg_cflags := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(filter-out $(missing),$(pkgs)) 2>/dev/null))

cppflags := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=312 \
	-DKP_VERSION='"$(VERSION)"' \
	$(foreach s,$(switches),-DKP_WITH_$(s)=$(WITH_$(s))) \
	-iquote . $(pkg_cflags)
warnings := -Wall -Wextra -Wformat=2 -Wconversion -Wno-sign-conversion -Wshadow \
	-Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef -Werror=implicit-function-declaration
cflags   := -std=c11 -fvisibility=hidden -ffunction-sections -fdata-sections -pthread $(warnings)
ldflags  := -pthread -Wl,--as-needed

# In CI a warning is an error; elsewhere another compiler's new warning is not.
WERROR ?= $(if $(filter true,$(CI)),1,0)
cflags += $(if $(filter 1,$(WERROR)),-Werror)

cppflags.release := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
cflags.debug     := -O1 -g
# The name of this directory is in no file, so that a commit gives the same bytes anywhere.  The
# compiler prefers PWD, which may be another name of the directory.
cflags.release   := -O2 -g -fstack-protector-strong -ffile-prefix-map='$(CURDIR)'=.
export PWD       := $(CURDIR)
cflags.asan      := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
cflags.tsan      := -O1 -g1 -fsanitize=thread
cflags.fuzz      := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ldflags.release  := -Wl,-z,relro,-z,now
# AddressSanitizer's description of each global is relocated when a program with -pie starts, and tests
# start thousands.
ldflags.asan     := -fsanitize=address,undefined -no-pie
ldflags.tsan     := -fsanitize=thread
ldflags.fuzz     := -fsanitize=address,undefined

# -fPIC comes last, and -pie is for programs: distributions' flags may ask for -fPIE and -pie.
compile = $(CC) $(cppflags) $(cppflags.$(MODE)) $(CPPFLAGS) $(cflags) $(cflags.$(MODE)) $(CFLAGS) -fPIC
link    = $(CC) $(cflags.$(MODE)) $(CFLAGS) $(ldflags) $(ldflags.$(MODE)) $(LDFLAGS)
shared  = $(filter-out -pie -no-pie,$(link)) -shared
archive = $(AR) qcsD

# ---- sources and products ---------------------------------------------------

# $(call c_below,DIR...): every .c file below DIR; $(call objs,FILES): the objects of FILES
c_below = $(sort $(shell find $(1) -name '*.c'))
objs = $(patsubst %.c,$(O)/%.o,$(1))

core   := $(filter-out $(O)/core/hip/%,$(call objs,$(call c_below,core)))
# The part of core that the exports of librocm_kpack use.  It reads the formats of
# .hip_fatbin, but not bundles compressed with zlib.
core_library := $(call objs,$(call c_below,$(addprefix core/,archive base loader target writer)) $(wildcard core/format/cutile*.c) \
	$(addprefix core/,$(addsuffix .c,host/host_file host/host_fatbin host/marker host/search_path format/bundle \
	format/code_object format/format format/sections pe/pe restore/recipe))) $(O)/no-zlib/core/format/ccob.o
fs     := $(call objs,$(call c_below,fs))
# What stands before the HIP runtime in other people's processes: of core only what it uses.
hip    := $(call objs,$(call c_below,$(addprefix core/,archive base hip target)) \
	$(addprefix core/,$(addsuffix .c,host/marker host/search_path format/bundle loader/archive_cache \
	loader/lookup \
	loader/process loader/trace)))
packer := $(call objs,$(call c_below,packer)) $(O)/packer/inspect/report_page.o

# Suites that stand in for functions of ours, and so need a program of their own; tests/run reads this line.
alone := tests/unit/fs/content/content.c tests/unit/fs/content/model.c
alone_in = $(addprefix $(O)/tests/unit-,$(subst /,-,$(patsubst tests/unit/%.c,%,$(1))))
# TSan runs only those of folders with threads.
suites := $(if $(filter tsan,$(MODE)),$(shell tests/run --threaded),$(call c_below,$(addprefix tests/unit/,core fs packer)))
units := $(foreach d,core fs packer,$(if $(filter tests/unit/$d/%,$(suites)),$(O)/tests/unit-$d)) \
	$(call alone_in,$(alone))
fuzz  := $(patsubst %.c,$(O)/%,$(filter-out tests/fuzz/replay.c,$(call c_below,tests/fuzz)))
bench := $(patsubst %.c,$(O)/%,$(wildcard contrib/bench/*.c))
stub  := $(O)/tests/stub/libamdhip64.so.5 $(O)/tests/stub/old/libamdhip64.so.5 $(O)/tests/stub/load $(O)/tests/stub/write \
	$(O)/tests/stub/amd/librocm_kpack.so.0 $(O)/tests/stub/amd_client \
	$(O)/tests/sweep/faults.so $(O)/tests/stub/moment.so \
	$(O)/tests/stub/threads
loaders := $(patsubst %.c,$(O)/%,$(wildcard tests/loaders/*.c))
examples := $(addprefix $(O)/contrib/examples/,libamdhip64.so.5 library)

# Further names of kpack; the names of clang's and AMD's tools are in a directory of their own,
# for clang's -B and for PATH.
links := kpack-pack kpack-mark kpack-offload-bundler kpack-offload-packager
clang_links := clang-offload-bundler clang-offload-packager llvm-offload-binary bulk_unbundle

programs := $(O)/kpack $(O)/kpackfs $(addprefix $(O)/,$(links)) $(addprefix $(O)/clang/,$(clang_links))
library  := $(O)/librocm_kpack.a $(O)/librocm_kpack.so.0 $(O)/librocm_kpack.so
helper   := $(O)/libkpack_hip.so

# ---- build ------------------------------------------------------------------

# make -s: no long option, which begins with -- here
quiet := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
say = $(if $(filter 1,$(V)),,@$(if $(quiet),,printf '  %-4s %s\n' $(1) $@;))

all: $(programs) $(library) $(helper) ## build the programs and the library (default)
debug asan tsan: ## the same in MODE=debug, asan or tsan
	@$(MAKE) --no-print-directory $(jobs) MODE=$@ all
units: $(units) ## build the unit tests
stub: $(stub)
loaders: $(loaders) ## build the programs that open kernel databases as the libraries do
bench-programs: $(bench)
bench-check: ## compare page faults and processor time of kpack with limits
	contrib/bench/check
examples: $(examples)

# Every object depends on the flags that it was compiled with.
flags := $(compile) | $(link) | $(archive) | $(libs_fs) $(libs_packer) | $(shell $(CC) --version 2>/dev/null | head -n 1)
ifneq ($(strip $(flags)),$(strip $(file <$(O)/.flags)))
$(O)/.flags: FORCE
endif
$(O)/.flags:
	$(if $(missing),$(error missing: $(missing). Run contrib/install-deps, or see WITH_... in the Makefile))
	@: $(shell mkdir -p $(@D))$(file >$@,$(flags))

$(O)/%.o: %.c $(O)/.flags Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -MMD -MP -c -o $@ $<
$(O)/no-zlib/%.o: %.c $(O)/.flags Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -UKP_WITH_ZLIB -DKP_WITH_ZLIB=0 -MMD -MP -c -o $@ $<

# Only processors that have AVX2 run this code: hash.c asks.
$(O)/core/base/hash_avx2.o: cflags += $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),-mavx2)

# The page of `kpack report`, as C arrays without indentation and without lines that begin with a comment.
$(O)/packer/inspect/report_page.c: $(addprefix packer/inspect/report.,html css js) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "packer/inspect/report.h"'; for f in html css js; do echo "const char report_page_$$f[] = {"; \
		sed -e 's/^[[:space:]]*//' -e '/^\/[/*]/d' packer/inspect/report.$$f | od -An -v -td1 | sed 's/-*[0-9][0-9]*/&,/g'; \
		echo '0};'; done; } >$@.tmp
	@mv $@.tmp $@
$(O)/packer/inspect/report_page.o: $(O)/packer/inspect/report_page.c $(O)/.flags
	$(call say,CC)$(compile) -MMD -MP -c -o $@ $<

# rm: removes members whose source file no longer exists
$(O)/librocm_kpack.a: $(core_library)
	@rm -f $@
	$(call say,AR)$(archive) $@ $^

# -Bsymbolic: if AMD's library is loaded before ours, ours still calls its own functions
$(O)/librocm_kpack.so.0: $(core_library) core/kpack.map
	$(call say,LINK)$(shared) -Wl,-soname,librocm_kpack.so.0 -Wl,--version-script=core/kpack.map \
		-Wl,-Bsymbolic -Wl,--gc-sections \
		$(if $(filter debug release,$(MODE)),-Wl$(comma)-z$(comma)defs) \
		-o $@ $(core_library) $(libs_library)
$(O)/librocm_kpack.so: $(O)/librocm_kpack.so.0
	@ln -sf librocm_kpack.so.0 $@

# Every process may load it, so it brings no library that a program could have another one of.
static_lib = $(or $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l$(1))
$(O)/libkpack_hip.so: $(hip) core/hip/hip.map
	$(call say,LINK)$(shared) -Wl,-soname,$(@F) -Wl,--version-script=core/hip/hip.map \
		-Wl,-Bsymbolic -Wl,--gc-sections -Wl,--exclude-libs,ALL \
		$(if $(filter debug release,$(MODE)),-Wl$(comma)-z$(comma)defs) \
		-o $@ $(hip) $(call static_lib,zstd) $(call static_lib,xxhash) -ldl

# The components as static libraries, without their main function.
$(O)/core.a: $(core)
	@rm -f $@
	$(call say,AR)$(archive) $@ $^
$(O)/fs.a: $(filter-out $(O)/fs/main.o,$(fs))
	@rm -f $@
	$(call say,AR)$(archive) $@ $^
$(O)/packer.a: $(filter-out $(O)/packer/main.o,$(packer))
	@rm -f $@
	$(call say,AR)$(archive) $@ $^

$(O)/kpackfs: $(fs) $(O)/core.a
	$(call say,LINK)$(link) -o $@ $^ $(libs_fs)
$(O)/kpack: $(packer) $(O)/core.a
	$(call say,LINK)$(link) -o $@ $^ $(libs_packer)
$(addprefix $(O)/,$(links)): $(O)/kpack
	@ln -sf kpack $@
$(addprefix $(O)/clang/,$(clang_links)): $(O)/kpack
	@mkdir -p $(@D)
	@ln -sf ../kpack $@

# The tests are compiled in less time.
$(O)/tests/unit/%.o $(O)/tests/fuzz/%.o: cflags.release += -O1

# The unit tests of a component are one program, without those that have one of their own.
unit_main := $(O)/tests/unit/main.o
of = $(call objs,$(filter-out $(alone),$(filter tests/unit/$(1)/%,$(suites)))) $(unit_main)
$(O)/tests/unit-core: ldflags += -Wl,--wrap=kp_lock_wait
$(O)/tests/unit-core: $(call of,core) $(O)/tests/unit/hooks.o $(O)/core.a
$(O)/tests/unit-fs: $(call of,fs) $(O)/fs.a $(O)/core.a
$(O)/tests/unit-packer: $(call of,packer) $(O)/packer.a $(O)/core.a
$(foreach f,$(alone),$(eval $(call alone_in,$f): $(call objs,$f) $(unit_main) $(O)/fs.a $(O)/core.a))
$(units):
	$(call say,LINK)$(link) -o $@ $^ $(libs_test)

# In MODE=fuzz a fuzz target is linked with libFuzzer, otherwise it is a program that replays files.
ifeq ($(MODE),fuzz)
$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/fs.a $(O)/packer.a $(O)/core.a
	$(call say,LINK)$(link) -fsanitize=fuzzer -o $@ $^ $(libs_packer)
else
$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/replay.o $(O)/fs.a $(O)/packer.a $(O)/core.a
	$(call say,LINK)$(link) -o $@ $^ $(libs_packer)
endif

# Programs that use no code of ours are compiled without sanitizers: they only take time there.
foreign := $(addprefix $(O)/tests/,loaders/% sweep/%)
$(foreign): cflags.asan := -O1 -g
$(foreign): cflags.tsan := -O1 -g
$(foreign): ldflags.asan :=
$(foreign): ldflags.tsan :=

# Programs that open kernel databases in the same way as the libraries; they use no code of ours.
$(O)/tests/loaders/%: $(O)/tests/loaders/%.o
	$(call say,LINK)$(link) -o $@ $^ -lsqlite3 -lcrypto -ldl

# For tests that load converted binaries: a HIP runtime of our own, and a program.
$(O)/tests/stub/libamdhip64.so.5: $(O)/tests/stub/hip.o $(O)/tests/stub/fat.o $(O)/librocm_kpack.so \
		tests/stub/hip.map
	$(call say,LINK)$(shared) -Wl,-soname,$(@F) -Wl,--version-script=tests/stub/hip.map \
		-Wl,-rpath,'$$ORIGIN/../..' -o $@ $(filter %.o,$^) $(O)/librocm_kpack.so \
		$(call pkg_libs,libzstd libxxhash)
# The same as a runtime from before kpack.
$(O)/tests/stub/old/hip.o: tests/stub/hip.c $(O)/.flags Makefile
	@mkdir -p $(@D)
	$(call say,CC)$(compile) -DSTUB_OLD -MMD -MP -c -o $@ $<
$(O)/tests/stub/old/libamdhip64.so.5: $(O)/tests/stub/old/hip.o $(O)/tests/stub/fat.o tests/stub/hip.map
	$(call say,LINK)$(shared) -Wl,-soname,$(@F) -Wl,--version-script=tests/stub/hip.map -o $@ $(filter %.o,$^) \
		$(call pkg_libs,libzstd libxxhash)
$(O)/tests/stub/load: $(O)/tests/stub/load.o
	$(call say,LINK)$(link) -o $@ $^ -ldl
$(O)/tests/stub/threads: $(O)/tests/stub/threads.o
	$(call say,LINK)$(link) -o $@ $^ -ldl -lpthread
# Writes archives and uses only the public header.
$(O)/tests/stub/write: $(O)/tests/stub/write.o $(O)/librocm_kpack.so
	$(call say,LINK)$(link) -Wl,-rpath,'$$ORIGIN/../..' -o $@ $^

# A library that stands in for AMD's, and a program that is linked with it.
$(O)/tests/stub/amd/librocm_kpack.so.0: $(O)/tests/stub/amd_kpack.o
	@mkdir -p $(@D)
	$(call say,LINK)$(shared) -Wl,-soname,$(@F) -o $@ $^
$(O)/tests/stub/amd_client: $(O)/tests/stub/amd_client.o $(O)/tests/stub/amd/librocm_kpack.so.0
	$(call say,LINK)$(link) -Wl,-rpath,'$$ORIGIN/amd' -o $@ $^

# When preloaded into a program, makes some of its calls fail.
$(O)/tests/sweep/faults.so: $(O)/tests/sweep/faults.o
	$(call say,LINK)$(shared) -o $@ $^ -ldl

# When preloaded into a program, runs a command while the program walks over a tree.
$(O)/tests/stub/moment.so: $(O)/tests/stub/moment.o
	$(call say,LINK)$(shared) -o $@ $^ -ldl

# The examples: they include the public headers as <...>, and link the library as users do.
$(O)/contrib/examples/%.o: cppflags := -D_GNU_SOURCE -idirafter core
$(O)/contrib/examples/libamdhip64.so.5: $(O)/contrib/examples/runtime.o \
		$(O)/librocm_kpack.so contrib/examples/runtime.map
	$(call say,LINK)$(shared) -Wl,-soname,$(@F) -Wl,--version-script=contrib/examples/runtime.map \
		-Wl,-rpath,'$$ORIGIN/../..' -o $@ $< $(O)/librocm_kpack.so
$(O)/contrib/examples/library: $(O)/contrib/examples/library.o $(O)/librocm_kpack.so
	$(call say,LINK)$(link) -Wl,-rpath,'$$ORIGIN/../..' -o $@ $^

$(O)/contrib/bench/%: $(O)/contrib/bench/%.o $(O)/core.a
	$(call say,LINK)$(link) -o $@ $^ $(libs_core)

comma := ,

-include $(patsubst %.o,%.d,$(core) $(core_library) $(fs) $(packer) $(hip) $(addsuffix .o,$(fuzz) $(bench)) $(unit_main) $(O)/tests/unit/hooks.o $(call objs,$(suites)) \
	$(call objs,$(wildcard tests/stub/*.c tests/sweep/*.c tests/loaders/*.c contrib/examples/*.c)))

# ---- tests ------------------------------------------------------------------

# -j, if make was started without it
jobs = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# INSTALL=no, for the builders of distributions: with what is there; what it lacks is skipped.
install = $(if $(filter no,$(INSTALL)),,@contrib/install-deps $(1))

# In CI the sanitizer builds are tested too.
sanitized := $(if $(filter true,$(CI)),$(if $(filter release,$(MODE)),asan tsan))

# Files built with sudo go to the user who called it; otherwise make without sudo could not write.
give_back := $(if $(SUDO_UID),; status=$$?; chown -R $(SUDO_UID):$(SUDO_GID) build; exit $$status)

# tests/run ends with a single prove for everything, so that its summary is the last output.
builds = $(foreach m,$(1),$(m)=$(if $(filter $(m),$(MODE)),$(O),build/$(m)))

check: ## install missing packages (not with INSTALL=no), build and test. Also MODE=asan, tsan
	$(call install,build test)
	@$(MAKE) --no-print-directory $(jobs) check-build $(give_back)
	@tests/run $(call builds,$(MODE) $(sanitized)) $(give_back)

check-all: ## all tests in three builds, also those that take long or need large packages (LLVM 22, Chromium)
	$(call install,build test test-all)
	@$(MAKE) --no-print-directory $(jobs) sanitized= check-build check-build-asan check-build-tsan $(give_back)
	@CHECK_ALL=1 tests/run $(call builds,$(MODE) asan tsan) $(give_back)

# TSan runs no fuzz targets, and of several builds the release build neither these nor unit tests.
tested := $(if $(sanitized)$(shell $(PKG_CONFIG) --exists cmocka 2>/dev/null || echo none),,$(units)) $(if $(sanitized)$(filter tsan,$(MODE)),,$(fuzz))
check-build: all $(tested) $(stub) $(loaders) $(examples) $(foreach m,$(sanitized),check-build-$(m))
check-build-%:
	@$(MAKE) --no-print-directory MODE=$* check-build

check-units: $(units) ## run only the unit tests
	@CHECK_ONLY=unit tests/run $(MODE)=$(O)
check-integration: all $(stub) $(loaders) $(examples) ## run only the integration tests, all of them
	@CHECK_ALL=1 CHECK_ONLY=bats tests/run $(MODE)=$(O)
check-golden: all $(stub) $(loaders) $(examples) ## run only commands whose output is written down
	@CHECK_ONLY=golden tests/run $(MODE)=$(O)
check-properties: all $(stub) ## check what is true of all trees on generated ones: PROPERTIES_SEEDS=8
	@CHECK_ONLY=properties tests/run $(MODE)=$(O)
check-sweep: all $(stub) ## let calls of kpack fail, one in each run
	@CHECK_ONLY=sweep tests/run $(MODE)=$(O)
check-model: all ## run random programs on a mount and on a model of it: MODEL_SEEDS=20, MODEL_SEED=N
	@CHECK_ONLY=model tests/run $(MODE)=$(O)
check-python: all $(stub) ## check the packages in contrib/python
	@CHECK_ONLY=python tests/run $(MODE)=$(O)
check-layering: all ## check includes between folders, and the library's exports
	@CHECK_ONLY=layering tests/run $(MODE)=$(O)
check-abi: all ## compare the library's interface with tests/abi.txt
	@CHECK_ONLY=abi tests/run $(MODE)=$(O)
check-help: all ## compare the options in --help, manual pages and completions
	@CHECK_ONLY=help tests/run $(MODE)=$(O)
check-install: all ## install and uninstall, and check that nothing is left
	@CHECK_ONLY=install tests/run $(MODE)=$(O)
check-distributions: ## as root, build and test in fresh systems of RELEASES="bookworm noble ..." (all that the mirrors have)
	@contrib/distributions $(RELEASES)
check-reproducible: dist ## build the commit at two paths, and compare the files
	@rm -rf build/reproducible
	@for place in a some/longer/path; do \
		mkdir -p build/reproducible/$$place && \
		tar -C build/reproducible/$$place --strip-components=1 -xf $(tarball) && \
		$(MAKE) --no-print-directory $(jobs) -C build/reproducible/$$place MODE=release O=out all || exit 1; \
	done
	@cd build/reproducible && for f in kpack kpackfs librocm_kpack.so.0 librocm_kpack.a libkpack_hip.so; do \
		cmp a/out/$$f some/longer/path/out/$$f || exit 1; \
	done && echo 'the same bytes'
# PACKAGES and RUNTIMES, such as "ggml rocsolver" or all: these instead of those that are small;
# tests/real/packages --list and tests/real/hsa-runtimes --list name them.
check-real: all ## fetch HIP libraries and runtimes of Debian, pack and run them; needs a network
	@KPACK_BIN=$(abspath $(O)) tests/real/packages $(PACKAGES)
	@KPACK_BIN=$(abspath $(O)) tests/real/hsa-runtimes $(RUNTIMES)
check-switches: ## build without each optional library
	@CHECK_ONLY=switches tests/run $(MODE)=$(O)

FUZZ_SECONDS ?= 60
fuzz: ## run every fuzz target for FUZZ_SECONDS (60) each
	$(call install,build fuzz)
	@$(MAKE) --no-print-directory $(jobs) MODE=fuzz CC=clang fuzz-build
	@$(MAKE) --no-print-directory MODE=fuzz CC=clang fuzz-run
fuzz-build: $(fuzz)
# New inputs go to build/; copy those worth keeping to tests/fuzz/corpus by hand.
fuzz-run:
	@mkdir -p $(O)/artifacts; for f in $(fuzz); do t=$$(basename $$f); \
		mkdir -p $(O)/corpus/$$t; corpus=$$(ls -d tests/fuzz/corpus/$$t 2>/dev/null); \
		echo "== $$t, $(FUZZ_SECONDS) s"; \
		$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			-print_final_stats=1 -verbosity=0 -artifact_prefix=$(O)/artifacts/$$t- \
			$(O)/corpus/$$t $$corpus || exit 1; \
	done

# ---- housekeeping -----------------------------------------------------------

c_files := $(sort $(shell find core fs packer tests contrib/bench contrib/examples -name '*.[ch]'))
sources := $(call c_below,core fs packer)
pages   := $(wildcard kpackfs.1 packer/*.1)
pages3  := $(wildcard core/*.3)
# functions that a page of another name describes: their pages lead to it
functions3 = $(filter-out $(basename $(notdir $(pages3))),$(shell sed -n 's/^\.It Ft .* Fn \(kpackx*_[a-z_]*\).*/\1/p' $(pages3)))
pages5  := $(wildcard core/*.5 packer/*.5)
pages7  := $(wildcard core/hip/*.7 fs/*.7 packer/*.7)
pages8  := $(wildcard fs/*.8)
scripts := .ci/run contrib/install-deps contrib/distributions contrib/demo tests/run tests/run-one $(shell grep -l '^.!/bin/sh' tests/real/*) $(wildcard tests/*.sh tests/golden/*.sh contrib/dpkg/hook contrib/debian/build contrib/cmake/kpack-link contrib/examples/build/demo-archives contrib/examples/container/entrypoint contrib/packaging/* contrib/completion/*.bash contrib/examples/distributed/sh*-* contrib/examples/distributed/slurm-*)

# git writes the same bytes for the same commit, and gzip -n adds no time.
tarball := build/kpackfs-$(VERSION).tar.gz
dist: ## make the release: build/kpackfs-VERSION.tar.gz of the last commit
	@mkdir -p build
	@git -c safe.directory='$(CURDIR)' -c tar.umask=0022 archive --prefix=kpackfs-$(VERSION)/ -o $(tarball).tar HEAD
	@gzip -9n <$(tarball).tar >$(tarball) && rm $(tarball).tar
	@echo $(tarball)

fmt: ## format the C sources
	clang-format -i $(c_files)

lint: ## check formatting, shellcheck, manual pages, clang-tidy
	$(call install,build lint)
	clang-format --dry-run -Werror $(c_files)
	shellcheck $(scripts)
	mandoc -Tlint -W warning $(pages) contrib/debhelper/dh_kpack.1 $(pages3) $(pages5) $(pages7) $(pages8)
	printf '%s\n' $(sources) | FLAGS='$(subst ',,$(cppflags))' xargs -P $(shell nproc) -n 2 \
		sh -c 'clang-tidy --quiet "$$@" -- -std=c11 $$FLAGS 2>/dev/null' sh

demo: ## show the main job step by step on a real library
	$(call install,build demo)
	@echo 'building in build/release'
	@$(MAKE) -s $(jobs) MODE=release all $(give_back)
	@contrib/demo build/release $(give_back)

# Where things are put
bin     := $(DESTDIR)$(bindir)
sbin    := $(DESTDIR)$(sbindir)
lib     := $(DESTDIR)$(libdir)
include := $(DESTDIR)$(includedir)
share   := $(DESTDIR)$(datadir)
# The directory for `clang -B`
clangdir = $(DESTDIR)$(libexecdir)/kpackfs/clang
man1dir = $(DESTDIR)$(mandir)/man1
man3dir = $(DESTDIR)$(mandir)/man3
man5dir = $(DESTDIR)$(mandir)/man5
man7dir = $(DESTDIR)$(mandir)/man7
man8dir = $(DESTDIR)$(mandir)/man8
bashdir = $(share)/bash-completion/completions
zshdir  = $(share)/zsh/site-functions
fishdir = $(share)/fish/vendor_completions.d
pcdir   = $(lib)/pkgconfig
bash_completions := $(wildcard contrib/completion/*.bash)
zsh_completions  := $(wildcard contrib/completion/_*)
fish_completions := $(wildcard contrib/completion/*.fish)
# Units to copy
sharedir      = $(share)/kpackfs
units_systemd := $(wildcard contrib/systemd/*mount)
dpkg_hooks    := apt.conf dpkg.cfg
# Services that are started by name
unitdir       = $(DESTDIR)$(prefix)/lib/systemd
service       := kpackfs@.service
services      := $(service) kpackfs-in-place@.service kpackfs-policies.service
wanted        := system/multi-user.target.wants/kpackfs-policies.service

# The library goes to a prefix of its own, where programs that want AMD's do not find it; with
# install-dropin it goes to the places of AMD's.
private := kpackfs
headers := $(wildcard core/rocm_kpack/*.h)
cmake_package := rocm-kpack-config.cmake rocm-kpack-config-version.cmake
cmake_links   := $(subst rocm-,rocm_,$(cmake_package))
modules       := rocm_kpack.pc rocm_kpack_static.pc

# The library's files, links before what they lead to, and its directories: $(call library_...,INCLUDE,LIB)
library_files = $(addprefix $(1)/rocm_kpack/,$(notdir $(headers))) \
	$(addprefix $(2)/,librocm_kpack.so librocm_kpack.so.0 librocm_kpack.a) \
	$(addprefix $(2)/cmake/rocm_kpack/,$(cmake_links)) $(addprefix $(2)/cmake/rocm-kpack/,$(cmake_package))
library_dirs = $(1)/rocm_kpack $(2)/cmake/rocm-kpack $(2)/cmake/rocm_kpack

# What programs with the static library need, and what they need more with -static
needed_libs = $(strip $(libs_library)) -pthread
static_libs = $(strip $(shell $(PKG_CONFIG) --static --libs $(pkgs_library))) -pthread
empty :=
semicolons = $(subst $(empty) $(empty),;,$(1))

# Fill in a template, with fixed permissions: $(call fill,NAME,DIRECTORY,SED OPTIONS)
fill = sed -e 's|@VERSION@|$(VERSION)|' -e 's|@API_VERSION@|$(API_VERSION)|' $(3) core/$(1).in >$(2)/$(1) && chmod 644 $(2)/$(1)

# Install a script that runs kpack: in the source it looks for it beside itself
with_program = sed 's|^kpack=.*|kpack=$${KPACK-$(bindir)/kpack}|' $(1) >$(2) && chmod 755 $(2)

define put_library
	install -d $(call library_dirs,$(1),$(2))
	install -m 644 $(headers) $(1)/rocm_kpack
	install -m 755 $(O)/librocm_kpack.so.0 $(2)
	install -m 644 $(O)/librocm_kpack.a $(2)
	ln -sf librocm_kpack.so.0 $(2)/librocm_kpack.so
	include=$$(realpath -ms --relative-to=$(2) $(1)) && \
	pointer=$$(echo __SIZEOF_POINTER__ | $(CC) -E -P -) && \
	for f in $(cmake_package); do $(call fill,$$f,$(2)/cmake/rocm-kpack, \
		-e 's|@LIBS@|$(call semicolons,$(needed_libs))|' \
		-e "s|@INCLUDEDIR@|$$include|" -e "s|@POINTER@|$$pointer|") || exit 1; done
	for f in $(cmake_package); do ln -sf ../rocm-kpack/$$f $(2)/cmake/rocm_kpack/rocm_$${f#rocm-} || exit 1; done
endef

# install uses files that an earlier make built, perhaps as another user; root compiles nothing.
is_built = @for f in $(O)/kpack $(O)/kpackfs $(O)/librocm_kpack.so.0 $(O)/librocm_kpack.a $(O)/libkpack_hip.so; do [ -e $$f ] || { \
	echo "$@: there is no $$f: run '$(if $(filter release,$(MODE)),make,make MODE=$(MODE))' first" >&2; exit 1; }; done

# mount(8) looks for mount.TYPE in /sbin: PREFIX=/usr makes `mount -t kpackfs` work
install: ## install the built files, the library privately: PREFIX=/usr/local LIBDIR=lib DESTDIR=
	$(is_built)
	install -d $(bin) $(sbin) $(man1dir) $(man3dir) $(man5dir) $(man7dir) $(man8dir) $(pcdir)
	install -m 755 $(O)/kpackfs $(O)/kpack $(bin)
	for f in $(links); do ln -sf kpack $(bin)/$$f || exit 1; done
	install -d $(clangdir)
	for f in $(clang_links); do ln -sfr $(bin)/kpack $(clangdir)/$$f || exit 1; done
	ln -sfr $(bin)/kpackfs $(sbin)/mount.kpackfs
	$(if $(pages),install -m 644 $(pages) $(man1dir))
	$(if $(pages3),install -m 644 $(pages3) $(man3dir))
	for f in $(functions3); do printf '.so man3/%s\n' $$(cd core && grep -l "^\.It Ft .* Fn $$f " *.3) | \
		install -m 644 /dev/stdin $(man3dir)/$$f.3 || exit 1; done
	$(if $(pages5),install -m 644 $(pages5) $(man5dir))
	$(if $(pages7),install -m 644 $(pages7) $(man7dir))
	$(if $(pages8),install -m 644 $(pages8) $(man8dir))
	install -d $(bashdir) $(zshdir) $(fishdir)
	for f in $(notdir $(bash_completions:.bash=)); do \
		install -m 644 contrib/completion/$$f.bash $(bashdir)/$$f || exit 1; done
	for f in $(links); do ln -sf kpack $(bashdir)/$$f || exit 1; done
	$(if $(zsh_completions),install -m 644 $(zsh_completions) $(zshdir))
	$(if $(fish_completions),install -m 644 $(fish_completions) $(fishdir))
	install -d $(sharedir)/systemd $(sharedir)/dpkg
	install -m 644 $(units_systemd) $(sharedir)/systemd
	$(call with_program,contrib/dpkg/hook,$(DESTDIR)$(libexecdir)/kpackfs/dpkg-hook)
	for f in $(dpkg_hooks); do sed 's|/usr/libexec|$(libexecdir)|g' contrib/dpkg/$$f >$(sharedir)/dpkg/$$f && \
		chmod 644 $(sharedir)/dpkg/$$f || exit 1; done
	install -d $(unitdir)/system $(unitdir)/user $(dir $(unitdir)/$(wanted))
	install -m 644 $(addprefix contrib/systemd/,$(services)) $(unitdir)/system
	ln -sf ../$(notdir $(wanted)) $(unitdir)/$(wanted)
	install -m 644 contrib/systemd/user/$(service) $(unitdir)/user
	$(call put_library,$(lib)/$(private)/include,$(lib)/$(private)/lib)
	install -m 755 $(O)/libkpack_hip.so $(lib)/$(private)
	ln -sfr $(lib)/$(private)/libkpack_hip.so $(DESTDIR)$(libexecdir)/kpackfs/libkpack_hip.so
	for f in $(modules); do $(call fill,$$f,$(pcdir), \
		-e 's|@LIBS@|$(needed_libs)|' -e 's|@STATIC_LIBS@|$(static_libs)|') || exit 1; done

uninstall: ## remove the installed files
	rm -f $(bin)/kpackfs $(bin)/kpack $(addprefix $(bin)/,$(links)) $(sbin)/mount.kpackfs \
		$(addprefix $(clangdir)/,$(clang_links)) \
		$(addprefix $(man1dir)/,$(notdir $(pages))) $(addprefix $(man3dir)/,$(notdir $(pages3)) $(addsuffix .3,$(functions3))) \
		$(addprefix $(man5dir)/,$(notdir $(pages5))) $(addprefix $(man7dir)/,$(notdir $(pages7))) \
		$(addprefix $(man8dir)/,$(notdir $(pages8))) $(lib)/$(private)/libkpack_hip.so \
		$(DESTDIR)$(libexecdir)/kpackfs/libkpack_hip.so \
		$(addprefix $(bashdir)/,$(notdir $(bash_completions:.bash=)) $(links)) \
		$(addprefix $(zshdir)/,$(notdir $(zsh_completions))) \
		$(addprefix $(fishdir)/,$(notdir $(fish_completions))) $(addprefix $(pcdir)/,$(modules)) \
		$(addprefix $(sharedir)/systemd/,$(notdir $(units_systemd))) \
		$(addprefix $(sharedir)/dpkg/,$(dpkg_hooks)) $(DESTDIR)$(libexecdir)/kpackfs/dpkg-hook \
		$(addprefix $(unitdir)/system/,$(services)) $(unitdir)/user/$(service) $(unitdir)/$(wanted) \
		$(call library_files,$(lib)/$(private)/include,$(lib)/$(private)/lib)
	(cd $(lib)/$(private) && rmdir -p include/rocm_kpack lib/cmake/rocm-kpack lib/cmake/rocm_kpack) 2>/dev/null; \
		rmdir $(lib)/$(private) 2>/dev/null; \
		rmdir $(clangdir) $(dir $(clangdir)) 2>/dev/null; \
		rmdir $(sharedir)/systemd $(sharedir)/dpkg $(sharedir) 2>/dev/null || :

dropin_files = $(call library_files,$(include),$(lib))
dropin_dirs  = $(call library_dirs,$(include),$(lib))
# Every file of ours contains the names of our calls, and no file of AMD's does.  Links are followed.
is_ours  = grep -qs kpackx_ "$$f"
is_there = { [ -e "$$f" ] || [ -L "$$f" ]; }
aside    = before-kpackfs

install-dropin: ## install the library in AMD's place; FORCE=1 moves AMD's files aside
	$(is_built)
	@set --; for f in $(dropin_files); do ! $(is_there) || $(is_ours) || set -- "$$@" "$$f"; done; \
	[ $$# -eq 0 ] || [ '$(FORCE)' = 1 ] || { \
		printf '%s\n' "install-dropin: there are files of another librocm_kpack:" "$$@" \
			"FORCE=1 renames them to NAME.$(aside); uninstall-dropin renames them back" >&2; \
		exit 1; }; \
	for f; do mv -fv "$$f" "$$f.$(aside)" || exit 1; done
	$(call put_library,$(include),$(lib))

uninstall-dropin: ## remove the files of install-dropin, and move AMD's back
	@for f in $(dropin_files); do \
		if $(is_ours); then echo "rm $$f"; rm -f "$$f" || exit 1; fi; done
	@for f in $(dropin_files); do g=$$f; f=$$g.$(aside); $(is_there) || continue; \
		f=$$g; if $(is_there); then echo "$$g.$(aside) stays: another $$g came"; else \
			mv -v "$$g.$(aside)" "$$g" || exit 1; fi; done
	rmdir $(dropin_dirs) $(lib)/cmake 2>/dev/null || :

clean: ## remove build/
	rm -rf build

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

FORCE:
.PHONY: all units stub loaders bench-programs bench-check examples check check-all check-build check-units \
	check-integration check-golden check-properties check-sweep check-model check-python check-layering check-abi check-help check-install check-real check-switches check-distributions \
	check-reproducible fuzz fuzz-build fuzz-run dist fmt lint demo install uninstall install-dropin \
	uninstall-dropin clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
