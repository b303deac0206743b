"""verify --harden: what makes a file in KernelBench's format sound, printed or written. Effects: a device, files."""

import json
import shlex
from pathlib import Path

from kbtui.commands.verify import Asked
from kbtui.commands.vetting_text import print_nulls
from kbtui.domain.codec import to_plain
from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.engine.ports import Vets
from kbtui.errors import ExitCode, UsageError
from kbtui.evaluation.vetting.harden import Hardened, declaration, harden
from kbtui.room import need_room


def harden_file(asked: Asked, into: Path | None) -> ExitCode:
    """Prints the problem.toml that makes the file sound; with ``into``, writes it there with the file beside it.

    Raises UsageError for a problem that is not such a file, cannot be tried, or whose folder is there already.
    """
    from kbtui.evaluation.devices import open_device
    from kbtui.problems import load_problem
    from store.workspace import create_workspace

    problem = load_problem(asked.problem)
    file = Path(problem.path)
    if problem.format is not ProblemFormat.KERNELBENCH or not file.is_file():
        raise UsageError(f"{asked.problem} declares its own inputs", "--harden is for files in KernelBench's format")
    if not problem.spec.shapes[0].dims:
        raise UsageError(f"{file} names no sizes", "put its sizes into constants that get_inputs uses")
    if into is not None and into.exists():
        raise UsageError(f"{into} is there already", "name a new folder with --write")
    need_room(asked.workspace)
    device = open_device(asked.device, create_workspace(asked.workspace).root)
    try:
        if not isinstance(device, Vets):
            raise UsageError(f"{asked.device} cannot vet a problem", "use --device model:a100 or cuda:N")
        hardened = harden(problem, device.vet)
    finally:
        device.close()
    return _told(hardened, file, into, asked)


def _told(hardened: Hardened, file: Path, into: Path | None, asked: Asked) -> ExitCode:
    text = declaration(hardened.problem.spec, file.name)
    sound = hardened.vetting.sound
    if sound and into is not None:
        write_folder(hardened.problem, text, file, into)
    if asked.as_json:
        told = {"sound": sound, "problem_toml": text, "left_out": list(hardened.left_out), "written": None}
        written = {"written": str(into)} if sound and into else {}
        print(json.dumps({**told, **written, "vetting": to_plain(hardened.vetting)}, indent=2))
    else:
        _print(hardened, text, file, into, asked.explain)
    return ExitCode.DONE if sound else ExitCode.USAGE


def _print(hardened: Hardened, text: str, file: Path, into: Path | None, at_length: bool) -> None:
    vetting = hardened.vetting
    if not vetting.sound:
        print(f"no distribution and tolerance was found that makes {file.name} sound:")
        for complaint in vetting.complaints:
            print(f"  {complaint}")
    else:
        where = "below" if into is None else f"in {into}"
        print(f"{file.name} is sound with the declaration {where}: {vetting.headline}")
    for left_out in hardened.left_out:
        print(f"  left out: {left_out}")
    for told in (*vetting.notes, *(f"not vetted: {u}" for u in vetting.unvetted)):
        print(f"  {told}")
    if at_length:
        print_nulls(vetting)
    if vetting.sound and into is None:
        print(f"\n{text}\nwrite it with the file into a folder of its own: --write DIR")
    elif vetting.sound:
        print(f"wrote {into}; next: kbtui run {shlex.quote(str(into))}")


def write_folder(problem: Problem, text: str, file: Path, into: Path) -> None:
    """A problem's folder: its declaration and the file as it is. Raises UsageError where it cannot be written."""
    try:
        into.mkdir(parents=True)
        (into / "problem.toml").write_text(text, encoding="utf-8")
        (into / file.name).write_text(problem.reference_source, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {into}: {error.strerror}", "name another folder with --write") from None
