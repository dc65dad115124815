"""One curve in one file: needs matplotlib, `pip install matplotlib`."""

from __future__ import annotations

from collections.abc import Sequence


def losses_to(path: str, losses: Sequence[float], title: str) -> None:
    """Write the losses as a picture, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(xlabel="evaluation of the loss", ylabel="loss", title=title)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
