"""What a run is started with, as the command line says it; travels to the detached engine as JSON."""

from dataclasses import dataclass, field

from kbtui.domain.event import Budget, ChildEntry


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A request to start (``run`` is None) or resume (``run`` names it) a run.

    ``problem`` is a path or a sample's name; ``device`` is ``auto``, ``cuda:N``, ``model:a100`` ...;
    ``llm_url`` a server of OpenAI's form to ask instead of Ollama's at ``ollama_host``;
    ``kernel`` a file that stands in for the problem's first kernel; ``repo`` the user's own repository.
    """

    workspace: str
    problem: str
    device: str = "auto"
    budget: Budget = field(default_factory=lambda: Budget(wall_s=600.0))
    generators: tuple[str, ...] = ("playbook", "rewrites")
    model: str | None = None
    ollama_host: str | None = None
    llm_url: str | None = None
    seed: int = 0
    child_entry: ChildEntry = ChildEntry.PARENT
    run: str | None = None
    kernel: str | None = None
    repo: str | None = None
    budget_given: bool = True
    unvetted: bool = False
