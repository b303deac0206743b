"""A softmax small enough for the interpreter, and kernels for it: honest ones, and one for each way to cheat."""

from kbtui.domain.problem import Problem, ProblemFormat, ProblemSpec, Shape, ShapeRole, Tolerance

REFERENCE = """
import torch


def reference(x):
    return torch.softmax(x, dim=-1)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    x = torch.randn((shape["rows"], shape["cols"]), generator=generator, device=device)
    x = x * 30 if distribution == "wide" else x + 100 if distribution == "offset" else x
    return (x.to(getattr(torch, dtype)),)
"""


def make_problem(reference: str = REFERENCE, rows: int = 64) -> Problem:
    shapes = (
        Shape(f"{rows}x1024", (("rows", rows), ("cols", 1024))),
        Shape("1x7", (("rows", 1), ("cols", 7)), ShapeRole.HIDDEN),
        Shape("3x65", (("rows", 3), ("cols", 65)), ShapeRole.HIDDEN),
        Shape("4x64", (("rows", 4), ("cols", 64)), ShapeRole.PROXY),
        Shape("3x127", (("rows", 3), ("cols", 127)), ShapeRole.PROXY),
    )
    spec = ProblemSpec(
        "softmax", "", "float32", None, shapes, ("normal", "wide", "offset"),
        "2 * rows * cols * itemsize", "5 * rows * cols", Tolerance(1e-6),
    )  # fmt: skip
    return Problem(spec, ProblemFormat.FOLDER, "/nonexistent/softmax", reference, None)


KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=inside, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + columns, e / tl.sum(e, axis=0), mask=inside)


