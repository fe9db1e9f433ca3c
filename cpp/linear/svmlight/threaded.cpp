#include "linear/svmlight/threaded.h"

#include <algorithm>
#include <cstring>

#include "kernels/threads/pool.h"

namespace sparcml {
namespace {

constexpr std::size_t kPart = 1 << 16;  // bytes per part, at least

// Returns the offsets of the parts, each at the start of a line. The last one ends at `stop`,
// or where a line before it does. A line that starts where two parts meet belongs to the
// second.
std::vector<std::size_t> divide(const char* text, std::size_t size, std::size_t stop,
                                std::size_t parts) {
  std::vector<std::size_t> offsets(parts + 1, 0);
  for (std::size_t part = 1; part < parts; ++part) {
    const std::size_t border = part_begin(stop, parts, part);
    offsets[part] = offsets[part - 1];  // an empty part, after a long line
    if (offsets[part] >= border) continue;
    const void* const end = std::memchr(text + border - 1, '\n', size - border + 1);
    offsets[part] = static_cast<std::size_t>(static_cast<const char*>(end) - text) + 1;
  }
  offsets[parts] = std::max(stop, offsets[parts - 1]);
  return offsets;
}

template <class T>
void copy(const Growing<T>& from, T* to) {
  if (from.size()) std::memcpy(to, from.begin(), from.size() * sizeof(T));
}

}  // namespace

// The first part is read in place. Each other one has a parser of its own, whose rows are
// appended in order. From the first part that cannot follow the others, the text is read again
// in place, so that an error has the line and the words of one thread.
template <class Value>
std::size_t ThreadedSvmlightParser<Value>::feed(const char* text, std::size_t size,
                                                std::size_t stop) {
  while (size && text[size - 1] != '\n') --size;
  stop = std::min(stop, size);
  const std::size_t parts = std::clamp<std::size_t>(stop / kPart, 1, threads());
  if (parts == 1 || this->failure()) return Parser::feed(text, size, stop);
  while (others_.size() < parts - 1)
    others_.push_back(std::make_unique<Parser>(this->lowest_, this->highest_));
  const std::vector<std::size_t> offsets = divide(text, size, stop, parts);
  std::vector<std::size_t> read(parts);
  for_parts(parts, [&](std::size_t part) {
    const std::size_t begin = offsets[part],
                      limit = part + 1 < parts ? offsets[part + 1] : size;
    Parser& parser = part ? *others_[part - 1] : *this;
    if (part) parser.clear();
    read[part] = parser.Parser::feed(text + begin, limit - begin, offsets[part + 1] - begin);
  });
  std::size_t admitted = 1;
  while (admitted < parts && this->admit(*others_[admitted - 1])) ++admitted;
  if (this->failure()) return 0;
  append(admitted);
  if (admitted == parts) return offsets[parts - 1] + read[parts - 1];
  const std::size_t begin = offsets[admitted];
  const std::size_t more = Parser::feed(text + begin, size - begin, stop - begin);
  return this->failure() ? 0 : begin + more;
}

// Copies the rows of all parts but the first.
template <class Value>
void ThreadedSvmlightParser<Value>::append(std::size_t parts) {
  std::vector<std::size_t> rows(parts), entries(parts);
  for (std::size_t part = 1; part < parts; ++part) {
    rows[part] = rows[part - 1] + others_[part - 1]->labels.size();
    entries[part] = entries[part - 1] + others_[part - 1]->indices.size();
  }
  const std::size_t all_rows = rows[parts - 1], all_entries = entries[parts - 1];
  const auto before = static_cast<std::int64_t>(this->indices.size());
  std::int64_t* const ends = this->indptr.end(all_rows);
  std::uint32_t* const indices = this->indices.end(all_entries);
  Value* const values = this->values.end(all_entries);
  double* const labels = this->labels.end(all_rows);
  for_parts(2 * (parts - 1), [&](std::size_t task) {
    const std::size_t part = task / 2;
    const Parser& from = *others_[part];
    if (task % 2) {
      copy(from.values, values + entries[part]);
      copy(from.labels, labels + rows[part]);
      return;
    }
    copy(from.indices, indices + entries[part]);
    const std::int64_t first = before + static_cast<std::int64_t>(entries[part]);
    const std::int64_t* const end = from.indptr.begin() + 1;
    for (std::size_t row = 0; row < from.labels.size(); ++row)
      ends[rows[part] + row] = first + end[row];
  });
  this->indptr.advance(ends + all_rows);
  this->indices.advance(indices + all_entries);
  this->values.advance(values + all_entries);
  this->labels.advance(labels + all_rows);
}

template class ThreadedSvmlightParser<float>;
template class ThreadedSvmlightParser<double>;

}  // namespace sparcml
