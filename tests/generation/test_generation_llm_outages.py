"""A search whose language model's server is killed and started again goes on; what it lost would be told."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.llm_outages import faults_of

ROOT = Path(__file__).parents[2]
SERVER = """
import sys, time
sys.path.insert(0, {root!r})
from kbtui.problems import load_problem
from tests.fakes.ollama_server import FakeOllama, serve
class Numbered(FakeOllama):
    def next_reply(self):
        return f"```python\\n{{load_problem('mat_vec').kernel_source}}\\nUNUSED = {{time.time_ns()}}\\n```"
with serve(Numbered(), {port}) as fake:
    time.sleep(180)
"""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.slow
def test_a_search_outlives_its_models_server_twice(tmp_path):
    port, script, pid = free_port(), tmp_path / "server.py", tmp_path / "pid"
    script.write_text(SERVER.format(root=str(ROOT), port=port))
    up = f"{sys.executable} {script} >/dev/null 2>&1 & echo $! >{pid}; sleep 1.5"
    subprocess.run(up, shell=True, check=True)
    out, transcript = tmp_path / "out.json", tmp_path / "said.txt"
    command = [
        sys.executable, str(ROOT / "benchmarks" / "llm_outages.py"), "mat_vec", "--model", "coder:7b",
        "--down", f"kill -9 $(cat {pid})", "--up", up, "--at", "10,26", "--for", "10", "--workspace",
        str(tmp_path / "ws"), "--out", str(out), "--transcript", str(transcript),
        "--", "--generator", "llm", "--device", "model:a100", "--budget", "60s",
    ]  # fmt: skip
    env = {"OLLAMA_HOST": f"http://127.0.0.1:{port}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    finally:
        subprocess.run(f"kill $(cat {pid})", shell=True, check=False)

    found = json.loads(out.read_text())
    assert (done.returncode, found["faults"]) == (0, []), done.stdout[-2000:]
    assert any(asked["failed"] for asked in found["llm_asked"]), transcript.read_text()[-6000:]
    assert transcript.read_text().count("=== the server is killed") == 2
    lost = [{"at_s": 10.0, "events": [{"seq": 0, "event": {"type": "RunStarted"}}]}]
    assert any("not there as it was" in fault for fault in faults_of(tmp_path / "ws", 0, lost))
