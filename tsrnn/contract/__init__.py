"""Contract of all forecasters: `fit` and `predict` on frames, arguments, files."""

from tsrnn.contract._atomic import as_path, file_place, inside, put_file, remove_unfinished
from tsrnn.contract._base import Forecaster
from tsrnn.contract._calibration import (
    MOST_ERRORS,
    OWN_ERRORS,
    Calibration,
    conformal_quantile,
    effective_number,
    relative_sizes,
)
from tsrnn.contract._checks import (
    check_fits,
    check_not_too_large,
    choice,
    flag,
    job_count,
    number,
    positive_integer,
    real_array,
    seed_of,
    verbosity,
)
from tsrnn.contract._classical import Classical
from tsrnn.contract._conformal import ClassicalModel, ConformalIntervals, naive_errors
from tsrnn.contract._data_summary import DataSummary
from tsrnn.contract._diebold_mariano import (
    DM_VARIANCES,
    DieboldMariano,
    diebold_mariano,
    newey_west_lags,
)
from tsrnn.contract._estimator import (
    Arguments,
    CommonArguments,
    last_step,
    with_shared_arguments,
)
from tsrnn.contract._file import plain, read_file, write_file
from tsrnn.contract._fitted import FittedModel, SeriesArrays, SeriesState
from tsrnn.contract._fitted_data import (
    FittedData,
    static_values,
    target_scales,
    unit_index,
    unit_number,
)
from tsrnn.contract._frequency import FrequencyDefaults, frequency_defaults
from tsrnn.contract._intervals import (
    check_levels,
    forecast_suffixes,
    level_name,
    with_intervals,
)
from tsrnn.contract._offered import VARIANCES_OF, classes_with
from tsrnn.contract._parameters import Parameters, check_is_fitted, clone
from tsrnn.contract._rolling import Origins
from tsrnn.contract._saved import arguments_of, check_argument_names, saved_arguments
from tsrnn.contract._schema import (
    MOST_STEPS,
    DamagedFileError,
    Kind,
    anything,
    arrays_by_part,
    as_saved,
    by_name,
    check_arrays,
    check_borders,
    integer,
    listed,
    one_of,
    optional,
    positive,
    real,
    record,
    refuse,
    text,
    truth,
)
from tsrnn.contract._summary import Summary
from tsrnn.contract._support import Support, within_supports
from tsrnn.contract._threads import ONE_THREAD
from tsrnn.contract._together import fit_panels_together, fit_together, most_fits_together
from tsrnn.contract._warnings import IntervalWarning, recorded

__all__ = [
    "DM_VARIANCES",
    "MOST_ERRORS",
    "MOST_STEPS",
    "ONE_THREAD",
    "OWN_ERRORS",
    "VARIANCES_OF",
    "Arguments",
    "Calibration",
    "Classical",
    "ClassicalModel",
    "CommonArguments",
    "ConformalIntervals",
    "DamagedFileError",
    "DataSummary",
    "DieboldMariano",
    "FittedData",
    "FittedModel",
    "Forecaster",
    "FrequencyDefaults",
    "IntervalWarning",
    "Kind",
    "Origins",
    "Parameters",
    "SeriesArrays",
    "SeriesState",
    "Summary",
    "Support",
    "anything",
    "arguments_of",
    "arrays_by_part",
    "as_path",
    "as_saved",
    "by_name",
    "check_argument_names",
    "check_arrays",
    "check_borders",
    "check_fits",
    "check_is_fitted",
    "check_levels",
    "check_not_too_large",
    "choice",
    "classes_with",
    "clone",
    "conformal_quantile",
    "diebold_mariano",
    "effective_number",
    "file_place",
    "fit_panels_together",
    "fit_together",
    "flag",
    "forecast_suffixes",
    "frequency_defaults",
    "inside",
    "integer",
    "job_count",
    "last_step",
    "level_name",
    "listed",
    "most_fits_together",
    "naive_errors",
    "newey_west_lags",
    "number",
    "one_of",
    "optional",
    "plain",
    "positive",
    "positive_integer",
    "put_file",
    "read_file",
    "real",
    "real_array",
    "record",
    "recorded",
    "refuse",
    "relative_sizes",
    "remove_unfinished",
    "saved_arguments",
    "seed_of",
    "static_values",
    "target_scales",
    "text",
    "truth",
    "unit_index",
    "unit_number",
    "verbosity",
    "with_intervals",
    "with_shared_arguments",
    "within_supports",
    "write_file",
]
