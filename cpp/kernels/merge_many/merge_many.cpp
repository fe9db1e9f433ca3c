#include "kernels/merge_many/merge_many.h"

namespace sparcml {

template <class T>
std::size_t merge_many(Op op, Stream<T>* streams, std::size_t count, std::size_t block,
                       std::uint32_t* oi, T* ov) {
  return SPARCML_PICK(merge_many<T>)(op, streams, count, block, oi, ov);
}

template std::size_t merge_many(Op, Stream<float>*, std::size_t, std::size_t, std::uint32_t*,
                                float*);
template std::size_t merge_many(Op, Stream<double>*, std::size_t, std::size_t, std::uint32_t*,
                                double*);
template std::size_t merge_many(Op, Stream<std::int32_t>*, std::size_t, std::size_t,
                                std::uint32_t*, std::int32_t*);
template std::size_t merge_many(Op, Stream<std::int64_t>*, std::size_t, std::size_t,
                                std::uint32_t*, std::int64_t*);

}  // namespace sparcml
