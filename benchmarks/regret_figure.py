"""The regret of auto on drawn graphs as a figure: one dot per graph, by homophily and signal."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 740, 44, 320
# Regrets beyond are drawn at the edge.
MOST = 12.0
# From no signal to a strong one.
COLOURS = ("#9e9e9e", "#c6a5d8", "#9a6fc4", "#6a3fa0", "#33135c")


def regret_of(line: dict[str, Any]) -> float:
    """Points that auto is behind the best of its rivals; negative where it is ahead."""
    tests = {name: scores["test"] for name, scores in line["scores"].items()}
    return float(max(test for name, test in tests.items() if name != "auto") - tests["auto"])


def regret_figure(lines: Sequence[dict[str, Any]]) -> str:
    """An SVG with the same bytes for the same lines."""
    cells: dict[tuple[float, float], list[dict[str, Any]]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: line["graph"]):
        cells[line["parameters"]["homophily"], line["parameters"]["signal"]].append(line)
    columns = sorted({homophily for homophily, _ in cells})
    signals = sorted({signal for _, signal in cells})
    colours = dict(zip(signals, COLOURS, strict=False))
    step = (RIGHT - LEFT) / max(1, len(columns))
    parts = [*_axes(columns, step), *_legend(colours)]
    for (homophily, signal), members in sorted(cells.items()):
        for position, line in enumerate(members):
            offset = (signals.index(signal) + (position + 1) / (len(members) + 1)) / len(signals)
            x = LEFT + step * (columns.index(homophily) + 0.08 + 0.84 * offset)
            regret = regret_of(line)
            title = f"graph {line['graph']}: regret {regret:.1f}, homophily {homophily:g}, signal {signal:g}"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{_height(regret):.1f}" r="3.2" fill="{colours[signal]}">'
                f"<title>{title}</title></circle>"
            )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *parts, "</svg>\n"])


def _height(regret: float) -> float:
    """Where a regret is drawn; ahead is up."""
    return TOP + (BOTTOM - TOP) * (min(max(regret, -MOST), MOST) + MOST) / (2 * MOST)


def _axes(columns: Sequence[float], step: float) -> list[str]:
    """The grid, its labels, and the band within one point of the best rival."""
    high, low, right = _height(-1), _height(1), RIGHT - LEFT
    parts = [
        f'<rect x="{LEFT}" y="{high:.1f}" width="{right}" height="{low - high:.1f}" fill="#e6f2e6"/>',
        f'<text x="{LEFT - 48}" y="{TOP - 14}">points ahead of the best rival</text>',
        f'<text x="{(LEFT + RIGHT) / 2:.0f}" y="{BOTTOM + 46}" text-anchor="middle">homophily</text>',
    ]
    for ahead in range(-int(MOST), int(MOST) + 1, 4):
        y = _height(-ahead)
        colour = "#404040" if ahead == 0 else "#e0e0e0"
        parts += [
            f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{f"{ahead:+d}" if ahead else 0}</text>',
        ]
    for index, homophily in enumerate(columns):
        x = LEFT + step * index
        parts += [
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{BOTTOM}" stroke="#e0e0e0"/>',
            f'<text x="{x + step / 2:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{homophily:g}</text>',
        ]
    return parts


def _legend(colours: dict[float, str]) -> list[str]:
    parts = []
    for index, (signal, colour) in enumerate(colours.items()):
        x = RIGHT - 92 * (len(colours) - index) + 8
        parts += [
            f'<circle cx="{x}" cy="{TOP - 18}" r="4" fill="{colour}"/>',
            f'<text x="{x + 8}" y="{TOP - 14}">signal {signal:g}</text>',
        ]
    return parts
