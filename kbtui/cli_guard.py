"""The process's boundary: what a command raises becomes one line on stderr and an exit code. Effects: stderr."""

import os
import sys

import typer

from kbtui.console import hush, tell
from kbtui.errors import ExitCode, KbtuiError
from kbtui.room import is_for_want_of_room

COMPLETE = "_KBTUI_COMPLETE"


def guarded(app: typer.Typer, words: list[str]) -> int:
    """Run a command line. KBTUI_TRACEBACK=1 shows a defect's traceback."""
    try:
        return _invoke(app, words)
    except KbtuiError as error:
        return _fail(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except typer.TyperException as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", None) or "kbtui"
        return _fail(f"{error.format_message().rstrip('.')}; {asked} --help lists what there is", ExitCode.USAGE)
    except BrokenPipeError:
        hush()
        return ExitCode.DONE
    except OSError as error:
        return _fail(_of_system(error), ExitCode.NO_DEVICE)
    except Exception as error:
        if os.environ.get("KBTUI_TRACEBACK"):
            raise
        first = (str(error).splitlines() or [""])[0][:300]
        told = f"a defect of kbtui: {type(error).__name__}: {first}"
        return _fail(f"{told}; please report it, with what KBTUI_TRACEBACK=1 shows", ExitCode.ENGINE_FAILED)


def _invoke(app: typer.Typer, words: list[str]) -> int:
    command = typer.main.get_command(app)
    if COMPLETE in os.environ:  # a shell asks what may come next; answers and ends the process
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
        command.main(args=words, prog_name="kbtui", complete_var=COMPLETE)
    try:
        with command.make_context("kbtui", words) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()
    return ExitCode.DONE


def _of_system(error: OSError) -> str:
    if is_for_want_of_room(error):
        return f"no room left to write {error.filename or 'what it says'}; make room, then try again"
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"{what}; mend that, then try again"


def _fail(line: str, code: ExitCode) -> ExitCode:
    tell(f"kbtui: {' '.join(line.split())}")
    return code
