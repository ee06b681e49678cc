# SPDX-License-Identifier: MIT
# Pack a tree in N shards with make, then join them:
#
#	make -k -j 5 -f contrib/examples/distributed/shards.mk INPUT=rocm OUT=packed N=5
#
# N        number of shards (the number of processors)
# OPTIONS  more options of kpack pack: OPTIONS="--group rocm --volume-size 1G"
# PARTS    directory of the parts (OUT.parts); removed when they are joined, unless KEEP=1
# JOBS     threads of each shard (1)
# RUN      put before each shard's command, to pick a machine: RUN="srun -n1"
# KPACK    the program (kpack)
#
# After a failure call make with the same arguments again: finished shards end at once,
# unless INPUT or OPTIONS changed.  Paths may contain any sign: they are not expanded, and
# reach the commands through the environment.  OPTIONS and RUN are words of the shell.
KPACK ?= kpack
JOBS ?= 1
OPTIONS ?=
RUN ?=
KEEP ?=
# "$" in a name is no call of make's functions
override KPACK := $(value KPACK)
override INPUT := $(value INPUT)
override OUT := $(value OUT)
ifeq ($(origin PARTS),undefined)
PARTS := $(OUT).parts
endif
override PARTS := $(value PARTS)
ifeq ($(origin N),undefined)
N := $(shell nproc)
endif
override N := $(value N)
export KPACK INPUT OUT PARTS KEEP

ifeq ($(INPUT),)
$(error INPUT=... is needed)
endif
ifeq ($(OUT),)
$(error OUT=... is needed)
endif

digits := 0 1 2 3 4 5 6 7 8 9
without = $(if $1,$(call without,$(wordlist 2,10,$1),$(subst $(word 1,$1),,$2)),$2)
ifneq ($(call without,$(digits),$(N))$(filter 0%,$(N)),)
$(error N is no number from 1: $(N))
endif

indices := $(shell seq $(N))
shards := $(addprefix shard-,$(indices))

# Root needs no permission, and chmod would follow links that other users put into parts
# of theirs.
remove_parts = [ "$$(id -u)" -eq 0 ] || chmod -R u+rwX -- "$$PARTS"; rm -rf -- "$$PARTS"

.PHONY: all clean $(shards)
all: $(shards)
	set --; for i in $(indices); do set -- "$$@" "$$PARTS/$$i"; done; \
	"$$KPACK" merge -o "$$OUT" -- "$$@"
	[ -n "$$KEEP" ] || { $(remove_parts); }

$(shards): shard-%:
	$(RUN) "$$KPACK" pack -q --shard $*/$(N) --jobs $(JOBS) $(OPTIONS) -- "$$INPUT" "$$PARTS/$*"

# Remove the parts.
clean:
	[ ! -d "$$PARTS" ] || { $(remove_parts); }
