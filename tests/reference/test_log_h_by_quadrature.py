"""h(z) = phi(z) int_0^inf t exp(z t - t^2 / 2) dt and Phi(z) = phi(z) int_0^inf exp(z t - t^2 / 2) dt, integrated numerically."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from shoestring.acquisition.improvement import log_h

Z = [-1e5, -3e4, -1001.0, -999.0, -300.0, -40.0, -10.0, -3.0, -1.01, -1.0, -0.99, -0.3, 0.0, 0.5, 2.0, 8.0, 25.0]


def moments(z):
    """int exp and int t exp of z t - t^2 / 2 - peak, and the peak; t in units of the integrand's width."""
    unit = 1 / max(1.0, -z)
    optimum = max(z, 0.0) ** 2 / 2
    ends = (0.0, 60.0 if z < 0 else z + 40.0)
    breaks = [z] if z > 0 else None

    def weight(s):
        return math.exp(z * unit * s - (unit * s) ** 2 / 2 - optimum)

    zeroth, _ = quad(weight, *ends, points=breaks, epsabs=0, epsrel=1e-13, limit=500)
    first, _ = quad(lambda s: s * weight(s), *ends, points=breaks, epsabs=0, epsrel=1e-13, limit=500)
    return unit * zeroth, unit**2 * first, optimum


@pytest.mark.parametrize("z", Z)
def test_log_h(z):
    _, first, optimum = moments(z)
    expected = -(z**2) / 2 - math.log(2 * math.pi) / 2 + optimum + math.log(first)
    assert float(log_h(np.array(z))[0]) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("z", Z)
def test_the_slope_of_log_h(z):
    zeroth, first, _ = moments(z)
    assert float(log_h(np.array(z))[1]) == pytest.approx(zeroth / first, rel=1e-8)


@pytest.mark.parametrize("z", [-1e100, -1e60, -1e20, -1e9])
def test_far_below_the_first_terms_of_the_expansion(z):
    assert float(log_h(np.array(z))[0]) == pytest.approx(-(z**2) / 2 - math.log(2 * math.pi) / 2 - 2 * math.log(-z), rel=1e-15)
    assert float(log_h(np.array(z))[1]) == pytest.approx(-z, rel=1e-12)


@pytest.mark.parametrize("z", [40.0, 1e9, 1e100])
def test_far_above_h_is_its_argument(z):
    assert float(log_h(np.array(z))[0]) == pytest.approx(math.log(z))
    assert float(log_h(np.array(z))[1]) == pytest.approx(1 / z)