def launch(x, out):
    softmax_row[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

"""


def kernel(body: str, before: str = "") -> str:
    """The honest kernel with another entry point."""
    indented = "\n".join("    " + line for line in body.strip().splitlines())
    return f"{KERNEL}\n{before}\n\ndef kernel_function(x):\n{indented}\n"


HONEST = {
    "plain": kernel("return launch(x, torch.empty_like(x))"),
    "zeroed first": kernel("return launch(x, torch.zeros_like(x))"),
    "through a view": kernel("return launch(x.view(-1, x.shape[1]), torch.empty(x.shape, device=x.device))"),
    "copies its input": kernel("return launch(x.clone(), torch.empty_like(x))"),
    "two kernels and a workspace": kernel(
        "middle = torch.empty_like(x)\nlaunch(x, middle)\nout = torch.empty_like(x)\ncopy[(x.numel(),)](middle, out)\n"
        "return out",
        "@triton.jit\ndef copy(a_ptr, b_ptr):\n    i = tl.program_id(0)\n    tl.store(b_ptr + i, tl.load(a_ptr + i))\n",
    ),
    "autotuned by heuristics": KERNEL.replace(
        "@triton.jit\ndef softmax_row",
        "@triton.heuristics({'BLOCK': lambda a: triton.next_power_of_2(a['n_cols'])})\n@triton.jit\ndef softmax_row",
    ).replace(", BLOCK=triton.next_power_of_2(x.shape[1]))", ")")
    + "\ndef kernel_function(x):\n    return launch(x, torch.empty_like(x))\n",
}

CHEATS = {
    "zeros": (kernel("launch(x, torch.empty_like(x))\nreturn torch.zeros_like(x)"), "wrong_values"),
    "copy of the input": (kernel("launch(x, torch.empty_like(x))\nreturn x.clone()"), "wrong_values"),
    "the input itself": (kernel("launch(x, torch.empty_like(x))\nreturn x"), "aliases_input"),
    "in place": (kernel("return launch(x, x)"), "aliases_input"),
    "input modified": (kernel("out = launch(x, torch.empty_like(x))\nx.zero_()\nreturn out"), "input_modified"),
    "cached by address": (
        kernel(
            "key = (x.data_ptr(), x.shape)\nif key not in kept:\n    kept[key] = launch(x, torch.empty_like(x))\n"
            "return kept[key]",
            "kept = {}",
        ),
        "wrong_values",
    ),
    "torch computes": (kernel("launch(x, torch.empty_like(x))\nreturn torch.softmax(x, -1)"), "forbidden_op"),
    "torch computes out of sight": (
        kernel("out = torch.empty_like(x)\nlaunch(x, out)\nreturn torch.exp(x, out=out).div_(out.sum(-1, True))"),
        "forbidden_op",
    ),
    "no kernel": (kernel("return torch.full_like(x, 1 / x.shape[1])"), "wrong_values"),
    "numpy computes, a kernel runs for show": (
        kernel(
            "launch(x, torch.empty_like(x))\nimport numpy as np\na = x.numpy()\n"
            "e = np.exp(a - a.max(-1, keepdims=True))\nreturn torch.from_numpy(e / e.sum(-1, keepdims=True))"
        ),
        "forbidden_op",
    ),
    "wrong shape": (kernel("return launch(x, torch.empty_like(x)).view(-1)"), "wrong_shape"),
    "wrong dtype": (kernel("return launch(x, torch.empty_like(x)).double()"), "wrong_dtype"),
    "not a tensor": (kernel("return launch(x, torch.empty_like(x)).tolist()"), "wrong_type"),
    "a subclass": (
        kernel("return launch(x, torch.empty_like(x)).as_subclass(Lazy)", "class Lazy(torch.Tensor):\n    pass"),
        "wrong_type",
    ),
    "no maximum subtracted": (
        KERNEL.replace("x - tl.max(x, axis=0)", "x")
        + "\ndef kernel_function(x):\n    return launch(x, torch.empty_like(x))\n",
        "nan_mismatch",
    ),
    "tail never written": (
        KERNEL.replace("mask=inside)\n\n\ndef launch", "mask=columns < n_cols - 1)\n\n\ndef launch")
        + "\ndef kernel_function(x):\n    return launch(x, torch.empty_like(x))\n",
        "unwritten_output",
    ),
    "half of the columns": (
        KERNEL.replace("inside = columns < n_cols", "inside = columns < (n_cols + 1) // 2")
        + "\ndef kernel_function(x):\n    return launch(x, torch.zeros_like(x))\n",
        "wrong_values",
    ),
    "half precision": (
        KERNEL.replace(
            "e = tl.exp(x - tl.max(x, axis=0))", "e = tl.exp(x - tl.max(x, axis=0)).to(tl.float16).to(tl.float32)"
        )
        + "\ndef kernel_function(x):\n    return launch(x, torch.empty_like(x))\n",
        "wrong_values",
    ),
    "raises": (kernel("raise ValueError('not today')"), "raised"),
    "dies": (kernel("import os\nos.abort()"), "crashed"),
    "changes torch": (
        kernel("torch.set_default_dtype(torch.float64)\nreturn launch(x, torch.empty_like(x))"),
        "globals_changed",
    ),
    "no entry point": (KERNEL, "no_entry_point"),
}


def knows_again(glance: str) -> str:
    """Keeps answers and knows inputs again by some of their values; returns a copy of what it kept."""
    return kernel(
        f"key = (x.data_ptr(), tuple(x.shape), tuple({glance}.tolist()))\n"
        "if key not in kept:\n    kept[key] = launch(x, torch.empty_like(x))\nreturn kept[key].clone()",
        "kept = {}",
    )


CHEATS |= {
    "knows its inputs again by the first value": (knows_again("x.flatten()[:1]"), "forbidden_op"),
    "knows its inputs again by every ninth value": (knows_again("x.flatten()[::9]"), "forbidden_op"),
    "knows its inputs again by the last row": (knows_again("x[-1]"), "forbidden_op"),
    "torch computes from the second call on": (
        kernel(
            "calls[x.shape] = calls.get(x.shape, 0) + 1\nif calls[x.shape] == 1:\n"
            "    return launch(x, torch.empty_like(x))\nlaunch(x, x.clone())\nreturn torch.softmax(x, -1)",
            "calls = {}",
        ),
        "forbidden_op",
    ),
}

CHEATS |= {
    f"patches {what}": (kernel(f"{line}\nreturn launch(x, torch.empty_like(x))"), "globals_changed")
    for what, line in {
        "a tensor's method": "type(x).exp = lambda *a: None",
        "torch": "torch.empty_strided = lambda *a, **k: None",
        "timers": "torch.cuda.Event.elapsed_time = lambda *a: 0.001",
        "launches": "import triton.runtime.jit as j\nj.JITFunction.run = lambda *a, **k: None",
    }.items()
}

CHEATS |= {
    "reads on past the end": (
        KERNEL.replace('mask=inside, other=float("-inf"))', "mask=columns >= 0) + tl.where(inside, 0.0, -1e30)")
        + "\ndef kernel_function(x):\n    return launch(x, torch.empty_like(x))\n",
        "nan_mismatch",
    ),
    "writes after its input": (
        kernel(
            "behind = torch.as_strided(x, (4,), (1,), x.storage_offset() + x.numel())\nbehind.fill_(0.0)\n"
            "return launch(x, torch.empty_like(x))"
        ),
        "input_modified",
    ),
}

_PLAIN = HONEST["plain"]


def _with(line: str) -> str:
    return kernel(f"{line}\nreturn launch(x, torch.empty_like(x))")


HONEST |= {
    "asks where its input is": _with("assert x.is_cuda and x.device.type == 'cuda' and x.get_device() == 0"),
    "asks torch about the chip": _with(
        "p = torch.cuda.get_device_properties(x.device)\nassert p.multi_processor_count > 8\n"
        "assert torch.cuda.get_device_capability()[0] >= 8 and torch.cuda.is_available()"
    ),
    "asks Triton about the chip": _with(
        "p = triton.runtime.driver.active.utils.get_device_properties(torch.cuda.current_device())\n"
        "assert p['multiprocessor_count'] > 8"
    ),
    "moves its input to the GPU": _with("x = x.to('cuda').contiguous()\nx = x.cuda()"),
    "allocates on cuda by name": kernel("return launch(x, torch.empty(x.shape, device='cuda', dtype=x.dtype))"),
    "allocates on a device": kernel("return launch(x, torch.empty(x.shape, device=torch.device('cuda', 0)))"),
    "within its device": kernel("with torch.cuda.device(x.device):\n    return launch(x, torch.empty_like(x))"),
    "a class of its own": kernel(
        "return Softmax.apply(x)",
        "class Softmax(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        out = launch(x, torch.empty_like(x))\n        ctx.save_for_backward(out)\n        return out\n",
    ),
    "autotuned over configurations": _PLAIN.replace(
        "@triton.jit\ndef softmax_row",
        "@triton.autotune([triton.Config({}, num_warps=w) for w in (4, 8)], key=['n_cols'])\n"
        "@triton.jit\ndef softmax_row",
    ),
    "a kernel defined where it is called": _PLAIN.split("@triton.jit")[0]
    + "\ndef kernel_function(x):\n"
    + "".join(f"    {line}\n" for line in ("@triton.jit" + KERNEL.split("@triton.jit")[1]).splitlines())
    + "    return launch(x, torch.empty_like(x))\n",
    "a workspace that it keeps": kernel(
        "if x.shape not in kept:\n    kept[x.shape] = torch.empty_like(x)\nlaunch(x, kept[x.shape])\n"
        "return launch(x, torch.empty_like(x))",
        "kept = {}",
    ),
    "a script's tail": _PLAIN + "\n\nif __name__ == '__main__':\n    print(kernel_function(torch.randn(4, 4)))\n",
}
