"""What a forecast must be: finite, in order, of the right series, times and shape."""

import numpy as np
import pandas as pd
import polars as pl

LEVELS = [80, 95]


def to_pandas(frame):
    """A frame of polars as one of pandas."""
    if isinstance(frame, pd.DataFrame | pd.Series):
        return frame
    return pd.DataFrame({name: column_of(frame[name]) for name in frame.columns})


def column_of(column):
    """A column of polars in pandas; datetimes of Python would have no nanoseconds."""
    if column.dtype != pl.Datetime:
        return column.to_list()
    zone = column.dtype.time_zone
    if zone is None:
        return column.to_numpy()
    utc = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
    return pd.DatetimeIndex(utc).tz_localize("UTC").tz_convert(zone)


def check_forecast(model, data, forecast, h, levels, told):
    """Check a forecast against the data that it follows."""
    frame = pd.DataFrame if isinstance(data, pd.Series) and levels else type(data)
    assert type(forecast) is frame
    layout, data, made = model.fitted_.data.layout, to_pandas(data), to_pandas(forecast)
    made = made.to_frame() if isinstance(made, pd.Series) else made
    names = [str(name) for name in made.columns]
    assert len(set(names)) == len(names)
    keyed = layout.id_col is not None
    last = last_stamps(layout, data, keyed)
    assert len(made) == h * len(last)
    if keyed:
        came = made[layout.id_col].tolist()[::h]
        assert [(type(i), i) for i in came] == [(type(i), i) for i in last] or came == list(last)
    stamps = made.index if layout.time_col is None else made[layout.time_col]
    check_times(layout, list(last.values()), pd.Index(stamps), h)
    check_numbers(points_of(layout, made, model), made, levels, h, told)


def last_stamps(layout, data, keyed):
    """Last timestamp of each series, in order of appearance; text that was read is ISO 8601."""
    stamps = pd.Index(data[layout.time_col] if layout.time_col is not None else data.index)
    if stamps.inferred_type == "string":
        stamps = text_times(stamps, layout)
    if not keyed:
        return {0: stamps.max()}
    last = {}
    for key, time in zip(data[layout.id_col].tolist(), pd.Index(stamps), strict=True):
        last[key] = max(time, last[key]) if key in last else time
    return last


def text_times(stamps, layout):
    """Times of text in the form of the layout: ISO 8601, or digits alone."""
    if not stamps.str.fullmatch(r"\d+").all():
        return pd.to_datetime(stamps, format="ISO8601")
    forms = {4: "%Y", 6: "%Y%m", 7: "%Y%j", 8: "%Y%m%d", 10: "%Y%m%d%H"}
    if layout.time_kind == "period":
        return pd.PeriodIndex(stamps.str[:4] + "Q" + stamps.str[4:], freq="Q")
    return pd.to_datetime(stamps, format=forms[len(stamps[0])])


def check_times(layout, last, stamps, h):
    """Times continue those of the data at the frequency, by pandas' own count."""
    if layout.time_dtype.startswith("YYYY"):
        last, stamps = as_dates(pd.Index(last), layout), as_dates(stamps, layout)
    for i, time in enumerate(last):
        came = stamps[i * h : (i + 1) * h]
        if layout.time_kind == "integer":
            wanted = [int(time) + (k + 1) * int(layout.freq) for k in range(h)]
            assert [int(one) for one in came] == wanted
        elif layout.time_kind == "period":
            assert list(came) == [time + (k + 1) * time.freq for k in range(h)]
        else:
            assert (pd.Index(came) > time).all()
            assert pd.Index(came).is_monotonic_increasing
            # other steps of zones with summer time are counted on the wall clock
            if layout.tz in (None, "UTC") or layout.freq.endswith(("h", "min", "s")):
                wanted = pd.date_range(pd.Timestamp(time), periods=h + 1, freq=layout.freq)[1:]
                assert [pd.Timestamp(one) for one in came] == list(wanted)


def as_dates(digits, layout):
    """Dates of whole numbers, by pandas' own reading."""
    form = layout.time_dtype.partition("[")[0]
    text = digits.astype("int64").astype(str)
    if form == "YYYYQ":
        return pd.PeriodIndex(text.str[:4] + "Q" + text.str[4:], freq="Q").to_timestamp()
    written = {"YYYY": "%Y", "YYYYMM": "%Y%m", "YYYYDDD": "%Y%j", "YYYYMMDD": "%Y%m%d"}
    return pd.to_datetime(text, format=written.get(form, "%Y%m%d%H"))


def points_of(layout, made, model):
    """Names of the columns with point forecasts."""
    if layout.kind == "long":
        names = layout.target_names
        return [type(model).column_name] if len(names) == 1 else [str(one) for one in names]
    return [name for name in made.columns if name in layout.target_names] or list(made.columns[:1])


def check_numbers(points, made, levels, h, told):
    """Numbers are finite, or NaN throughout a unit; intervals lie around the mean."""
    for name in points:
        low, high = ([f"{name}-{side}-{level}" for level in levels] for side in ("lo", "hi"))
        table = made[[*low[::-1], name, *high]].to_numpy(float)
        unit = table.reshape(-1, h, table.shape[1])
        lost = np.isnan(unit).all(axis=(1, 2))
        assert np.isfinite(unit[~lost]).all()
        assert told or not lost.any()
        room = 1e-9 * np.abs(made[name].to_numpy(float))[:, None]
        # Ends of counts are whole: the point, which is not, rounds to a number between them.
        ends = made[[*low, *high]].to_numpy(float)
        room = room + 0.5 * (
            bool(levels) and bool((ends == np.rint(ends))[np.isfinite(ends)].all())
        )
        kept = np.repeat(~lost, h)
        assert (np.diff(table, axis=1)[kept] >= -room[kept]).all()
