"""Check the kernel in this folder against its reference, then time it. Needs torch and triton, nothing else.

usage: python check.py [--interpreter] [--no-time] [--json]

On a GPU: every shape and every input distribution the search checked, on the same inputs (check.json holds the seeds),
then times on the GPU's own clock with a cold L2 beside PyTorch and the first kernel. Without one, or with
--interpreter: the smaller shapes on the CPU under Triton's interpreter, whose times say nothing about a GPU.

Each answer is compared with the reference in float64. It passes where its relative L2 error is at most
max(2 x the reference's own error in its dtype, the dtype's floor), no single element is far off, NaN and Inf are
where the reference has them, memory that was never written would show, and no input was written to or returned.
The search also ran each kernel in a sandbox and left its launches out to see the answer go wrong; this script,
which trusts the kernel in front of it, does not.

Exit code: 0 all checks passed, 1 one failed, 2 it could not be run.
"""

import argparse
import ast
import hashlib
import importlib.util
import json
import math
import os
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
CHUNK = 1 << 25
#: Of the check: how much worse than the reference's own error a kernel may be, overall and in one element.
OWN_ERROR_FACTOR, OWN_ELEMENT_FACTOR = 2.0, 4.0
#: Of the timing: rounds in which the sides take turns, Student's t for their number, calls in a block.
ROUNDS, T_95 = 12, 2.201
BLOCK_US, MIN_CALLS, MAX_CALLS = 4000.0, 4, 64
CYCLES_PER_S = 2.0e9

