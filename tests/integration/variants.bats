#!/usr/bin/env bats
# The variant provider, an independent Python program, must agree with kpack detect.

# bats file_tags=single

load packing

unset HSA_XNACK KPACK_VARIANT_GFX_ARCH KPACK_VARIANT_TOPOLOGY ROCM_BOOTSTRAP_FORCE_GFX_ARCH \
	ROCM_BOOTSTRAP_DISABLE_DETECTION

provider=$BATS_TEST_DIRNAME/../../contrib/variants

# Python on stdin with the provider, and its values for this machine as supported().
provide() {
	{
		cat <<-END
			from kpack_variant_provider import *
			from kpack_variant_provider import targets
			P = KfdVariantPlugin()
			def supported():
			    return [v for c in P.get_supported_configs() for v in c.values]
		END
		cat
	} | KPACK_VARIANT_TOPOLOGY=${TOPOLOGY-$T/top} PYTHONPATH=$provider timeout 600 $python -W error -
}

topology() {
	local i=0 v
	rm -rf top
	mkdir -p top/nodes
	for v; do
		mkdir -p "top/nodes/$i"
		printf 'cpu_cores_count 1\ngfx_target_version %s\nsimd_count 2\n' "$v" >"top/nodes/$i/properties"
		i=$((i + 1))
	done
}

@test "GPUs in the order of their nodes, then their generic targets" {
	topology 0 110001 90402 90402 150000 90010
	provide <<-END
		assert gpus() == ["gfx1101", "gfx942", "gfx1500", "gfx90a"], gpus()
		assert supported() == ["gfx1101", "gfx942", "gfx1500", "gfx90a", "gfx11_generic", "gfx9_4_generic"], supported()
		c, = P.get_supported_configs()
		assert (c.name, c.multi_value, P.namespace, P.is_aot_plugin) == ("gfx_arch", True, "amd", False)
		assert P.get_supported_configs(frozenset()) == [c] == KfdVariantPlugin.get_supported_configs(None)
		assert get_arch_family() == "device-gfx110X"
	END
	TOPOLOGY=$T/top/nodes provide <<<'assert gpus()[0] == "gfx1101"'
	[ "$(kpack detect --topology top | cut -d ' ' -f 1 | paste -sd,)" = gfx1101,gfx942,gfx1500,gfx90a ]
}

@test "all values: made of the characters there are, and what is supported is among them" {
	topology
	HSA_XNACK=1 provide <<-END
		import os, re
		c, = P.get_all_configs()
		assert len(set(c.values)) == len(c.values) and all(re.fullmatch("[a-z0-9_.]+", v) for v in c.values)
		for value in "gfx90a.xnack_on", "gfx90a.sramecc_off.xnack_on", "gfx9_4_generic", "gfx1250_strict", "gfx1201":
		    assert value in c.values, value
		for name in targets.PROCESSORS:
		    os.environ["KPACK_VARIANT_GFX_ARCH"] = name
		    assert supported() and set(supported()) <= set(c.values), supported()
		class Property:
		    namespace, feature, value = "amd", "gfx_arch", "gfx942"
		assert P.validate_property(Property)
		for name, value in ("namespace", "x"), ("feature", "x"), ("value", "gfx942:xnack+"):
		    assert not P.validate_property(type("Other", (Property,), {name: value}))
	END
}

@test "the escape" {
	provide <<-END
		for target, value in {"gfx942": "gfx942", "gfx90a:xnack+": "gfx90a.xnack_on",
		                      "gfx90a:sramecc+:xnack-": "gfx90a.sramecc_on.xnack_off",
		                      "gfx9-4-generic:xnack-": "gfx9_4_generic.xnack_off",
		                      "gfx1250-strict": "gfx1250_strict"}.items():
		    assert escape(target) == value, (target, escape(target))
		for target in "", "gfx90a:xnack", "gfx90a:", ":xnack+", "gfx90a xnack+", "gfx90a:xnack+x", "GFX90A", "gfx9_4", "gfx9.4", "g\n":
		    try:
		        assert False, escape(target)
		    except ValueError:
		        pass
	END
}

