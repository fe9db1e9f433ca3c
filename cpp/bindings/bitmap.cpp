#include "kernels/bitmap/bitmap.h"

#include "bindings/arrays.h"

static void decode(Bytes data, std::size_t nnz, std::uint32_t blocks, Out<std::uint32_t> out) {
  require(out.size() == nnz, "bitmap_decode: out must have nnz entries");
  const char* error;
  {
    nb::gil_scoped_release nogil;
    error = sparcml::bitmap_decode(data.data(), data.size(), nnz, blocks, out.data());
  }
  require(!error, error);
}

void register_bitmap(nb::module_& m) {
  m.def("bitmap_decode", decode, "data"_a.noconvert(), "nnz"_a, "blocks"_a, "out"_a.noconvert(),
        "Write the nnz positions of the ones in data.");
}
