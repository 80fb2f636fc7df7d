"""A figure of the gradients of exit decisions, decoding before and after the step."""

from __future__ import annotations

from pathlib import Path

from eegnn.analysis.objectives import READINGS, GradientMap, gradient_map

_TITLES = {
    "before": "a cell leaves with its state before the step",
    "after": "a cell leaves with its state after the step",
}


def draw_objectives(path: Path) -> None:
    """Draw the gradients of all decisions on a small board, for both readings of Algorithm 1."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    maps = {name: gradient_map(name) for name in READINGS}
    highest = max(float(found.gradient.max()) for found in maps.values())
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (name, found) in zip(axes, maps.items(), strict=True):
        order = found.decisions.argsort(stable=True)
        gradient = found.gradient[:, order]
        image = axis.imshow(
            gradient.where(gradient > 0, float("nan")).numpy(),
            aspect="auto",
            interpolation="nearest",
            cmap="viridis",
            norm=LogNorm(highest * 1e-6, highest),
        )
        last = found.decisions[order].numpy() - 0.5
        axis.step(range(len(order)), last, where="mid", color="red", label="last decision taken")
        axis.set(title=f"{_TITLES[name]}\n{_subtitle(found)}", xlabel="cells, sorted by exit")
    axes[0].set_ylabel("decision before step")
    axes[0].legend(loc="lower right")
    figure.colorbar(image, ax=axes, label="size of the gradient (white: none)", extend="min")
    figure.savefig(path, dpi=110)


def _subtitle(found: GradientMap) -> str:
    percent = round(100 * found.share_without_gradient)
    if percent:
        return f"{percent} % of the decisions taken get no gradient"
    return "every decision taken gets one"