@test "families and generic targets are kpack's" {
	provide >table <<-END
		for name in targets.PROCESSORS:
		    print(name, targets.family(name.removesuffix("-strict")), targets.generic(name) or "-")
	END
	[ "$(wc -l <table)" -gt 40 ]
	kpack detect --arch "$(cut -d ' ' -f 1 table | paste -sd,)" | cut -d ' ' -f 1,4,5 | diff table -
}

@test "the variables of the environment" {
	topology 90010
	HSA_XNACK=1 provide <<<'assert supported() == ["gfx90a.xnack_on", "gfx90a"], supported()'
	HSA_XNACK=0 provide <<<'assert supported() == ["gfx90a.xnack_off", "gfx90a"], supported()'
	HSA_XNACK=x provide <<<'assert supported() == ["gfx90a"], supported()'
	KPACK_VARIANT_GFX_ARCH='gfx942, gfx90a:xnack+,gfx1250' provide <<-END
		assert supported() == ["gfx942", "gfx90a.xnack_on", "gfx90a", "gfx1250", "gfx1250_strict", "gfx9_4_generic", "gfx12_5_generic"], supported()
	END
	KPACK_VARIANT_GFX_ARCH=gfx1250-strict provide <<<'assert supported() == ["gfx1250_strict", "gfx1250", "gfx12_5_generic"], supported()'
	ROCM_BOOTSTRAP_FORCE_GFX_ARCH=gfx1201 provide <<<'assert supported() == ["gfx1201", "gfx12_generic"], supported()'
	KPACK_VARIANT_GFX_ARCH= provide <<<'assert P.get_supported_configs() == []'
	ROCM_BOOTSTRAP_DISABLE_DETECTION=1 provide <<<'assert P.get_supported_configs() == []'
	KPACK_VARIANT_GFX_ARCH='$(rm), :+,gfx 1,,Ü' provide <<<'assert P.get_supported_configs() == []'
}

@test "a hostile topology gives an answer, and no exception" {
	nothing='assert gpus() == [] and P.get_supported_configs() == [] and get_arch_family() is None, gpus()'
	topology 0 0
	provide <<<"$nothing"
	TOPOLOGY=$T/nowhere provide <<<"$nothing"
	touch file
	TOPOLOGY=$T/file provide <<<"$nothing"
	topology -1 99999999999 999999999 161700 100 1.0 ''
	provide <<<"$nothing"
	rm -rf top
	mkdir -p top/nodes/{0,1,2,3,4,5,6,00,-1,x,٣,12345678901}
	mkfifo top/nodes/0/properties
	mkdir top/nodes/1/properties
	ln -s properties top/nodes/2/properties
	ln -s /dev/zero top/nodes/3/properties
	head -c 100000 /dev/urandom >top/nodes/4/properties
	: >top/nodes/5/properties
	for node in 00 -1 x ٣ 12345678901; do
		echo 'gfx_target_version 90402' >"top/nodes/$node/properties"
	done
	provide <<<"$nothing"
	printf 'a\0b\n\377\ngfx_target_version 90402\n' >top/nodes/6/properties
	provide <<<'assert gpus() == ["gfx942"], gpus()'
	# the version is behind what a page of sysfs can hold
	{ yes | head -c 70000; echo 'gfx_target_version 90402'; } >top/nodes/6/properties
	provide <<<"$nothing"
}

@test "the package names the plugin" {
	PYTHONPATH=$provider $python - <<-END
		import importlib, tomllib
		project = tomllib.load(open("$provider/pyproject.toml", "rb"))["project"]
		module, name = project["entry-points"]["variant_plugins"]["kpack"].split(":")
		assert getattr(importlib.import_module(module), name)().namespace == "amd"
		assert project["dependencies"] == []
	END
}
