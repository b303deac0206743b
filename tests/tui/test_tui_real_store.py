"""The viewer over a real workspace: git, SQLite, and the store's own reader."""

from dataclasses import replace
from pathlib import Path

from fake_source import InlineExecutor
from recorded_run import recorded, samples

from kbtui.domain.event import CandidateAdmitted, CommandKind, RungCompleted, RunStarted
from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.source import RunSource
from kbtui.tui.widgets.line_list import LineList
from store.reader import Reader
from store.record import RunLedger, create_run
from store.workspace import Workspace, create_workspace


def record(workspace: Workspace) -> RunLedger:
    """The recorded run, written by the store as an engine would."""
    recorder = recorded()
    started = recorder.envelopes[0].event
    assert isinstance(started, RunStarted)
    ledger = create_run(workspace, replace(started, run=""))
    commits: dict[str, str] = {}
    for envelope in recorder.envelopes[1:60]:
        event = envelope.event
        if isinstance(event, CandidateAdmitted):
            c, text = event.candidate, recorder.sources[event.commit]
            parents = tuple(commits[p] for p in c.parents)
            commits[c.id] = ledger.commit_candidate(int(c.id[1:]), text, parents, c.summary, ())
            event = replace(event, commit=commits[c.id])
        if isinstance(event, RungCompleted):
            event = replace(event, outcome=replace(event.outcome, artifacts=()))
        ledger.append(event, envelope.wall_s, envelope.gpu_s)
    ledger.beat("measure", None, None, 200.0, 80.0)
    ledger.samples(tuple(samples(3)))
    return ledger


async def test_a_run_in_a_real_store_is_shown_and_a_command_reaches_its_engine(tmp_path: Path) -> None:
    ledger = record(create_workspace(tmp_path / ".kbtui"))
    with Reader(create_workspace(tmp_path / ".kbtui")) as reader:
        source: RunSource = reader
        options = ViewerOptions(refresh_hz=0.01)
        viewer = Viewer(source, ledger.run, options, executor=InlineExecutor())
        async with viewer.run_test(size=(140, 40)) as pilot:
            for _ in range(4):
                await pilot.pause()
            cards = viewer.screen.query_one("#cards", LineList)
            assert cards.n_rows == len(reader.state(ledger.run).tried)
            diff = viewer.screen.query_one("#diff", LineList)
            assert "tl.range(" in "".join(s.text for y in range(diff.size.height) for s in diff.render_line(y))
            await pilot.press("h", *"exp2", "enter")
            await pilot.pause()
        taken = ledger.take_commands()
    ledger.close()
    assert [(c.kind, c.argument) for c in taken] == [(CommandKind.HINT, "exp2")]
