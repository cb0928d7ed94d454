"""No prediction is none."""

from __future__ import annotations

import numpy as np

from tsrnn.erm._sequences import Sequences


def check_outputs(found: np.ndarray, sequences: Sequences, many_to_many: bool) -> None:
    """Raise if an output is not finite."""
    finite = np.isfinite(found).all(1)
    if finite.all():
        return
    row = int(np.argmin(finite))
    where = f"sample {row}"
    if many_to_many:
        where = "sample {}, step {}".format(*sequences.place(row))
    raise FloatingPointError(
        f"the network gives no finite output for {(~finite).sum()} of {len(finite)} targets, the "
        f"first at {where}: values of X are too far from those of the fit, or states grow without "
        "bound over the steps. Look for such values, or leave these samples out"
    )
