// A parser that reads long text on all threads.
#pragma once

#include <memory>
#include <vector>

#include "linear/svmlight/svmlight.h"

namespace sparcml {

// Rows, words and errors are those of SvmlightParser for any number of threads.
template <class Value>
class ThreadedSvmlightParser : public SvmlightParser<Value> {
 public:
  using SvmlightParser<Value>::SvmlightParser;

  std::size_t feed(const char* text, std::size_t size, std::size_t stop);

 private:
  using Parser = SvmlightParser<Value>;

  void append(std::size_t parts);

  std::vector<std::unique_ptr<Parser>> others_;  // of all parts but the first
};

}  // namespace sparcml
