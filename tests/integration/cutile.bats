#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Names of cuTile's kernels, and TileIR bytecode, made from their descriptions alone.

# bats file_tags=single

setup()
{
	work=$BATS_TEST_TMPDIR
	here=$KPACK_SRC/tests/integration
	kpack=$KPACK_BIN/kpack
}

# module VERSION TARGET SYMBOL...: a file of that bytecode
module()
{
	python3 "$here/mktileir.py" write "$work/k.tileirbc" "$@"
}

@test "names are read and written as an independent reader and writer do" {
	run python3 "$here/cutile_names.py" "$KPACK_BIN/tests/stub/cutile" 3000
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == "12000 names, "* ]]
}

@test "modules of every version are described as they were written" {
	run python3 "$here/mktileir.py" check "$kpack" "$work" 60
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = "60 modules" ]
}

@test "several signatures of one function are several kernels of one file" {
	module 13.3 sm_100 axpy_Kt1_A1f32_1l0_p16_Sf32_I128 axpy_Kt1_A1f64_1l0_w_Sf64_I_7
	run "$kpack" inspect "$work/k.tileirbc"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"kernel axpy_Kt1_A1f32_1l0_p16_Sf32_I128"* ]]
	[[ $output == *"ArrayConstraint(ct.float32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False, base_addr_divisible_by=16),"* ]]
	[[ $output == *"float *p0: "* ]]
	[[ $output == *"int32_t p0.shape[0]: "* ]]
	[[ $output == *"float p1: "* ]]
	[[ $output == *"kernel axpy_Kt1_A1f64_1l0_w_Sf64_I_7"* ]]
	[[ $output == *"index_dtype=ct.int64"* ]]
	[[ $output == *"int64_t p0.stride[0]: "* ]]
	[[ $output == *" -7,"* ]]
	[[ $output == *"], CallingConvention.cutile_python_v1())"* ]]
}

@test "the error for a name that is almost valid has the place and the reason" {
	module 13.1 sm_100 axpy_Kt1_Sf33 plain axpy_Kt9
	run "$kpack" inspect "$work/k.tileirbc"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *'no cuTile signature: offset 10: no data type is called "f33"'* ]]
	[[ $output == *"no cuTile signature: offset 6: calling convention t9 is not known"* ]]
	[ "$(grep -c "no cuTile" <<<"$output")" = 2 ]
}

@test "as JSON a signature is data" {
	module 13.2 sm_120 f_Kt2_T2Si32LA2f16_1s16_3l0_I64
	"$kpack" inspect --json "$work/k.tileirbc" >"$work/json"
	python3 - "$work/json" <<-'P'
		import json, sys
		image = json.load(open(sys.argv[1]))["images"][0]
		assert image["object_arch"] == "sm_120", image
		s = image["kernels"][0]["signature"]
		assert s["function"] == "f" and s["convention"] == "cutile_python_v2", s
		first, second = s["parameters"]
		assert second == {"kind": "constant", "type": "int", "value": 64}, second
		scalar, items = first["items"]
		assert first["kind"] == "tuple" and scalar == {"kind": "scalar", "dtype": "int32"}
		array = items["element"]
		assert array["axes"][0] == {"shape_constant": 16, "stride_lower_bound_incl": 0}
		assert array["axes"][1] == {"stride_lower_bound_incl": 0}
		names = [(a["name"], a["type"]) for a in s["arguments"]]
		assert names == [("p0[0]", "int32_t"), ("p0[1]", "int64_t *"),
				 ("p0[1].length", "int32_t")], names
		words = s["arguments"][1]["words"]
		assert words == ["pointer", "shape[0]", "shape[1]", "stride[0]", "stride[1]"], words
	P
}

@test "newer bytecode is recognised, and said to be newer" {
	module 13.5 - f_Kt1
	run "$kpack" inspect "$work/k.tileirbc"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"tileirbc"* ]]
	[[ $output == *"only bytecode 13.1 to 13.4 is known"* ]]
}

@test "a damaged module is refused with the place" {
	module 13.4 sm_100 f_Kt1
	truncate -s -5 "$work/k.tileirbc"
	run "$kpack" inspect "$work/k.tileirbc"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"tileir at offset 0: offset "*"passes the end"* ]]
}

@test "a cubin's kernels have signatures too, and the bytes of arguments they state" {
	run "$kpack" inspect "$KPACK_SRC/tests/data/cutile/kernels.cubin"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"ScalarConstraint(ct.float64),"* ]]
	"$kpack" inspect --json "$KPACK_SRC/tests/data/cutile/kernels.cubin" >"$work/json"
	python3 - "$work/json" <<-'P'
		import json, sys
		kernels = json.load(open(sys.argv[1]))["images"][0]["kernels"]
		assert len(kernels) == 2, kernels
		for kernel in kernels:
		    end = 0
		    for a in kernel["signature"]["arguments"]:
		        end += -end % a["bytes"] + a["bytes"]  # as C aligns them
		    assert kernel["kernarg"] == end, (kernel, end)
	P
}

@test "packed, a file of kernels keeps their signatures as metadata" {
	mkdir "$work/in"
	cp "$KPACK_SRC/tests/data/cutile/kernels.cubin" "$work/in"
	module 13.2 sm_120 f_Kt1_Si32_I7 plain g_Kt1_Q
	mv "$work/k.tileirbc" "$work/in"
	"$kpack" pack --archives-only --quiet --group g "$work/in" "$work/out"
	"$kpack" ls --json "$work"/out/.kpack/*.kpack >"$work/json"
	cat "$work/json"
	python3 - "$work/json" <<-'P'
		import json, sys
		entries = {e["arch"]: e for e in json.load(open(sys.argv[1]))}
		assert set(entries) == {"sm_100", "sm_120"}, entries
		assert entries["sm_100"]["type"] == "cubin" and entries["sm_120"]["type"] == "tileirbc"
		cubin = entries["sm_100"]["metadata"]["signatures"]
		assert {s["function"] for s in cubin} == {"axpy"} and len(cubin) == 2, cubin
		f, g = entries["sm_120"]["metadata"]["signatures"]
		assert f["python"] == ("KernelSignature([ScalarConstraint(ct.int32), 7], "
				       "CallingConvention.cutile_python_v1())"), f
		assert [(a["type"], a["name"]) for a in f["arguments"]] == [("int32_t", "p0")]
		assert g["symbol"] == "g_Kt1_Q" and g["error"].startswith("offset 6: "), g
	P
}
