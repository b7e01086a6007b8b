"""Make the pictures of docs/plots.md by running the code of that page.

    python -m benchmarks.plot_pictures

Each plot that the page saves becomes a small picture with few colours in docs/images. The training takes ten times as long as on
the page, so that the timeline looks like that of a real study.
"""

import os
import re
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageColor

from shoestring.report.plot.lookahead import ACQUISITION_COLOURS
from shoestring.report.plot.style import ACCENT, BAD, INK

PAGE = Path(__file__).parent.parent / "docs" / "plots.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEPT = ("white", ACCENT, BAD, INK, *ACQUISITION_COLOURS)  # exact colours, also of few pixels
WIDTH, COLOURS, MAX_BYTES = 760, 96, 60_000  # pixels; of the palette, without those above; of one file


def main() -> None:
    namespace: dict[str, object] = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            exec(code.replace("time.sleep(0.01", "time.sleep(0.1"), namespace)
        for path in sorted(Path(folder).glob("*.png")):
            print(f"{shrink(path):>8,} bytes  {path.name}")
        os.chdir(PAGE.parent)


def shrink(path: Path) -> int:
    """Write a small version of a picture into docs/images; its size in bytes."""
    picture = Image.open(path).convert("RGB")
    small = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
    target = PAGE.parent / "images" / path.name
    with_palette(small).save(target, optimize=True)
    size = target.stat().st_size
    assert size <= MAX_BYTES, f"{target} has {size:,} bytes; take fewer colours"
    return size


def with_palette(picture: Image.Image) -> Image.Image:
    """The picture with each colour replaced by the nearest one of the kept and the most frequent colours."""
    frequent = picture.quantize(COLOURS).getpalette() or []
    colours = np.array([*map(ImageColor.getrgb, KEPT), *zip(*[iter(frequent[: 3 * COLOURS])] * 3, strict=True)])
    found, places = np.unique(np.asarray(picture).reshape(-1, 3), axis=0, return_inverse=True)
    nearest = np.array([np.argmin(((colours - colour.astype(int)) ** 2).sum(axis=1)) for colour in found], dtype=np.uint8)
    made = Image.frombytes("P", picture.size, nearest[places.ravel()].tobytes())
    made.putpalette(colours.astype(np.uint8).tobytes())
    return made


if __name__ == "__main__":
    main()
