#include "linear/svmlight/decimal.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace sparcml {
namespace {

using Wide = unsigned __int128;

constexpr int lowest_power = -345, highest_power = 310;  // beyond: 0 or infinite
constexpr int max_digits = 19;                           // that always fit in 64 bits
// A double and the middle between two have at most 768 significant digits; of further digits
// only matters whether one is not 0.
constexpr std::int64_t deciding_digits = 770;

// 10^n is in [mantissa, mantissa + 1 + 2^-40] * 2^exponent; the mantissa has its top bit set.
struct Power {
  std::uint64_t mantissa;
  int exponent;
};

struct Powers {
  std::array<Power, highest_power - lowest_power + 1> table{};

  constexpr Powers() {
    Wide power = Wide{1} << 127;  // 10^0; each step truncates by less than 2^-120 of the value
    int exponent = -63;
    for (int n = 0; n <= highest_power; ++n) {
      put(n, power, exponent);
      power = (power >> 4) * 10;
      exponent += 4;
      normalize(power, exponent);
    }
    power = Wide{1} << 127;
    exponent = -63;
    for (int n = 0; n >= lowest_power; --n) {
      put(n, power, exponent);
      power /= 10;
      normalize(power, exponent);
    }
  }
  constexpr void put(int n, Wide power, int exponent) {
    table[static_cast<std::size_t>(n - lowest_power)] = {
        static_cast<std::uint64_t>(power >> 64), exponent};
  }
  static constexpr void normalize(Wide& power, int& exponent) {
    while (!(power >> 127)) {
      power <<= 1;
      --exponent;
    }
  }
};
constexpr Powers powers_of_ten;

// Rounds a number in [mantissa, mantissa + slack] * 2^exponent, with the top bit set, to
// nearest and ties to even; `exact` says that it is the mantissa itself. Returns whether this
// decides.
bool round_binary(std::uint64_t mantissa, int exponent, unsigned slack, bool exact,
                  double& value) {
  const int first = exponent + 63 + 1023;  // biased exponent of the top bit
  const int drop = first >= 1 ? 11 : 12 - first;
  if (drop > 63) {  // below the smallest double: at most half of it rounds to 0
    value = drop == 64 && mantissa > 1ull << 63 ? std::numeric_limits<double>::denorm_min() : 0;
    return exact;
  }
  std::uint64_t bits = mantissa >> drop;
  const std::uint64_t rest = mantissa & ((1ull << drop) - 1), half = 1ull << (drop - 1);
  if (rest > half || (exact && rest == half && bits & 1)) {
    ++bits;
  } else if (!exact && rest + slack >= half) {
    return false;
  }
  if (first >= 1) bits += static_cast<std::uint64_t>(first - 1) << 52;
  if (first > 2046 || bits >> 52 >= 2047) {
    value = std::numeric_limits<double>::infinity();
  } else {
    std::memcpy(&value, &bits, sizeof value);
  }
  return true;
}

// A natural number of any size, in limbs of 32 bits, lowest first.
class Natural {
 public:
  void multiply_add(std::uint32_t factor, std::uint32_t more) {
    std::uint64_t carry = more;
    for (std::uint32_t& limb : limbs_) {
      carry += std::uint64_t{limb} * factor;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry) limbs_.push_back(static_cast<std::uint32_t>(carry));
  }
  void multiply_by_ten_to(std::int64_t n) {
    for (; n >= 9; n -= 9) multiply_add(1000000000, 0);
    for (; n > 0; --n) multiply_add(10, 0);
  }
  void shift_left(std::size_t bits) {
    for (; bits % 32; --bits) multiply_add(2, 0);
    limbs_.insert(limbs_.begin(), bits / 32, 0);
  }
  std::size_t bits() const {
    return limbs_.empty()
               ? 0
               : 32 * limbs_.size() - static_cast<std::size_t>(__builtin_clz(limbs_.back()));
  }
  bool operator<(const Natural& other) const {
    if (limbs_.size() != other.limbs_.size()) return limbs_.size() < other.limbs_.size();
    for (std::size_t i = limbs_.size(); i--;)
      if (limbs_[i] != other.limbs_[i]) return limbs_[i] < other.limbs_[i];
    return false;
  }
  void subtract(const Natural& other) {  // which is not larger
    std::int64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      borrow += std::int64_t{limbs_[i]} - (i < other.limbs_.size() ? other.limbs_[i] : 0);
      limbs_[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
    }
    while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  }
  bool is_zero() const { return limbs_.empty(); }

