"""Studies whose trials are recorded: methods x spaces x models x costs x storages, by the public API alone.

    python -m tests.state.recorded        records them again, after a change that is meant to alter them

Processors round in different ways, and a search makes much of it: after ten trials two machines may be far apart. So the rounding
of the machine is recorded too. The first trials were recorded at commit 17d79f6.
"""

import hashlib
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import scipy
from scipy import special
from scipy.linalg import lapack

import shoestring as st

RECORDED = Path(__file__).parent / "recorded.json"
INITIAL = 8  # trials of the initial design, in all of these studies

NUMBERS = st.Space(x=st.Float(0, 1), y=st.Float(0, 1))
MIXED = st.Space(
    lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12), booster=st.Choice("gbtree", "dart"),
    rate_drop=st.Float(0, 0.5, when={"booster": "dart"}),
)  # fmt: skip
FIDELITY = st.Space(x=st.Float(0, 1), k=st.Int(1, 9), epochs=st.Fidelity(1, 27))
FINITE = st.Space(a=st.Int(0, 6), b=st.Choice("p", "q", "r"), c=st.Int(1, 5))


def numbers(c):
    return (c["x"] - 0.3) ** 2 + 2 * (c["y"] - 0.7) ** 2 + 0.1 * math.sin(9 * c["x"])


def mixed(c):
    dart = 0.2 if c["booster"] == "dart" else 0
    return (math.log10(c["lr"]) + 3) ** 2 + 0.1 * abs(c["depth"] - 7) + (c.get("rate_drop", 0.3) - 0.2) ** 2 + dart


def mixed_cost(c):
    return 0.5 + c["depth"] ** 1.5 / 4 + (2 if c["booster"] == "dart" else 0)


def fidelity(c):
    return (c["x"] - 0.4) ** 2 + 0.05 * abs(c["k"] - 4) + 0.5 / c["epochs"]


def finite(c):
    return (c["a"] - 3) ** 2 * 0.3 + {"p": 0, "q": 0.4, "r": 0.1}[c["b"]] + 0.2 * abs(c["c"] - 2)


def gradient(c):
    return {"x": 2 * (c["x"] - 0.3) + 0.9 * math.cos(9 * c["x"]), "y": 4 * (c["y"] - 0.7)}


def epochs(c):
    return c["epochs"] * 1.0


