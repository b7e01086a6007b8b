"""Generated text in the documentation: what stands between two markers is replaced, and all else is left as it is."""

import re
from pathlib import Path


def fill(path: Path, marker: str, text: str) -> None:
    """Replace the text between <!-- marker:begin --> and <!-- marker:end -->."""
    pattern = re.compile(rf"(<!-- {marker}:begin -->\n).*?(\n<!-- {marker}:end -->)", re.DOTALL)
    old = path.read_text(encoding="utf-8")
    new, count = pattern.subn(lambda match: match[1] + text + match[2], old)
    if count != 1:
        raise SystemExit(f"{path} has {count} places marked {marker}, not one")
    path.write_text(new, encoding="utf-8")
