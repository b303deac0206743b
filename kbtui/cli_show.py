"""Commands that print what is known of a run and of its candidates."""

from kbtui.cli_words import AsJson, CandidateName, RunName, RunOption, Workspace, finish, workspace_of


def status(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Where a run stands. Is it alive, how good is the best, what was spent."""
    from kbtui.commands.show import status as show_status

    finish(show_status(workspace_of(workspace), run, as_json))


def list_runs(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The runs of this workspace, latest first."""
    from kbtui.commands.show import list_runs as show_runs

    finish(show_runs(workspace_of(workspace), as_json))


def show(
    candidate: CandidateName = "best",
    run: RunOption = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """One candidate. Its origin, every rung's outcome with its reason, and its code."""
    from kbtui.commands.show import show as show_candidate

    finish(show_candidate(workspace_of(workspace), run, candidate, as_json))


def diff(
    old: CandidateName = "first",
    new: CandidateName = "best",
    run: RunOption = None,
    workspace: Workspace = None,
) -> None:
    """Unified diff of two candidates. Without words, from the first kernel to the best."""
    from kbtui.commands.show import diff as show_diff

    finish(show_diff(workspace_of(workspace), run, old, new))


def log(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The story of a run, one event a line. With --json each line is JSON."""
    from kbtui.commands.show import log as show_log

    finish(show_log(workspace_of(workspace), run, as_json))


def best(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The champion, its times and PyTorch's. Exit 1 where nothing better than the first kernel was found."""
    from kbtui.commands.show import best as show_best

    finish(show_best(workspace_of(workspace), run, as_json))


def prompt(
    candidate: CandidateName = "best",
    run: RunOption = None,
    workspace: Workspace = None,
) -> None:
    """Print the prompt for a better kernel than a candidate. Anyone may answer it, see submit."""
    from kbtui.commands.show import prompt as show_prompt

    finish(show_prompt(workspace_of(workspace), run, candidate))
