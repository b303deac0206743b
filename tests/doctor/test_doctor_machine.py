import io
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from rich.console import Console

from kbtui import doctor
from kbtui.doctor import Check, State, diagnose_machine, render
from kbtui.doctor_probes.child import ask_python, output_lines
from kbtui.doctor_probes.llm import ollama_check
from kbtui.domain.codec import to_plain

EXPECTED = ("python", "packages", "cores", "memory", "gpu", "cuda", "nsight compute", "counters", "c compiler",
            "sandbox", "git", "sqlite", "workspace", "terminal", "copying", "ollama")  # fmt: skip


def test_this_machine_is_examined_in_order_and_can_run_a_search(tmp_path):
    checks = diagnose_machine(tmp_path / "not-yet")
    assert tuple(check.name for check in checks) == EXPECTED
    assert [check for check in checks if check.state is State.FAIL] == []
    assert all(check.advice for check in checks if check.state is State.WARN)
    assert json.loads(json.dumps(to_plain(checks)))[0]["name"] == "python"


def test_a_probe_that_breaks_is_a_failed_check_beside_the_others(tmp_path, monkeypatch):
    def broken() -> Check:
        raise OSError("no such device")

    monkeypatch.setattr(doctor.storage, "sqlite_check", broken)
    by_name = {check.name: check for check in diagnose_machine(tmp_path)}
    assert by_name["sqlite"].state is State.FAIL
    assert "no such device" in by_name["sqlite"].found
    assert by_name["git"].state is State.OK


def test_the_table_says_the_state_in_words_and_the_advice_below():
    out = io.StringIO()
    render((Check("git", State.FAIL, "none [here]", "install it"),), Console(file=out, width=80))
    assert "x FAIL" in out.getvalue()
    assert "none [here]" in out.getvalue()
    assert "-> install it" in out.getvalue()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise ValueError('broken driver')", "ValueError: broken driver"),
        ("import os; os.abort()", "exit status -6"),
        ("pass", "it printed no answer"),
        ("print([1])", "it printed no answer"),
        ("import time; time.sleep(60)", "no answer within 0.5 s"),
    ],
)
def test_a_child_that_fails_in_any_way_is_an_error_in_one_line(source, error):
    assert ask_python(source, timeout_s=0.5 if "sleep" in source else 20) == {"error": error}


def test_a_program_that_is_not_there_has_no_output():
    assert output_lines(["no-such-program-here"]) == []
    assert output_lines([sys.executable, "-c", "print('a'); print('b')"]) == ["a", "b"]


class _Ollama(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"models": [{"model": "qwen2.5-coder:7b"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_models_of_a_server_that_answers_are_listed_and_a_dead_one_is_absent():
    server = HTTPServer(("127.0.0.1", 0), _Ollama)
    host = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, args=(0.05,))
    serving.start()
    try:
        assert ollama_check(host).found == f"at {host}: qwen2.5-coder:7b"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    assert ollama_check(host).state is State.ABSENT
