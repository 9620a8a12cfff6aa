#include "sim/kernel/key_ladder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

#include "sim/kernel/key_sort.h"

namespace areal::sim {
namespace {

// Keys that a bucket should hold when its turn comes.
constexpr std::uint64_t kWanted = 12;
// Keys that are looked at for the median.
constexpr std::size_t kSample = 32;
// Keys that the heap may hold before they and the run are spread anew.
constexpr std::size_t kHeapMin = 64;
// A rung reaches as far behind its first key as this many medians.
constexpr std::uint64_t kReach = 8;

struct Spread {
  std::int64_t least = kGreatestTime;
  std::int64_t greatest = kLeastTime;
  std::uint64_t median = 0;  // Of the offsets from the least time, in a sample.
};

Spread spread_of(std::span<const QueueKey> keys) {
  Spread spread;
  for (const QueueKey& key : keys) {
    spread.least = std::min(spread.least, key.at.ns);
    spread.greatest = std::max(spread.greatest, key.at.ns);
  }
  std::array<std::uint64_t, kSample> sample{};
  const std::size_t count = std::min(kSample, keys.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t offset = offset_from(spread.least, keys[i * keys.size() / count].at.ns);
    std::size_t place = i;
    for (; place > 0 && sample[place - 1] > offset; --place) sample[place] = sample[place - 1];
    sample[place] = offset;
  }
  spread.median = sample[count / 2];
  return spread;
}

// a * b / c; where that overflows, about so much, or the greatest number. REQUIRES: b > 0, c > 0.
std::uint64_t scaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  if (a <= kMost / b) return a * b / c;
  return a / c <= kMost / b ? a / c * b : kMost;
}

void sort_by_number(std::vector<QueueKey>& keys) { std::ranges::stable_sort(keys, {}, &QueueKey::number); }

}  // namespace

void KeyLadder::push_near(const QueueKey& key) {
  if (run_.empty() || run_.back() < key) {
    run_.push(key);
    return;
  }
  heap_.push(key);
  if (heap_.size() > kHeapMin && heap_.size() >= run_.size()) spread_near();
}

void KeyLadder::push_far(const QueueKey& key) {
  if (depth_ == 0 && far_.empty() && must_fill()) {  // The only key.
    run_.push(key);
    run_last_ = key.at.ns;
    covered_ = run_last_;
  } else {
    far_.push_back(key);
  }
}

void KeyLadder::pop() {
  if (is_heap_first()) {
    heap_.pop();
  } else {
    run_.pop();
  }
}

void KeyLadder::fill() {
  run_.clear();
  while (run_.empty()) {
    if (depth_ > 0) {
      take_bucket();
    } else {
      take_far();
    }
  }
}

void KeyLadder::take_bucket() {
  Rung& rung = rungs_[depth_ - 1];
  while (rung.next < rung.count && rung.buckets[rung.next].count == 0) ++rung.next;
  if (rung.next == rung.count) {
    run_last_ = rung.last;
    --depth_;
    return;
  }
  KeyBucket& bucket = rung.buckets[rung.next];
  const std::int64_t start = rung.start_of(rung.next);
  gathered_ = bucket.count;
  if (scratch_.size() < gathered_ + kFewKeys) scratch_.resize(2 * gathered_ + kFewKeys);
  blocks_.move_out(bucket, scratch_.data());
  ++rung.next;
  rung.taken = rung.next < rung.count ? rung.start_of(rung.next) - 1 : rung.last;
  if (rung.next < rung.count && gathered_ <= kFewKeys) {
    run_last_ = rung.taken;
    sort_few(scratch_.data(), gathered_, run_.reset(gathered_, kFewKeys), start, (std::uint64_t{1} << rung.shift) - 1);
    return;
  }
  const std::int64_t last = rung.taken;
  drop_used_rungs();
  settle(last);
}

void KeyLadder::take_far() {
  scratch_.swap(far_);
  far_.clear();
  gathered_ = scratch_.size();
  settle(std::nullopt);
}

