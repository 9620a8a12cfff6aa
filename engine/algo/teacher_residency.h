// Which teacher lies in the one teacher engine, and what must be done to it so that another one does.
//
// EMPTY -> RESIDENT <-> OFFLOADED; a failure leads to BROKEN, close() to CLOSED, and both destroy the engine, once. A
// value that only decides: each call gives the acts to perform, in order, and the caller says afterwards how they went.
// Not safe to share between threads. Source: the residency manager of multi-teacher distillation.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace areal::algo {

enum class TeacherActKind : std::uint8_t { kCreate, kOnload, kOffload, kLoadWeights, kDestroy };

struct TeacherAct {
  TeacherActKind kind = TeacherActKind::kCreate;
  std::string teacher;  // Of kCreate and kLoadWeights.
  bool operator==(const TeacherAct&) const = default;
};

enum class TeacherState : std::uint8_t { kEmpty, kResident, kOffloaded, kBroken, kClosed };
constexpr std::array<std::string_view, 5> enum_names(TeacherState /*tag*/) {
  return {"EMPTY", "RESIDENT", "OFFLOADED", "BROKEN", "CLOSED"};
}

class TeacherResidency {
 public:
  [[nodiscard]] TeacherState state() const { return state_; }
  [[nodiscard]] const std::string& teacher() const { return teacher_; }  // In the engine; empty in EMPTY.

  // What brings `teacher` in; nothing if it is there. kInvalid: broken or closed.
  Result<std::vector<TeacherAct>> load(std::string_view teacher);
  // What takes it out of device memory. `drained`: every consumer of the phase returned a complete receipt; without it
  // kInvalid, and nothing changes. kInvalid also: broken or closed.
  Result<std::vector<TeacherAct>> release(bool drained);
  // Some act failed: what must be done now. The error itself is the caller's to pass on.
  std::vector<TeacherAct> fail();
  // In every state, as often as one likes.
  std::vector<TeacherAct> close();

 private:
  std::vector<TeacherAct> end_in(TeacherState state);

  TeacherState state_ = TeacherState::kEmpty;
  std::string teacher_;
};

// What one consumer of a phase says once it has dropped what it held of the phase's shards.
struct DrainReceipt {
  std::string consumer_role;  // "actor", "critic", "ref" or a teacher's id.
  std::uint64_t shard_count = 0;
};

// Whether each of `expected_roles` sent exactly one receipt of all `shard_count` shards. kInvalid names the first that
// did not.
Status check_drained(std::span<const std::string> expected_roles, std::uint64_t shard_count,
                     std::span<const DrainReceipt> receipts);

}  // namespace areal::algo
