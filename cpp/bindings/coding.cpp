// Bindings of kernels that encode and decode indices and halves of floats.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <utility>

#include "bindings/arrays.h"
#include "kernels/bitmap/bitmap.h"
#include "kernels/crc/crc.h"
#include "kernels/elias/elias.h"
#include "kernels/gap/gap.h"
#include "kernels/half/half.h"

static void decode_bitmap(Bytes data, std::size_t nnz, std::uint32_t blocks,
                          Out<std::uint32_t> out) {
  require(out.size() == nnz, "bitmap_decode: out must have nnz entries");
  const char* error;
  {
    nb::gil_scoped_release nogil;
    error = sparcml::bitmap_decode(data.data(), data.size(), nnz, blocks, out.data());
  }
  require(!error, error);
}

static void register_bitmap(nb::module_& m) {
  m.def("bitmap_decode", decode_bitmap, "data"_a.noconvert(), "nnz"_a, "blocks"_a,
        "out"_a.noconvert(), "Write the nnz positions of the ones in data.");
}

static void crc32_spans(Bytes data, In<std::int64_t> starts, In<std::int64_t> stops,
                        std::uint32_t modulus, Out<std::uint32_t> out) {
  const std::size_t count = starts.size();
  require(stops.size() == count && out.size() == count,
          "crc32_spans: starts, stops and out must have the same length");
  require(modulus > 0, "crc32_spans: modulus must be at least 1");
  bool inside = true;
  {
    nb::gil_scoped_release nogil;
    const auto size = static_cast<std::int64_t>(data.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t start = starts.data()[i], stop = stops.data()[i];
      inside &= 0 <= start && start <= stop && stop <= size;
    }
    if (inside)
      sparcml::crc32_spans(data.data(), starts.data(), stops.data(), count, modulus,
                           out.data());
  }
  require(inside, "crc32_spans: spans must be within the data");
}

static void register_crc(nb::module_& m) {
  m.def(
      "crc32c",
      [](Bytes data, std::uint32_t crc) {
        nb::gil_scoped_release nogil;
        return sparcml::crc32c(data.data(), data.size(), crc);
      },
      "data"_a.noconvert(), "crc"_a = 0, "Return the CRC-32C of data, continued from crc.");
  m.def("crc32_spans", crc32_spans, "data"_a.noconvert(), "starts"_a.noconvert(),
        "stops"_a.noconvert(), "modulus"_a, "out"_a.noconvert(),
        "Write zlib's CRC-32 of each data[start:stop], modulo modulus.");
}

static void register_elias(nb::module_& m) {
  m.def(
      "elias_plan",
      [](In<std::int8_t> levels) {
        nb::gil_scoped_release nogil;
        const auto plan = sparcml::elias_plan(levels.data(), levels.size());
        return std::make_tuple(plan.dense_bits, plan.sparse_bits, plan.nonzeros);
      },
      "levels"_a.noconvert(),
      "Return the bits of the dense and the sparse code, and the number of nonzero levels.");
  m.def(
      "elias_encode",
      [](In<std::int8_t> levels, bool sparse, Out<std::uint8_t> out) {
        bool fine = false;
        {
          nb::gil_scoped_release nogil;
          fine = sparcml::elias_encode(levels.data(), levels.size(), sparse, out.data(),
                                       out.size() / 8);
        }
        require(fine && out.size() % 8 == 0,
                "elias_encode: out must have exactly the words of the code");
      },
      "levels"_a.noconvert(), "sparse"_a, "out"_a.noconvert(),
      "Write the omega code of the levels, in words of 8 bytes.");
  m.def(
      "elias_decode",
      [](Bytes data, bool sparse, std::size_t nonzeros, Out<std::int8_t> levels) {
        require(data.size() % 8 == 0, "elias_decode: data must be words of 8 bytes");
        bool fine = false;
        {
          nb::gil_scoped_release nogil;
          fine = sparcml::elias_decode(data.data(), data.size() / 8, sparse, nonzeros,
                                       levels.data(), levels.size());
        }
        require(fine, "elias_decode: data must be a code of this number of levels");
      },
      "data"_a.noconvert(), "sparse"_a, "nonzeros"_a, "levels"_a.noconvert(),
      "Write the levels of a code.");
}

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

static void decode_gap(Bytes data, std::size_t nnz, std::uint32_t blocks,
                       Out<std::uint32_t> out) {
  require(out.size() == nnz, "gap_decode: out must have nnz entries");
  const char* error;
  {
    nb::gil_scoped_release nogil;
    error = sparcml::gap_decode(data.data(), data.size(), nnz, blocks, out.data());
  }
  require(!error, error);
}

static void register_gap(nb::module_& m) {
  m.def("gap_plan", plan, "indices"_a.noconvert(), "(r, bytes) of the section of indices");
  m.def("gap_nbytes", section_bytes, "indices"_a.noconvert(), "r"_a,
        "Return the bytes of the section of indices with this r.");
  m.def("gap_encode", encode, "indices"_a.noconvert(), "r"_a, "out"_a.noconvert(),
        "Write the Golomb-Rice code of the differences between ascending indices.");
  m.def("gap_decode", decode_gap, "data"_a.noconvert(), "nnz"_a, "blocks"_a,
        "out"_a.noconvert(), "Write the nnz indices below blocks of a section.");
}

static void register_half(nb::module_& m) {
  m.def(
      "to_half",
      [](In<float> values, Out<std::uint16_t> out, bool bfloat) {
        require(values.size() == out.size(), "to_half: values and out must have the same size");
        const auto convert = bfloat ? sparcml::to_bfloat : sparcml::to_half;
        nb::gil_scoped_release nogil;
        convert(values.data(), values.size(), out.data());
      },
      "values"_a.noconvert(), "out"_a.noconvert(), "bfloat"_a,
      "Convert float32 to the bits of float16 or bfloat16.");
  m.def(
      "from_half",
      [](In<std::uint16_t> bits, Out<float> out, bool bfloat) {
        require(bits.size() == out.size(), "from_half: bits and out must have the same size");
        const auto convert = bfloat ? sparcml::from_bfloat : sparcml::from_half;
        nb::gil_scoped_release nogil;
        convert(bits.data(), bits.size(), out.data());
      },
      "bits"_a.noconvert(), "out"_a.noconvert(), "bfloat"_a,
      "Convert the bits of float16 or bfloat16 to float32.");
}

void register_coding(nb::module_& m) {
  register_bitmap(m);
  register_crc(m);
  register_elias(m);
  register_gap(m);
  register_half(m);
}
