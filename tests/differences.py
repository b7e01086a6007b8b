"""Gradients by central differences."""

import numpy as np


def gradient_of(function, x, step=1e-5):
    """Of a scalar function at one point."""
    x = np.asarray(x, dtype=float)
    slopes = np.empty_like(x)
    for j in range(len(x)):
        ahead, behind = x.copy(), x.copy()
        ahead[j] += step
        behind[j] -= step
        slopes[j] = (function(ahead) - function(behind)) / (2 * step)
    return slopes


def gradients_of(function, X, step=1e-5):
    """Of a function of a batch (m x p -> m) whose rows do not touch each other."""
    slopes = np.empty_like(X)
    for j in range(X.shape[1]):
        move = np.zeros(X.shape[1])
        move[j] = step
        slopes[:, j] = (function(X + move) - function(X - move)) / (2 * step)
    return slopes
