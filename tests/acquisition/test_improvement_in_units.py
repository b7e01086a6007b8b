"""Expected improvement in the user's units: against quadrature by SciPy and differences, and CEI's promise in those units."""

import numpy as np
import pytest
from scipy import integrate, stats

import shoestring as st
from shoestring.acquisition.improvement import log_ei_in_units, log_improvement_in_units
from shoestring.surrogate.output_transform import KINDS, OutputTransform

VALUES = np.exp(np.random.default_rng(0).normal(size=30))
MOMENTS = [(0.0, 1.0), (-1.0, 0.3), (-3.0, 0.5), (1.0, 0.4), (-1.6, 0.01), (-1.4, 0.02)]
BEST = -1.5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mean", "deviation"), MOMENTS)
def test_it_is_the_integral_over_the_values(kind, mean, deviation):
    output = OutputTransform.of(VALUES, kind)
    best = float(output.inverse(np.array(BEST)))

    def part(t):
        return (best - float(output.inverse(np.array(t)))) * stats.norm.pdf(t, mean, deviation)

    middle = min(max(mean, BEST - 12 * deviation), BEST)
    exact, _ = integrate.quad(part, min(mean, BEST) - 12 * deviation, BEST, points=[middle], epsabs=0, epsrel=1e-10, limit=400)
    found = log_improvement_in_units(output, np.array([mean]), np.array([deviation]), BEST)[0][0]
    assert found == pytest.approx(np.log(exact), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mean", "deviation"), MOMENTS)
def test_its_derivatives_are_those_of_differences(kind, mean, deviation):
    output, step = OutputTransform.of(VALUES, kind), 1e-5 * deviation

    def value(mean, deviation):
        return log_improvement_in_units(output, np.array([mean]), np.array([deviation]), BEST)[0][0]

    _, by_mean, by_deviation = log_improvement_in_units(output, np.array([mean]), np.array([deviation]), BEST)
    assert by_mean[0] == pytest.approx((value(mean + step, deviation) - value(mean - step, deviation)) / (2 * step), rel=1e-4)
    difference = (value(mean, deviation + step) - value(mean, deviation - step)) / (2 * step)
    assert by_deviation[0] == pytest.approx(difference, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_contextual_ei_keeps_its_share_in_the_units_of_the_values(seed):
    """Where the share was one of EI in the model's units, it came out as .666, .686 and .672 in place of .7."""
    lam = 0.3
    space = st.Space(a=st.Float(0, 1), b=st.Float(0, 1), c=st.Float(0, 1))
    study = st.Study(space, st.CEI(lam), seed=seed, stop=None, model=st.GP(output="log"))
    rng = np.random.default_rng(seed)
    for _ in range(12):
        config = {name: float(value) for name, value in zip("abc", rng.random(3), strict=True)}
        study.add(config, value=np.exp(3 * sum((value - 0.4) ** 2 for value in config.values())), cost=np.exp(3 * config["a"]))
    context = study.context
    belief = context.belief(costs=True)
    chosen = space.encode(study.method.suggest(context).config)
    log_ei = log_ei_in_units(belief)
    highest = context.optimizer().maximize(log_ei).value
    assert log_ei(chosen[None, :], False)[0][0] >= highest + np.log(1 - lam) - 0.01
