// Turns described state into words and back: for digests, snapshots and audits.
//
// StateWriter writes everything. StateDigester writes the same, but a Table or Dense only as its size and running sum,
// so that the digest of a large protocol costs what was touched. StateReader reads what StateWriter wrote.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/fields.h"
#include "engine/base/record.h"

namespace areal {

template <class Key, class Value>
class Table;
template <class Value>
class Dense;

// Words that mostly fit in place, so that a digest costs no allocation. Only the first size_ words in place are set.
class ShortWords {  // NOLINT(cppcoreguidelines-pro-type-member-init)
 public:
  // Inlined: protocols write some tens of words for each event.
  [[gnu::always_inline]] void push_back(std::uint64_t word) {
    if (size_ < kInPlace) [[likely]] {
      in_place_[size_++] = word;
      return;
    }
    push_back_rest(word);
  }
  [[nodiscard]] std::span<const std::uint64_t> view() const {
    return size_ <= kInPlace ? std::span(in_place_.data(), size_) : std::span(rest_);
  }

 private:
  static constexpr std::size_t kInPlace = 256;

  [[gnu::noinline]] void push_back_rest(std::uint64_t word) {
    if (size_ == kInPlace) rest_.assign(in_place_.begin(), in_place_.end());
    rest_.push_back(word);
    ++size_;
  }

  std::array<std::uint64_t, kInPlace> in_place_;
  std::size_t size_ = 0;
  std::vector<std::uint64_t> rest_;  // All of them, once they are more than fit.
};

// Writes into `Words`, which has push_back().
template <class Words>
class WordWriter {
 public:
  template <WordField T>
  void value(const T& v) {
    words_.push_back(to_word(v));
  }
  void value(const Digest128& v) { words_.push_back(v.high), words_.push_back(v.low); }
  void value(const Record& v) {
    words_.push_back(v.kind | (std::uint64_t{v.size} << 16));
    for (const std::uint64_t word : v.view()) words_.push_back(word);
  }
  template <Described T>
  void value(const T& v) {
    T::visit_fields(v, [this](std::string_view, const auto& field) { this->value(field); });
  }
  template <class T>
  void value(const std::vector<T>& v) {
    words_.push_back(v.size());
    for (const T& item : v) value(item);
  }
  template <class T, std::size_t N>
  void value(const std::array<T, N>& v) {
    for (const T& item : v) value(item);
  }
  template <class T>
  void value(const std::optional<T>& v) {
    words_.push_back(v.has_value() ? 1 : 0);
    if (v.has_value()) value(*v);
  }
  template <class Key, class Value>
  void value(const Table<Key, Value>& v) {
    words_.push_back(v.size());
    for (const auto& entry : v) value(entry.key), value(entry.value);
  }
  template <class Value>
  void value(const Dense<Value>& v) {
    words_.push_back(v.size());
    for (const Value& item : v) value(item);
  }

 protected:
  Words words_;
};

class StateWriter : public WordWriter<std::vector<std::uint64_t>> {
 public:
  [[nodiscard]] std::span<const std::uint64_t> words() const { return words_; }
  void clear() { words_.clear(); }
};

// Hashes what it was given.
class HashingWriter : public WordWriter<ShortWords> {
 public:
  [[nodiscard]] Digest128 digest() const { return hash_words(words_.view()); }
};

class StateReader {
 public:
  explicit StateReader(std::span<const std::uint64_t> words) : rest_(words) {}

  template <WordField T>
  void value(T& v) {
    v = from_word<T>(next());
  }
  void value(Digest128& v) { v.high = next(), v.low = next(); }
  void value(Record& v) {
    const std::uint64_t head = next();
    v = {};
    v.kind = static_cast<KindId>(head & 0xFFFF);
    v.size = static_cast<std::uint8_t>((head >> 16) & 0xFF);
    if (v.size > kMaxRecordWords) v.size = 0, ok_ = false;
    for (std::size_t i = 0; i < v.size; ++i) v.words[i] = next();
  }
  template <Described T>
  void value(T& v) {
    T::visit_fields(v, [this](std::string_view, auto& field) { this->value(field); });
  }
  template <class T>
  void value(std::vector<T>& v) {
    const std::uint64_t size = bounded_size();
    v.assign(size, T{});
    for (T& item : v) value(item);
  }
  template <class T, std::size_t N>
  void value(std::array<T, N>& v) {
    for (T& item : v) value(item);
  }
  template <class T>
  void value(std::optional<T>& v) {
    v.reset();
    if (next() == 0) return;
    T item{};
    value(item);
    v = std::move(item);
  }
  template <class Key, class Value>
  void value(Table<Key, Value>& v) {
    v.clear();
    for (std::uint64_t left = bounded_size(); left > 0; --left) {
      Key key{};
      Value item{};
      value(key);
      value(item);
      if (!v.insert(key, std::move(item))) ok_ = false;
    }
  }

  template <class Value>
  void value(Dense<Value>& v) {
    const std::uint64_t size = bounded_size();
    v.assign(size, Value{});
    for (std::uint64_t i = 0; i < size; ++i) v.edit(i, [this](Value& item) { value(item); });
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::uint64_t next() {
    if (rest_.empty()) return ok_ = false, 0;
    const std::uint64_t word = rest_.front();
    rest_ = rest_.subspan(1);
    return word;
  }
  // No container holds more items than there are words left.
  std::uint64_t bounded_size() {
    const std::uint64_t size = next();
    if (size <= rest_.size()) return size;
    return ok_ = false, 0;
  }

  std::span<const std::uint64_t> rest_;
  bool ok_ = true;
};

enum class Sums : std::uint8_t { kRunning, kRecomputed };

template <Sums kSums>
class SumDigester {
 public:
  template <class T>
  void value(const T& v) {
    if constexpr (Described<T>) {
      T::visit_fields(v, [this](std::string_view, const auto& field) { this->value(field); });
    } else {
      writer_.value(v);
    }
  }
  template <class Key, class Value>
  void value(const Table<Key, Value>& v) {
    size_and_sum(v);
  }
  template <class Value>
  void value(const Dense<Value>& v) {
    size_and_sum(v);
  }
  [[nodiscard]] Digest128 digest() const { return writer_.digest(); }

 private:
  template <class Summed>
  void size_and_sum(const Summed& v) {
    writer_.value(static_cast<std::uint64_t>(v.size()));
    writer_.value(kSums == Sums::kRunning ? v.sum() : v.recomputed_sum());
  }

  HashingWriter writer_;
};

using StateDigester = SumDigester<Sums::kRunning>;
// The same words with every sum computed anew: differs from StateDigester only if a running sum is wrong.
using StateAuditor = SumDigester<Sums::kRecomputed>;

// The digest of any described state.
template <class T>
Digest128 state_digest(const T& state) {
  StateDigester digester;
  digester.value(state);
  return digester.digest();
}

}  // namespace areal
