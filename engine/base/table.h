// The map that the core may use: ordered by key, with a limit given at construction and a digest kept on mutation.
//
// A sorted vector: a fixed iteration order, no allocation per entry, no addresses. The limit is a promise that the
// world cannot make a protocol grow without bound; insert() says no when it is reached, and the caller answers that.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/state.h"

namespace areal {

template <class Key, class Value>
class Table {
  static_assert(!std::is_pointer_v<Key>, "addresses differ from run to run: key by Id");

 public:
  struct Entry {
    Key key;
    Value value;
  };

  Table() = default;
  explicit Table(std::size_t limit) : limit_(limit) {}

  // False if the key is taken or the table is full.
  bool insert(const Key& key, Value value) {
    const auto place = lower(key);
    if (entries_.size() >= limit_ || (place != entries_.end() && place->key == key)) return false;
    sum_.add(entry_digest(key, value));
    entries_.insert(place, Entry{key, std::move(value)});
    return true;
  }

  bool erase(const Key& key) {
    const auto place = lower(key);
    if (place == entries_.end() || place->key != key) return false;
    sum_.remove(entry_digest(place->key, place->value));
    entries_.erase(place);
    return true;
  }

  void clear() {
    entries_.clear();
    sum_ = {};
  }

  // Null if there is no such key. The pointer is good until the next mutation.
  [[nodiscard]] const Value* find(const Key& key) const {
    const auto place = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    return place != entries_.end() && place->key == key ? &place->value : nullptr;
  }
  [[nodiscard]] bool contains(const Key& key) const { return find(key) != nullptr; }

  // Changes one value through `change(Value&)`; false if there is no such key.
  template <class Change>
  bool edit(const Key& key, Change&& change) {
    const auto place = lower(key);
    if (place == entries_.end() || place->key != key) return false;
    sum_.remove(entry_digest(place->key, place->value));
    change(place->value);
    sum_.add(entry_digest(place->key, place->value));
    return true;
  }

  // Removes every entry for which `drop(key, value)` is true; returns how many.
  template <class Drop>
  std::size_t erase_if(Drop&& drop) {
    const std::size_t before = entries_.size();
    std::erase_if(entries_, [&](const Entry& entry) {
      if (!drop(entry.key, entry.value)) return false;
      sum_.remove(entry_digest(entry.key, entry.value));
      return true;
    });
    return before - entries_.size();
  }

  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool full() const { return entries_.size() >= limit_; }
  [[nodiscard]] std::size_t limit() const { return limit_; }

  // The running digest of all entries, and the same computed anew; they differ only if memory was changed behind us.
  [[nodiscard]] const Digest128& sum() const { return sum_.total; }
  [[nodiscard]] Digest128 recomputed_sum() const {
    DigestSum sum;
    for (const Entry& entry : entries_) sum.add(entry_digest(entry.key, entry.value));
    return sum.total;
  }

 private:
  auto lower(const Key& key) { return std::ranges::lower_bound(entries_, key, {}, &Entry::key); }

  static Digest128 entry_digest(const Key& key, const Value& value) {
    HashingWriter writer;
    writer.value(key);
    writer.value(value);
    return writer.digest();
  }

  std::vector<Entry> entries_;
  DigestSum sum_;
  std::size_t limit_ = SIZE_MAX;
};

}  // namespace areal
