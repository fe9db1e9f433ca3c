// Loops for all instruction sets. Nearly all code words are looked up.
//
// op.h explains the anonymous namespace.
#include <array>

#include "kernels/bits.h"
#include "kernels/elias/elias.h"

namespace sparcml {
namespace {

struct Word {
  std::uint64_t bits = 0;  // the first bit is the lowest
  unsigned length = 0;

  // Prepends x in binary, highest bit first.
  constexpr void prepend(std::uint64_t x, unsigned count) {
    bits <<= count;
    for (unsigned i = 0; i < count; ++i) bits |= (x >> (count - 1 - i) & 1) << i;
    length += count;
  }

  constexpr void append(const Word& next) {
    bits |= next.bits << length;
    length += next.length;
  }
};

constexpr unsigned binary_length(std::uint64_t x) {
  unsigned count = 0;
  for (; x; x >>= 1) ++count;
  return count;
}

// At most 46 bits for x < 2^32.
constexpr Word omega(std::uint64_t x) {
  Word word{0, 1};
  while (x > 1) {
    const unsigned count = binary_length(x);
    word.prepend(x, count);
    x = count - 1;
  }
  return word;
}

constexpr unsigned magnitude(unsigned byte) { return byte < 128 ? byte : 256 - byte; }

// For each level, as an unsigned byte: its dense and its sparse code.
constexpr auto dense_words = [] {
  std::array<Word, 256> words{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    words[byte] = omega(magnitude(byte) + 1);
    if (byte) words[byte].append({byte >> 7, 1});
  }
  return words;
}();
constexpr auto sparse_words = [] {
  std::array<Word, 256> words{};
  for (unsigned byte = 1; byte < 256; ++byte) {
    words[byte] = {byte >> 7, 1};
    words[byte].append(omega(magnitude(byte)));
  }
  return words;
}();
constexpr auto gap_words = [] {
  std::array<Word, 256> words{};
  for (unsigned gap = 1; gap < 256; ++gap) words[gap] = omega(gap);
  return words;
}();

inline Word gap_word(std::size_t gap) {
  return gap < gap_words.size() ? gap_words[gap] : omega(gap);
}

// Like BitWriter, but within a given number of words.
class Writer {
 public:
  Writer(std::uint8_t* out, std::size_t words) : out_(out), end_(out + 8 * words) {}

  void append(std::uint64_t code, unsigned length) {
    word_ |= code << used_;
    used_ += length;
    if (used_ < 64) return;
    store();
    used_ -= 64;
    word_ = used_ ? code >> (length - used_) : 0;
  }

  // Returns whether exactly all words were filled.
  bool finish() {
    if (used_) store();
    return !over_ && out_ == end_;
  }

 private:
  void store() {
    over_ |= out_ == end_;
    if (over_) return;
    store64(out_, word_);
    out_ += 8;
  }

  std::uint8_t *out_, *end_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;
  bool over_ = false;
};

inline bool encode_dense(const std::int8_t* levels, std::size_t n, Writer writer) {
  for (std::size_t i = 0; i < n; ++i) {
    const Word& word = dense_words[static_cast<std::uint8_t>(levels[i])];
    writer.append(word.bits, word.length);
  }
  return writer.finish();
}

inline bool encode_sparse(const std::int8_t* levels, std::size_t n, Writer writer) {
  std::size_t before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<std::uint8_t>(levels[i]);
    const bool present = byte != 0;
    Word word = gap_word(i + 1 - before);
    word.append(sparse_words[byte]);
    writer.append(present ? word.bits : 0, present ? word.length : 0);
    before = present ? i + 1 : before;
  }
  return writer.finish();
}

// Reads bits in order; beyond the end they are zeros, and `over` is true.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t words) : data_(data), bits_(64 * words) {}

  std::uint64_t peek() const {  // at least 57 bits
    const std::size_t byte = at_ / 8, size = bits_ / 8;
    std::uint64_t word = 0;
    if (byte + 8 <= size)
      word = load64(data_ + byte);
    else if (byte < size)
      std::memcpy(&word, data_ + byte, size - byte);
    return word >> at_ % 8;
  }
  void skip(unsigned count) { at_ += count; }
  bool over() const { return at_ > bits_; }

  unsigned bit() {
    const unsigned first = peek() & 1;
    skip(1);
    return first;
  }

  // Returns 0 if this is not a code of a number below 2^32.
  std::uint64_t omega() {
    std::uint64_t x = 1;
    while (bit()) {
      if (x > 31 || over()) return 0;
      const auto count = static_cast<unsigned>(x);
      std::uint64_t next = 1, word = peek();
      for (unsigned i = 0; i < count; ++i, word >>= 1) next = next << 1 | (word & 1);
      skip(count);
      x = next;
    }
    return over() ? 0 : x;
  }

