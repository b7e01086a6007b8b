"""Bayesian ridge regression in closed form, with what every row would be predicted as without it.

Notation
    X (n x p)       design; column 0 is ones; P the diagonal of penalties (0 for the intercept)
    A = X'X + P,  w = A^-1 X'y,  h_i = x_i' A^-1 x_i (leverage),  e = y - X w
    Q = e'e + w'P w                                     what the data say about the noise, penalty included
    sigma^2 = (a Q0 + Q) / (a + n - 1)                  noise; the prior counts as ``a`` observations of variance Q0
    without row i:  prediction y_i - e_i / (1 - h_i),  Q_-i = Q - e_i^2 / (1 - h_i),  variance sigma_-i^2 / (1 - h_i)

The left-out lines are exact, not approximate: the rank-one update of A (Sherman and Morrison), at fixed penalties.
PRESS = sum_i (e_i / (1 - h_i))^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ...numerics import Array

PRIOR_NOISE = 1.0  # before any data a log cost is off by about one: a factor of 2.7
PRIOR_WEIGHT = 1.0  # and that belief counts as one observation
NOTHING = (0.0, 100.0)  # mean and variance of log cost where there is no other observation to go by
ROUNDING = 1e-10  # a leverage this near to 1 leaves nothing to predict a row from


@dataclass(frozen=True)
class Ridge:
    """A solved regression."""

    weights: Array
    inverse: Array  # A^-1
    error: Array  # e
    leverage: Array  # h
    quadratic: float  # Q
    noise: float  # sigma^2
    prior: tuple[float, float] = (PRIOR_NOISE, PRIOR_WEIGHT)

    @classmethod
    def solve(cls, X: Array, y: Array, penalty: Array, prior: tuple[float, float] = (PRIOR_NOISE, PRIOR_WEIGHT)) -> Ridge:
        inverse = _inverse(X.T @ X + np.diag(penalty))
        weights = inverse @ (X.T @ y)
        error = y - X @ weights
        leverage = np.minimum(np.einsum("ij,jk,ik->i", X, inverse, X), 1.0)
        quadratic = float(error @ error + weights @ (penalty * weights))
        Q0, a = prior
        return cls(weights, inverse, error, leverage, quadratic, (a * Q0 + quadratic) / (a + len(y) - 1.0), prior)

    @property
    def room(self) -> Array:
        """1 - h_i, kept above zero."""
        return np.maximum(1.0 - self.leverage, ROUNDING)

    @property
    def left_out_error(self) -> Array:
        """Each row's error when it is predicted from the others."""
        return self.error / self.room

    @property
    def press(self) -> float:
        missed = self.left_out_error
        return float(missed @ missed)

    @property
    def left_out_noise(self) -> Array:
        """sigma^2 as it would be without each row."""
        Q0, a = self.prior
        rest = np.maximum(self.quadratic - self.error**2 / self.room, 0.0)
        return np.asarray((a * Q0 + rest) / np.maximum(a + len(self.error) - 2.0, a))

    def left_out(self, y: Array) -> tuple[Array, Array]:
        """Mean and variance of each row predicted from the others; of the only row: nothing is known."""
        if len(y) < 2:
            return np.full(len(y), NOTHING[0]), np.full(len(y), NOTHING[1])
        return y - self.left_out_error, self.left_out_noise / self.room

    def predict(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean, the variance that the weights' uncertainty adds (x'A^-1 x sigma^2), and A^-1 x for its gradient."""
        solved = X @ self.inverse
        return X @ self.weights, self.noise * np.einsum("ij,ij->i", solved, X), solved


def _inverse(A: Array) -> Array:
    """Of a symmetric matrix that penalties keep positive definite."""
    L, info = dpotrf(A, lower=1, clean=1)
    if info != 0:  # only by rounding, with columns of very different size
        return np.asarray(np.linalg.pinv(A, hermitian=True))
    inverse, _ = dpotri(L, lower=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


def with_intercept(F: Array) -> Array:
    return np.column_stack([np.ones(len(F)), F])


def penalties(strength: float, columns: int) -> Array:
    """None on the intercept, ``strength`` on the others."""
    return np.concatenate([[0.0], np.full(columns, strength)])
