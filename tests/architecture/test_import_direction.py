"""Every module imports from its own layer or from one below it, and no two modules import each other."""

import ast
from functools import cache
from pathlib import Path

import shoestring

ROOT = Path(shoestring.__file__).parent
LAYERS = [  # packages and modules, the longest name counts
    ["numerics", "errors", "_format", "_validation"],
    ["space", "budget", "_optuna_names", "data.trial", "data.persistent_list", "execution.signals"],
    ["storage", "data"],
    ["surrogate", "cost"],
    ["acquisition"],
    ["search"],
    ["termination"],
    ["execution.describe", "execution.evaluate", "execution.executor", "state"],
    ["report"],
    ["execution", "program"],
    ["study_view", "study"],
    ["optimize", "integrations", "report.plot", "testing", "web"],
    ["cli", "__main__", "__init__"],
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}


def name_of(path):
    """``acquisition.base``; a package's own module has the package's name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in ROOT.rglob("*.py")}


def level_of(module):
    """By the longest of the names above that it has or is in."""
    known = [name for name in LEVEL if module == name or module.startswith(name + ".")]
    return LEVEL[max(known, key=len)] if known else None


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path):
    """All nodes of its tree: several tests look at each of them."""
    return tuple(ast.walk(parsed(path)))


def imports(path):
    """The modules of shoestring that a file imports when it runs, at its head or inside a function."""
    for_types = {
        id(inner)
        for node in nodes_of(path)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    package = path.relative_to(ROOT.parent).with_suffix("").parts[:-1]
    for node in nodes_of(path):
        if id(node) in for_types or not isinstance(node, ast.ImportFrom):
            continue
        base = list(package[: len(package) - node.level + 1]) if node.level else []
        parts = base + (node.module.split(".") if node.module else [])
        if parts[:1] != ["shoestring"]:
            continue
        module = ".".join(parts[1:])
        for alias in node.names:
            inner = f"{module}.{alias.name}".lstrip(".")
            yield inner if inner in MODULES else module or "__init__"


def at_head(path):
    """The modules that a file imports when it is imported itself."""
    package = path.relative_to(ROOT.parent).with_suffix("").parts[:-1]
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = [*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
            inner = [".".join([*parts[1:], alias.name]) for alias in node.names]
            yield from (name if name in MODULES else ".".join(parts[1:]) for name in inner)


def test_every_module_has_its_place():
    assert [name for name in MODULES if level_of(name) is None] == []


def test_nothing_imports_from_above():
    above = [
        f"{name} imports {other}"
        for name, path in sorted(MODULES.items())
        for other in imports(path)
        if level_of(other) is not None and level_of(other) > level_of(name)
    ]
    assert above == []


def test_no_two_modules_import_each_other():
    needs = {name: {other for other in at_head(path) if other in MODULES and other != name} for name, path in MODULES.items()}
    done, cycles = set(), []

    def visit(name, way):
        if name in way:
            cycles.append([*way[way.index(name) :], name])
        elif name not in done:
            for other in sorted(needs[name]):
                visit(other, [*way, name])
            done.add(name)

    for name in sorted(needs):
        visit(name, [])
    assert cycles == []


def test_the_reader_of_imports_reads_them():
    assert {"data.history", "surrogate.gp", "state.suggester", "termination.auto"} <= set(imports(ROOT / "study.py"))
    assert {"space.encoding", "errors", "numerics"} <= set(imports(ROOT / "acquisition" / "optimize" / "optimizer.py"))
    assert "study" not in set(imports(ROOT / "report" / "result.py"))


def test_nothing_below_the_study_knows_it_not_even_for_types():
    below = [name for name in MODULES if level_of(name) < LEVEL["study"]]
    assert [name for name in below if "import Study\n" in MODULES[name].read_text(encoding="utf-8")] == []


def test_no_module_of_the_library_is_imported_for_its_types_alone():
    """A type-only import hides a cycle. The command line has such imports: there they save time."""
    found = [
        name
        for name, path in MODULES.items()
        if not name.startswith("cli.")
        for node in nodes_of(path)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if any(isinstance(inner, ast.ImportFrom) and inner.level for inner in node.body)
    ]
    assert found == []


def test_the_root_has_few_modules_and_stems_are_unique():
    assert len(list(ROOT.glob("*.py"))) <= 12
    stems = [path.stem for path in ROOT.rglob("*.py") if path.stem not in ("__init__", "__main__", "base", "auto")]
    own = [path.stem for path in ROOT.rglob("*.py") if path.parent.name == "testing"]  # named after what they test
    assert sorted({stem for stem in stems if stems.count(stem) > 1} - set(own)) == []
