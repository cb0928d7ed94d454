"""Lightning callback that records recurrence features by epoch."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import pandas as pd
from lightning.pytorch.callbacks import Callback
from torch import nn

from tsrnn.interpret._checks import is_count
from tsrnn.interpret._features import recurrence_features
from tsrnn.layers import Ensemble


class FeatureHistory(Callback):
    """Record the recurrence features of a network during training.

    A Lightning callback for ``callbacks=[...]`` of any forecaster or of a
    ``lightning.pytorch.Trainer``. It reads `recurrence_features` of every ``torch.nn.RNN`` or
    ``RNNCell`` in the module, and of every part with ``recurrent_blocks()``, such as the layers and
    networks of `tsrnn.layers`. The module is not changed.

    Parameters
    ----------
    every : int, default 1
        Epochs between records. The start (epoch 0) and the last epoch are always recorded.
    freq : str, int or pandas offset, optional
        Frequency of the data, which sets the unit of half-lives and periods.
    tol : float, optional
        See `recurrence_features`.

    Attributes
    ----------
    frame : DataFrame
        A row per feature, epoch and training. The first columns are

        - ``training``: number of the training, from 1 in the order of their start. A forecaster
          trains `n_estimators` networks one after the other; with ``refit=True`` it then trains
          each network again that improved on its start;
        - ``epoch``: number of trained epochs.

        The columns of `recurrence_features` follow. For estimators of tsrnn the last column is
        ``kept``: True if the network ended with the weights of this epoch. If epoch 0 is kept, the
        random start, the network has learned nothing.

        Layers of several recurrent parts, such as the networks of an ensemble, are numbered
        consecutively.

    Raises
    ------
    ValueError
        If `every` is not a positive integer; at the start of training if the module has no
        recurrent matrices; in `frame` if nothing was recorded.

    See Also
    --------
    tsrnn.plotting.plot_feature_history : Shares of the types of features against epochs.

    Notes
    -----
    A forecaster keeps the weights of its best epoch on the validation part, not of the last epoch.
    Reading takes microseconds for a 2 x 2 block, half a second for a matrix of 128 rows and five
    seconds for 256 rows, which may limit `every`.

    If several processes train together, the record of the first one is kept. A checkpoint contains
    the record, and a resumed training is appended as a further one.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN: An Interpretable and Parallelizable Recurrent Neural
    Network for Time-Dependent Data, Section 3.3, Figure 3 and supplement A.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.interpret import FeatureHistory
    >>> history = FeatureHistory(freq="MS")
    >>> model = ParaRNNForecaster(
    ...     horizon=6, hidden_size=8, max_epochs=2, random_state=0, callbacks=[history]
    ... ).fit(load_elec_equip())
    >>> history.frame["epoch"].unique().tolist()
    [0, 1, 2]
    >>> start = history.frame.query("epoch == 0")
    >>> start.columns[:5].tolist(), start.attrs["time_unit"]
    (['training', 'epoch', 'layer', 'block', 'type'], 'months')
    """

    def __init__(self, *, every: int = 1, freq: Any = None, tol: float | None = None) -> None:
        if not is_count(every):
            raise ValueError(f"`every` must be a positive whole number of epochs; got {every!r}.")
        self.every = every
        self.freq = freq
        self.tol = tol
        self._tables: list[pd.DataFrame] = []
        self._training = 0
        self._epoch = 0  # of the last record

    @property
    def state_key(self) -> str:
        """Key of the state in a checkpoint."""
        return f"{type(self).__qualname__}(every={self.every}, freq={self.freq!r}, tol={self.tol})"

    def state_dict(self) -> dict[str, Any]:
        """Record in Python types."""
        tables = [
            {"columns": table.to_dict("list"), "attrs": dict(table.attrs)} for table in self._tables
        ]
        return {"tables": tables, "training": self._training, "epoch": self._epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Replace the record."""
        self._tables = []
        for state in state_dict["tables"]:
            table = pd.DataFrame(state["columns"])
            table.attrs = dict(state["attrs"])
            self._tables.append(table)
        self._training, self._epoch = state_dict["training"], state_dict["epoch"]

    @property
    def frame(self) -> pd.DataFrame:
        """Features of every recorded epoch."""
        if not self._tables:
            raise ValueError(
                "no training was recorded: pass this FeatureHistory in callbacks=[...] of a "
                "forecaster or a Trainer, and fit."
            )
        frame = pd.concat(self._tables, ignore_index=True)
        frame.attrs = dict(self._tables[0].attrs)
        return frame

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Record the start."""
        self._training += 1
        self._record(pl_module, trainer.current_epoch)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Record every `every`-th epoch."""
        epoch = trainer.current_epoch + 1
        if epoch % self.every == 0:
            self._record(pl_module, epoch)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Record the last epoch, and mark the epoch that is kept."""
        if trainer.current_epoch != self._epoch:
            self._record(pl_module, trainer.current_epoch)
        course = getattr(pl_module, "course", None)  # of estimators of this package
        kept = None if course is None else course.best_epoch
        for table in self._tables:
            if kept is not None and table["training"].iloc[0] == self._training:
                table["kept"] = table["epoch"] == kept

    def _record(self, module: nn.Module, epoch: int) -> None:
        """Record the outermost parts with recurrent matrices, and number layers consecutively."""
        readable = [
            part
            for part in module.modules()
            if isinstance(part, nn.RNN | nn.RNNCell)
            # The networks of an ensemble are parts.
            or (
                callable(getattr(part, "recurrent_blocks", None)) and not isinstance(part, Ensemble)
            )
        ]
        if not readable:
            raise ValueError(
                f"FeatureHistory found nothing to read in this {type(module).__name__}: it needs a "
                "part with recurrent_blocks(), such as a layer of tsrnn.layers, or a torch.nn.RNN "
                "or RNNCell. Train a module that holds one, or leave the callback out."
            )
        inner = {id(part) for outer in readable for part in outer.modules() if part is not outer}
        tables: list[pd.DataFrame] = []
        for part in readable:
            if id(part) not in inner:
                table = recurrence_features(part, freq=self.freq, tol=self.tol)
                table["layer"] += tables[-1]["layer"].iloc[-1] if tables else 0
                tables.append(table)
        features = pd.concat(tables, ignore_index=True)
        features.attrs = dict(tables[0].attrs)
        features.insert(0, "training", self._training)
        features.insert(1, "epoch", epoch)
        self._tables.append(features)
        self._epoch = epoch
