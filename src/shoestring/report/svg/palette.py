"""The colours of pictures, for light and dark pages, as a style sheet.

The same thing has the same colour in every picture: the class of an element names its role. Colours of studies are those of Okabe
and Ito, which people with any kind of colour blindness can tell apart; dashes and the forms of marks say the same without colour.
"""

from __future__ import annotations

LEVELS = 9  # steps of colour from the best to the worst value

ROLES = {  # role -> its variable
    "best": "best", "trial": "trial", "lower": "trial", "pruned": "pruned", "star": "star", "failed": "failed",
    "running": "running", "bound": "best", "threshold": "failed", "gain": "best", "front": "best", "guide": "muted",
    "abandoned": "muted", "done": "trial",
    **{f"study{place}": f"s{place}" for place in range(8)},
}  # fmt: skip
LIGHT = {
    "ink": "#1c2733", "muted": "#5c6875", "line": "#d9dfe6", "axis": "#8a96a3", "paper": "#ffffff", "none": "#e4e7eb",
    "best": "#1b4f8f", "trial": "#7d9cc4", "star": "#d9731a", "failed": "#b8321f", "running": "#333d47", "pruned": "#8a6fb0",
    "s0": "#0072b2", "s1": "#d55e00", "s2": "#009e73", "s3": "#a8447f", "s4": "#8a6d00", "s5": "#3a9bd1", "s6": "#333d47",
    "s7": "#7d9cc4",
}  # fmt: skip
DARK = {
    "ink": "#e6ebf1", "muted": "#a3afbc", "line": "#313b46", "axis": "#6d7985", "paper": "#161c23", "none": "#2a323b",
    "best": "#7db4ff", "trial": "#5f83b3", "star": "#ffa64d", "failed": "#ff7f6e", "running": "#d3dae2", "pruned": "#b9a0dd",
    "s0": "#56b4e9", "s1": "#ff9a57", "s2": "#3fd0a4", "s3": "#e69bc9", "s4": "#e8cf4a", "s5": "#9fd4f5", "s6": "#d3dae2",
    "s7": "#8fa9cc",
}  # fmt: skip
LIGHT_ENDS, DARK_ENDS = (("#173f73", "#7d9cc4", "#eef3f9"), ("#a5ccff", "#4a78b5", "#1f2a37"))  # from the best to the worst


def mixed(ends: tuple[str, str, str], share: float) -> str:
    """The colour at a share of the way through three colours."""
    one, other = (ends[0], ends[1]) if share < 0.5 else (ends[1], ends[2])
    part = 2.0 * share if share < 0.5 else 2.0 * share - 1.0
    channels = [(int(one[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in channels)


def variables(colours: dict[str, str], ends: tuple[str, str, str]) -> str:
    """The colours as variables of CSS."""
    levels = {f"h{level}": mixed(ends, level / (LEVELS - 1)) for level in range(LEVELS)}
    return "".join(f"--st-{name}:{colour};" for name, colour in (colours | levels).items())


def style_sheet() -> str:
    """The rules for all pictures; each begins with the class of a picture, so that nothing else on a page is changed."""
    rules = [
        f".st-chart{{{variables(LIGHT, LIGHT_ENDS)}}}",
        ".st-chart{display:block;width:100%;height:auto;max-width:60rem;font-family:system-ui,sans-serif}",
        ".st-chart text{font-size:12px;fill:var(--st-ink)}",
        ".st-chart .tick,.st-chart .note{fill:var(--st-muted)}.st-chart .inside{fill:var(--st-paper)}",
        ".st-chart .grid{stroke:var(--st-line);fill:none}.st-chart .axis{stroke:var(--st-axis);fill:none}",
        ".st-chart .halo{paint-order:stroke;stroke:var(--st-paper);stroke-width:3px;stroke-linejoin:round}",
        ".st-chart .none{fill:var(--st-none)}.st-chart path{stroke-linejoin:round}",
        ".st-chart .l{fill:none;stroke-width:2}.st-chart .dashes{stroke-dasharray:6 4;stroke-width:1.6}",
        ".st-chart .band{stroke:none;fill-opacity:.16}.st-chart .many{fill:none;stroke-width:4;stroke-linecap:round}",
        ".st-chart .hollow{fill:none;stroke-width:1.3}.st-chart .cross{fill:none;stroke-width:1.8}",
        ".st-chart .edged{stroke:var(--st-paper);stroke-width:1}.st-chart .bundle{fill:none;stroke-width:1.1;stroke-opacity:.7}",
        ".st-chart .fence{fill:none;stroke-width:1;stroke-opacity:.7}",
        ".st-chart.st-heatmap .f-trial{fill:var(--st-paper);stroke:var(--st-ink);stroke-width:.8}",
        ".st-chart.st-heatmap .many{stroke:var(--st-ink);stroke-width:2.4;stroke-opacity:.5}",
        ".st-chart.st-heatmap .hollow{stroke:var(--st-ink)}",
        ".st-chart .thick{stroke-width:2.6;stroke-opacity:1}.st-chart .thin{stroke-dasharray:4 3;stroke-opacity:.6}",
    ]
    for role, name in ROLES.items():
        rules.append(f".st-chart .f-{role}{{fill:var(--st-{name})}}.st-chart .s-{role}{{stroke:var(--st-{name})}}")
    for level in range(LEVELS):
        rules.append(f".st-chart .h{level}{{fill:var(--st-h{level})}}.st-chart .k{level}{{stroke:var(--st-h{level})}}")
    rules.append(f"@media (prefers-color-scheme:dark){{.st-chart{{{variables(DARK, DARK_ENDS)}}}}}")
    rules.append("@media (max-width:600px){.st-chart text{font-size:14px}}")
    return "\n".join(rules) + "\n"


CSS = style_sheet()
