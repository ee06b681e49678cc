# SPDX-License-Identifier: MIT
# Pack a tree in N shards with make, then join them:
#
#	make -k -j 5 -f contrib/distributed/shards.mk INPUT=rocm OUT=packed N=5
#
# N        number of shards (the number of processors)
# OPTIONS  more options of kpack pack: OPTIONS="--group rocm --volume-size 1G"
# PARTS    directory of the parts (OUT.parts); removed when they are joined, unless KEEP=1
# JOBS     threads of each shard (1)
# RUN      put before each shard's command, to pick a machine: RUN="srun -n1"
# KPACK    the program (kpack)
#
# After a failure call make with the same arguments again: finished shards end at once,
# unless INPUT or OPTIONS changed.  Paths may contain spaces: they reach the commands
# through the environment.
KPACK ?= kpack
N ?= $(shell nproc)
JOBS ?= 1
PARTS ?= $(OUT).parts
OPTIONS ?=
RUN ?=
KEEP ?=
export KPACK INPUT OUT PARTS KEEP

ifeq ($(INPUT),)
$(error INPUT=... is needed)
endif
ifeq ($(OUT),)
$(error OUT=... is needed)
endif

indices := $(shell seq $(N))
shards := $(addprefix shard-,$(indices))

.PHONY: all clean $(shards)
all: $(shards)
	set --; for i in $(indices); do set -- "$$@" "$$PARTS/$$i"; done; \
	"$$KPACK" merge "$$@" -o "$$OUT"
	[ -n "$$KEEP" ] || { chmod -R u+rwX "$$PARTS" && rm -rf "$$PARTS"; }

$(shards): shard-%:
	$(RUN) "$$KPACK" pack -q --shard $*/$(N) --jobs $(JOBS) $(OPTIONS) "$$INPUT" "$$PARTS/$*"

# Remove the parts.
clean:
	[ ! -d "$$PARTS" ] || { chmod -R u+rwX "$$PARTS" && rm -rf "$$PARTS"; }
