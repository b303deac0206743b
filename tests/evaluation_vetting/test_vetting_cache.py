from dataclasses import replace
from pathlib import Path

from kbtui.domain.vetting import Complaint, Flaw, Vetting
from kbtui.evaluation.vetting.cache import vetted
from kbtui.problems import load_problem

SOUND = Vetting("softmax", "model:a100", "", (), (), ("4x256",), ("normal",), (), (), 1.5)


class Vetter:
    def __init__(self, answer: Vetting = SOUND) -> None:
        self.answer, self.n_asked = answer, 0

    def __call__(self) -> Vetting:
        self.n_asked += 1
        return self.answer


def test_a_sound_problem_is_vetted_once_a_workspace_device_and_criterion(tmp_path: Path):
    problem, vetter = load_problem("softmax"), Vetter()
    assert vetted(tmp_path, problem, "A100", None, vetter) == vetted(tmp_path, problem, "A100", None, vetter) == SOUND
    assert vetter.n_asked == 1
    vetted(tmp_path, problem, "H200", None, vetter)
    vetted(tmp_path, problem, "A100", 1e-2, vetter)
    vetted(tmp_path / "other", problem, "A100", None, vetter)
    assert vetter.n_asked == 4


def test_another_reference_or_declaration_is_vetted_again_and_another_kernel_is_not(tmp_path: Path):
    problem, vetter = load_problem("softmax"), Vetter()
    vetted(tmp_path, problem, "A100", None, vetter)
    vetted(tmp_path, replace(problem, kernel_source="x = 1\n"), "A100", None, vetter)
    assert vetter.n_asked == 1
    vetted(tmp_path, replace(problem, reference_source="x = 1\n"), "A100", None, vetter)
    vetted(tmp_path, replace(problem, spec=replace(problem.spec, distributions=("normal",))), "A100", None, vetter)
    assert vetter.n_asked == 3


def test_a_refusal_is_not_kept_and_a_spoilt_file_is_not_believed(tmp_path: Path):
    problem = load_problem("softmax")
    refusing = Vetter(replace(SOUND, complaints=(Complaint(Flaw.NULL_PASSES, "zeros would pass", "do"),)))
    vetted(tmp_path, problem, "A100", None, refusing)
    vetted(tmp_path, problem, "A100", None, refusing)
    assert refusing.n_asked == 2
    vetter = Vetter()
    vetted(tmp_path, problem, "A100", None, vetter)
    (kept,) = (tmp_path / "cache" / "vetting").iterdir()
    kept.write_text('{"problem":')
    assert vetted(tmp_path, problem, "A100", None, vetter) == SOUND
    assert vetter.n_asked == 2