N, M, F, T = (NUMBERS, numbers), (MIXED, mixed), (FIDELITY, fidelity), (FINITE, finite)
METHODS = {
    "Random()": st.Random, "Sobol()": st.Sobol, "EI()": st.EI, "LogEI()": st.LogEI, "PI()": st.PI, "LCB()": st.LCB, "KG()": st.KG,
    "MES()": st.MES, "ES(30,2048)": lambda: st.ES(30, 2048), "PES()": st.PES, "TPE()": st.TPE, "BORE()": st.BORE,
}  # fmt: skip
COST_AWARE = {
    "EIpu()": st.EIpu, "EIAlpha(0.5)": lambda: st.EIAlpha(0.5), "EICool()": st.EICool, "CEI(0.2)": lambda: st.CEI(0.2),
    "Gittins()": st.Gittins, "Gittins(0.05)": lambda: st.Gittins(0.05),
}  # fmt: skip
STUDIES = {  # name -> problem, trials, how it is told, and options of the study
    **{f"num-{name}": (N, 18, {}, lambda make=make: {"method": make()}) for name, make in METHODS.items()},
    **{
        f"mix-{name}": (M, 18, {"cost": mixed_cost}, lambda make=make: {"method": make(), "budget": st.Budget(cost=200.0)})
        for name, make in COST_AWARE.items()
    },
    "mix-auto-trials": (M, 22, {"cost": mixed_cost}, lambda: {"budget": 40}),
    "mix-auto-cost": (M, 22, {"cost": mixed_cost}, lambda: {"budget": st.Budget(cost=300.0)}),
    "mix-auto-nobudget": (M, 20, {"cost": mixed_cost}, dict),
    "mix-fail": (M, 24, {"cost": mixed_cost, "fail": lambda c: c["depth"] > 9}, lambda: {"method": st.EI()}),
    "mix-fail-auto": (M, 24, {"cost": mixed_cost, "fail": lambda c: c["lr"] > 1e-2}, dict),
    "mix-maximize": ((MIXED, lambda c: -mixed(c)), 18, {}, lambda: {"direction": "maximize"}),
    "fid-auto": (F, 16, {"cost": epochs}, dict),
    "fid-CFKG-nocost": (F, 14, {}, lambda: {"method": st.CFKG()}),
    "fid-BOCA": (F, 18, {"cost": lambda c: 0.2 + epochs(c)}, lambda: {"method": st.BOCA()}),
    "fid-Hyperband": (F, 40, {"cost": epochs}, lambda: {"method": st.Hyperband()}),
    "fid-HyperbandA": (F, 40, {"cost": epochs}, lambda: {"method": st.Hyperband(asynchronous=True)}),
    "fin-EI": (T, 40, {}, lambda: {"method": st.EI()}),
    "fin-KG": (T, 20, {}, lambda: {"method": st.KG()}),
    "fin-auto-cost": (T, 40, {"cost": lambda c: 1 + c["c"]}, lambda: {"budget": st.Budget(cost=400.0)}),
    "num-mcmc": (N, 13, {}, lambda: {"method": st.EI(), "model": st.GP(inference="mcmc")}),
    "num-warp": (N, 15, {}, lambda: {"method": st.EI(), "model": st.GP(warp=True)}),
    "num-se": (N, 15, {}, lambda: {"method": st.EI(), "model": st.GP(kernel="se")}),
    "num-vfe": (N, 16, {}, lambda: {"method": st.EI(), "model": st.VFE(10)}),
    "num-fitc": (N, 16, {}, lambda: {"method": st.LCB(), "model": st.FITC(10)}),
    "num-kmeans": (N, 34, {}, lambda: {"method": st.EI(), "subset": st.KMeansSubset(0.5)}),
    "num-batch": (N, 24, {"batch": 4}, lambda: {"method": st.KG()}),
    "num-batch-ei": (N, 24, {"batch": 3}, lambda: {"method": st.EI()}),
    "fid-batch": (F, 16, {"cost": epochs, "batch": 4}, dict),
    "num-pending": (N, 22, {"pending": 3}, lambda: {"method": st.EI()}),
    "num-pending-kg": (N, 18, {"pending": 2}, lambda: {"method": st.KG()}),
    "num-grad": (N, 12, {"gradient": gradient}, lambda: {"method": st.DKG()}),
    "mix-linear": (M, 18, {"cost": mixed_cost}, lambda: {"method": st.EIpu(), "cost_model": st.LinearCost()}),
    "mix-loggp": (M, 18, {"cost": mixed_cost}, lambda: {"method": st.EIpu(), "cost_model": st.LogGPCost()}),
    "mix-residual": (M, 18, {"cost": mixed_cost}, lambda: {"method": st.EIpu(), "cost_model": st.ResidualGPCost()}),
    "sqlite-ei": (M, 18, {"cost": mixed_cost, "stored": True}, lambda: {"method": st.EI()}),
    "sqlite-auto": (M, 18, {"cost": mixed_cost, "stored": True}, lambda: {"budget": st.Budget(cost=200.0)}),
    "sqlite-fid": (F, 12, {"cost": epochs, "stored": True}, dict),
    "sqlite-reopen": (N, 18, {"stored": True, "reopen": 9}, lambda: {"method": st.EI()}),
}


def run(name, folder):
    """The configs that a study asks, in order."""
    (space, objective), trials, how, options = STUDIES[name]
    url = f"sqlite:///{folder}/tune.db" if how.get("stored") else None
    study = st.Study(space, seed=7, stop=None, storage=url, **options())
    asked, running = [], []
    while len(asked) < trials:
        if len(asked) == how.get("reopen"):
            study = st.Study.load(url)
        new = study.ask_many(how["batch"]) if "batch" in how else [study.ask()]
        asked += [dict(trial.config) for trial in new]
        running += new
        while len(running) > how.get("pending", 0):
            tell(study, running.pop(0), objective, how)
    return asked


def tell(study, trial, objective, how):
    cost = how["cost"](trial.config) if "cost" in how else 1.0
    if "fail" in how and how["fail"](trial.config):
        study.tell(trial, error="no", cost=cost)
    else:
        slopes = how["gradient"](trial.config) if "gradient" in how else None
        study.tell(trial, objective(trial.config), cost=cost, gradient=slopes)


def rounding():
    """The same on machines that round alike, as far as matrices, exponentials and logarithms show it."""
    A = np.random.default_rng(0).random((60, 60))
    factor, _ = lapack.dpotrf(A @ A.T + np.eye(60), lower=1)
    inverse, _ = lapack.dtrtri(factor, lower=1)
    found = factor, inverse, special.ndtr(A), special.erfcx(A), np.exp(A), np.log(A)
    versions = f"{np.__version__} {scipy.__version__}".encode()
    return hashlib.sha256(versions + b"".join(each.tobytes() for each in found)).hexdigest()[:12]


def main():
    """Write all of them."""
    found = {"rounding": rounding()}
    for name in STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = run(name, Path(folder))
        print(name, flush=True)
    entries = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    RECORDED.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
