#include "engine/algo/teacher_residency.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::algo {

namespace {

bool is_over(TeacherState state) { return state == TeacherState::kBroken || state == TeacherState::kClosed; }

Error over(TeacherState state) {
  return {Errc::kInvalid,
          state == TeacherState::kBroken ? "the teacher engine is broken" : "the teacher engine is closed"};
}

}  // namespace

Result<std::vector<TeacherAct>> TeacherResidency::load(std::string_view teacher) {
  if (is_over(state_)) return over(state_);
  std::vector<TeacherAct> acts;
  if (state_ == TeacherState::kEmpty) {
    acts.push_back({TeacherActKind::kCreate, std::string(teacher)});
  } else {
    if (state_ == TeacherState::kOffloaded) acts.push_back({TeacherActKind::kOnload, {}});
    if (teacher_ != teacher) acts.push_back({TeacherActKind::kLoadWeights, std::string(teacher)});
  }
  state_ = TeacherState::kResident;
  teacher_ = teacher;
  return acts;
}

Result<std::vector<TeacherAct>> TeacherResidency::release(bool drained) {
  if (is_over(state_)) return over(state_);
  if (!drained) return Error{Errc::kInvalid, "a consumer still holds shards of this phase"};
  if (state_ != TeacherState::kResident) return std::vector<TeacherAct>{};
  state_ = TeacherState::kOffloaded;
  return std::vector<TeacherAct>{{TeacherActKind::kOffload, {}}};
}

std::vector<TeacherAct> TeacherResidency::fail() {
  return state_ == TeacherState::kClosed ? std::vector<TeacherAct>{} : end_in(TeacherState::kBroken);
}

std::vector<TeacherAct> TeacherResidency::close() { return end_in(TeacherState::kClosed); }

std::vector<TeacherAct> TeacherResidency::end_in(TeacherState state) {
  const bool has_engine = state_ == TeacherState::kResident || state_ == TeacherState::kOffloaded;
  state_ = state;
  teacher_.clear();
  return has_engine ? std::vector<TeacherAct>{{TeacherActKind::kDestroy, {}}} : std::vector<TeacherAct>{};
}

Status check_drained(std::span<const std::string> expected_roles, std::uint64_t shard_count,
                     std::span<const DrainReceipt> receipts) {
  for (const std::string& role : expected_roles) {
    const auto from_role = [&](const DrainReceipt& receipt) { return receipt.consumer_role == role; };
    const auto sent = std::ranges::count_if(receipts, from_role);
    if (sent != 1) return Error{Errc::kInvalid, fmt::format("{} receipts of '{}' instead of one", sent, role)};
    const DrainReceipt& receipt = *std::ranges::find_if(receipts, from_role);
    if (receipt.shard_count != shard_count) {
      return Error{Errc::kInvalid, fmt::format("'{}' dropped {} shards of {}", role, receipt.shard_count, shard_count)};
    }
  }
  return Unit{};
}

}  // namespace areal::algo