Function = Callable[..., Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check and time the kernel in this folder.")
    parser.add_argument("--interpreter", action="store_true", help="on the CPU even where there is a GPU")
    parser.add_argument("--no-time", action="store_true", help="check only")
    parser.add_argument("--json", action="store_true", help="results as JSON on stdout")
    options = parser.parse_args(arguments)
    plan = json.loads((HERE / "check.json").read_text(encoding="utf-8"))
    on_gpu = torch.cuda.is_available() and not options.interpreter
    device, proof = ("cuda", "gpu") if on_gpu else ("cpu", "interpreter")
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which the kernel does
    say = _quiet if options.json else print
    torch.set_grad_enabled(False)
    say(f"{plan['problem']}: {plan['title']}")
    say(f"on {_device_name(device)}, torch {torch.__version__}")
    edited = hashlib.sha256((HERE / plan["kernel"]).read_bytes()).hexdigest() != plan["kernel_sha256"]
    if edited:
        say(f"note: {plan['kernel']} is not as it was exported; what follows is about the edited file")
    problem = Problem(plan, device)
    results = check_all(problem, load_kernel(HERE / plan["kernel"], problem), plan["checks"][proof], say)
    failed = [r for r in results if r["fault"]]
    times: list[dict[str, Any]] = []
    if not failed and not options.no_time:
        times = time_all(problem, plan, proof, say)
    worst = max((r["error"] for r in results), default=0.0)
    verdict = f"FAILED {len(failed)} of {len(results)} checks" if failed else f"PASSED {len(results)} checks"
    say(f"{verdict} by {proof}; largest relative L2 error {worst:.2e}")
    if options.json:
        told = {"passed": not failed, "proof": proof, "edited": edited, "checks": results, "times": times}
        print(json.dumps({**told, "device": _device_name(device), "torch": torch.__version__}, indent=1))
    return 1 if failed else 0


# The reference and the kernels


class Problem:
    """The reference and its inputs, on one device: a folder's two functions, or a file in KernelBench's format."""

    def __init__(self, plan: dict[str, Any], device: str) -> None:
        self.device, self.tolerance = device, plan["tolerance"]
        self.path = HERE / plan["reference"]
        self._kernelbench = plan["format"] == "kernelbench"
        self._dtype = plan["dtype"]
        self._models: dict[Any, Any] = {}
        sys.path.insert(0, str(self.path.parent))
        self._module = None if self._kernelbench else load_module(self.path, "reference_of_the_run")

    def inputs(self, where: dict[str, Any]) -> tuple[Any, ...]:
        """The tensors of one check: the same seed, the same values as in the search."""
        made = self._model_inputs(where) if self._kernelbench else self._drawn(where)
        return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in made)

    def reference(self, *inputs: Any) -> Any:
        if self._module is not None:
            return self._module.reference(*inputs)
        model, names = self._model_of(inputs)
        given = inputs[: len(inputs) - len(names)]
        state = {n: v.clone() for n, v in zip(names, inputs[len(given) :], strict=True)}
        return torch.func.functional_call(model, state, given)

    def build(self, model_class: Any, inputs: Sequence[Any]) -> Function:
        """A ModelNew: built as Model was, with the state that follows the inputs."""
        model, names = self._model_of(inputs)
        torch.manual_seed(0)
        made = model_class(*model.kb_init).to(self.device)

        def call(*given: Any) -> Any:
            n = len(given) - len(names)
            return torch.func.functional_call(made, dict(zip(names, given[n:], strict=True)), given[:n])

        return call

    def _drawn(self, where: dict[str, Any]) -> tuple[Any, ...]:
        assert self._module is not None
        generator = torch.Generator(self.device).manual_seed(where["seed"])
        takes = self._module.make_inputs.__code__.co_varnames[: self._module.make_inputs.__code__.co_argcount]
        extra = {"dtype": where["dtype"] or self._dtype} if "dtype" in takes else {}
        made = self._module.make_inputs(dict(where["dims"]), generator, self.device, where["distribution"], **extra)
        return tuple(made)

    def _model_inputs(self, where: dict[str, Any]) -> tuple[Any, ...]:
        module = self._sized(tuple(where["dims"].items()))
        torch.manual_seed(where["seed"])
        with torch.device(self.device):
            inputs = tuple(module.get_inputs())
        inputs = tuple(x.to(self.device) if isinstance(x, torch.Tensor) else x for x in inputs)
        torch.manual_seed(0)
        init = module.get_init_inputs()
        model = module.Model(*init).to(self.device)
        model.kb_init = init
        self._models[_sizes(inputs)] = model
        return (*inputs, *model.state_dict().values())

    def _sized(self, dims: tuple[tuple[str, int], ...]) -> types.ModuleType:
        """The file with its whole-number constants of these names set to a shape's sizes."""
        source, sizes = self.path.read_text(encoding="utf-8"), dict(dims)
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in sizes:
                lines[node.lineno - 1] = f"{node.targets[0].id} = {sizes[node.targets[0].id]}"
                for extra in range(node.lineno, node.end_lineno or node.lineno):
                    lines[extra] = ""
        module = types.ModuleType("reference_of_the_run")
        exec(compile("\n".join(lines) + "\n", str(self.path), "exec"), module.__dict__)
        return module

    def _model_of(self, inputs: Sequence[Any]) -> tuple[Any, list[str]]:
        for sizes, model in self._models.items():
            names = list(model.state_dict())
            if _sizes(inputs[: len(inputs) - len(names)]) == sizes:
                return model, names
        raise RuntimeError("the reference has not made these inputs")


