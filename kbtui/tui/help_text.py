"""What each pane is for, and what its signs mean: the text of the help."""

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.keymap import Keymap, shown_key
from kbtui.tui.keys import KEYS, LIST_KEYS, Group
from kbtui.tui.text import Line, Role, line, wrap

PANES: dict[str, tuple[str, str]] = {
    "rungs": (
        "Rungs",
        "The ladder of fidelities. Each column is a rung: its part of what was spent, who waits or runs there, how "
        "many it has seen, pruned, rejected. Below are the candidates: what runs first, then what waits, then the "
        "latest to finish. The last lines say why the one under the cursor was promoted or pruned. The bottleneck "
        "and the diff follow the cursor; the cursor follows what runs until you move it (g follows again). When the "
        "run has ended it starts on the champion. v turns the list into a board with a column a rung and back; cap is "
        "the most a rung may take of the budget while others wait.",
    ),
    "live": (
        "Live benchmarks",
        "The running candidate beside the one it has to beat, in interleaved pairs, so both see the same clocks. The "
        "ratio is above 1 when the candidate is faster; its 95 % interval must clear 1 before that counts. The curve "
        "is the best so far on the measuring rungs; a star is a champion confirmed in fresh processes. The lines "
        "across it are PyTorch, eager and compiled, where they were timed. t: over wall time or GPU time.",
    ),
    "bottleneck": (
        "Bottleneck",
        "What bounds the kernel under the cursor, in one sentence, with the numbers behind it. Bound is how much of "
        "the problem's own limit it reaches; the bars are how busy each unit of the chip was, and what warps waited "
        "for. The roofline has operations a byte across and operations a second up: the slope is the memory's limit, "
        "the flat part the arithmetic's. If it was not profiled, the kernel it was made from is shown. The hints say "
        "what was tried on it and what became of each, and which advice for it was not tried yet.",
    ),
    "diff": (
        "Diff",
        "What the candidate under the cursor changed. - removed, + added, ~ changed with the changed words "
        "underlined. d compares with the parent, the champion, the first kernel or the marked candidate.",
    ),
    "history": (
        "History",
        "Every candidate of the run. Score is its speedup over the run's first kernel on the highest rung that timed "
        "it. o changes the order, i leaves only what was a best once, / filters, enter opens. Where the order is not "
        "by age what failed comes last.",
    ),
    "lineage": (
        "Lineage",
        "The tree of candidates: each under the one it was made from, with its score over the first kernel as a "
        "number, a bar and a colour (green within a tenth of the best, yellow within a third, blue slower). i leaves "
        "only what was a best once and what led to it; / keeps the line that leads to what it finds. Left goes to "
        "the parent, right to the first child.",
    ),
    "compare": (
        "Compare",
        "The candidate under the cursor beside another: m marks that other, c comes here, d takes the parent, the "
        "champion or the first kernel instead. Above all whether the two were timed in pairs: only then has their "
        "ratio an interval.",
    ),
    "log": ("Log", "Every event, newest first, in the words of the ledger: git log --first-parent runs/RUN."),
    "runs": ("Runs", "The searches of this workspace, newest first. Enter opens one; m marks one, c compares another."),
    "compare_runs": (
        "Two runs",
        "What each searched, spent and found, how fast its best moved, and what changed between the two best kernels. "
        "Times are compared only where problem, device and clock are the same; measured and modelled never are.",
    ),
    "detail": (
        "Candidate",
        "All that is known of one candidate. Pages: source, gate report, samples, profile, prompt and reply; ] and [ "
        "turn them, a number goes to one. Pin, prune, promote and submit act on this candidate.",
    ),
}


def help_lines(pane: str, width: int, g: Glyphs, keymap: Keymap = ()) -> list[Line]:
    """Help for a pane: what it shows, the signs, every key."""
    name, about = PANES.get(pane, PANES["rungs"])
    out: list[Line] = [((name, Role.TITLE),), *wrap(about, width), ()]
    if pane in ("rungs", "history", "lineage"):
        out += [*signs(g), ()]
    for group in Group:
        out.append(((group.value, Role.TITLE),))
        for key in KEYS:
            if key.group is group:
                out += _key_lines(shown_key(key, keymap), key.help, width)
        if group is Group.MOVE:
            for shown, text in LIST_KEYS:
                out += _key_lines(shown, text, width)
        out.append(())
    return out


def _key_lines(shown: str, text: str, width: int) -> list[Line]:
    rows = wrap(text, width, indent=" " * 14)
    first = (
        line((f"  {shown:<12}", Role.KEY), rows[0][0][0][14:])
        if len(shown) <= 11
        else line((f"  {shown}  ", Role.KEY), text)
    )
    return [first, *rows[1:]] if len(shown) <= 11 else [first]


def signs(g: Glyphs) -> list[Line]:
    """What the signs beside candidates mean."""
    steps = f"{g.step_done}{g.step_done}{g.step_here}{g.step_todo}{g.step_todo}"
    return [
        line(f"{g.running} running  {g.waiting} waiting, or unfinished when the run ended"),
        line(f"{g.champion} champion  {g.incumbent} incumbent"),
        line(f"{g.was_best} was the champion once"),
        line(f"{g.pruned} pruned  {g.rejected} rejected  {g.unverified} unverified (our fault or the machine's)"),
        line(f"{g.pinned} pinned  {g.marked} marked  {g.pending} asked, not done yet"),
        line(f"{steps} how far up the ladder: passed, here, to come"),
    ]
