"""The contract of an acquisition."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np

from ..acquisition.base import Acquisition, check_acquisition
from ..acquisition.optimize.optimizer import AcquisitionOptimizer, OptimizerOptions
from ..data.trial import State
from ..state.registry import read_code, text_of
from ..study import Study
from .problems import SPACES, belief_about, configs, run

FAST = OptimizerOptions(raw_samples=32, local_samples=16, restarts=2, rounds=1)
TRIALS, INITIAL = 9, 5


class AcquisitionContract:
    """The checks that every acquisition must pass: derive a test class and define ``make``.

    Use it to test an acquisition of your own with pytest: finite values, gradients, the same seed, stored studies, ``replay``.

    registered  it has a name in stored studies
    spaces      those of ``problems.SPACES`` that it works on

    >>> from shoestring.testing import AcquisitionContract
    >>> class TestMine(AcquisitionContract):
    ...     def make(self):
    ...         return st.LCB(beta=2)
    >>> TestMine().test_it_is_an_acquisition()
    """

    registered = True
    spaces: tuple[str, ...] = ("numbers", "mixed")

    def make(self) -> Acquisition:
        raise NotImplementedError("return the acquisition to test")

    def study(self, space: str = "numbers", **options: object) -> Study:
        given = {"budget": 40, "stop": None, "seed": 1, "initial": INITIAL, **options}
        return Study(SPACES[space], self.make(), **given)  # type: ignore[arg-type]

    def test_it_is_an_acquisition(self) -> None:
        check_acquisition(self.make())

    def test_its_surface_has_finite_values_and_the_gradient_of_differences(self) -> None:
        acquisition = self.make()
        if not acquisition.has_surface:
            return
        for space in self.spaces:
            belief = belief_about(space)
            U = SPACES[space].snap(np.random.default_rng(0).uniform(0.1, 0.9, (6, len(SPACES[space]))))
            surface = acquisition.surface(belief, np.random.default_rng(0))
            values, none = surface(U, False)
            again, gradient = surface(U, True)
            assert values.shape == again.shape == (6,)
            assert none is None
            assert not np.isnan(values).any()
            np.testing.assert_allclose(values, again, rtol=1e-6, atol=1e-9)
            if gradient is None or space != "numbers":
                continue
            assert gradient.shape == U.shape
            for column in range(U.shape[1]):
                step = np.zeros(U.shape[1])
                step[column] = 1e-6
                differences = (surface(U + step, False)[0] - surface(U - step, False)[0]) / 2e-6
                tolerance = 0.02 * max(1.0, float(np.abs(gradient).max()))
                np.testing.assert_allclose(gradient[:, column], differences, rtol=0.02, atol=tolerance)

    def test_it_selects_a_point_of_the_space(self) -> None:
        for space in self.spaces:
            belief = belief_about(space)
            optimizer = AcquisitionOptimizer(belief.encoding, np.random.default_rng(0), belief.evaluated, belief.evaluated, FAST)
            u = self.make().select(belief, optimizer).u
            assert u.shape == (len(SPACES[space]),)
            assert (u >= 0.0).all()
            assert (u <= 1.0).all()
            SPACES[space].check(SPACES[space].decode(SPACES[space].snap(u[None, :])[0]))

    def test_a_study_runs_with_failed_and_pending_trials_and_never_repeats_a_config(self) -> None:
        for space in self.spaces:
            study = run(self.study(space), TRIALS, fail_every=4)
            pending = [study.ask() for _ in range(2)]
            study.tell(pending[0], 0.5, cost=1.0)
            study.ask()
            keys = [SPACES[space].key(config) for config in configs(study)]
            assert len(set(keys)) == len(keys)
            assert study.log.number_of(State.RUNNING) == 2

    def test_the_same_seed_gives_the_same_trials(self) -> None:
        assert configs(run(self.study(), TRIALS)) == configs(run(self.study(), TRIALS))

    def test_replay_computes_the_same_suggestions(self) -> None:
        assert run(self.study(), TRIALS).replay().first_difference is None

    def test_a_stored_study_goes_on_as_if_it_had_not_been_closed(self) -> None:
        if not self.registered:
            return
        whole = run(self.study(), TRIALS)
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'tune.db'}"
            run(self.study(storage=url, name="stored"), TRIALS - 3)
            again = Study.load(url, "stored")
            assert configs(run(again, 3)) == configs(whole)
            assert again.replay().first_difference is None
            again.storage.close_connections()

    def test_its_text_is_read_as_the_same_acquisition(self) -> None:
        acquisition = self.make()
        if not self.registered:
            return
        text = text_of("method", acquisition)
        assert text is not None, f"{acquisition!r} has no text: register its class, and give it a repr that calls it again"
        assert read_code("method", text) == acquisition

    def test_it_can_be_pickled(self) -> None:
        assert pickle.loads(pickle.dumps(self.make())) == self.make()