  // Returns whether all bits were read, except for the zeros that pad the last word.
  bool done() const {
    if (over() || at_ + 64 <= bits_) return false;
    return at_ == bits_ || peek() == 0;
  }

 private:
  const std::uint8_t* data_;
  std::size_t bits_, at_ = 0;
};

// Code words of at most this many bits are looked up.
constexpr unsigned kShort = 12;

struct Entry {
  std::int8_t level;
  std::uint8_t length;  // 0 if longer
  std::uint8_t gap;
};
using Entries = std::array<Entry, 1 << kShort>;

inline void enter(Entries& entries, const Word& word, unsigned byte, unsigned gap) {
  if (word.length > kShort) return;
  const Entry entry{static_cast<std::int8_t>(byte), static_cast<std::uint8_t>(word.length),
                    static_cast<std::uint8_t>(gap)};
  for (unsigned rest = 0; rest < 1u << (kShort - word.length); ++rest)
    entries[rest << word.length | word.bits] = entry;
}

inline const Entries& short_dense() {
  static const Entries made = [] {
    Entries entries{};
    for (unsigned byte = 0; byte < 256; ++byte) enter(entries, dense_words[byte], byte, 1);
    return entries;
  }();
  return made;
}

inline const Entries& short_sparse() {
  static const Entries made = [] {
    Entries entries{};
    for (unsigned gap = 1; gap < 256; ++gap)
      for (unsigned byte = 1; byte < 256; ++byte) {
        Word word = gap_words[gap];
        word.append(sparse_words[byte]);
        enter(entries, word, byte, gap);
      }
    return entries;
  }();
  return made;
}

// Sets a level, -128 to 127, from its magnitude and sign.
inline bool signed_level(std::uint64_t size, bool negative, std::int8_t* level) {
  if (size > 127 + static_cast<std::uint64_t>(negative)) return false;
  const int value = static_cast<int>(size);
  *level = static_cast<std::int8_t>(negative ? -value : value);
  return true;
}

inline bool decode_dense(Reader reader, std::int8_t* levels, std::size_t n) {
  const Entries& words = short_dense();
  for (std::size_t i = 0; i < n; ++i) {
    const Entry entry = words[reader.peek() & (words.size() - 1)];
    if (entry.length) {
      levels[i] = entry.level;
      reader.skip(entry.length);
      if (reader.over()) return false;
      continue;
    }
    const std::uint64_t x = reader.omega();
    if (!x || !signed_level(x - 1, reader.bit(), levels + i)) return false;
  }
  return reader.done();
}

inline bool decode_sparse(Reader reader, std::size_t nonzeros, std::int8_t* levels,
                          std::size_t n) {
  std::memset(levels, 0, n);
  const Entries& words = short_sparse();
  std::size_t next = 0;
  for (std::size_t count = 0; count < nonzeros; ++count) {
    const Entry entry = words[reader.peek() & (words.size() - 1)];
    const std::uint64_t gap = entry.length ? entry.gap : reader.omega();
    if (!gap || gap > n - next) return false;
    next += gap;
    if (entry.length) {
      levels[next - 1] = entry.level;
      reader.skip(entry.length);
      if (reader.over()) return false;
      continue;
    }
    const bool negative = reader.bit();
    const std::uint64_t size = reader.omega();
    if (!size || !signed_level(size, negative, levels + next - 1)) return false;
  }
  return reader.done();
}

}  // namespace

namespace SPARCML_NAMESPACE {

// No branch depends on whether a level is zero, which is hard to predict.
EliasPlan elias_plan(const std::int8_t* levels, std::size_t n) {
  EliasPlan sum{0, 0, 0};
  std::size_t before = 0;  // one past the last nonzero level
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<std::uint8_t>(levels[i]);
    const std::size_t gap = i + 1 - before, present = byte != 0;
    sum.dense_bits += dense_words[byte].length;
    sum.sparse_bits += (sparse_words[byte].length + gap_word(gap).length) & (0 - present);
    sum.nonzeros += present;
    before = present ? i + 1 : before;
  }
  return sum;
}

bool elias_encode(const std::int8_t* levels, std::size_t n, bool sparse, std::uint8_t* out,
                  std::size_t words) {
  const Writer writer(out, words);
  return sparse ? encode_sparse(levels, n, writer) : encode_dense(levels, n, writer);
}

bool elias_decode(const std::uint8_t* data, std::size_t words, bool sparse,
                  std::size_t nonzeros, std::int8_t* levels, std::size_t n) {
  const Reader reader(data, words);
  return sparse ? decode_sparse(reader, nonzeros, levels, n) : decode_dense(reader, levels, n);
}

}  // namespace SPARCML_NAMESPACE
}  // namespace sparcml
