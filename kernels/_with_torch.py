"""Names of this room that need torch; the first use of any loads all."""

# ruff: noqa: F401 (`tsrnn.kernels` gives them)

from tsrnn.kernels import cells
from tsrnn.kernels._autograd import decomposed_recurrence
from tsrnn.kernels._backend import source
from tsrnn.kernels._cell import Cell, Fields
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._cpu.time_order import prepare
from tsrnn.kernels._matrix_form import BlockStep, MatrixForm
from tsrnn.kernels._paths import PathProducts, Paths, Variants, path_products, paths, variants
from tsrnn.kernels._problem import as_lengths, in_arithmetic, over_replicates, without_padding
from tsrnn.kernels._projected import linear, prepare_projected, projected_recurrence
from tsrnn.kernels._recurrence import check_engine, recurrence
from tsrnn.kernels._reference import is_small
from tsrnn.kernels._sums import Lanes, Running, Sums, sums
