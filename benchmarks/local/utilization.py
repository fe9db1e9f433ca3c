"""Bandwidth that local training needs, for the models of the paper on Streaming DiLoCo."""

from __future__ import annotations

from sparcml.local.planning import bandwidth_for

EVERY, LAYERS_PER_FRAGMENT = 100, 3
HIDDEN = 2 / 3  # of a step, in which gradients are sent already
BITS = 14.4  # per parameter: 0.9 of 16, which fits the published table
UTILIZATIONS = (0.5, 0.8, 0.9, 0.95, 0.99)
MODELS = {  # parameters, layers, seconds per step
    "1 B": (1e9, 24, 0.1),
    "10 B": (1e10, 48, 0.8),
    "100 B": (1e11, 108, 4.9),
}


def utilization_table() -> str:
    """Return the Gbit/s at which computing takes a part of the time, by model and form."""
    heads = " | ".join(f"{part:.0%}" for part in UTILIZATIONS)
    lines = [
        f"| parameters | s per step | form | {heads} |",
        "| --- | --- | --- |" + " --- |" * len(UTILIZATIONS),
    ]
    for name, (size, layers, step) in MODELS.items():
        fragments = {"every": EVERY, "fragments": layers // LAYERS_PER_FRAGMENT}
        bits = BITS * size
        forms = {
            "data parallel": (bits, {"layers": layers}),
            f"DiLoCo, H = {EVERY}": (bits, {"every": EVERY}),
            "streaming": (bits, fragments),
            "streaming, delay 1": (bits, {**fragments, "delay": 1}),
            "streaming, delay 1, 4 bits": (bits / 4, {**fragments, "delay": 1}),
        }
        for form, (sent, settings) in forms.items():
            needed = (
                bandwidth_for(part, sent, step, HIDDEN, **settings) / 1e9
                for part in UTILIZATIONS
            )
            cells = " | ".join(f"{gigabits:.1f}" for gigabits in needed)
            lines.append(f"| {name} | {step:g} | {form} | {cells} |")
    return "\n".join([*lines, ""])
