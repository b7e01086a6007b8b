"""Gradients by central differences."""

import numpy as np


def gradient_of(function, x, step=1e-5):
    """The gradient of a scalar function at one point."""
    x = np.asarray(x, dtype=float)
    slopes = np.empty_like(x)
    for j in range(len(x)):
        forward, backward = x.copy(), x.copy()
        forward[j] += step
        backward[j] -= step
        slopes[j] = (function(forward) - function(backward)) / (2 * step)
    return slopes


def gradients_of(function, X, step=1e-5):
    """The gradients of a function of a batch (m x p -> m) in which each row's value depends on that row alone."""
    slopes = np.empty_like(X)
    for j in range(X.shape[1]):
        move = np.zeros(X.shape[1])
        move[j] = step
        slopes[:, j] = (function(X + move) - function(X - move)) / (2 * step)
    return slopes
