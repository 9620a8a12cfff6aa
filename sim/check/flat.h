// Flat<Key, Value>: sorted entries for judges, without the digests and limits of a Table: judges are not digested, and
// what they keep is dropped when its subject ends.
#pragma once
#include <type_traits>
#include <utility>

#include "engine/base/sorted_chunks.h"

namespace areal::sim {

template <class Key, class Value>
class Flat {
  static_assert(!std::is_pointer_v<Key>, "addresses differ from run to run: key by Id");

 public:
  using Entry = typename SortedChunks<Key, Value>::Entry;

  // Makes the entry if there is none. The reference is good until the next mutation.
  Value& operator[](const Key& key) {
    Value* found = entries_.find(key);
    return found != nullptr ? *found : *entries_.insert(key, Value{}).first;
  }
  [[nodiscard]] Value* find(const Key& key) { return entries_.find(key); }
  [[nodiscard]] const Value* find(const Key& key) const { return entries_.find(key); }
  [[nodiscard]] bool contains(const Key& key) const { return find(key) != nullptr; }
  bool erase(const Key& key) { return entries_.erase(key); }
  // Removes every entry for which `drop(key, value)` is true.
  template <class Drop>
  void erase_if(Drop&& drop) {
    entries_.erase_if([&](Entry& entry) { return drop(entry.key, entry.value); });
  }
  void clear() { entries_.clear(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() { return entries_.begin(); }
  [[nodiscard]] auto end() { return entries_.end(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  SortedChunks<Key, Value> entries_;
};

}  // namespace areal::sim
