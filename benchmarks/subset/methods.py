"""The methods compared, by label.

    exact           the GP of all trials (BO in the paper)
    RS, SCS, KCS    the GP of a part: random, around seeds of a Latin hypercube, by k-means; one trial in 20, in another number
                    with ``@``: ``SCS@5``
    VFE, FITC       sparse GPs of all trials with 5 d inducing points; another number with ``@``: ``VFE@100``
    default         whatever the library does when nothing is said

``+paper`` after a subset (``RS+paper``) leaves out what we add to the paper: the best trial is kept only if it is picked. The
acquisition is EI for all, everything else is at its default. In particular the kernel is ours, not the paper's single squared
exponential of one length scale, for all methods alike.
"""

import inspect
import re
from typing import Any

LABELS = ("exact", "RS", "SCS", "KCS", "VFE", "FITC", "default")
SUBSETS = {"RS": "RandomSubset", "SCS": "SeedSubset", "KCS": "KMeansSubset"}
SPARSE = ("VFE", "FITC")
ALPHA = 20  # the paper's choice, and the label without a number
ALPHAS = (5, 10, 15, ALPHA)
LABEL = re.compile(r"(?P<name>[A-Za-z]+)(?:@(?P<number>\d+))?(?P<paper>\+paper)?")


def of_alpha(name: str, alpha: int) -> str:
    """The label of a subset method with that alpha."""
    return name if alpha == ALPHA else f"{name}@{alpha}"


def parsed(label: str) -> tuple[str, int | None, bool]:
    """Name, number, and whether it is exactly as in the paper."""
    found = LABEL.fullmatch(label)
    name, number, paper = ("", None, None) if found is None else (found["name"], found["number"], found["paper"])
    plain = number is None and not paper
    if not (name in SUBSETS or (name in SPARSE and not paper) or (name in LABELS and plain)):
        raise ValueError(f"no method is called {label!r}; there are {', '.join(LABELS)}, RS@5, VFE@100, RS+paper, ...")
    return name, None if number is None else int(number), bool(paper)


def study_takes_a_subset() -> bool:
    import shoestring as st

    return "subset" in inspect.signature(st.Study).parameters


def with_subset(subset: Any) -> dict[str, Any]:
    """Where this version of the library takes a subset: as an argument of the study, or as a field of its model."""
    import shoestring as st

    return {"subset": subset} if study_takes_a_subset() else {"model": st.GP(subset=subset)}


def default_subset() -> Any:
    """What is used when nothing is said; None means that the default is exact."""
    import shoestring as st

    return inspect.signature(st.Study).parameters["subset"].default if study_takes_a_subset() else st.GP().subset


def options(label: str) -> dict[str, Any]:
    """What is given to ``Study`` beside space, acquisition and seed."""
    import shoestring as st

    name, number, paper = parsed(label)
    if name == "exact":
        return with_subset(None)
    if name == "default":
        if default_subset() is None:  # runs under this name must not be exact ones
            raise st.MethodError("this version of the library has no subset by default")
        return {}
    if name in SUBSETS:
        return with_subset(getattr(st, SUBSETS[name])(number or ALPHA, **({"keep_best": False} if paper else {})))
    model = getattr(st, name)() if number is None else getattr(st, name)(number)
    return {"model": model} | ({"subset": None} if study_takes_a_subset() else {})  # it learns from all trials


def study(label: str, space: Any, seed: int, **more: Any) -> Any:
    """A study by EI, unless ``more`` names another method."""
    import shoestring as st

    return st.Study(space, **({"method": st.EI()} | more | options(label)), seed=seed, stop=None)
