// Entries ordered by key, in chunks: a sorted vector whose insertion and removal move one chunk and not all.
//
// A fixed iteration order, no addresses. To find costs O(log n); to insert or erase moves at most a chunk of entries
// and the list of chunks. Not thread-safe.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace areal {

template <class Key, class Value>
class SortedChunks {
 public:
  struct Entry {
    Key key;
    Value value;
  };

  // Forward, over all entries by key. Good until the next insertion or removal.
  template <class Chunks, class Item>
  class Walk {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = Item*;
    using reference = Item&;

    Walk() = default;
    Walk(Chunks* chunks, std::size_t chunk, std::size_t place) : chunks_(chunks), chunk_(chunk), place_(place) {}
    Item& operator*() const { return (*chunks_)[chunk_][place_]; }
    Item* operator->() const { return &**this; }
    Walk& operator++() {
      if (++place_ == (*chunks_)[chunk_].size()) ++chunk_, place_ = 0;
      return *this;
    }
    Walk operator++(int) {
      Walk before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Walk& left, const Walk& right) {
      return left.chunk_ == right.chunk_ && left.place_ == right.place_;
    }

   private:
    Chunks* chunks_ = nullptr;
    std::size_t chunk_ = 0;
    std::size_t place_ = 0;
  };

  [[nodiscard]] auto begin() { return Walk<Chunks, Entry>(&chunks_, 0, 0); }
  [[nodiscard]] auto end() { return Walk<Chunks, Entry>(&chunks_, chunks_.size(), 0); }
  [[nodiscard]] auto begin() const { return Walk<const Chunks, const Entry>(&chunks_, 0, 0); }
  [[nodiscard]] auto end() const { return Walk<const Chunks, const Entry>(&chunks_, chunks_.size(), 0); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] Value* find(const Key& key) {
    if (size_ == 0 || chunks_.back().back().key < key) return nullptr;
    const Spot spot = spot_of(key);
    Entry& entry = chunks_[spot.chunk][spot.place];
    return entry.key == key ? &entry.value : nullptr;
  }
  [[nodiscard]] const Value* find(const Key& key) const { return const_cast<SortedChunks*>(this)->find(key); }

  // The entry of `key`, which is made with `value` if there is none; whether it was made.
  std::pair<Value*, bool> insert(const Key& key, Value value) {
    if (size_ == 0 || chunks_.back().back().key < key) return {append(key, std::move(value)), true};
    Spot spot = spot_of(key);
    Chunk* chunk = &chunks_[spot.chunk];
    if ((*chunk)[spot.place].key == key) return {&(*chunk)[spot.place].value, false};
    if (chunk->size() == kMost) {
      split(spot.chunk);
      if (spot.place >= chunks_[spot.chunk].size()) spot = {spot.chunk + 1, spot.place - chunks_[spot.chunk].size()};
      chunk = &chunks_[spot.chunk];
    }
    ++size_;
    const auto at = chunk->begin() + static_cast<std::ptrdiff_t>(spot.place);
    return {&chunk->insert(at, Entry{key, std::move(value)})->value, true};
  }

  bool erase(const Key& key) {
    if (size_ == 0 || chunks_.back().back().key < key) return false;
    const Spot spot = spot_of(key);
    Chunk& chunk = chunks_[spot.chunk];
    if (chunk[spot.place].key != key) return false;
    chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(spot.place));
    --size_;
    if (chunk.empty()) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(spot.chunk));
    return true;
  }

  // Removes every entry for which `drop(entry)` is true, in order of keys; returns how many.
  template <class Drop>
  std::size_t erase_if(Drop&& drop) {
    const std::size_t before = size_;
    for (Chunk& chunk : chunks_) size_ -= static_cast<std::size_t>(std::erase_if(chunk, drop));
    std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.empty(); });
    return before - size_;
  }

  void clear() {
    chunks_.clear();
    size_ = 0;
  }

 private:
  using Chunk = std::vector<Entry>;
  using Chunks = std::vector<Chunk>;
  struct Spot {
    std::size_t chunk = 0;
    std::size_t place = 0;
  };
  static constexpr std::size_t kMost = 128;

  // Of the first entry that is not less. REQUIRES: there is one.
  [[nodiscard]] Spot spot_of(const Key& key) const {
    const auto chunk = std::ranges::lower_bound(chunks_, key, {}, [](const Chunk& one) { return one.back().key; });
    const auto place = std::ranges::lower_bound(*chunk, key, {}, &Entry::key);
    return {static_cast<std::size_t>(chunk - chunks_.begin()), static_cast<std::size_t>(place - chunk->begin())};
  }

  // Keys that only grow fill chunks one after the other.
  Value* append(const Key& key, Value value) {
    if (chunks_.empty() || chunks_.back().size() == kMost) chunks_.emplace_back();
    ++size_;
    return &chunks_.back().emplace_back(Entry{key, std::move(value)}).value;
  }

  void split(std::size_t number) {
    Chunk& full = chunks_[number];
    const auto half = full.begin() + static_cast<std::ptrdiff_t>(kMost / 2);
    Chunk rest(std::make_move_iterator(half), std::make_move_iterator(full.end()));
    full.erase(half, full.end());
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(number) + 1, std::move(rest));
  }

  Chunks chunks_;  // None is empty.
  std::size_t size_ = 0;
};

}  // namespace areal
