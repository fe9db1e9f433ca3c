#include "linear/svmlight/svmlight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "linear/svmlight/number.h"

namespace sparcml {
namespace {

constexpr std::size_t max_words = 65536;

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool ends_token(char c) { return is_space(c) || c == '\n' || c == '#'; }

inline const char* skip_spaces(const char* p) {
  while (is_space(*p)) ++p;
  return p;
}

inline const char* newline(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
}

inline const char* token_end(const char* p) {
  while (!ends_token(*p)) ++p;
  return p;
}

std::string quoted(const char* p) {
  constexpr std::ptrdiff_t longest = 40;
  const char* end = token_end(p);
  const bool cut = end - p > longest;
  return "'" + std::string(p, cut ? p + longest : end) + (cut ? "...'" : "'");
}

// Whether the token at p is nan, inf or infinity, with or without a sign.
bool names_nonfinite(const char* p) {
  std::string token(p + (*p == '-' || *p == '+'), token_end(p));
  for (char& c : token) c = static_cast<char>(c | 0x20);  // lower case
  return token == "nan" || token == "inf" || token == "infinity";
}

std::string not_a_number(const char* p, const char* role) {
  return std::string("the ") + role + " " + quoted(p) +
         (names_nonfinite(p) ? " is not finite" : " is not a number");
}

// Whether the token at p may be a label that is a word. Commas and colons are of other formats,
// such as CSV, or of a row without a label.
bool is_word(const char* p) {
  const auto first = static_cast<unsigned char>(*p);
  if (first < 'A' || names_nonfinite(p)) return false;
  for (const char* end = token_end(p); p < end; ++p)
    if (*p == ':' || *p == ',') return false;
  return true;
}

// Returns the end of a query number at p, or nullptr.
const char* after_qid(const char* p) {
  if (std::strncmp(p, "qid:", 4) != 0) return nullptr;
  std::uint64_t ignored = 0;
  int digits = 0;
  p += 4;
  p = digits_at(p + (*p == '-'), ignored, digits);
  return digits && ends_token(*p) ? p : nullptr;
}

}  // namespace

// Output positions, kept in registers instead of the fields of the arrays.
template <class Value>
struct SvmlightParser<Value>::Tail {
  std::int64_t* end;
  std::uint32_t *first, *index;
  Value* value;
  double* label;
};

template <class Value>
SvmlightParser<Value>::SvmlightParser(std::uint32_t lowest, std::uint32_t highest)
    : lowest_(lowest), highest_(highest) {
  clear();
}

template <class Value>
void SvmlightParser<Value>::clear() {
  indptr.clear(), indices.clear(), values.clear(), labels.clear();
  words.clear(), numbers_.clear();
  smallest_ = highest_, largest_ = 0;
  numeric_ = false;
  lines_ = 0;
  failure_ = {};
  std::int64_t* const first = indptr.end(1);
  *first = 0;
  indptr.advance(first + 1);
}

template <class Value>
bool SvmlightParser<Value>::admit(SvmlightParser& part) {
  if (failure() || part.failure()) return false;
  if ((numeric_ && !part.words.empty()) || (part.numeric_ && !words.empty())) return false;
  std::size_t added = 0;
  for (const std::string& each : part.words) added += !numbers_.count(each);
  if (words.size() + added > max_words) return false;
  std::vector<double> renumbered;
  for (const std::string& each : part.words) {
    const auto [at, is_new] = numbers_.try_emplace(each, words.size());
    if (is_new) words.push_back(each);
    renumbered.push_back(static_cast<double>(at->second));
  }
  if (!renumbered.empty())
    for (double *each = part.labels.begin(), *end = each + part.labels.size(); each < end;
         ++each)
      *each = renumbered[static_cast<std::size_t>(*each)];
  numeric_ |= part.numeric_;
  lines_ += part.lines_;
  smallest_ = std::min(smallest_, part.smallest_);
  largest_ = std::max(largest_, part.largest_);
  return true;
}

template <class Value>
const char* SvmlightParser<Value>::fail(const char* at, std::string what) {
  failure_ = {lines_, static_cast<std::size_t>(at - line_) + 1, std::move(what)};
  return nullptr;
}

template <class Value>
std::size_t SvmlightParser<Value>::feed(const char* text, std::size_t size, std::size_t stop) {
  while (size && text[size - 1] != '\n') --size;
  if (size == 0 || failure()) return 0;
  // The shortest row is "1\n", and the shortest entry " 1:1".
  Tail to{indptr.end(size / 2), nullptr, indices.end(size / 4), values.end(size / 4),
          labels.end(size / 2)};
  to.first = to.index - indices.size();
  end_ = text + size;
  const char *p = text, *const end = end_, *const last = text + std::min(stop, size);
  while (p && p < last) {
    ++lines_;
    line_ = p;
    p = skip_spaces(p);
    if (*p == '\n') {
      ++p;
    } else if (*p == '#') {
      p = newline(p, end) + 1;
    } else {
      p = row(p, end, to);
    }
  }
  indptr.advance(to.end);
  indices.advance(to.index);
  values.advance(to.value);
  labels.advance(to.label);
  return p ? static_cast<std::size_t>(p - text) : 0;
}

template <class Value>
const char* SvmlightParser<Value>::row(const char* p, const char* end, Tail& to) {
  double value = 0;
  const char* const after = label(p, value);
  if (!after) return nullptr;
  const std::uint32_t* const first = to.index;
  p = entries(after, end, to);
  if (!p) return nullptr;
  if (first < to.index) {  // indices ascend, so the ends suffice
    smallest_ = std::min(smallest_, *first);
    largest_ = std::max(largest_, to.index[-1]);
  }
  *to.label++ = value;
  *to.end++ = to.index - to.first;
  return p;
}

template <class Value>
const char* SvmlightParser<Value>::label(const char* p, double& value) {
  const char* const after = number_at(p, end_, value);
  if (!after || !ends_token(*after)) return word(p, value);
  if (!std::isfinite(value)) return fail(p, "the label " + quoted(p) + " is too large");
  if (!words.empty())
    return fail(p, "the label " + quoted(p) + " is a number, but others are words");
  numeric_ = true;
  return after;
}

template <class Value>
const char* SvmlightParser<Value>::word(const char* p, double& value) {
  if (!is_word(p)) return fail(p, not_a_number(p, "label"));
  if (numeric_) return fail(p, "the label " + quoted(p) + " is a word, but others are numbers");
  const char* const end = token_end(p);
  const auto [at, is_new] = numbers_.try_emplace(std::string(p, end), words.size());
  if (is_new) {
    if (words.size() == max_words)
      return fail(p, "more than " + std::to_string(max_words) + " labels that are words");
    words.push_back(at->first);
  }
  value = static_cast<double>(at->second);
  return end;
}

template <class Value>
const char* SvmlightParser<Value>::entries(const char* p, const char* end, Tail& to) {
  std::uint64_t next = lowest_;  // the smallest index that may follow
  for (;;) {
    p = skip_spaces(p);
    const char* const token = p;
    std::uint64_t index = 0;
    int digits = 0;
    p = digits_at(p, index, digits);
    if (digits == 0 || *p != ':') {
      if (*token == '\n') return token + 1;
      if (*token == '#') return newline(token, end) + 1;
      if ((p = after_qid(token))) continue;
      return fail(token, digits && ends_token(token[digits])
                             ? "no colon and value after index " + quoted(token)
                             : "expected index:value, found " + quoted(token));
    }
    if (digits > max_digits || index > highest_)
      return fail(token, "index " + std::string(token, p) + " is above the largest, " +
                             std::to_string(highest_));
    if (index < next) {
      if (index < lowest_)
        return fail(token, "index " + std::to_string(index) + ", but they start at " +
                               std::to_string(lowest_));
      const std::string before = std::to_string(to.index[-1]);
      return fail(token, index + 1 == next ? "index " + before + " is there twice"
                                           : "index " + std::to_string(index) + " after " +
                                                 before + ": they must ascend");
    }
    double number = 0;
    const char* const after = number_at(++p, end, number);
    if (!after || !ends_token(*after)) return fail(p, not_a_number(p, "value"));
    const Value value = static_cast<Value>(number);
    if (!std::isfinite(value)) return fail(p, "the value " + quoted(p) + " is too large");
    *to.index++ = static_cast<std::uint32_t>(index);
    *to.value++ = value;
    next = index + 1;
    p = after;
  }
}

template class SvmlightParser<float>;
template class SvmlightParser<double>;

}  // namespace sparcml
