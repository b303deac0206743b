"""The scheduler's constants, in one value, so that a study can vary them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds of promotion and the shape of the search.

    Attributes:
        screen_slack: at the screen, a known structure goes on if it might reach this part of the incumbent's speed.
        structure_slack: the same for the best of a structure that was refined fewer than ``refinements`` times.
        refinements: how many candidates a structure gets before it is judged like the others.
        measure_slack: at the measure rung, the best of its structure goes on if within this of the incumbent.
        unsure_lead: at the measure rung, who is ahead of the incumbent by this stays in the race, though not surely.
        batch: drafts asked for at once: every structure twice or so, so that all are screened before any is measured.
        seen_off: who leads the screen after so many later ones were screened is measured before the rest is screened.
        refine_batch: mutations of one parent asked for at once; fewer follow the results more closely.
        sharpness: exponent of a parent's speed in its weight; higher stays with the fastest structures.
        confirm_reserve: part of the budget kept for confirming the best while nobody knows what that costs.
        confirm_margin: what a confirmation may cost, as a multiple of what is known of it.
        worth_confirming: a candidate that lost on its last rung must lead the champion by this to be confirmed.
        stagnation: questions about one structure without a new incumbent before another one is preferred.
        back_off_s: seconds until a generator that failed is asked again; doubled with every failure running.
        longest_back_off_s: and no more than this.
        failures: after so many running a generator is given up.
    """

    screen_slack: float = 0.99
    structure_slack: float = 0.70
    refinements: int = 6
    measure_slack: float = 0.90
    unsure_lead: float = 1.002
    batch: int = 14
    seen_off: int = 3
    refine_batch: int = 4
    sharpness: float = 6.0
    confirm_reserve: float = 0.12
    confirm_margin: float = 1.3
    worth_confirming: float = 1.01
    stagnation: int = 3
    back_off_s: float = 5.0
    longest_back_off_s: float = 60.0
    failures: int = 8


DEFAULT_POLICY = Policy()
