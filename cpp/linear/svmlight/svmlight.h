// Parses rows of text in the SVMlight or LIBSVM format:
//
//   label [qid:number] index:value index:value ... [# comment]
//
// Indices ascend in each row. The qid and lines with only a comment are skipped. Labels are all
// numbers or all words; that of a word is its position among the words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "linear/svmlight/growing.h"

namespace sparcml {

struct Failure {
  std::size_t line, column;  // from 1; the line among those fed to this parser
  std::string what;
};

template <class Value>
class SvmlightParser {
 public:
  static constexpr std::size_t padding = 8;  // bytes that must be readable after the text

  // Indices are stored as written; those outside lowest to highest are errors.
  SvmlightParser(std::uint32_t lowest, std::uint32_t highest);

  // Reads the complete lines that start before `stop`; returns their bytes.
  std::size_t feed(const char* text, std::size_t size, std::size_t stop);

  // Counts the lines of `part`, which must follow, and numbers its words as this parser would.
  // Returns false, and changes nothing, if reading its text here would be an error.
  bool admit(SvmlightParser& part);

  // Forgets what was read, and keeps the memory.
  void clear();

  const Failure* failure() const { return failure_.line ? &failure_ : nullptr; }
  std::size_t lines() const { return lines_; }
  std::uint32_t smallest() const { return smallest_; }  // index so far; `highest` if none
  std::uint32_t largest() const { return largest_; }

  Growing<std::int64_t> indptr;  // 0, then the end of the entries of each row
  Growing<std::uint32_t> indices;
  Growing<Value> values;
  Growing<double> labels;
  std::vector<std::string> words;  // in the order of their first rows

 protected:
  const std::uint32_t lowest_, highest_;

 private:
  struct Tail;
  const char* row(const char* p, const char* end, Tail& to);
  const char* entries(const char* p, const char* end, Tail& to);
  const char* label(const char* p, double& value);
  const char* word(const char* p, double& value);
  const char* fail(const char* at, std::string what);

  std::uint32_t smallest_ = 0, largest_ = 0;
  std::unordered_map<std::string, std::size_t> numbers_;  // of the words
  bool numeric_ = false;                                  // whether a label is a number
  std::size_t lines_ = 0;
  const char *line_ = nullptr, *end_ = nullptr;  // of the text that is read
  Failure failure_{};
};

}  // namespace sparcml
