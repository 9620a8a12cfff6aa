// The asking side of requests: asks again until answered, and gives up after a stated number of tries.
//
// Part of a protocol's state. Timers of a caller are `timer_base + low half of the request id`, so that a protocol can
// have several callers and timers of its own. Not thread-safe.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/base/table.h"
#include "engine/proto/effect.h"

namespace areal::proto {

struct CallerOptions {
  std::uint64_t timer_base = 1ULL << 32;
  Duration timeout{10'000'000'000};  // Before a request is asked again.
  std::uint32_t tries = 30;
  std::size_t limit = 4096;  // Requests under way; a further one is a programming error of the protocol.
};

struct PendingRequest {
  NodeId to;
  SlotId slot;
  Record body;
  std::uint32_t tries = 0;  // So far.
  AREAL_FIELDS(to, slot, body, tries)
};

class Caller {
 public:
  explicit Caller(CallerOptions options = {}) : options_(options), pending_(options.limit) {}

  // Request ids are unique over incarnations. Called on Started; a Started that comes twice uses no id again.
  void start(Incarnation incarnation) { next_ = std::max(next_, std::uint64_t{incarnation} << 32); }

  template <RecordType T>
  RequestId ask(NodeId to, SlotId slot, const T& body, Outbox& out) {
    return ask_record(to, slot, to_record(body), out);
  }
  RequestId ask_record(NodeId to, SlotId slot, const Record& body, Outbox& out);

  // The request that `message` answers, which is now done; nothing if it answers none (late, doubled, not a reply).
  std::optional<PendingRequest> answered(const port::MessageIn& message, Outbox& out);

  enum class Fired : std::uint8_t { kNotMine, kAskedAgain, kGaveUp };
  struct FiredResult {
    Fired what = Fired::kNotMine;
    PendingRequest request;  // The one given up.
  };
  FiredResult on_timer(const port::TimerFired& fired, Outbox& out);

  // Forgets requests for which `drop(PendingRequest)` is true, and their timers; returns how many.
  template <class Drop>
  std::size_t forget_if(Drop&& drop, Outbox& out) {
    return pending_.erase_if([&](RequestId id, const PendingRequest& request) {
      if (!drop(request)) return false;
      out.push(port::DisarmTimer{timer_of(id)});
      return true;
    });
  }

  [[nodiscard]] const Table<RequestId, PendingRequest>& pending() const { return pending_; }

  AREAL_FIELDS(next_, pending_)

 private:
  [[nodiscard]] TimerId timer_of(RequestId id) const { return {options_.timer_base + (id.value & 0xFFFFFFFF)}; }

  CallerOptions options_;
  std::uint64_t next_ = 0;
  Table<RequestId, PendingRequest> pending_;
};

}  // namespace areal::proto
