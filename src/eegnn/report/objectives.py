"""A picture of what the gradient sees in each objective."""

from __future__ import annotations

from pathlib import Path

from eegnn.experiments.objectives import OBJECTIVES, GradientMap, gradient_map

_SAYS = {
    "sampled": "sampled (the paper)",
    "expected": "expected: the loss of the mixture",
    "averaged": "averaged: the mixture of the losses",
}


def draw_objectives(path: Path) -> None:
    """Draw the gradients of all decisions on a small board, an objective a panel.

    Args:
        path: where to write; the ending chooses the format.
    """
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import LogNorm

    maps = {name: gradient_map(name) for name in OBJECTIVES}
    highest = max(float(found.gradient.max()) for found in maps.values())
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained", sharey=True)
    for axis, (name, found) in zip(axes, maps.items(), strict=True):
        order = found.layer.argsort(stable=True)
        seen = found.gradient[:, order]
        image = axis.imshow(
            seen.where(seen > 0, float("nan")).numpy(),
            aspect="auto",
            interpolation="nearest",
            cmap="viridis",
            norm=LogNorm(highest * 1e-6, highest),
        )
        axis.step(range(len(order)), found.layer[order].numpy() - 0.5, where="mid", color="red")
        axis.set(title=f"{_SAYS[name]}\n{_silence(found)}", xlabel="cells, sorted by exit layer")
    axes[0].set_ylabel("decision before step")
    figure.colorbar(image, ax=axes, label="size of the gradient (white: none)", extend="min")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _silence(found: GradientMap) -> str:
    silent = round(found.silent * 100)
    return f"{silent} % of decisions get no gradient" if silent else "every decision gets one"
