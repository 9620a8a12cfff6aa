// Unsorted keys in buckets: each bucket is a list of small blocks out of one pool.
//
// A bucket gives its keys back in the order in which they were added. Blocks that become free are taken again at once,
// while they are in the cache. A value. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sim/kernel/big_pages.h"
#include "sim/kernel/queue_key.h"

namespace areal::sim {

struct KeyBucket {
  std::uint32_t block = 0;  // The newest one; the pool links it to older ones.
  std::uint32_t count = 0;
};

class KeyBlocks {
 public:
  void add(KeyBucket& bucket, const QueueKey& key) {
    const std::uint32_t place = bucket.count % kBlock;
    if (place == 0) bucket.block = take(bucket.block);
    keys_[std::size_t{bucket.block} * kBlock + place] = key;
    ++bucket.count;
  }

  // Moves the bucket's keys to `out`, which has room for them, and leaves the bucket empty.
  void move_out(KeyBucket& bucket, QueueKey* out) {
    std::uint32_t block = bucket.block;
    for (std::uint32_t left = bucket.count; left > 0;) {
      const std::uint32_t start = (left - 1) / kBlock * kBlock;
      const QueueKey* from = &keys_[std::size_t{block} * kBlock];
      for (std::uint32_t i = start; i < left; ++i) out[i] = from[i - start];
      const std::uint32_t older = older_[block];
      older_[block] = free_;
      free_ = block + 1;
      left = start;
      block = older;
    }
    bucket = {};
  }

  // Brings the newest keys of the bucket near.
  void fetch(const KeyBucket& bucket) const { __builtin_prefetch(keys_.data() + std::size_t{bucket.block} * kBlock); }
  // Calls visit(key) for the bucket's newest keys.
  template <class Visit>
  void visit_newest(const KeyBucket& bucket, Visit&& visit) const {
    if (bucket.count == 0) return;
    const QueueKey* from = &keys_[std::size_t{bucket.block} * kBlock];
    for (std::uint32_t i = 0; i <= (bucket.count - 1) % kBlock; ++i) visit(from[i]);
  }

 private:
  static constexpr std::uint32_t kBlock = 8;

  std::uint32_t take(std::uint32_t older) {
    if (free_ == 0) grow();
    const std::uint32_t block = free_ - 1;
    free_ = older_[block];
    older_[block] = older;
    return block;
  }
  [[gnu::noinline]] void grow() {
    older_.push_back(0);
    keys_.resize(keys_.size() + kBlock);
    free_ = static_cast<std::uint32_t>(older_.size());
  }

  BigVector<QueueKey> keys_;
  BigVector<std::uint32_t> older_;  // By block: the older block of its bucket, or the next free one plus 1.
  std::uint32_t free_ = 0;          // The first free block plus 1, or 0.
};

}  // namespace areal::sim
