"""Elements of SVG as text. Everything that comes from a study is escaped here, and only here.

There are no ids, no style attributes and no scripts, so that a page may hold many pictures under a strict policy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from html import escape

WIDTH = 480.0  # of a picture, in its own units; a page scales it
FONT = 14.0  # the largest size of letters that the style sheet sets (on a phone): labels are laid out for it
CHARACTER = 0.56  # the width of a letter as a share of the size of letters, on average
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element. ``class_`` stands for class, and an underscore for a hyphen. The content is markup: escape texts before."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{value_of(value)}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def value_of(value: object) -> str:
    """An attribute's value: numbers are rounded, texts are escaped."""
    return number(value) if isinstance(value, int | float) else safe(str(value))


def safe(text: str) -> str:
    """A text inside markup: escaped, without characters that XML does not allow."""
    return escape(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)


def number(value: float) -> str:
    """A number with one decimal at most: a tenth of a unit cannot be seen."""
    shown = f"{value:.1f}"
    return shown[:-2] if shown.endswith(".0") else shown


def titled(text: str | None) -> str:
    """The text that a browser shows when the mouse is over an element."""
    return tag("title", safe(text)) if text else ""


def label(text: str, x: float, y: float, *, anchor: str = "middle", class_: str = "tick", full: str | None = None) -> str:
    """A text at a place; ``full``: what it is short for."""
    return tag("text", safe(text) + titled(full if full != text else None), class_=class_, x=x, y=y, text_anchor=anchor)


def group(parts: Iterable[str], **attributes: object) -> str:
    """Elements together; nothing if there are none."""
    content = "".join(parts)
    return tag("g", content, **attributes) if content else ""


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a text is."""
    return CHARACTER * size * sum(1.0 if ord(letter) < 0x2E80 else 1.8 for letter in text)


def cut(text: str, width: float, size: float = FONT, *, middle: bool = False) -> str:
    """A text that is cut so that it is not wider than a width; ``middle``: there, since names often differ at their ends."""
    text = " ".join(text.split())
    if text_width(text, size) <= width:
        return text
    most = max(1, math.floor(width / (CHARACTER * size)) - 1)
    last = most // 2 if middle else 0
    return text[: most - last].rstrip() + "\N{HORIZONTAL ELLIPSIS}" + (text[-last:].lstrip() if last else "")


def wrapped(text: str, width: float, size: float = FONT) -> list[str]:
    """A text in lines that are not wider than a width."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(cut(word, width, size))
    return lines


def path(points: Iterable[tuple[float, float]]) -> str:
    """A line through points, as the data of a path."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
