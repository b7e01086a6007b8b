"""The convolutional network of Wu and Frazier (section 4.2), at several sizes of the training set.

Three blocks of two convolutions (3 x 3) with the same number of filters and a max-pooling layer, then softmax; no dropout and no
batch normalisation. Images are shifted by up to four pixels and flipped at random. The paper does not name the optimizer: here it
is SGD with momentum 0.9 and a weight decay of 1e-4. Products are in bfloat16, weights in single precision.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.nn import functional

from benchmarks.curves import lanes

MOMENTUM, WEIGHT_DECAY, SHIFT = 0.9, 1e-4, 4
JUDGED_AT_ONCE = 3500  # images
CHANNELS = 8  # colours and empty channels: the GPU multiplies eights; an empty channel changes nothing


def on_device(images: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Images as the network wants them: standardised by channel, training images with a border of zeros to shift into."""
    train = torch.as_tensor(images["train_x"]).float()
    middle, spread = train.mean(dim=(0, 1, 2)), train.std(dim=(0, 1, 2))
    found: dict[str, Any] = {"classes": int(images["classes"])}
    for part in ("train", "valid", "test"):
        x = ((torch.as_tensor(images[f"{part}_x"]).float() - middle) / spread).to(torch.bfloat16).to(device)
        border = SHIFT if part == "train" else 0
        found[f"{part}_x"] = functional.pad(x, (0, CHANNELS - x.shape[-1], border, border, border, border))
        found[f"{part}_y"] = torch.as_tensor(images[f"{part}_y"]).long().to(device)
    return found


