"""Every module imports from its own layer or from one below it."""

import ast
from pathlib import Path

import shoestring

ROOT = Path(shoestring.__file__).parent
LAYERS = [
    ["numerics", "errors", "wording"],
    ["parameters", "choice", "space", "trial", "pages", "taken", "traces", "outcome", "budget", "columns", "storage"],
    ["history", "observations", "outputs", "encoding"],
    ["surrogate"],
    ["acquisition"],
    ["search"],
    ["termination"],
    [
        "course", "ledger", "spelling", "widening", "keeping", "archive", "replay", "checkpoints", "evaluate", "progress",
        "result", "confirming", "program", "execution", "live", "units", "loop", "plot",
    ],
    ["records", "asking", "study"],
    ["optimize", "integrations"],
    ["cli", "__main__", "__init__"],
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}


def part(path):
    """The top-level module or package a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Names of the parts of shoestring that a file imports when it runs, at its head or inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    package = path.relative_to(ROOT.parent).with_suffix("").parts[:-1]
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = base + (node.module.split(".") if node.module else [])
            if module[:1] == ["shoestring"]:
                yield from [module[1]] if len(module) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("shoestring.")]


def test_every_module_has_its_place():
    assert {part(path) for path in ROOT.rglob("*.py")} <= set(LEVEL)


def test_nothing_imports_from_above():
    above = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted(ROOT.rglob("*.py"))
        for name in imports(path)
        if name in LEVEL and LEVEL[name] > LEVEL[part(path)]
    ]
    assert above == []


def test_the_reader_of_imports_reads_them():
    assert {"history", "surrogate", "search", "termination"} <= set(imports(ROOT / "study.py"))
    assert {"encoding", "errors", "numerics"} <= set(imports(ROOT / "acquisition" / "maximize.py"))
    assert "study" not in set(imports(ROOT / "result.py"))
