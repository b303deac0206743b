"""Vetting from the command line: lines, exit codes, the folder that --harden writes."""

import json
from pathlib import Path

from tests.fakes.commands import kbtui

FILES = Path(__file__).parents[1] / "data" / "kernelbench_vetting"
MODEL = ("--device", "model:a100")


def test_a_file_that_zeros_pass_is_refused_with_that_reason_and_hardened_into_one_that_is_sound(tmp_path: Path) -> None:
    workspace, sound, file = tmp_path / "runs", tmp_path / "sound", tmp_path / "uniform_softmax.py"
    text = (FILES / file.name).read_text()
    file.write_text(text.replace("batch_size = 4096", "batch_size = 64").replace("dim = 393216", "dim = 8192"))
    refused = kbtui("verify", file, *MODEL, "-w", workspace)
    assert refused.returncode == 2
    assert "zeros would pass on 64x256 and 64x8192" in refused.stdout
    assert "--harden looks for" in refused.stdout
    hardened = kbtui("verify", file, "--harden", "--write", sound, *MODEL, "-w", workspace)
    assert hardened.returncode == 0, hardened
    assert f"is sound with the declaration in {sound}: " in hardened.stdout
    assert f"wrote {sound}" in hardened.stdout
    done = kbtui("verify", sound, "--json", *MODEL, "-w", workspace)
    told = json.loads(done.stdout)
    assert (done.returncode, told["verdict"], told["vetting"][0]["complaints"]) == (0, "sound", [])


def test_a_search_on_an_unsound_problem_is_refused_in_one_line_and_leaves_no_run(tmp_path: Path) -> None:
    done = kbtui("run", FILES / "uniform_relu.py", "--headless", "--candidates", "1", *MODEL, "-w", tmp_path / "runs")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert "uniform_relu is not fit for a search: x returned would pass on 128x128 and 4096x16384" in line
    assert "--unvetted" in line
    assert not list((tmp_path / "runs" / "kernels.git" / "refs" / "heads").rglob("*"))


def test_explain_prints_the_policy_and_the_gate_without_running_anything(tmp_path: Path) -> None:
    told = json.loads(kbtui("verify", "softmax", "--explain", "--json", *MODEL, cwd=tmp_path).stdout)
    assert told["proof"] == "interpreter"
    assert {"kind": "values", "shape": "1x1", "distribution": "normal"} in told["plan"]["1"]
    assert told["left_out"] == ["257x16383", "3x65537"]
    assert "What a candidate for softmax may do" in told["policy"]
    assert not list(tmp_path.iterdir())
