// Cache of the algorithms that `auto` has chosen, so that ranks need not agree in every call.
//
// Training reduces vectors of the same few shapes again and again, and their density changes
// slowly. A choice therefore holds for the next 32 calls with the same shape, as long as the
// nnz of the results stays similar, and for twice as many, up to 256, each time that the ranks
// choose the same again. If results change, each call agrees again, until eight results in a
// row are similar: calls of one shape may alternate between densities. All ranks make the same
// calls and get the same results, so that their caches stay the same.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace nb = nanobind;

// What the calls that share a choice have in common.
struct Case {
  std::int64_t size, block;
  int dtype, op;         // their numbers in headers
  nb::object quantizer;  // or None

  bool operator==(const Case& other) const {
    return size == other.size && block == other.block && dtype == other.dtype &&
           op == other.op &&
           (quantizer.is(other.quantizer) || quantizer.equal(other.quantizer));
  }
  struct Hash {
    std::size_t operator()(const Case& c) const {
      const auto size = static_cast<std::size_t>(c.size),
                 block = static_cast<std::size_t>(c.block);
      return (size * 0x9E3779B97F4A7C15u ^ block) * 64 +
             static_cast<std::size_t>(c.dtype * 8 + c.op);
    }
  };
};

// The choices of one communicator.
class ChoiceCache {
 public:
  static constexpr int min_calls = 32, max_calls = 256;  // that a choice holds for
  static constexpr int similar_calls = 8;  // with similar results, after which it holds again
  static constexpr std::size_t max_cases = 256;

  // Returns the number of the algorithm that was chosen for a case, if the choice still holds.
  std::optional<int> choice(const Case& key) const {
    const auto found = choices_.find(key);
    if (found == choices_.end()) return {};
    const Choice& c = found->second;
    if (c.recheck || c.calls >= c.max_calls) return {};
    return c.algorithm;
  }

  // Stores a choice that the ranks have agreed on, or none if they must agree in each call; the
  // oldest case may be dropped.
  void store(const Case& key, std::optional<int> algorithm) {
    Choice& c = choices_[key];
    const bool is_same = c.algorithm == algorithm && !c.recheck && c.calls;
    c.max_calls = is_same ? std::min(2 * c.max_calls, max_calls) : min_calls;
    c.algorithm = algorithm;
    c.calls = 0;
    if (c.recheck)
      --c.recheck;
    else
      c.result_nnz.reset();
    c.stored = ++stores_;
    if (choices_.size() > max_cases)
      choices_.erase(std::min_element(
          choices_.begin(), choices_.end(),
          [](const auto& a, const auto& b) { return a.second.stored < b.second.stored; }));
  }

  // Records the nnz of a result, and drops the choice if it has changed by 2x.
  void record(const Case& key, std::size_t result_nnz) {
    const auto found = choices_.find(key);
    if (found == choices_.end()) return;
    Choice& c = found->second;
    ++c.calls;
    if (!c.result_nnz) {
      c.result_nnz = result_nnz;
    } else if (*c.result_nnz > 2 * result_nnz || result_nnz > 2 * *c.result_nnz) {
      c.recheck = similar_calls;
      c.algorithm.reset();
      c.result_nnz = result_nnz;
    }
  }

  void clear() {
    choices_.clear();
    predictions_.clear();
  }

  // Returns the predicted seconds of an allreduce; `predict` is asked once for similar nnz.
  template <class F>
  double predicted(int algorithm, std::uint32_t blocks, std::size_t entry_bytes,
                   std::size_t nnz, F predict) {
    const Prediction key{algorithm, blocks, entry_bytes, rounded(nnz)};
    const auto found = predictions_.find(key);
    if (found != predictions_.end()) return found->second;
    if (predictions_.size() >= max_predictions) predictions_.clear();
    return predictions_[key] = predict();
  }

 private:
  static constexpr std::size_t max_predictions = 4096;

  // The algorithm, blocks, bytes of a block and rounded nnz.
  using Prediction = std::tuple<int, std::uint32_t, std::size_t, std::size_t>;

  struct Choice {
    std::optional<int> algorithm;
    int calls = 0;  // since it was chosen
    int max_calls = min_calls;
    std::optional<std::size_t> result_nnz;  // of the first result since then, or since a change
    int recheck = 0;           // further calls that must agree, since results have changed
    std::uint64_t stored = 0;  // when it was stored
  };
  // Rounds to 5 significant bits, as costs/estimate.py does.
  static std::size_t rounded(std::size_t nnz) {
    std::size_t unit = 1;
    while (nnz >> 5 >= unit) unit *= 2;
    return (nnz + unit / 2) / unit * unit;
  }

  std::unordered_map<Case, Choice, Case::Hash> choices_;
  std::map<Prediction, double> predictions_;
  std::uint64_t stores_ = 0;
};

// Returns the estimated number of entries that differ from `fill`. A dense result does not say
// how many of its values are zero, and dsar_split_allgather has no other results. A sample is
// at positions that depend on the size only, so that all ranks get the same estimate; they are
// spread evenly, without the period of a row or column.
constexpr std::size_t sample_size = 4096;  // enough from 1 % on

template <class T>
std::size_t estimated_nnz(const T* values, std::size_t size, std::size_t block, T fill) {
  std::size_t nonzeros = 0;
  if (size <= sample_size) {
    for (std::size_t i = 0; i < size; ++i) nonzeros += values[i] != fill;
  } else {
    for (std::uint64_t i = 0; i < sample_size; ++i)
      nonzeros += values[(i * 2654435769u % (std::uint64_t{1} << 32)) * size >> 32] != fill;
  }
  const std::size_t seen = std::max<std::size_t>(1, std::min(size, sample_size));
  return (size / block * nonzeros + seen - 1) / seen;
}
