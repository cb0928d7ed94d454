"""``tsrnn features``."""

from __future__ import annotations

from tsrnn.cli import _options as o


def features(model: o.ModelFile, out: o.Out = None, json: o.Json = False) -> str:
    """Recurrence features of a saved model; see `FEATURES`."""
    from tsrnn.cli._output import check_out, document, records, write_table
    from tsrnn.interpret import recurrence_features
    from tsrnn.storage import load

    check_out(out, "--out", others={"MODEL": model})
    fitted = load(model)
    table = recurrence_features(fitted)
    unit, step = table.attrs["time_unit"], table.attrs["time_step"]
    if out is not None:
        write_table(table, out)
    if json:
        return document(
            "features",
            model=type(fitted).__name__,
            time_unit=unit,
            time_step=step,
            features=records(table),
        )
    if out is not None:
        return ""
    told = f"half_life and period are in {unit}."
    if table.get("beyond_sample", False) is not False and table["beyond_sample"].any():
        length = table.attrs["sample_length"]
        told += f" beyond_sample: longer than the data ({length:g} {unit}), not identified."
    return f"{table.to_string(index=False)}\n\n{told}\n"
