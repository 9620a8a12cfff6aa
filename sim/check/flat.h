// Flat<Key, Value>: a sorted vector for judges, without the digests and limits of a Table: judges are not digested, and
// what they keep is dropped when its subject ends.
#pragma once
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

namespace areal::sim {

template <class Key, class Value>
class Flat {
  static_assert(!std::is_pointer_v<Key>, "addresses differ from run to run: key by Id");

 public:
  struct Entry {
    Key key;
    Value value;
  };

  // Makes the entry if there is none. The reference is good until the next mutation.
  Value& operator[](const Key& key) {
    // Most keys only grow.
    if (entries_.empty() || entries_.back().key < key) return entries_.emplace_back(Entry{key, Value{}}).value;
    const auto place = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    if (place->key == key) return place->value;
    return entries_.insert(place, Entry{key, Value{}})->value;
  }
  [[nodiscard]] Value* find(const Key& key) {
    const auto place = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    return place != entries_.end() && place->key == key ? &place->value : nullptr;
  }
  [[nodiscard]] const Value* find(const Key& key) const { return const_cast<Flat*>(this)->find(key); }
  [[nodiscard]] bool contains(const Key& key) const { return find(key) != nullptr; }
  bool erase(const Key& key) {
    const auto place = std::ranges::lower_bound(entries_, key, {}, &Entry::key);
    if (place == entries_.end() || place->key != key) return false;
    entries_.erase(place);
    return true;
  }
  // Removes every entry for which `drop(key, value)` is true.
  template <class Drop>
  void erase_if(Drop&& drop) {
    std::erase_if(entries_, [&](Entry& entry) { return drop(entry.key, entry.value); });
  }
  void clear() { entries_.clear(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() { return entries_.begin(); }
  [[nodiscard]] auto end() { return entries_.end(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace areal::sim
