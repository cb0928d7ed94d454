"""Recurrence features epoch by epoch, as a Lightning callback."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import pandas as pd
from lightning.pytorch.callbacks import Callback
from torch import nn

from tsrnn.interpret._checks import is_count
from tsrnn.interpret._features import recurrence_features
from tsrnn.layers import Ensemble

__all__ = ["FeatureHistory"]


class FeatureHistory(Callback):
    """Record the recurrence features of a network while it is trained.

    A Lightning callback, for ``callbacks=[...]`` of any forecaster or of a
    ``lightning.pytorch.Trainer``. It reads `recurrence_features` of the module trained: of
    every ``torch.nn.RNN`` or ``RNNCell`` in it and of every part that answers
    ``recurrent_blocks()``, as all layers and networks of `tsrnn.layers` do. It changes nothing.

    Parameters
    ----------
    every : int, default 1
        Epochs from one record to the next. The start (epoch 0) and the last epoch are always
        recorded.
    freq : str, int or pandas offset, optional
        Frequency of the data, by which half-lives and periods get a unit of time.
    tol : float, optional
        See `recurrence_features`.

    Attributes
    ----------
    frame : DataFrame
        A row a feature, epoch and training, as `recurrence_features` gives them, after the columns

        - ``training``: the number of the training, from 1 in the order they began. A forecaster
          trains `n_estimators` networks one after the other and, with ``refit=True``, after that
          once more each that had become better than its start;
        - ``epoch``: how many epochs had been trained;

        and, of estimators of tsrnn, before ``kept``: whether the training left the network with the
        weights of this epoch, if it was recorded. Epoch 0 is the start, drawn at random: where it
        is kept, the network has learned nothing.

        Where a module has several recurrent parts, the networks of an ensemble among them, their
        layers are numbered one after the other.

    Raises
    ------
    ValueError
        If `every` is not a positive integer; when training begins, if the module has no recurrent
        matrices; of `frame`, if nothing was recorded.

    See Also
    --------
    tsrnn.plotting.plot_feature_history : Shares of the types of features against epochs.

    Notes
    -----
    A forecaster keeps the weights of its best epoch on the validation part, not of the last. A
    2 x 2 block takes microseconds to read; a matrix of 128 rows takes half a second, one of 256
    five: choose `every` by that.

    Of several processes that train together the first one's record stays. The state for a
    checkpoint is the record, so that a training resumed from it is appended as a further one.

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
        """Name of its state in a checkpoint, where there may be others."""
        return f"{type(self).__qualname__}(every={self.every}, freq={self.freq!r}, tol={self.tol})"

    def state_dict(self) -> dict[str, Any]:
        """The record, in Python's own types."""
        tables = [
            {"columns": table.to_dict("list"), "attrs": dict(table.attrs)} for table in self._tables
        ]
        return {"tables": tables, "training": self._training, "epoch": self._epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a record over in place of its own."""
        self._tables = []
        for state in state_dict["tables"]:
            table = pd.DataFrame(state["columns"])
            table.attrs = dict(state["attrs"])
            self._tables.append(table)
        self._training, self._epoch = state_dict["training"], state_dict["epoch"]

    @property
    def frame(self) -> pd.DataFrame:
        """Features of every epoch recorded."""
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
        """Record an epoch, if it is time."""
        epoch = trainer.current_epoch + 1
        if epoch % self.every == 0:
            self._record(pl_module, epoch)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Record the last epoch, and which one is kept."""
        if trainer.current_epoch != self._epoch:
            self._record(pl_module, trainer.current_epoch)
        course = getattr(pl_module, "course", None)  # of a training of this package
        kept = None if course is None else course.best_epoch
        for table in self._tables:
            if kept is not None and table["training"].iloc[0] == self._training:
                table["kept"] = table["epoch"] == kept

    def _record(self, module: nn.Module, epoch: int) -> None:
        """Record the outermost parts that have recurrent matrices, their layers numbered on."""
        readable = [
            part
            for part in module.modules()
            if isinstance(part, nn.RNN | nn.RNNCell)
            # An ensemble is opened: its networks are parts.
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
