"""What one look at the machine found."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """OK works; WARN works less well; FAIL stops a run; ABSENT is not here and a run does without."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Check:
    """``found`` is what is there, ``advice`` what to do about it; advice is empty where there is nothing to do."""

    name: str
    state: State
    found: str
    advice: str = ""