class Network:
    """One config; each size and seed is trained in turn with the same captured step. ``results``: (runs, epochs, 3)."""

    def __init__(
        self, data: Mapping[str, Any], config: Mapping[str, Any], *, runs: list[tuple[int, int]], epochs: int, device: str
    ) -> None:
        self.data, self.config, self.device, self.runs, self.count = data, config, device, runs, epochs
        self.batch = min(2 ** config["log2_batch"], min(size for size, _ in runs))
        filters = [8 * config[f"eights_{block}"] for block in (1, 2, 3)]
        self.channels = [(a, b) for block, b in enumerate(filters) for a in ((CHANNELS, *filters)[block], b)]
        side = data["valid_x"].shape[1] // 8
        shapes = [(b, a, 3, 3) for a, b in self.channels] + [(data["classes"], filters[-1] * side * side)]
        self.weights = [torch.zeros(shape, device=device) for shape in shapes]
        self.weights = [each.contiguous(memory_format=torch.channels_last) if each.ndim == 4 else each for each in self.weights]
        self.biases = [torch.zeros(shape[0], device=device) for shape in shapes]
        self.leaves = [*self.weights, *self.biases]
        for leaf in self.leaves:
            leaf.requires_grad_()
        self.moving = [torch.zeros_like(leaf) for leaf in self.leaves]
        self.order = torch.zeros(max(size for size, _ in runs), dtype=torch.long, device=device)
        self.place, self.row = (torch.zeros(1, dtype=torch.long, device=device) for _ in range(2))
        self.results = torch.zeros(len(runs) * epochs, 3, device=device)
        self.columns = torch.arange(self.batch, device=device)
        self.pixels = torch.arange(data["valid_x"].shape[1], device=device)
        self._source = lanes.generator(device, 0)

    def reset(self, source: Any) -> None:
        with torch.no_grad():
            for layer, weight in enumerate(self.weights):
                deviation = (2 / (27 if layer == 0 else weight[0].numel())) ** 0.5  # 27: nine pixels of three colours
                weight.copy_(torch.randn(weight.shape, generator=source, device=self.device) * deviation)
            for tensor in (*self.biases, *self.moving):
                tensor.zero_()

    def outputs(self, x: Any) -> Any:
        """``x`` is (images, side, side, CHANNELS): the order of memory that the GPU's convolutions like best."""
        with torch.autocast(self.device, torch.bfloat16):
            x = x.permute(0, 3, 1, 2)
            for layer in range(6):
                x = functional.relu(functional.conv2d(x, self.weights[layer], self.biases[layer], padding=1))
                if layer % 2:
                    x = functional.max_pool2d(x, 2)
            return functional.linear(x.flatten(1), self.weights[6], self.biases[6])

    def batch_of_images(self) -> tuple[Any, Any]:
        index = self.order.index_select(0, self.place + self.columns)
        draws = torch.rand(3, self.batch, 1, generator=self._source, device=self.device)
        shifts = (draws[:2] * (2 * SHIFT + 1)).long()
        across = torch.where(draws[2] < 0.5, self.pixels, self.pixels.flip(0))
        rows, columns = shifts[0] + self.pixels, shifts[1] + across
        images = self.data["train_x"][index[:, None, None], rows[:, :, None], columns[:, None, :]]
        return images, self.data["train_y"][index]

    def step(self) -> None:
        images, y = self.batch_of_images()
        loss = functional.cross_entropy(self.outputs(images).float(), y)
        gradients = torch.autograd.grad(loss, self.leaves)
        with torch.no_grad():
            torch._foreach_mul_(self.moving, MOMENTUM)
            torch._foreach_add_(self.moving, gradients)
            torch._foreach_add_(self.moving, self.leaves, alpha=WEIGHT_DECAY)
            torch._foreach_add_(self.leaves, self.moving, alpha=-self.config["learning_rate"])
            self.place.add_(self.batch)

    def judge(self) -> None:
        with torch.no_grad():
            self.row.remainder_(len(self.results))  # warm-up calls must not run past the end
            found = []
            for part in ("valid", "test"):
                y = self.data[f"{part}_y"]
                outputs = torch.cat([self.outputs(x).float() for x in self.data[f"{part}_x"].split(JUDGED_AT_ONCE)])
                fine = outputs.isfinite().all(dim=1)
                found.append(1 - ((outputs.argmax(dim=1) == y) & fine).float().mean())
                if part == "valid":
                    loss = torch.nan_to_num(functional.cross_entropy(outputs, y), nan=100.0).clamp(max=100.0)
            self.results.index_copy_(0, self.row, torch.stack([*found, loss])[None])
            self.row.add_(1)

    def pieces(self) -> Iterator[None]:
        step = lanes.captured(self.step, self.device, self._source)
        judge = lanes.captured(self.judge, self.device, self._source)
        self.row.zero_()
        for size, seed in self.runs:
            source = lanes.generator(self.device, seed)
            self.reset(source)
            for _ in range(self.count):
                self.order[:size].copy_(torch.randperm(size, generator=source, device=self.device))
                self.place.zero_()
                for number in range(1, size // self.batch + 1):
                    step()
                    if number % lanes.STEPS_A_PIECE == 0:
                        yield
                judge()
                yield

    def errors(self) -> Any:
        """(runs, 3, epochs) as numpy."""
        return self.results.view(len(self.runs), self.count, 3).permute(0, 2, 1).cpu().numpy()


def seconds_per_step(data: Mapping[str, Any], config: Mapping[str, Any], device: str, steps: int = 20) -> float:
    """Of a network on its own, in the best of three tries."""
    network = Network(data, config, runs=[(len(data["train_y"]), 0)], epochs=1, device=device)
    network.reset(lanes.generator(device, 0))
    lane = lanes.Lane(device)
    tries: list[float] = []
    wait(device)
    with lane.current():
        step = lanes.captured(network.step, device, network._source)
        for _ in range(3):
            network.place.zero_()
            wait(device)
            began = time.perf_counter()
            for _ in range(min(steps, len(data["train_y"]) // network.batch)):
                step()
            wait(device)
            tries.append((time.perf_counter() - began) / min(steps, len(data["train_y"]) // network.batch))
    return min(tries)


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
