// The map that the core may use: ordered by key, with a limit given at construction and a digest kept on mutation.
//
// Sorted chunks: a fixed iteration order, no allocation per entry, no addresses. The limit is a promise that the
// world cannot make a protocol grow without bound; insert() says no when it is reached, and the caller answers that.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine/base/digest.h"
#include "engine/base/sorted_chunks.h"
#include "engine/base/state.h"

namespace areal {

template <class Key, class Value>
class Table {
  static_assert(!std::is_pointer_v<Key>, "addresses differ from run to run: key by Id");

 public:
  using Entry = typename SortedChunks<Key, Value>::Entry;

  Table() = default;
  explicit Table(std::size_t limit) : limit_(limit) {}

  // False if the key is taken or the table is full.
  bool insert(const Key& key, Value value) {
    if (entries_.size() >= limit_) return false;
    const Digest128 digest = entry_digest(key, value);
    if (!entries_.insert(key, std::move(value)).second) return false;
    sum_.add(digest);
    return true;
  }

  bool erase(const Key& key) {
    const Value* value = entries_.find(key);
    if (value == nullptr) return false;
    sum_.remove(entry_digest(key, *value));
    return entries_.erase(key);
  }

  void clear() {
    entries_.clear();
    sum_ = {};
  }

  // Null if there is no such key. The pointer is good until the next mutation.
  [[nodiscard]] const Value* find(const Key& key) const { return entries_.find(key); }
  [[nodiscard]] bool contains(const Key& key) const { return find(key) != nullptr; }

  // Changes one value through `change(Value&)`; false if there is no such key.
  template <class Change>
  bool edit(const Key& key, Change&& change) {
    Value* value = entries_.find(key);
    if (value == nullptr) return false;
    sum_.remove(entry_digest(key, *value));
    change(*value);
    sum_.add(entry_digest(key, *value));
    return true;
  }

  // Removes every entry for which `drop(key, value)` is true; returns how many.
  template <class Drop>
  std::size_t erase_if(Drop&& drop) {
    return entries_.erase_if([&](const Entry& entry) {
      if (!drop(entry.key, entry.value)) return false;
      sum_.remove(entry_digest(entry.key, entry.value));
      return true;
    });
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
  static Digest128 entry_digest(const Key& key, const Value& value) {
    HashingWriter writer;
    writer.value(key);
    writer.value(value);
    return writer.digest();
  }

  SortedChunks<Key, Value> entries_;
  DigestSum sum_;
  std::size_t limit_ = SIZE_MAX;
};

}  // namespace areal
