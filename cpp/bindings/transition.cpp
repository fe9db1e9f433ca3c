// Old names of renamed functions, until all callers use the new ones.
#include "bindings/arrays.h"

void register_transition(nb::module_& m) {
  constexpr const char* renamed[][2] = {
      {"owe", "add_residual"},
      {"owe_top_k", "top_k_with_residual"},
      {"owe_bucket_top_k", "bucket_top_k_with_residual"},
      {"owe_at_least", "at_least_with_residual"},
      {"block_squares", "block_squared_norms"},
      {"top_k_room", "top_k_capacity"},
      {"place", "scatter_assign"},
      {"count", "count_nonfill"},
      {"ascending", "ascending_prefix"},
      {"squeeze", "bitmap_compact"},
      {"expand", "bitmap_expand"},
      {"to_whole", "to_integer"},
      {"from_whole", "from_integer"},
      {"used_mark", "mark_columns"},
      {"used_before", "count_columns"},
      {"used_renumber", "column_positions"},
      {"one_bit", "to_onebit"},
      {"signs", "to_sign"},
      {"two_levels", "from_bitplane"},
      {"linear_run", "linear_sgd_steps"},
      {"linear_apply", "linear_apply_gradient"},
      {"linear_settle", "linear_flush"},
      {"linear_misplaced", "linear_first_invalid_row"},
      {"linear_descend", "linear_scd_steps"},
      {"linear_shift", "linear_intercept_step"},
      {"linear_combine", "linear_combine_columns"},
  };
  for (const auto& [old_name, new_name] : renamed) m.attr(old_name) = m.attr(new_name);
}
