"""The wheel, built and installed: it must work where there is no checkout."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1]))"


def run(command: list[str], cwd: Path) -> str:
    child = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=240)
    assert child.returncode == 0, child.stdout[-2000:] + child.stderr[-2000:]
    return child.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    into = tmp_path_factory.mktemp("wheel")
    name = run([sys.executable, "-c", BUILD, str(into)], cwd=ROOT).splitlines()[-1]
    return into / name


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """Python of a virtual environment that holds the wheel and sees this one's libraries, but not the checkout."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place / "venv", with_pip=False, symlinks=True)
    python = place / "venv" / "bin" / "python"
    site = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], place).strip())
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], cwd=place)
    (site / "zz_libraries.pth").write_text(f"{_libraries_without_checkout(place)}\n")
    return python


def _libraries_without_checkout(place: Path) -> Path:
    """Links to every installed library except kbtui's own editable install."""
    links = place / "libraries"
    links.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "kbtui" not in entry.name and entry.suffix != ".pth":
            (links / entry.name).symlink_to(entry)
    return links


def test_the_wheel_holds_the_packages_and_their_data_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"kbtui", "store", "hints", "sample_kernels"}
    for sample in (p.parent for p in (ROOT / "sample_kernels").glob("*/problem.toml")):
        assert {f"sample_kernels/{sample.name}/{f}" for f in ("problem.toml", "reference.py", "kernel.py")} <= {*names}
    for hints in (ROOT / "hints").glob("*.toml"):
        assert f"hints/{hints.name}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any("test" in name.split("/")[0] or name.endswith(".pyc") for name in names)


def test_the_installed_command_runs_outside_the_checkout(installed, tmp_path):
    said = run([str(installed.with_name("kbtui")), "version"], cwd=tmp_path)
    assert said.startswith("kbtui ")


def test_samples_and_hints_are_found_outside_the_checkout(installed, tmp_path):
    source = (
        "import kbtui, sample_kernels, hints\n"
        "from pathlib import Path\n"
        "from kbtui.problems import load_problem, sample_names\n"
        "print(Path(kbtui.__file__).parent)\n"
        "print(len([load_problem(name) for name in sample_names()]))\n"
        "print(len(list(Path(hints.__file__).parent.glob('*.toml'))))\n"
    )
    place, n_samples, n_hints = run([str(installed), "-c", source], cwd=tmp_path).splitlines()
    assert ROOT not in Path(place).parents
    assert int(n_samples) == 6
    assert int(n_hints) == len(list((ROOT / "hints").glob("*.toml")))


def test_a_problem_folder_elsewhere_may_draw_from_the_samples_distributions(installed, tmp_path):
    source = "from sample_kernels.distributions import draw; print(tuple(draw('mixed', (2, 3)).shape))"
    assert run([str(installed), "-c", source], cwd=tmp_path).strip() == "(2, 3)"
