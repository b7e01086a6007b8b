import subprocess
import sys

HEAVY = (
    "sklearn", "matplotlib", "optuna", "torch", "sqlalchemy", "dask", "distributed", "ray", "xgboost", "psycopg", "emcee",
    "cloudpickle", "starlette", "jinja2", "uvicorn", "scipy.stats", "scipy.optimize", "scipy.linalg", "scipy.special",
    "lightgbm", "keras", "lightning", "pytorch_lightning", "mlflow", "wandb", "codecarbon", "pynvml", "pyarrow",
    "mcp", "pydantic", "jsonschema",
)  # fmt: skip


def test_importing_shoestring_imports_no_extra():
    script = "import sys, shoestring; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "shoestring.study" in loaded
    assert [name for name in loaded if any(name == heavy or name.startswith(heavy + ".") for heavy in HEAVY)] == []


def test_a_whole_study_needs_no_extra():
    script = "import sys, shoestring as st; st.minimize(lambda c: c['x'], st.Space(x=st.Float(0, 1)), 9, initial=4)"
    script += "; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    extras = [name for name in HEAVY if not name.startswith("scipy")]
    assert [name for name in loaded if name.split(".")[0] in extras] == []
