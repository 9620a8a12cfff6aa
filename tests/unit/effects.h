// Steps one protocol by hand and finds what it asked for: the smallest world there is.
//
// Everything found belongs to the last input. Not thread-safe.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/state.h"
#include "engine/proto/effect.h"
#include "engine/proto/input.h"

namespace areal::test {

template <class P>
class Driven {
 public:
  explicit Driven(P protocol) : protocol_(std::move(protocol)) {}

  void feed(const proto::Input& input) {
    out_.clear();
    protocol_.step(input, out_);
  }
  void start(Incarnation incarnation = 1) { feed(port::Started{incarnation, 0, 1}); }
  void fire(TimerId timer) { feed(port::TimerFired{timer}); }
  template <RecordType T>
  void tell(SlotId from, const T& body) {
    feed(port::TellIn{from, to_record(body)});
  }
  template <RecordType T>
  void request(NodeId from, SlotId from_slot, std::uint64_t id, const T& body) {
    feed(port::MessageIn{from, 1, from_slot, port::MessageKind::kRequest, RequestId{id}, to_record(body)});
  }
  // As if the one asked by `send` had answered.
  template <RecordType T>
  void answer(const port::Send& send, const T& body) {
    feed(port::MessageIn{send.to, 1, send.to_slot, port::MessageKind::kReply, send.request, to_record(body)});
  }

  // All effects of type E, in order.
  template <class E>
  [[nodiscard]] std::vector<E> effects() const {
    std::vector<E> found;
    for (const proto::Effect& effect : out_.effects()) {
      if (const E* typed = std::get_if<E>(&effect); typed != nullptr) found.push_back(*typed);
    }
    return found;
  }
  // All bodies of type T carried by effects of type E, in order.
  template <class E, RecordType T>
  [[nodiscard]] std::vector<T> bodies() const {
    std::vector<T> found;
    for (const E& effect : effects<E>()) dispatch_record<T>(effect.body, [&](const T& body) { found.push_back(body); });
    return found;
  }
  template <RecordType T>
  [[nodiscard]] std::vector<T> notes() const {
    return bodies<port::Note, T>();
  }
  template <RecordType T>
  [[nodiscard]] std::vector<T> tells() const {
    return bodies<port::Tell, T>();
  }
  // All messages that carry a T, in order.
  template <RecordType T>
  [[nodiscard]] std::vector<port::Send> sends() const {
    std::vector<port::Send> found;
    for (const port::Send& send : effects<port::Send>()) {
      if (send.body.kind == T::kKind) found.push_back(send);
    }
    return found;
  }
  [[nodiscard]] bool is_silent() const { return out_.effects().empty(); }
  [[nodiscard]] std::span<const proto::Effect> all() const { return out_.effects(); }

  // Replaces the protocol by `fresh` loaded from its saved state; false if that is not the same state.
  [[nodiscard]] bool reload(P fresh) {
    StateWriter writer;
    writer.value(protocol_);
    StateReader reader(writer.words());
    reader.value(fresh);
    const bool same = reader.ok() && reader.at_end() && state_digest(fresh) == state_digest(protocol_);
    protocol_ = std::move(fresh);
    return same;
  }

  [[nodiscard]] P& protocol() { return protocol_; }

 private:
  P protocol_;
  proto::Outbox out_;
};

}  // namespace areal::test
