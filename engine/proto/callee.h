// The answering side of requests: acts once, answers as often as asked.
//
// Remembers the answers of the last requests of every caller. A request that is asked again while it is being worked on
// is let go (its answer will come); one that was answered is answered again with the same words; one that is too old to
// be remembered is ignored. What has not been answered yet is never forgotten. A callee that remembers as much as it
// may admits nothing new: who asks then asks again, and gives up in the end.
//
// Part of a protocol's state; not thread-safe.
#pragma once
#include <cstdint>

#include "engine/base/table.h"
#include "engine/proto/effect.h"

namespace areal::proto {

// Who asked: every protocol of a node counts its own requests.
struct Asker {
  NodeId node{};
  SlotId slot{};
  constexpr auto operator<=>(const Asker&) const = default;
  AREAL_FIELDS(node, slot)
};

struct RequestKey {
  NodeId from{};
  RequestId request{};
  SlotId slot{};
  constexpr auto operator<=>(const RequestKey&) const = default;
  AREAL_FIELDS(from, request, slot)
};

struct RememberedReply {
  Record body{};  // Kind 0: not answered yet.
  AREAL_FIELDS(body)
};

// Whether a request that has been seen is to be acted on anew. The product's answer is never.
using RepeatPolicy = bool (*)(const RememberedReply& seen);
constexpr bool never_repeat(const RememberedReply& /*seen*/) { return false; }

class Callee {
 public:
  explicit Callee(RepeatPolicy repeats = never_repeat) : repeats_(repeats) {}

  // True if `message` is a request to act on now; a repeat has been dealt with.
  bool admit(const port::MessageIn& message, Outbox& out);

  // Answers a request that was admitted; does nothing if it is no longer remembered.
  template <RecordType T>
  void reply(const RequestKey& key, const T& body, Outbox& out) {
    reply_record(key, to_record(body), out);
  }
  void reply_record(const RequestKey& key, const Record& body, Outbox& out);

  static RequestKey key_of(const port::MessageIn& message) {
    return {message.from, message.request, message.from_slot};
  }

  AREAL_FIELDS(seen_, forgotten_)

 private:
  // Requests remembered of one caller; far more than any caller has under way at once with its retries.
  static constexpr std::uint64_t kWindow = 512;
  // Far above two windows of each of the 4,096 ranks that a scenario may have at most.
  static constexpr std::size_t kMostRemembered = std::size_t{1} << 23;
  static constexpr std::size_t kMostAskers = std::size_t{1} << 16;

  void forget_up_to(RequestId floor, const Asker& asker);

  RepeatPolicy repeats_;
  Table<RequestKey, RememberedReply> seen_{kMostRemembered};
  Table<Asker, RequestId> forgotten_{kMostAskers};  // By caller: all requests up to this one are.
};

}  // namespace areal::proto
