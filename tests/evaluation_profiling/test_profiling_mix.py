"""What a kernel's PTX is made of, by kind."""

import pytest

from kbtui.evaluation.compile.listing import instruction_mix, read_listing


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("\tex2.approx.ftz.f32 \t%f1, %f2;", "special"),
        ("\t@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", "load"),
        ("\tcp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;", "async_copy"),
        ("\tst.global.b32 [ %rd2 + 0 ], { %r9 };", "store"),
        ("\tdiv.s64 \t%rd5, %rd6, %rd7;", "wide_division"),
        ("\trem.u32 \t%r5, %r6, %r7;", "division"),
        ("\tdiv.full.f32 %r5, %r6, %r7;", "float_division"),
        ("\tbar.sync \t0;", "barrier"),
        ("\tst.shared.v2.b32 [ %r3 + 0 ], { %r1, %r2 };", "shared"),
        ("\tfma.rn.f32 \t%f1, %f2, %f3, %f4;", "float"),
        ("\tadd.s32 \t%r1, %r2, %r3;", "integer"),
        ("\tshl.b64 \t%rd1, %rd2, 2;", "integer"),
    ],
)
def test_each_instruction_counts_as_its_kind(line: str, kind: str) -> None:
    assert instruction_mix(line + "\n") == ((kind, 1),)


def test_labels_comments_and_declarations_count_as_nothing() -> None:
    assert instruction_mix(".version 8.7\n// add.s32 in a comment\n$L__BB0_1:\n\t.reg .b32 \t%r<20>;\n\tret;\n") == ()


LOOP = """
	bar.sync 	0;
$L__BB0_2:                              // =>This Inner Loop Header: Depth=1
	bar.sync 	0;
	@%p3 bra 	$L__BB0_3;
	bar.sync 	0;
$L__BB0_3:
	bar.sync 	0;
	@!%p2 bra 	$L__BB0_2;
	bar.sync 	0;
"""


def test_barriers_between_a_label_and_the_branch_back_to_it_are_in_a_loop() -> None:
    assert dict(instruction_mix(LOOP)) == {"barrier": 5, "loop_barrier": 3}


def test_a_branch_ahead_is_no_loop() -> None:
    assert dict(instruction_mix("\tbra.uni \t$L__1;\n\tbar.sync \t0;\n$L__1:\n\tret;\n")) == {"barrier": 1}


def test_the_widest_load_may_be_an_asynchronous_copy() -> None:
    text = "\tld.global.b32 %r1, [ %rd1 + 0 ];\n\tcp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;\n"
    assert read_listing("", text).load_bytes_max == 16
