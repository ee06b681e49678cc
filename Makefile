# SPDX-License-Identifier: MIT
MODE ?= debug
O    := build/$(MODE)
CC   ?= cc

PKGS_core := libzstd libelf libxxhash zlib
CPPFLAGS += -D_GNU_SOURCE -DFUSE_USE_VERSION=312 -Icore
WARN := -Wall -Wextra -Wformat=2 -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-sign-conversion
CFLAGS_all := -std=c11 -fPIC -fvisibility=hidden -pthread $(WARN)
cflags.debug   := -O1 -g
cflags.release := -O2 -g
cflags.asan    := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
cflags.tsan    := -O1 -g -fsanitize=thread
cflags.fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
CFLAGS_mode := $(cflags.$(MODE))
LIBS := $(shell pkg-config --libs fuse3 libzstd libelf libxxhash zlib jansson msgpack)

core := $(patsubst %.c,$(O)/%.o,$(wildcard core/*.c core/format/*.c))
fs := $(patsubst %.c,$(O)/%.o,$(wildcard fs/*.c))
packer := $(patsubst %.c,$(O)/%.o,$(wildcard packer/*.c))
units := $(patsubst %.c,$(O)/%,$(wildcard tests/unit/*.c))

all: $(O)/kpack $(O)/kpackfs

$(O)/core.a: $(core)
	rm -f $@; ar rcs $@ $^
$(O)/kpack: $(packer) $(O)/core.a
	$(CC) $(CFLAGS_all) $(CFLAGS_mode) -o $@ $^ $(LIBS)
$(O)/kpackfs: $(fs) $(O)/core.a
	$(CC) $(CFLAGS_all) $(CFLAGS_mode) -o $@ $^ $(LIBS)
$(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/core.a
	$(CC) $(CFLAGS_all) $(CFLAGS_mode) -o $@ $^ -lcmocka $(LIBS)
$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_all) $(CFLAGS) $(CFLAGS_mode) -MMD -MP -c -o $@ $<
-include $(core:.o=.d) $(fs:.o=.d) $(packer:.o=.d)
.PHONY: all
.SECONDARY:
