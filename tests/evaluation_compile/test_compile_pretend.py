"""A GPU that is not there: what a candidate sees of it while it is compiled. In a process of its own, for good reason:
torch's answers are replaced for the whole process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ASK = """
import json, torch
from kbtui.domain.device import DATA_SHEETS
from kbtui.evaluation.compile.pretend import build, pretended_gpu
from kbtui.evaluation.compile.specs import TensorSpec
with pretended_gpu(DATA_SHEETS["h200"]):
    x = build(TensorSpec((4, 6, 8), (48, 8, 1), "float16"))
    print(json.dumps([%s], default=str))
"""
ALIKE = """
import json, torch
from kbtui.evaluation.compile.pretend import _same_size
made = []
views = (lambda x: x, lambda x: x.permute(2, 0, 1), lambda x: x[:, ::2], lambda x: x[1:2], lambda x: x[:, :, :0],
         lambda x: x.expand(3, 4, 6, 8), lambda x: x.transpose(0, 1), lambda x: x.reshape(-1), lambda x: x[0, 0, 0],
         lambda x: x.transpose(0, 2)[:, ::2])
for make in views:
    x = make(torch.empty(4, 6, 8))
    ours, theirs = _same_size(x, None), torch.empty_like(x)
    made.append([list(ours.shape), list(ours.stride()), list(theirs.shape), list(theirs.stride())])
print(json.dumps(made))
"""


def said(program: str) -> Any:
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    return json.loads(answer.stdout)


ANSWERS = [
    ("[x.is_cuda, x.device.type, x.device.index, x.get_device()]", [True, "cuda", 0, 0]),
    ("torch.empty(3, device=x.device).is_cuda", True),
    ("torch.zeros(3, device='cuda').is_cuda", True),
    ("x.new_empty((2, 2)).is_cuda", True),
    ("torch.empty(3).is_cuda", False),
    ("list(x.transpose(0, 2).contiguous().stride())", [24, 4, 1]),
    ("x[1:, 3].data_ptr() - x.data_ptr()", (48 + 24) * 2),
    ("[x.data_ptr() >= 1 << 32, x.data_ptr() < 1 << 63, x.data_ptr() % 256]", [True, True, 0]),
    ("torch.cuda.get_device_properties(x.device).multi_processor_count", 132),
    ("torch.cuda.get_device_capability()", [9, 0]),
    ("torch.empty_like(x, dtype=torch.float32).dtype", "torch.float32"),
    ("isinstance(x, torch.Tensor)", True),
    ("'sympy' in __import__('sys').modules", False),
]


def test_a_candidate_sees_the_gpu() -> None:
    questions = [question for question, _ in ANSWERS]
    for question, answer, expected in zip(
        questions, said(ASK % ", ".join(questions)), [e for _, e in ANSWERS], strict=True
    ):
        assert answer == expected, question


def test_a_tensor_alike_has_torchs_own_strides() -> None:
    for shape, stride, expected_shape, expected_stride in said(ALIKE):
        assert shape == expected_shape
        assert [s for s, n in zip(stride, shape, strict=True) if n > 1] == [
            s for s, n in zip(expected_stride, shape, strict=True) if n > 1
        ]
