#include "kernels/gap/gap.h"

#include <nanobind/stl/pair.h>

#include <utility>

#include "bindings/arrays.h"

static std::size_t section_bytes(In<std::uint32_t> indices, unsigned r) {
  require(r <= 31, "gap: r must be 0 to 31");
  std::size_t nbytes;
  {
    nb::gil_scoped_release nogil;
    nbytes = sparcml::gap_nbytes(indices.data(), indices.size(), r);
  }
  require(nbytes || indices.size() == 0,
          "gap: indices must be strictly ascending and below 2^32 - 1");
  return nbytes;
}

static std::pair<unsigned, std::size_t> plan(In<std::uint32_t> indices) {
  const std::size_t n = indices.size();
  const unsigned r = n ? sparcml::gap_parameter(n, indices.data()[n - 1]) : 0;
  return {r, section_bytes(indices, r)};
}

static void encode(In<std::uint32_t> indices, unsigned r, Out<std::uint8_t> out) {
  require(r <= 31, "gap_encode: r must be 0 to 31");
  bool fits;
  {
    nb::gil_scoped_release nogil;
    fits = out.size() == sparcml::gap_nbytes(indices.data(), indices.size(), r);
    if (fits) sparcml::gap_encode(indices.data(), indices.size(), r, out.data());
  }
  require(fits, "gap_encode: indices must be strictly ascending and out as long as planned");
}

static void decode(Bytes data, std::size_t nnz, std::uint32_t blocks, Out<std::uint32_t> out) {
  require(out.size() == nnz, "gap_decode: out must have nnz entries");
  const char* error;
  {
    nb::gil_scoped_release nogil;
    error = sparcml::gap_decode(data.data(), data.size(), nnz, blocks, out.data());
  }
  require(!error, error);
}

void register_gap(nb::module_& m) {
  m.def("gap_plan", plan, "indices"_a.noconvert(), "(r, bytes) of the section of indices");
  m.def("gap_nbytes", section_bytes, "indices"_a.noconvert(), "r"_a,
        "Return the bytes of the section of indices with this r.");
  m.def("gap_encode", encode, "indices"_a.noconvert(), "r"_a, "out"_a.noconvert(),
        "Write the Golomb-Rice code of the differences between ascending indices.");
  m.def("gap_decode", decode, "data"_a.noconvert(), "nnz"_a, "blocks"_a, "out"_a.noconvert(),
        "Write the nnz indices below blocks of a section.");
}
