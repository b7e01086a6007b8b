"""A package from outside: Thompson sampling, scheduled UCB, a Bayesian linear surrogate and a rule."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import shoestring as st


@dataclass(frozen=True)
class Thompson(st.Acquisition):
    """Thompson sampling: the minimum of one posterior sample over some candidates."""

    candidates: int = 256

    def select(self, belief, optimizer):
        U = optimizer.candidates(self.candidates)
        draw = belief.objective.sample(belief.encoding.features(U), 1, optimizer.rng)[0]
        return st.Selection(U[np.argmin(draw)])


@dataclass(frozen=True)
class ScheduledLCB(st.Acquisition):
    """GP-UCB (Srinivas et al. 2010) for minima: mu - sqrt(beta_t) s, beta_t = 2 log(d t^2 pi^2 / (6 delta))."""

    delta: float = 0.1
    log_space: ClassVar[bool] = False

    def surface(self, belief, rng):
        d, t = len(belief.encoding.space), belief.n_trials + 1
        root = math.sqrt(2 * math.log(d * t**2 * math.pi**2 / (6 * self.delta)))

        def value(U, gradient):
            mean, variance, d_mean, d_variance = belief.objective.with_gradients(belief.encoding.features(U))
            deviation = np.sqrt(variance)
            slope = root * d_variance / (2 * deviation[:, None]) - d_mean
            return root * deviation - mean, belief.encoding.pull_back(U, slope) if gradient else None

        return value


@dataclass(frozen=True)
class LinearPosterior(st.SurrogatePosterior):
    """w ~ N(m, S), f(x) = w'(1, x)."""

    m: np.ndarray
    S: np.ndarray
    noise: float

    def mean_and_variance(self, X):
        P = np.column_stack([np.ones(len(X)), X])
        return P @ self.m, np.einsum("ij,jk,ik->i", P, self.S, P)

    def covariance(self, X, Y=None):
        P, Q = (np.column_stack([np.ones(len(A)), A]) for A in (X, X if Y is None else Y))
        return P @ self.S @ Q.T

    def condition(self, X, y, noise=None):
        P, noise = np.column_stack([np.ones(len(X)), X]), self.noise if noise is None else noise
        S = np.linalg.inv(np.linalg.inv(self.S) + P.T @ P / noise)
        return LinearPosterior(S @ (np.linalg.solve(self.S, self.m) + P.T @ y / noise), (S + S.T) / 2, self.noise)


@dataclass(frozen=True)
class BayesianLinear(st.Surrogate):
    """Bayesian linear regression."""

    noise: float = 0.05

    def fit(self, Z, y, groups=None, **options):
        d = Z.shape[1] + 1
        return st.Fit(LinearPosterior(np.zeros(d), np.eye(d), self.noise).condition(Z, y))


@dataclass(frozen=True)
class TargetReached(st.StopRule):
    """Stop once a trial is as good as wanted."""

    value: float = 0.0

    def needs_belief(self, history):
        return False

    def check(self, history, belief=None):
        best = history.best
        reached = best is not None and (best.value >= self.value if history.maximize else best.value <= self.value)
        return st.Verdict(reached, f"the best value {'reaches' if reached else 'does not reach'} {self.value:g}")
