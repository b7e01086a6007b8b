"""The five functions of the subset-selection paper (Mao, Li 2022), each with optimum 0, in 4, 6 and 10 dimensions.

    Ackley       20 + e - 20 exp(-0.2 sqrt(mean x^2)) - exp(mean cos 2 pi x)                     [-32.768, 32.768]
    Schwefel     418.98... d - sum x sin sqrt |x|                                                [-500, 500]
    Levy         sin^2 pi w1 + sum_i<d (wi - 1)^2 (1 + 10 sin^2(pi wi + 1)) + ...,  w = 1 + (x - 1) / 4      [-10, 10]
    Rastrigin    10 d + sum x^2 - 10 cos 2 pi x                                                  [-5.12, 5.12]
    Griewank     1 + sum x^2 / 4000 - prod cos(x_i / sqrt i)                                     [-600, 600]

The paper names neither formulas nor boxes ("can be found in ?"); these are the usual ones, and the sizes of its values agree
with them. The optimum of three of them is the middle of the usual box, which flatters whoever likes the middle: names that end
in ``_shifted`` have the same functions on boxes whose centre gives nothing away, as ``benchmarks.problems.synthetic`` has.

A problem's name is function and dimension: ``ackley4``, ``levy10_shifted``.
"""

import re
from collections.abc import Callable

from benchmarks.problems import synthetic
from benchmarks.problems.core import Problem
from benchmarks.problems.synthetic import Vector, on_box

FUNCTIONS: dict[str, Callable[[Vector], float]] = {
    "ackley": synthetic.ackley,
    "schwefel": synthetic.schwefel,
    "levy": synthetic.levy,
    "rastrigin": synthetic.rastrigin,
    "griewank": synthetic.griewank,
}
DIMENSIONS = (4, 6, 10)
BOXES = {
    "ackley": (-32.768, 32.768),
    "schwefel": (-500.0, 500.0),
    "levy": (-10.0, 10.0),
    "rastrigin": (-5.12, 5.12),
    "griewank": (-600.0, 600.0),
}
# Those of the other benchmarks where they have any, as wide as the usual ones where not; Schwefel's optimum is near a corner.
SHIFTED = {
    "ackley": (-10.0, 25.0),
    "schwefel": (-500.0, 500.0),
    "levy": (-10.0, 5.0),
    "rastrigin": (-3.5, 6.0),
    "griewank": (-400.0, 800.0),
}
WHERE = {"schwefel": 420.96874635998, "levy": 1.0}  # every coordinate of the optimum, 0 for the others
NAME = re.compile(r"(?P<function>[a-z]+)(?P<dimensions>\d+)(?P<shifted>_shifted)?")


def names(functions: list[str], dimensions: list[int], shifted: bool = False) -> list[str]:
    """Of problems, the low dimensions first: they are done in minutes."""
    return [f"{function}{d}{'_shifted' if shifted else ''}" for d in dimensions for function in functions]


def load(name: str) -> Problem:
    found = NAME.fullmatch(name)
    if found is None or found["function"] not in FUNCTIONS or not int(found["dimensions"]):
        raise ValueError(f"no problem is called {name!r}; write one of {', '.join(FUNCTIONS)} with a dimension, such as ackley4")
    function = found["function"]
    box = (SHIFTED if found["shifted"] else BOXES)[function]
    return on_box(name, FUNCTIONS[function], [box] * int(found["dimensions"]), 0.0)
