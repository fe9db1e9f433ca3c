#include <nanobind/nanobind.h>

namespace nb = nanobind;

void register_isa(nb::module_& m);
void register_threads(nb::module_& m);
void register_bitmap(nb::module_& m);
void register_crc(nb::module_& m);
void register_ascending(nb::module_& m);
void register_coalesce(nb::module_& m);
void register_codec(nb::module_& m);
void register_compact(nb::module_& m);
void register_compiled_calls(nb::module_& m);
void register_dense(nb::module_& m);
void register_elias(nb::module_& m);
void register_gap(nb::module_& m);
void register_grid(nb::module_& m);
void register_half(nb::module_& m);
void register_low_rank(nb::module_& m);
void register_merge(nb::module_& m);
void register_merge_many(nb::module_& m);
void register_onebit(nb::module_& m);
void register_scatter(nb::module_& m);
void register_selection(nb::module_& m);
void register_integer(nb::module_& m);
void register_messages(nb::module_& m);
void register_mixing(nb::module_& m);
void register_moments(nb::module_& m);
void register_natural(nb::module_& m);
void register_quantized_mean(nb::module_& m);
void register_table(nb::module_& m);

NB_MODULE(_core, m) {
  m.doc() = "The compiled inner loops of sparcml.";
  // The traceback of an error that ends a process refers to its communicators until the end.
  nb::set_leak_warnings(false);
  register_isa(m);
  register_threads(m);
  register_bitmap(m);
  register_crc(m);
  register_ascending(m);
  register_coalesce(m);
  register_codec(m);
  register_compact(m);
  register_dense(m);
  register_elias(m);
  register_gap(m);
  register_grid(m);
  register_half(m);
  register_low_rank(m);
  register_merge(m);
  register_merge_many(m);
  register_onebit(m);
  register_scatter(m);
  register_selection(m);
  register_integer(m);
  register_messages(m);
  register_compiled_calls(m);
  register_mixing(m);
  register_moments(m);
  register_natural(m);
  register_quantized_mean(m);
  register_table(m);
}
