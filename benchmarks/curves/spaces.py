"""What is tuned in each table: names, hyperparameters, fidelities, and the split into tuning and reporting sets."""

from dataclasses import dataclass

from benchmarks.problems.core import Category, Dimension, Integer, Real

EPOCHS = 50
ROUNDS, ROUNDS_PER_POINT = 150, 3  # XGBoost: a point of the curve after every third round
MLP_ROWS = 4000  # at most this many training rows
XGBOOST_ROWS = 2000
IMAGES = (8000, 3500, 3500)  # of CIFAR-10: training, validation, test
SIZES = (1, 2, 4, 8)  # levels of the training-set size, in eighths of the whole

MLP: tuple[Dimension, ...] = (
    Real("learning_rate", 1e-4, 0.3, log=True),
    Real("weight_decay", 1e-6, 1e-1, log=True),
    Integer("log2_batch", 5, 9),  # 32 to 512 rows
    Integer("width", 8, 256, log=True),
    Integer("depth", 1, 3),  # hidden layers
    Real("dropout", 0.0, 0.6),
    Category("optimizer", ("sgd", "adam")),
    Category("schedule", ("constant", "steps")),  # steps: a tenth of the rate from epoch 25 on, a hundredth from epoch 40 on
)
CNN: tuple[Dimension, ...] = (
    Real("learning_rate", 3e-4, 0.3, log=True),
    Integer("log2_batch", 5, 9),
    Integer("eights_1", 1, 8),  # filters of the first block, in eights: 8 to 64
    Integer("eights_2", 1, 8),
    Integer("eights_3", 1, 8),
)
XGBOOST: tuple[Dimension, ...] = (
    Real("eta", 0.01, 1.0, log=True),
    Integer("max_depth", 1, 10),
    Real("min_child_weight", 0.1, 100.0, log=True),
    Real("subsample", 0.2, 1.0),
    Real("colsample_bytree", 0.2, 1.0),
    Real("reg_lambda", 1e-3, 1e3, log=True),
)
SPACES = {"mlp": MLP, "mlprows": MLP, "cnn": CNN, "xgboost": XGBOOST}
LABELS = {
    "mlp": "multilayer perceptron", "mlprows": "multilayer perceptron, rows and epochs",
    "cnn": "convolutional network, images and epochs", "xgboost": "XGBoost",
}  # fmt: skip

TUNING = (
    *(f"mlp_{data}" for data in ("texture", "splice", "puma32h", "bank32nh")),
    "mlprows_wind",
    *(f"xgboost_{data}" for data in ("splice", "puma32h")),
)
REPORTING = (
    *(f"mlp_{data}" for data in ("satimage", "phoneme", "optdigits", "kin8nm", "parkinsons")),
    "mlprows_pendigits",
    "cnn_cifar10",
    *(f"xgboost_{data}" for data in ("satimage", "kin8nm")),
)
NAMES = TUNING + REPORTING


@dataclass(frozen=True)
class Named:
    """The parts of a table's name, and what follows from them."""

    name: str
    family: str
    data: str

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        return SPACES[self.family]

    @property
    def unit(self) -> str:
        """The name of the fidelity along the curve."""
        return "rounds" if self.family == "xgboost" else "epochs"

    @property
    def sized(self) -> bool:
        """Whether the size of the training set is a second fidelity."""
        return self.family in ("mlprows", "cnn")


def named(name: str) -> Named:
    """Look a name up."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is not a table of learning curves: choose one of {', '.join(NAMES)}")
    family, data = name.split("_", 1)
    return Named(name, family, data)
