"""The prompt for a language model: fixed sections, in a fixed order, from one request. Pure."""

from collections.abc import Iterable

from kbtui.domain.measurement import Clock
from kbtui.domain.problem import ShapeRole
from kbtui.domain.proposal import ProposalRequest
from kbtui.generation.repair.values import Rejected
from kbtui.generation.sameness import Repeats
from kbtui.generation.signature import input_names

SECTIONS = ("Task", "Hardware", "Kernel to improve", "Diagnosis", "Hints", "What was tried", "Answer")
_MAX_TRIED = 12


def build_prompt(request: ProposalRequest, rejected: Iterable[Rejected] = (), repeats: Repeats = Repeats()) -> str:
    """The whole prompt as text. ``rejected`` are earlier replies no kernel could be made of, ``repeats`` how many
    said nothing new.

    The same request gives the same text. Every section is there, empty ones with a word that says so.
    """
    texts = (
        _task(request),
        _hardware(request),
        _parent(request),
        _diagnosis(request),
        _hints(request),
        _tried(request, tuple(rejected), repeats),
        _answer(request),
    )
    return "\n\n".join(f"## {title}\n{text}" for title, text in zip(SECTIONS, texts, strict=True)) + "\n"


def _task(request: ProposalRequest) -> str:
    spec = request.problem.spec
    verb = "Make this Triton kernel faster" if request.parent_source else "Write a fast Triton kernel"
    timed = ", ".join(shape.name for shape in spec.shapes_of(ShapeRole.TUNE))
    allowed = ", ".join(spec.allowed_ops) if spec.allowed_ops else "none but views and allocation"
    return "\n".join(
        (
            f"{verb}: {spec.name} ({spec.summary}), {spec.dtype}.",
            f"Entry point: kernel_function({', '.join(input_names(request.problem, request.parent_source))}).",
            f"It is timed on {timed}, and must be right on any other size, prime ones and 1 too.",
            f"It must compute what this reference computes, within a relative L2 error of {spec.tolerance.floor:g}:",
            _fenced(request.problem.reference_source),
            f"All computation happens in Triton kernels of your own; torch operations allowed beside them: {allowed}.",
        )
    )


def _hardware(request: ProposalRequest) -> str:
    d = request.device
    modelled = " Times are modelled from its data sheet." if d.clock is Clock.MODELLED else ""
    return (
        f"{d.name}: compute capability {d.arch / 10:.1f}, {d.n_sms} SMs at {d.sm_clock_mhz:.0f} MHz, "
        f"{d.dram_gb_s:.0f} GB/s of memory bandwidth, {d.l2_bytes >> 20} MiB of L2, "
        f"{d.shared_per_block >> 10} KiB of shared memory a block, {d.registers_per_sm} registers an SM, "
        f"{d.fp32_tflops:g} TFLOP/s fp32, {d.tf32_tflops:g} TF32, {d.fp16_tflops:g} fp16.{modelled}"
    )


def _parent(request: ProposalRequest) -> str:
    if request.parent_source is None:
        return "There is none yet."
    summary = f"{request.parent.summary}:\n" if request.parent is not None else ""
    return f"{summary}{_fenced(request.parent_source)}"


def _diagnosis(request: ProposalRequest) -> str:
    d = request.diagnosis
    if d is None:
        return "Not diagnosed yet."
    lines = [
        d.sentence,
        f"{d.time_us:.1f} us on {d.shape}; the problem's bound there is {d.bound_us:.1f} us "
        f"({d.headroom:.2f} times the bound; from {d.source}).",
    ]
    for finding in d.findings:
        evidence = ", ".join(e.told for e in finding.evidence)
        lines.append(f"- {finding.bottleneck.value.replace('_', ' ')} (weight {finding.weight:.2f}): {evidence}")
    return "\n".join(lines)


def _hints(request: ProposalRequest) -> str:
    lines = [f"- From the person who runs this search: {text}" for text in request.user_hints]
    lines += [f"- {hint.advice}" for hint in request.hints]
    return "\n".join(lines) if lines else "None."


def _tried(request: ProposalRequest, rejected: tuple[Rejected, ...], repeats: Repeats) -> str:
    lines = [_sibling(s.summary, s.outcome, s.ratio) for s in request.siblings[-_MAX_TRIED:]]
    lines += [f"- Your earlier reply could not be used: {r.detail}" for r in rejected]
    lines += [f"- {repeats.told}"] if repeats.told else []
    return "\n".join(lines) if lines else "Nothing yet."


def _sibling(summary: str, outcome: str, ratio: float | None) -> str:
    speed = f" ({ratio:.2f} times as fast as the first kernel)" if ratio is not None else ""
    return f"- {summary}: {outcome}{speed}"


def _answer(request: ProposalRequest) -> str:
    names = ", ".join(input_names(request.problem, request.parent_source))
    return (
        f"{_unlike(request)}Answer with one Python code block and nothing else. It is a whole file: its imports "
        "(torch, triton, triton.language as tl), kernels under @triton.jit with every size used in a tile's shape "
        f"annotated tl.constexpr, and def kernel_function({names}) that allocates the output, launches the kernels "
        "and returns it. Mask every load and store. No examples, no tests, no timing."
    )


def _unlike(request: ProposalRequest) -> str:
    """Small models give the kernel back as it came: 18 of the first 22 replies of one did."""
    if request.parent_source is None:
        return ""
    return "Change what the diagnosis and the hints point at: a copy of the kernel above is thrown away. "


def _fenced(source: str) -> str:
    return f"```python\n{source.strip()}\n```"
