#include <nanobind/nanobind.h>

namespace nb = nanobind;

void register_codec(nb::module_& m);
void register_coding(nb::module_& m);
void register_compiled_calls(nb::module_& m);
void register_low_rank(nb::module_& m);
void register_messages(nb::module_& m);
void register_mixing(nb::module_& m);
void register_processor(nb::module_& m);
void register_quantization(nb::module_& m);
void register_reduction(nb::module_& m);
void register_selection(nb::module_& m);

NB_MODULE(_core, m) {
  m.doc() = "The compiled inner loops of sparcml.";
  // The traceback of an error that ends a process refers to its communicators until the end.
  nb::set_leak_warnings(false);
  for (auto* add : {register_processor, register_reduction, register_selection, register_coding,
                    register_quantization, register_mixing, register_low_rank, register_codec,
                    register_messages, register_compiled_calls})
    add(m);
}
