"""What the viewer sends over the line, by the bucket's law and on a real terminal."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.tui.thrift import BURST_BYTES, BYTES_A_SECOND, Thrift
from tests.fakes.commands import ROOT


@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(0, 60_000)), min_size=1, max_size=60))
def test_who_draws_only_when_it_is_allowed_keeps_to_the_rate(steps):
    thrift, now_s, sent, most = Thrift(), 0.0, 0, max(size for _, size in steps)
    for wait_s, size in steps:
        now_s += wait_s
        if thrift.allows(now_s):
            thrift.sent(size, now_s)
            sent += size
        assert sent <= BURST_BYTES + BYTES_A_SECOND * now_s + most


def test_it_allows_again_once_the_line_has_carried_it():
    thrift = Thrift()
    thrift.sent(BURST_BYTES + BYTES_A_SECOND, 0.0)
    assert not thrift.allows(0.9)
    assert thrift.allows(1.1)


def test_what_a_rest_saves_is_no_more_than_a_burst():
    thrift = Thrift()
    thrift.sent(BURST_BYTES + 1, 3600.0)
    assert not thrift.allows(3600.0)


def test_a_key_held_down_does_not_blind_the_viewer_for_long():
    thrift = Thrift()
    for n in range(100):
        thrift.sent(20_000, n * 0.03)
    assert thrift.allows(3.0 + 2.1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    out = tmp_path_factory.mktemp("traffic") / "traffic.json"
    words = [sys.executable, str(ROOT / "benchmarks/viewer_traffic.py"), "--refresh", "4", "--seconds", "6"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*words, "--out", str(out)], check=True, capture_output=True, env=environment, timeout=240)
    return json.loads(out.read_text())


@pytest.mark.slow  # in CI the same limits hold in a pseudo-terminal, without a search beside it (test_tui_terminal)
@pytest.mark.parametrize(("how", "most"), [("at_rest", 200), ("busy", 60_000)])
def test_on_a_terminal_of_120x40_it_sends_no_more_than_a_thin_line_carries(measured, how, most):
    assert measured[f"{how}_bytes_a_second"]["refresh_4"] < most


@pytest.mark.slow
def test_a_busy_screen_does_change(measured):
    assert measured["busy_bytes_a_second"]["refresh_4"] > 1_000
