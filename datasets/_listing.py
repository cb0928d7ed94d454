"""The table of all data sets."""

import pandas as pd

from tsrnn.datasets import _arch, _ett, _statsmodels

_RECORDS = (*_statsmodels.RECORDS, *_arch.RECORDS, *_ett.RECORDS)


def list_datasets() -> pd.DataFrame:
    """Return a table of all data sets, without reading any of them.

    Returns
    -------
    DataFrame
        A row a data set, indexed by ``name``: ``loader`` (the function to call), ``title``,
        ``frequency`` (pandas alias, or ``"irregular"``), ``rows``, ``columns``, ``shipped_by``
        (``"statsmodels"``, ``"arch"``, or ``"download"``) and ``license``.

    Examples
    --------
    >>> from tsrnn.datasets import list_datasets
    >>> list_datasets().loc["co2", "loader"]
    'load_co2'
    >>> monthly = list_datasets().query("frequency == 'MS'")
    """
    rows = [
        {
            "name": record.name,
            "loader": record.loader or f"load_{record.name}",
            "title": record.title,
            "frequency": record.frequency,
            "rows": record.rows,
            "columns": record.columns,
            "shipped_by": record.shipped_by,
            "license": record.license,
        }
        for record in _RECORDS
    ]
    return pd.DataFrame(rows).set_index("name")
