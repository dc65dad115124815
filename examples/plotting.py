"""Curves to a file, by matplotlib where it is installed (`pip install matplotlib`)."""

from collections.abc import Mapping, Sequence


def save_plot(argv: Sequence[str], default: str, curves: Mapping[str, Sequence[float]], x: str, y: str) -> str | None:
    """The file that was written: the first argument of the script, or the default; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: matplotlib is not installed (pip install matplotlib)")
        return None
    path = argv[1] if len(argv) > 1 else default
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, values in curves.items():
        axes.plot(range(1, len(values) + 1), values, label=name)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    print(f"plot: {path}")
    return path
