"""Multilayer perceptrons trained side by side as one batched network.

Models of a stack share the batch size, the depth and the optimizer; all else differs. Narrow layers are filled up with units
whose weights are zero on both sides. Such a unit stays at zero for ever, its gradient included, so the model is the same.
Each model has its own order of rows, start and dropout.

ReLU; weights start as normal numbers of variance 2 / inputs; SGD has momentum 0.9 and weight decay in the gradient, Adam is AdamW
(beta .9 and .999). A last batch that is not full is left out. Outputs that are no numbers count as wrong, or as an error of 2.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.curves import lanes

MOMENTUM, BETA_1, BETA_2, SMALL = 0.9, 0.9, 0.999, 1e-8
HIGHEST_ERROR = 2.0  # of regression; predicting the mean has 1
DROPS = (25, 40)  # epochs from which on "steps" has a tenth and a hundredth of the learning rate


class Stack:
    """``data`` holds the tensors of ``Samples`` on the device; ``results`` is (epochs, models, 3): valid, test, loss."""

    def __init__(
        self, data: Mapping[str, Any], configs: Sequence[Mapping[str, Any]], *, rows: int, epochs: int, seed: int, device: str
    ) -> None:
        self.data, self.models, self.device = data, len(configs), device
        self.rows, self.count = rows, epochs
        self.classes = int(data["classes"])
        self.batch = min(2 ** configs[0]["log2_batch"], rows)
        self.adam = configs[0]["optimizer"] == "adam"
        width = max(config["width"] for config in configs)
        sizes = [data["train_x"].shape[1], *[width] * configs[0]["depth"], self.classes or 1]
        self.sizes = list(pairwise(sizes))
        self._eager, self._source = lanes.generator(device, seed), lanes.generator(device, seed + 1)

        def column(values: list[float]) -> Any:
            return torch.tensor(values, dtype=torch.float32, device=device)[:, None]

        self.base, self.decay = column([c["learning_rate"] for c in configs]), column([c["weight_decay"] for c in configs])
        self.keep = column([1 - c["dropout"] for c in configs])[:, :, None]
        self.mask = (torch.arange(width, device=device)[None] < column([c["width"] for c in configs])).float()
        steps = np.array([0.1 ** sum(epoch >= drop for drop in DROPS) for epoch in range(epochs + 1)])
        factors = [steps if c["schedule"] == "steps" else np.ones_like(steps) for c in configs]
        self.factors = torch.tensor(np.array(factors), dtype=torch.float32, device=device)
        total = sum((a + 1) * b for a, b in self.sizes)
        self.flat, self.first, self.second = (torch.zeros(self.models, total, device=device) for _ in range(3))
        self.leaves: list[Any] = []
        start = 0
        for a, b in self.sizes:
            for inputs, shape in ((a * b, (self.models, a, b)), (b, (self.models, 1, b))):
                self.leaves.append(self.flat[:, start : start + inputs].view(shape).detach().requires_grad_())
                start += inputs
        self.order = torch.zeros(self.models, rows, dtype=torch.long, device=device)
        self.place, self.epoch = (torch.zeros(1, dtype=torch.long, device=device) for _ in range(2))
        self.age = torch.zeros(1, device=device)
        self.rate = self.base.clone()
        self.results = torch.zeros(epochs, self.models, 3, device=device)
        self.columns = torch.arange(self.batch, device=device)

    def reset(self) -> None:
        """Start anew: new weights, no momentum."""
        with torch.no_grad():
            for tensor in (self.flat, self.first, self.second, self.place, self.epoch, self.age):
                tensor.zero_()
            self.rate.copy_(self.base)
            for layer, (a, _) in enumerate(self.sizes):
                weights = self.leaves[2 * layer]
                weights.copy_(torch.randn(weights.shape, generator=self._eager, device=self.device) * (2 / a) ** 0.5)
                if layer > 0:
                    weights.mul_(self.mask[:, :, None])
                if layer < len(self.sizes) - 1:
                    weights.mul_(self.mask[:, None, :])
        self.shuffle()

    def shuffle(self) -> None:
        draws = torch.rand(self.models, self.rows, generator=self._eager, device=self.device)
        self.order.copy_(draws.argsort(dim=1))
        self.place.zero_()

    def outputs(self, x: Any, training: bool) -> Any:
        for layer in range(len(self.sizes)):
            x = torch.baddbmm(self.leaves[2 * layer + 1], x, self.leaves[2 * layer])
            if layer < len(self.sizes) - 1:
                x = functional.relu(x)
                if training:
                    draws = torch.rand(x.shape, generator=self._source, device=self.device)
                    x = x * ((draws < self.keep) / self.keep)
        return x

    def step(self) -> None:
        """One step of every model."""
        index = self.order.index_select(1, (self.place + self.columns) % self.rows)  # warm-up calls must not run past the end
        y = self.data["train_y"][index]
        losses = self.losses(self.outputs(self.data["train_x"][index], True), y)
        gradients = torch.autograd.grad(losses.mean(dim=1).sum(), self.leaves)
        with torch.no_grad():
            gradient = torch.cat([each.reshape(self.models, -1) for each in gradients], dim=1)
            if self.adam:
                self.age.add_(1)
                self.first.lerp_(gradient, 1 - BETA_1)
                self.second.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
                below = (self.second / (1 - BETA_2**self.age)).sqrt_().add_(SMALL)
                self.flat.mul_(1 - self.rate * self.decay)
                self.flat.addcdiv_(self.first * (-self.rate / (1 - BETA_1**self.age)), below)
            else:
                gradient.addcmul_(self.flat, self.decay)
                self.first.mul_(MOMENTUM).add_(gradient)
                self.flat.addcmul_(self.first, -self.rate)
            self.place.add_(self.batch)

    def losses(self, outputs: Any, y: Any) -> Any:
        if self.classes == 0:
            return (outputs[..., 0] - y) ** 2
        flat = functional.cross_entropy(outputs.flatten(0, 1), y.reshape(-1), reduction="none")
        return flat.view(y.shape)

    def judge(self) -> None:
        """Write this epoch's errors, and set the next epoch's learning rates."""
        with torch.no_grad():
            self.epoch.remainder_(self.count)
            found: dict[str, Any] = {}
            for part in ("valid", "test"):
                x, y = self.data[f"{part}_x"], self.data[f"{part}_y"]
                outputs = self.outputs(x.expand(self.models, *x.shape), False)
                targets = y.expand(self.models, *y.shape)
                losses = self.losses(outputs, targets).mean(dim=1)
                if self.classes == 0:
                    found[part] = torch.nan_to_num(losses, nan=HIGHEST_ERROR).clamp(max=HIGHEST_ERROR)
                else:
                    fine = outputs.isfinite().all(dim=2)
                    found[part] = 1 - ((outputs.argmax(dim=2) == targets) & fine).float().mean(dim=1)
                if part == "valid":
                    found["loss"] = torch.nan_to_num(losses, nan=100.0).clamp(max=100.0)
            row = torch.stack([found["valid"], found["test"], found["loss"]], dim=1)
            self.results.index_copy_(0, self.epoch, row[None])
            self.epoch.add_(1)
            self.rate.copy_(self.base * self.factors.index_select(1, self.epoch))

    def pieces(self) -> Iterator[None]:
        step = lanes.captured(self.step, self.device, self._source)
        judge = lanes.captured(self.judge, self.device, self._source)
        self.reset()
        for _ in range(self.count):
            for number in range(1, self.rows // self.batch + 1):
                step()
                if number % lanes.STEPS_A_PIECE == 0:
                    yield
            judge()
            self.shuffle()
            yield

    def errors(self) -> Any:
        """(models, 3, epochs) as numpy."""
        return self.results.permute(1, 2, 0).cpu().numpy()
