# SPDX-License-Identifier: MIT
# Pack a tree in N shards with make, then join them:
#
#	make -k -j 5 -f contrib/distributed/shards.mk INPUT=rocm OUT=packed N=5
#
# N        how many shards (as many as there are processors)
# OPTIONS  more options of kpack pack: OPTIONS="--group rocm --volume-size 1G"
# PARTS    where the parts go (OUT.parts); removed when they are joined, but with KEEP=1
# JOBS     threads of each shard (1)
# RUN      put before each shard's command: RUN="srun -n1", or what else finds a machine
# KPACK    the program (kpack)
#
# A shard that failed or was killed is done by the next make with the same words.  Those that
# were finished end at once, unless INPUT or OPTIONS changed.  Paths may hold spaces: they reach the commands through
# the environment.
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

# Forget the parts.
clean:
	[ ! -d "$$PARTS" ] || { chmod -R u+rwX "$$PARTS" && rm -rf "$$PARTS"; }
