// The allreduces of the loop by number.
#pragma once

#include "bindings/message_loop.h"

template <class T>
ms::Vector<T> reduce(ms::Call& call, int algorithm, ms::Vector<T> x) {
  const auto run = [&] {
    switch (algorithm) {
      case 3:
        return ms::ssar_recursive_double(call, std::move(x));
      case 4:
        return ms::ssar_split_allgather(call, std::move(x));
      case 5:
        return ms::dsar_split_allgather(call, std::move(x));
      default:
        return ms::ssar_ring(call, std::move(x));
    }
  };
  ms::Vector<T> result = run();
  call.finish();
  return result;
}
