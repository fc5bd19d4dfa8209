"""The experiments of the 2011 paper, run anew through the public interface, and every claim put to a rule."""

from pathlib import Path

from antisparse._arrays import texts
from antisparse.datasets import Dataset
from antisparse.errors import InputError
from antisparse.paper import bits, penalty, ranking, report, shortlist, sift, trajectory
from antisparse.paper.claims import Claim, penalty_claims, shortlist_claims, sift_claims, synthetic_claims
from antisparse.paper.settings import Settings, quick
from antisparse.paper.study import Study, Track, new_figure

__all__ = ["EXPERIMENTS", "Claim", "Settings", "Study", "check_names", "quick", "reproduce"]

#: The names of the experiments, in the order of the paper.
EXPERIMENTS = ("path", "figures", "h", "two-stage", "sift")


def reproduce(
    folder: Path,
    *,
    settings: Settings,
    data: Dataset | None = None,
    only: tuple[str, ...] = EXPERIMENTS,
    track: Track = lambda items, name: items,
    command: str = "antisparse.paper.reproduce",
) -> tuple[list[Study], list[Claim], Path]:
    """Run the experiments, write pictures, numbers and the page to `folder`.

    Parameters
    ----------
    folder : Path
    settings : Settings
        Sizes and seeds: ``Settings()`` are the paper's, ``quick()`` takes seconds.
    data : Dataset, optional
        SIFT vectors for Figure 3; without them its claims are not measured.
    only : tuple of str
        Which of `EXPERIMENTS`; "figures" are Figures 1 and 2.
    track : callable
        Shows progress: takes an iterable and a name, gives the iterable's items.
    command : str
        What to note as the command that made the numbers.

    Returns
    -------
    studies : list of Study
        Numbers and picture of every experiment.
    claims : list of Claim
    page : Path
        The page that holds everything.
    """
    # Whatever can be wrong is found before the work, not after it.
    check_names(only)
    new_figure()
    if "sift" not in only:
        data = None
    if data is not None:
        sift.check(data)
    report.check(folder)
    on_sift = None if data is None else sift.measure(data, settings, track)
    studies: list[Study] = []
    claims: list[Claim] = []
    if "figures" in only:
        by_bits, by_rank = bits.measure(settings, track), ranking.measure(settings, track)
        studies += [bits.study(by_bits, settings), ranking.study(by_rank, settings)]
        claims += synthetic_claims(by_bits, by_rank, settings)
    if "sift" in only:
        studies += [] if on_sift is None else [sift.study(on_sift, settings)]
        claims += sift_claims(on_sift)
    if "h" in only:
        by_h = penalty.measure(settings, track)
        studies.append(penalty.study(by_h, settings))
        claims += penalty_claims(by_h)
    if "two-stage" in only:
        staged = shortlist.measure(settings, track)
        studies.append(shortlist.study(staged, settings))
        claims += shortlist_claims(staged)
    if "path" in only:
        studies.append(trajectory.study(settings))
    return studies, claims, report.write(folder, studies, claims, settings, command)


def check_names(only: tuple[str, ...]) -> None:
    """Raise if there is no experiment of some name, or no name."""
    only = texts(only, "only")
    unknown = [name for name in only if name not in EXPERIMENTS]
    if unknown or not only:
        names = ", ".join(map(repr, unknown)) or "nothing"
        raise InputError(f"only = {names}; choose from {', '.join(EXPERIMENTS)}")
