"""Optuna's own cases for samplers from outside (``optuna.testing.pytest_samplers``), used as its documentation says.

Optuna has no such cases for pruners. ``MultiObjectiveSamplerTestCase`` is for samplers with several objectives: for those with
one there is ``SingleOnlySamplerTestCase``.
"""

import pytest
from optuna.testing import pytest_samplers

from shoestring.integrations.optuna import ShoestringSampler


class Cases(
    pytest_samplers.BasicSamplerTestCase, pytest_samplers.RelativeSamplerTestCase, pytest_samplers.SingleOnlySamplerTestCase
):
    """All cases for samplers with one objective."""

    @pytest.fixture
    def sampler(self):
        return lambda: ShoestringSampler(seed=0)


class TestOptunaSuiteInShort(Cases):
    """Without the cases that are repeated for all pairs of distributions."""

    test_sample_relative_numerical = None
    test_combination_of_different_distributions_objective = None
    test_dynamic_range_objective = None


@pytest.mark.slow
class TestOptunaSuite(Cases):
    """The whole suite."""
