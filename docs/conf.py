"""The site of the documentation, made by ``make docs``: Markdown pages as they are, and an API reference from docstrings.

Two things are adapted when the site is made. Docstrings list arguments in two aligned columns, which become definition lists.
Links to files outside this folder, which a site cannot have, become the name of the file. The site can be read offline.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

from shoestring import __version__

project, author, release = "Shoestring", "the authors of Shoestring", __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_heading_anchors = 4  # links to headings, with the names that GitHub gives them
html_theme, html_title = "furo", f"Shoestring {release}"  # furo loads no fonts or scripts from elsewhere
html_copy_source, html_show_copyright = False, False
smartquotes = False  # what stands in quotes can be copied into code
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"

EXTERNAL = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//[^"'\s>]*""")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]+)\]\((?P<target>(?!https?:|mailto:|#)[^)\s#]+)(?:#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"(?P<names>[\w*]+(?:, [\w*]+)*) {2,}(?P<text>\S.*)")  # "method     the search method"
SECOND_ENTRY = re.compile(r"; {2,}(?=\w+ {2,})")  # "config  a dict;  fidelity  the fidelities alone"


# -- links to files outside this folder --------------------------------------------------------------------------------


def without_outside_links(text: str, page: Path, folder: Path) -> str:
    """A page in which each link to a file outside the folder is replaced by its text and the path of the file."""

    def replaced(found: re.Match[str]) -> str:
        path = Path(os.path.normpath(page.parent / found["target"]))
        if path.is_relative_to(folder):
            return found[0]
        name = Path(os.path.relpath(path, folder.parent)).as_posix()
        text = found["text"].strip("`")
        return f"`{name}`" if text in (name, Path(name).name, Path(name).stem) else f"{found['text']} (`{name}`)"

    parts = FENCED.split(text)  # code is at the odd places
    return "".join(part if place % 2 else LINK.sub(replaced, part) for place, part in enumerate(parts))


def read_source(app: Any, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    source[0] = without_outside_links(source[0], page, Path(app.srcdir))


# -- lists of arguments in docstrings ----------------------------------------------------------------------------------


def with_definition_lists(lines: list[str]) -> list[str]:
    """A docstring in which each list in two aligned columns is a definition list."""
    changed: list[str] = []
    for paragraph in "\n".join(lines).strip("\n").split("\n\n"):
        entries = aligned_entries(paragraph.split("\n"))
        for names, text in entries:
            changed += [", ".join(f"``{name}``" for name in names.split(", ")), f"    {text}", ""]
        if not entries:
            indented = all(line.startswith("    ") for line in paragraph.split("\n"))
            changed += [*(["::", ""] if indented else []), *paragraph.split("\n"), ""]  # an indented paragraph stays as it is
    return changed


def aligned_entries(lines: list[str]) -> list[tuple[str, str]]:
    """(names, text) of each entry of an aligned list; empty where a paragraph is something else."""
    starts: list[str] = []
    for line in lines:
        if line.startswith(" ") and starts:
            starts[-1] += " " + line.strip()
        elif ENTRY.fullmatch(line):
            starts.append(line)
        else:
            return []
    found = [ENTRY.fullmatch(part) for start in starts for part in SECOND_ENTRY.split(start)]
    return [(entry["names"], entry["text"]) for entry in found if entry is not None]


def read_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = with_definition_lists(lines)


# -- the site needs nothing from the network ---------------------------------------------------------------------------


def check_offline(app: Any, error: Exception | None) -> None:
    """Refuse a site that loads scripts, styles or pictures from elsewhere."""
    for page in [] if error else sorted(Path(app.outdir).rglob("*.html")):
        if found := EXTERNAL.search(page.read_text(encoding="utf-8")):
            raise ExtensionError(f"{page.name} loads something from elsewhere: {found[0]}")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("build-finished", check_offline)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