void KeyLadder::spread_near() {
  scratch_.assign(run_.keys().begin(), run_.keys().end());
  scratch_.insert(scratch_.end(), heap_.keys().begin(), heap_.keys().end());
  sort_by_number(scratch_);
  gathered_ = scratch_.size();
  run_.clear();
  heap_.clear();
  drop_used_rungs();
  settle(run_last_);
}

// Sorts the gathered keys into the run, which then reaches to `last`. If they are too many for that, and not all of one
// time, makes a rung of them that reaches to `last`. Without `last` the run reaches to its last key; or the rung is the
// first one, and what lies far behind most keys goes to the far part.
void KeyLadder::settle(std::optional<std::int64_t> last) {
  const Spread spread = spread_of({scratch_.data(), gathered_});
  const std::uint64_t extent = offset_from(spread.least, spread.greatest);
  if (gathered_ > kFewKeys && extent > 0) {
    start_rung(spread.least, extent, spread.median, last);
    return;
  }
  if (gathered_ > kFewKeys) {
    run_.take(scratch_, gathered_);
  } else {
    scratch_.resize(std::max(scratch_.size(), kFewKeys));
    sort_few(scratch_.data(), gathered_, run_.reset(gathered_, kFewKeys), spread.least, extent);
  }
  run_last_ = last.value_or(spread.greatest);
  if (depth_ == 0) covered_ = run_last_;
}

void KeyLadder::start_rung(std::int64_t start, std::uint64_t extent, std::uint64_t median,
                           std::optional<std::int64_t> last) {
  const std::uint64_t reach = std::min(extent, scaled(median, kReach, 1));
  const std::uint64_t width = std::max<std::uint64_t>(scaled(median, 2 * kWanted, gathered_), 1);
  if (rungs_.size() == depth_) rungs_.emplace_back();
  Rung& rung = rungs_[depth_];
  rung.start = start;
  rung.shift = static_cast<unsigned>(std::bit_width(width)) - 1;
  rung.next = 0;
  const std::uint64_t limit = offset_from(start, last.value_or(kGreatestTime));
  rung.count = static_cast<std::uint32_t>(std::min((reach >> rung.shift) + 2, (limit >> rung.shift) + 1));
  if (rung.buckets.size() < rung.count) rung.buckets.resize(rung.count);  // Those of a used rung are empty.
  const std::uint64_t covered = (std::uint64_t{rung.count} << rung.shift) - 1;
  rung.last = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + (last ? limit : std::min(covered, limit)));
  rung.taken = start - 1;
  if (depth_++ == 0) covered_ = rung.last;
  run_last_ = rung.taken;
  for (const QueueKey& key : std::span(scratch_.data(), gathered_)) {
    if (key.at.ns <= rung.last) {
      blocks_.add(rung.buckets[rung.place_of(key.at.ns)], key);
    } else {
      far_.push_back(key);
    }
  }
}

// A rung whose last bucket was taken has nothing to say any more: what comes of that bucket takes its place.
void KeyLadder::drop_used_rungs() {
  while (depth_ > 0 && rungs_[depth_ - 1].next == rungs_[depth_ - 1].count) --depth_;
}

void KeyLadder::gather_all() {
  far_.insert(far_.end(), run_.keys().begin(), run_.keys().end());
  far_.insert(far_.end(), heap_.keys().begin(), heap_.keys().end());
  for (std::size_t i = 0; i < depth_; ++i) {
    for (KeyBucket& bucket : rungs_[i].buckets) {
      far_.resize(far_.size() + bucket.count);
      blocks_.move_out(bucket, far_.data() + (far_.size() - bucket.count));
    }
  }
  sort_by_number(far_);
  run_.clear();
  heap_.clear();
  depth_ = 0;
  run_last_ = kLeastTime;
  covered_ = kLeastTime;
}

}  // namespace areal::sim