def load_module(path: Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_kernel(path: Path, problem: Problem) -> Function:
    """``kernel_function``, or a ``ModelNew`` built when its first inputs are there."""
    module = load_module(path, path.stem + "_of_the_run")
    if hasattr(module, "kernel_function"):
        return module.kernel_function  # type: ignore[no-any-return]
    built: dict[Any, Function] = {}

    def call(*inputs: Any) -> Any:
        key = _sizes(inputs)
        built[key] = built.get(key) or problem.build(module.ModelNew, inputs)
        return built[key](*inputs)

    return call


# Checks


def check_all(
    problem: Problem, kernel: Function, checks: Sequence[dict[str, Any]], say: Callable[[str], None]
) -> list[dict[str, Any]]:
    results = []
    for where in checks:
        began = time.perf_counter()
        try:
            error, fault = check(problem, kernel, where)
        except Exception as raised:  # whatever a kernel raises is a failed check
            error, fault = math.inf, f"raised {type(raised).__name__}: {str(raised).strip().splitlines()[:1]}"
        spent_s = time.perf_counter() - began
        again = ", again" if where["kind"] == "repeat" else ""
        name = f"{where['shape']}, {where['distribution']}{again}"
        say(f"  {'FAIL' if fault else 'ok':4} {name:40} error {error:.2e}  {spent_s:5.2f} s  {fault or ''}".rstrip())
        results.append({"shape": where["shape"], "distribution": where["distribution"], "error": error, "fault": fault})
    return results


def check(problem: Problem, kernel: Function, where: dict[str, Any]) -> tuple[float, str | None]:
    """(largest relative L2 error, what is wrong or None) of one call."""
    inputs = problem.inputs(where)
    with exact_arithmetic():
        own = as_list(problem.reference(*inputs))
        exact = [o.to(own[0].device) for o in oracle(problem, inputs)]
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    with unwritten_memory_is_nan():
        got = as_list(kernel(*inputs))
    if problem.device == "cuda":
        torch.cuda.synchronize()
    fault = kind_fault(got, own, inputs)
    if fault:
        return math.inf, fault
    errors = [errors_of(*triple) for triple in zip(exact, own, got, strict=True)]
    for i, (x, y) in enumerate(zip(inputs, before, strict=True)):
        if isinstance(x, torch.Tensor) and not torch.equal(_bits(x), _bits(y)):
            return errors[0]["rel_l2"], f"argument {i} was written to"
    faults = (value_fault(e, problem.tolerance) for e in errors)
    return max(e["rel_l2"] for e in errors), next((f for f in faults if f), None)


def oracle(problem: Problem, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The reference in float64, on the CPU where the GPU's memory is short."""
    try:
        return as_list(problem.reference(*[_double(x, problem.device) for x in inputs]))
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
    host = [_double(x, "cpu") for x in inputs]
    return as_list(problem.reference(*host))


def kind_fault(got: Sequence[Any], own: Sequence[torch.Tensor], inputs: Sequence[Any]) -> str | None:
    """Outputs of the exact number, type, shape and dtype, in memory of their own."""
    if len(got) != len(own):
        return f"returned {len(got)} values, expected {len(own)}"
    memory = {x.untyped_storage().data_ptr() for x in inputs if isinstance(x, torch.Tensor)}
    for output, expected in zip(got, own, strict=True):
        if type(output) is not torch.Tensor or output.device.type != expected.device.type:
            return f"returned {type(output).__name__}, expected a tensor on {expected.device.type}"
        if output.shape != expected.shape or output.dtype != expected.dtype:
            return f"{tuple(output.shape)} {output.dtype}, expected {tuple(expected.shape)} {expected.dtype}"
        if output.numel() and output.untyped_storage().data_ptr() in memory:
            return "shares memory with an input"
    return None


def errors_of(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor) -> dict[str, float]:
    """Relative L2 and largest absolute error of an output and of the reference's own, over finite positions."""
    sums = dict.fromkeys(("difference", "own_difference", "exact", "n", "nonfinite_wrong"), 0.0)
    largest = {"max_abs": 0.0, "own_max_abs": 0.0}
    for x, mine, theirs in _chunks(exact, own, got):
        for value, key, top in ((theirs, "difference", "max_abs"), (mine, "own_difference", "own_max_abs")):
            finite = torch.isfinite(x) & torch.isfinite(value)
            off = (torch.where(finite, value.double(), 0.0) - torch.where(finite, x, 0.0)).abs()
            sums[key] += float(off.square().sum())
            largest[top] = max(largest[top], float(off.max()))
        finite = torch.isfinite(x) & torch.isfinite(theirs)
        sums["exact"] += float(torch.where(finite, x, 0.0).square().sum())
        sums["n"] += float(finite.sum())
        wrong = (_kind(theirs) != _kind(x.to(mine.dtype))) & (_kind(theirs) != _kind(mine))
        sums["nonfinite_wrong"] += float(wrong.sum())
    return {
        **largest,
        "rel_l2": _relative(sums["difference"], sums["exact"]),
        "own_rel_l2": _relative(sums["own_difference"], sums["exact"]),
        "rms": math.sqrt(sums["exact"] / sums["n"]) if sums["n"] else 0.0,
        "nonfinite_wrong": sums["nonfinite_wrong"],
    }


def value_fault(errors: dict[str, float], tolerance: dict[str, float]) -> str | None:
    """What is wrong with an output's values, in one line."""
    if errors["nonfinite_wrong"]:
        return f"NaN or Inf differs, or memory was never written, at {errors['nonfinite_wrong']:,.0f} elements"
    own, own_abs = (v if math.isfinite(v) else 0.0 for v in (errors["own_rel_l2"], errors["own_max_abs"]))
    limit = max(OWN_ERROR_FACTOR * own, tolerance["floor"])
    if not errors["rel_l2"] <= limit:
        return f"relative L2 error {errors['rel_l2']:.1e} > {limit:.1e} (the reference's own is {own:.1e})"
    bound = max(tolerance["element"] * limit * errors["rms"], OWN_ELEMENT_FACTOR * own_abs)
    if not errors["max_abs"] <= bound:
        return f"one element is off by {errors['max_abs']:.1e} > {bound:.1e}"
    return None


class exact_arithmetic:  # noqa: N801
    """The reference's own error is that of its dtype: no TF32, no half-precision accumulation."""

    def __enter__(self) -> None:
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        self._places = (
            (matmul, "allow_tf32"),
            (matmul, "allow_fp16_reduced_precision_reduction"),
            (matmul, "allow_bf16_reduced_precision_reduction"),
            (cudnn, "allow_tf32"),
        )
        self._before = [getattr(place, name) for place, name in self._places]
        for place, name in self._places:
            setattr(place, name, False)

    def __exit__(self, *_: object) -> None:
        for (place, name), value in zip(self._places, self._before, strict=True):
            setattr(place, name, value)


class unwritten_memory_is_nan:  # noqa: N801
    """torch.empty gives NaN inside, so that what a kernel leaves unwritten shows."""

    def __enter__(self) -> None:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]

    def __exit__(self, *_: object) -> None:
        torch.use_deterministic_algorithms(False)


# Times


def time_all(problem: Problem, plan: dict[str, Any], proof: str, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """On a GPU: kernel, first kernel and PyTorch in turns. Under the interpreter: the kernel's own seconds."""
    kernel = load_kernel(HERE / plan["kernel"], problem)
    shapes = plan["timed"][proof]
    if proof == "interpreter":
        say("times under the interpreter, on the CPU: they say nothing about a GPU")
        return [_interpreted(problem, kernel, where, say) for where in shapes]
    sides: dict[str, Function] = {"kernel": kernel, "PyTorch": problem.reference}
    if plan["first_kernel"]:
        sides["first kernel"] = load_kernel(HERE / plan["first_kernel"], problem)
    say("device time of one call, cold L2, median; ratios to the kernel with 95 % intervals")
    return [row for where in shapes for row in _in_turns(problem, sides, where, plan["recorded"], say)]


def _interpreted(
    problem: Problem, kernel: Function, where: dict[str, Any], say: Callable[[str], None]
) -> dict[str, Any]:
    inputs = problem.inputs(where)
    spent = []
    for _ in range(3):
        began = time.perf_counter()
        kernel(*inputs)
        spent.append((time.perf_counter() - began) * 1e3)
    say(f"  {where['shape']:20} {statistics.median(spent):9.1f} ms")
    return {"shape": where["shape"], "side": "kernel", "interpreter_ms": statistics.median(spent)}


def _in_turns(
    problem: Problem,
    sides: dict[str, Function],
    where: dict[str, Any],
    recorded: dict[str, Any],
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Rounds of one block a side, there and back, so that a drift of the clock falls on all alike."""
    copies = [problem.inputs({**where, "seed": where["seed"] + i}) for i in range(2)]
    bench = Bench()
    n_calls = {name: bench.calls_of(side, copies) for name, side in sides.items()}
    taken: dict[str, list[float]] = {name: [] for name in sides}
    medians: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(ROUNDS):
        for name in list(sides)[:: 1 if turn % 2 == 0 else -1]:
            block = bench.timed(sides[name], copies, n_calls[name])
            taken[name] += block
            medians[name].append(statistics.median(block))
    rows = []
    for name in sides:
        logs = [math.log(other / own) for other, own in zip(medians[name], medians["kernel"], strict=True)]
        mean = statistics.fmean(logs)
        half = T_95 * statistics.stdev(logs) / math.sqrt(len(logs))
        us = statistics.median(taken[name])
        ratio, low, high = (math.exp(v) for v in (mean, mean - half, mean + half))
        row = {"shape": where["shape"], "side": name, "us": us, "ratio": ratio, "low": low, "high": high}
        was = recorded["us"].get(name, {}).get(where["shape"])
        told = f"   the search: {was:.1f} us {recorded['clock']} on {recorded['device']}" if was else ""
        over = "" if name == "kernel" else f"  {ratio:.2f}x ({low:.2f}-{high:.2f})"
        say(f"  {where['shape']:16} {name:13} {us:9.2f} us{over:22}{told}")
        rows.append(row)
    return rows


class Bench:
    """Cold-L2 timing: a device-side sleep while the host queues, then flush, event, call, event, for each call."""

    def __init__(self) -> None:
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        self._flush = torch.zeros(max(2 * cache, 1 << 20) // 4, device="cuda")
        self._sink = torch.zeros((), device="cuda")

    def calls_of(self, side: Function, copies: Sequence[tuple[Any, ...]]) -> int:
        """Warm up, then calls enough for a block."""
        began = time.perf_counter()
        n = 0
        while n < 5 or time.perf_counter() - began < 0.05:
            side(*copies[n % len(copies)])
            torch.cuda.synchronize()
            n += 1
        probe = statistics.median(self.timed(side, copies, MIN_CALLS))
        return max(MIN_CALLS, min(MAX_CALLS, round(BLOCK_US / max(probe, 1.0))))

    def timed(self, side: Function, copies: Sequence[tuple[Any, ...]], n_calls: int) -> list[float]:
        """Device microseconds of each call."""
        events = [(_event(), _event()) for _ in range(n_calls)]
        torch.cuda._sleep(int(min(200e-6 * n_calls, 60e-3) * CYCLES_PER_S))  # type: ignore[no-untyped-call]
        for i, (begin, end) in enumerate(events):
            torch.sum(self._flush, dim=0, out=self._sink)
            begin.record()
            side(*copies[i % len(copies)])
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in events]


# Small parts


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _double(x: Any, device: str) -> Any:
    if isinstance(x, torch.Tensor):
        return x.to(device=device, dtype=torch.float64 if x.is_floating_point() else x.dtype)
    return x


def _relative(difference: float, exact: float) -> float:
    if exact > 0:
        return math.sqrt(difference / exact)
    return 0.0 if difference == 0 else math.inf


def _kind(x: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    return torch.isnan(x).to(torch.int8) + 2 * torch.isposinf(x).to(torch.int8) + 3 * torch.isneginf(x).to(torch.int8)


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    flat = [t.reshape(-1) for t in tensors]
    for start in range(0, flat[0].numel(), CHUNK):
        yield tuple(f[start : start + CHUNK] for f in flat)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor.reshape(-1)


def _sizes(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs)


def _device_name(device: str) -> str:
    if device == "cuda":
        return str(torch.cuda.get_device_name(0))
    return "the CPU, under Triton's interpreter"


def _quiet(_line: str) -> None:
    pass


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ImportError, KeyError, json.JSONDecodeError) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
