// A vector with one value for each number below its size, whose digest is kept on mutation: a step costs what it
// touched, however many there are.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/state.h"

namespace areal {

template <class Value>
class Dense {
 public:
  Dense() = default;
  explicit Dense(std::size_t size, const Value& value = {}) { assign(size, value); }

  void assign(std::size_t size, const Value& value) {
    values_.assign(size, value);
    sum_ = {recomputed_sum()};
  }
  void push_back(Value value) {
    sum_.add(digest_of(values_.size(), value));
    values_.push_back(std::move(value));
  }
  // REQUIRES: index < size().
  [[nodiscard]] const Value& operator[](std::size_t index) const { return values_[index]; }
  // Changes one value through `change(Value&)`.
  template <class Change>
  void edit(std::size_t index, Change&& change) {
    sum_.remove(digest_of(index, values_[index]));
    std::forward<Change>(change)(values_[index]);
    sum_.add(digest_of(index, values_[index]));
  }
  void set(std::size_t index, Value value) {
    edit(index, [&](Value& own) { own = std::move(value); });
  }

  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

  // The running digest of all values, and the same computed anew; they differ only if memory was changed behind us.
  [[nodiscard]] const Digest128& sum() const { return sum_.total; }
  [[nodiscard]] Digest128 recomputed_sum() const {
    DigestSum sum;
    for (std::size_t i = 0; i < values_.size(); ++i) sum.add(digest_of(i, values_[i]));
    return sum.total;
  }

 private:
  static Digest128 digest_of(std::size_t index, const Value& value) {
    HashingWriter writer;
    writer.value(static_cast<std::uint64_t>(index));
    writer.value(value);
    return writer.digest();
  }

  std::vector<Value> values_;
  DigestSum sum_;
};

}  // namespace areal
