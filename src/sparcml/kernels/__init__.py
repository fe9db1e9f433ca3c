"""Inner loops: compiled kernels, each defined in NumPy in `tests/kernels/reference`."""

from . import _core
from .coding import bitmap_decode as bitmap_decode
from .coding import crc32_spans as crc32_spans
from .coding import elias_decode as elias_decode
from .coding import elias_encode as elias_encode
from .coding import elias_plan as elias_plan
from .coding import from_half as from_half
from .coding import gap_decode as gap_decode
from .coding import gap_encode as gap_encode
from .coding import to_half as to_half
from .mixing import add_differences as add_differences
from .mixing import add_differences_at as add_differences_at
from .mixing import checked_sum as checked_sum
from .mixing import weighted_sum as weighted_sum
from .quantization import GIVEN_NORM as GIVEN_NORM
from .quantization import L2_NORM as L2_NORM
from .quantization import MAX_NORM as MAX_NORM
from .quantization import from_bitplane as from_bitplane
from .quantization import from_grid as from_grid
from .quantization import from_integer as from_integer
from .quantization import from_natural as from_natural
from .quantization import from_table as from_table
from .quantization import grid_nbytes as grid_nbytes
from .quantization import to_grid as to_grid
from .quantization import to_integer as to_integer
from .quantization import to_natural as to_natural
from .quantization import to_onebit as to_onebit
from .quantization import to_sign as to_sign
from .quantization import to_table as to_table
from .reduction import Velocity as Velocity
from .reduction import add_momentum as add_momentum
from .reduction import coalesce as coalesce
from .reduction import combine_dense as combine_dense
from .reduction import compact as compact
from .reduction import count_nonfill as count_nonfill
from .reduction import merge as merge
from .reduction import merge_many as merge_many
from .reduction import scatter as scatter
from .selection import add_residual as add_residual
from .selection import at_least as at_least
from .selection import at_least_with_residual as at_least_with_residual
from .selection import block_squared_norms as block_squared_norms
from .selection import bucket_top_k as bucket_top_k
from .selection import bucket_top_k_with_residual as bucket_top_k_with_residual
from .selection import top_k as top_k
from .selection import top_k_with_residual as top_k_with_residual
from .threads import set_threads as set_threads
from .threads import threads as threads

isa, isas, use_isa = _core.isa, _core.isas, _core.use_isa
ascending_prefix = _core.ascending_prefix
crc32c = _core.crc32c
gap_plan = _core.gap_plan
moments = _core.moments
scatter_assign = _core.scatter_assign
MAX_FUSED_BUCKET = _core.MAX_FUSED_BUCKET  # of the two functions below, and a multiple of 8
mean_from_grid = _core.mean_from_grid
to_grid_corrected = _core.to_grid_corrected

set_threads()
