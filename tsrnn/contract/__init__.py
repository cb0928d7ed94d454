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
from tsrnn.contract._estimator import Arguments, CommonArguments, last_step, with_shared_arguments
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
from tsrnn.contract._intervals import check_levels, forecast_suffixes, level_name, with_intervals
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
    "IntervalWarning",
    "Kind",
    "Origins",
    "Parameters",
    "SeriesArrays",
    "SeriesState",
    "Summary",
    "Support",
    "anything",
    "choice",
    "clone",
    "conformal_quantile",
    "diebold_mariano",
    "effective_number",
    "fit_together",
    "inside",
    "integer",
    "listed",
    "number",
    "optional",
    "plain",
    "positive",
    "positive_integer",
    "real",
    "record",
    "recorded",
    "refuse",
    "relative_sizes",
    "target_scales",
    "text",
    "truth",
    "with_shared_arguments",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
