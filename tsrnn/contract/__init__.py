"""What all forecasters have in common: `fit` and `predict` on frames, arguments, files."""

from tsrnn.contract._arguments import (
    choice,
    flag,
    job_count,
    number,
    positive_integer,
    seed_of,
    verbosity,
)
from tsrnn.contract._base import Forecaster
from tsrnn.contract._capacity import check_fits
from tsrnn.contract._classical import Classical
from tsrnn.contract._file import plain, read_file, write_file
from tsrnn.contract._frequency import Habits, habits
from tsrnn.contract._frozen import Arguments, Frozen
from tsrnn.contract._intervals import check_levels, level_name, with_intervals
from tsrnn.contract._magnitude import check_not_too_large
from tsrnn.contract._memory import Memory
from tsrnn.contract._offered import classes_with
from tsrnn.contract._pipeline import last_step
from tsrnn.contract._recorded import recorded, tell
from tsrnn.contract._rolling import Origins
from tsrnn.contract._saved import arguments_of, saved_arguments
from tsrnn.contract._shared import CommonArguments, with_shared_arguments
from tsrnn.contract._units import target_scales, unit_index
from tsrnn.contract._warnings import IntervalWarning, warn_user
from tsrnn.contract._whole_file import file_place, put_file

__all__ = [
    "Arguments",
    "Classical",
    "CommonArguments",
    "Forecaster",
    "Frozen",
    "Habits",
    "IntervalWarning",
    "Memory",
    "Origins",
    "arguments_of",
    "check_fits",
    "check_levels",
    "check_not_too_large",
    "choice",
    "classes_with",
    "file_place",
    "flag",
    "habits",
    "job_count",
    "last_step",
    "level_name",
    "number",
    "plain",
    "positive_integer",
    "put_file",
    "read_file",
    "recorded",
    "saved_arguments",
    "seed_of",
    "target_scales",
    "tell",
    "unit_index",
    "verbosity",
    "warn_user",
    "with_intervals",
    "with_shared_arguments",
    "write_file",
]
