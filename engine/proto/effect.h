// Everything a protocol can ask for, as one variant, and the outbox that holds the wishes in order.
#pragma once
#include <concepts>
#include <span>
#include <variant>
#include <vector>

#include "engine/port/types.h"

namespace areal::proto {

using Effect =
    std::variant<port::Send, port::Tell, port::ArmTimer, port::DisarmTimer, port::JoinGroup, port::PostBatch,
                 port::AbortGroup, port::LeaveGroup, port::StartCompute, port::StopCompute, port::FreezeCompute,
                 port::ReserveBuffer, port::ReleaseBuffer, port::QueryMemory, port::StorePut, port::StoreGet,
                 port::LeasePort, port::ReleasePort, port::StartProcess, port::StopProcess, port::Note>;

class Outbox {
 public:
  template <class T>
    requires std::constructible_from<Effect, const T&>
  void push(const T& effect) {
    effects_.emplace_back(effect);
  }
  template <RecordType T>
  void note(const T& body) {
    effects_.emplace_back(port::Note{to_record(body)});
  }
  template <RecordType T>
  void tell(SlotId to, const T& body) {
    effects_.emplace_back(port::Tell{to, to_record(body)});
  }

  [[nodiscard]] std::span<const Effect> effects() const { return effects_; }
  void clear() { effects_.clear(); }

 private:
  std::vector<Effect> effects_;
};

}  // namespace areal::proto
