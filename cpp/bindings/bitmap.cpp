#include "kernels/bitmap/bitmap.h"

#include "bindings/arrays.h"

static void encode(In<std::uint32_t> indices, std::uint32_t blocks, Out<std::uint8_t> out) {
  require(out.size() == sparcml::bitmap_nbytes(blocks),
          "bitmap_encode: out must have 8 bytes per 64 blocks");
  const char* error;
  {
    nb::gil_scoped_release nogil;
    error = sparcml::bitmap_encode(indices.data(), indices.size(), blocks, out.data());
  }
  require(!error, error);
}

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
  m.def("bitmap_encode", encode, "indices"_a.noconvert(), "blocks"_a, "out"_a.noconvert(),
        "Write one bit per block, set for those in indices.");
  m.def("bitmap_decode", decode, "data"_a.noconvert(), "nnz"_a, "blocks"_a, "out"_a.noconvert(),
        "Write the nnz positions of the ones in data.");
}