 private:
  std::vector<std::uint32_t> limbs_;
};

// Rounds top / bottom by long division in binary.
double rounded_quotient(Natural top, Natural bottom) {
  int exponent = static_cast<int>(top.bits()) - static_cast<int>(bottom.bits());
  if (exponent > 0) bottom.shift_left(static_cast<std::size_t>(exponent));
  if (exponent < 0) top.shift_left(static_cast<std::size_t>(-exponent));
  if (top < bottom) {
    top.multiply_add(2, 0);
    --exponent;
  }
  std::uint64_t quotient = 0;  // 64 bits from 2^exponent on
  for (int i = 0; i < 64; ++i) {
    const bool bit = !(top < bottom);
    if (bit) top.subtract(bottom);
    quotient = quotient << 1 | bit;
    top.multiply_add(2, 0);
  }
  // A remainder makes the quotient longer than any middle between two doubles.
  quotient |= !top.is_zero();
  double value = 0;
  round_binary(quotient, exponent - 63, 0, true, value);
  return value;
}

std::uint32_t value_of(char digit) { return static_cast<std::uint32_t>(digit - '0'); }

// Reads an exponent, cut to what is certainly 0 or infinite.
std::int64_t exponent_at(const char* p, const char* end) {
  const bool minus = *p == '-';
  p += minus || *p == '+';
  std::int64_t exponent = 0;
  for (; p < end && exponent < std::int64_t{1} << 56; ++p)
    exponent = exponent * 10 + value_of(*p);
  return minus ? -exponent : exponent;
}

}  // namespace

bool round_decimal(std::uint64_t mantissa, std::int64_t exponent, bool truncated,
                   double& value) {
  if (exponent < lowest_power || exponent > highest_power) return false;
  const Power& power = powers_of_ten.table[static_cast<std::size_t>(exponent - lowest_power)];
  const int shift = __builtin_clzll(mantissa);
  const Wide product = Wide{mantissa << shift} * power.mantissa;
  const auto top = static_cast<std::uint64_t>(product >> 64);
  const bool low = !(top >> 63);
  // The upper half lacks its own fraction, the power's error and the digits left out.
  const unsigned slack = 4 + (truncated ? 4u << shift : 0);
  return round_binary(low ? static_cast<std::uint64_t>(product >> 63) : top,
                      power.exponent + 64 - shift - low, slack, false, value);
}

double exact_decimal(const char* p, const char* end) {
  std::int64_t digits = 0, scale = 0;  // significant digits; power of ten of the last one
  std::uint64_t mantissa = 0;          // the first 19
  bool point = false;
  const char *first = p, *q = p;
  for (; q < end && *q != 'e' && *q != 'E'; ++q) {
    if (*q == '.') {
      point = true;
      continue;
    }
    scale -= point;
    if (digits == 0 && *q == '0') continue;
    if (digits == 0) first = q;
    if (digits++ < max_digits) mantissa = mantissa * 10 + value_of(*q);
  }
  if (digits == 0) return 0;
  const char* const last = q;
  scale += q < end ? exponent_at(q + 1, end) : 0;
  if (digits + scale > highest_power) return std::numeric_limits<double>::infinity();
  if (digits + scale < lowest_power) return 0;
  const std::int64_t left_out = digits > max_digits ? digits - max_digits : 0;
  double value = 0;
  if (round_decimal(mantissa, scale + left_out, left_out > 0, value)) return value;

  Natural top, bottom;
  bottom.multiply_add(1, 1);
  std::int64_t used = 0;
  bool more = false;  // digits other than 0 after those used
  for (const char* d = first; d < last; ++d) {
    if (*d == '.') continue;
    if (used == deciding_digits) {
      more |= *d != '0';
    } else {
      top.multiply_add(10, value_of(*d));
      ++used;
    }
  }
  scale += digits - used;
  if (more) {
    top.multiply_add(10, 1);
    --scale;
  }
  top.multiply_by_ten_to(scale);
  bottom.multiply_by_ten_to(-scale);
  return rounded_quotient(std::move(top), std::move(bottom));
}

}  // namespace sparcml
