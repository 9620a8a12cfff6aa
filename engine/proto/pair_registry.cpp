// The pair state machine; every act is refused in states where it makes no sense.
#include "engine/proto/pair_registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace areal::proto {
namespace {

bool is_registered(PairState state) { return state != PairState::kReserved && state != PairState::kRollingBack; }

}  // namespace

bool PairRegistry::try_reserve(PairId id) { return pairs_.insert(id, Pair{}); }

void PairRegistry::release_reservation(PairId id) {
  const Pair* pair = pairs_.find(id);
  if (pair != nullptr && !is_registered(pair->state)) pairs_.erase(id);
}

PairRefusal PairRegistry::begin_rollback(PairId id) {
  const Pair* pair = pairs_.find(id);
  if (pair == nullptr) return PairRefusal::kUnknown;
  if (is_registered(pair->state)) return PairRefusal::kNotReserved;
  pairs_.edit(id, [](Pair& value) { value.state = PairState::kRollingBack; });
  return PairRefusal::kNone;
}

PairRefusal PairRegistry::register_reserved(PairId id, PairMode mode) {
  const Pair* pair = pairs_.find(id);
  if (pair == nullptr) return PairRefusal::kUnknown;
  if (is_registered(pair->state)) return PairRefusal::kTaken;
  if (pair->state != PairState::kReserved) return PairRefusal::kNotReserved;
  pairs_.edit(id, [&](Pair& value) {
    value.state = PairState::kConnected;
    value.mode = mode;
    value.order = registrations_++;
  });
  return PairRefusal::kNone;
}

PairRefusal PairRegistry::register_pair(PairId id, PairMode mode) {
  if (pairs_.contains(id)) return PairRefusal::kTaken;
  if (!try_reserve(id)) return PairRefusal::kFull;
  return register_reserved(id, mode);
}

std::optional<Pair> PairRegistry::unregister(PairId id) {
  const Pair* found = pairs_.find(id);
  if (found == nullptr || !is_registered(found->state)) return std::nullopt;
  const Pair pair = *found;
  pairs_.erase(id);
  return pair;
}

std::vector<PairId> PairRegistry::list() const {
  std::vector<std::pair<std::uint64_t, PairId>> ordered;
  for (const auto& entry : pairs_) {
    if (is_registered(entry.value.state)) ordered.emplace_back(entry.value.order, entry.key);
  }
  std::ranges::stable_sort(ordered);
  std::vector<PairId> ids;
  for (const auto& [order, id] : ordered) ids.push_back(id);
  return ids;
}

UpdateTicket PairRegistry::begin_update(PairId id, Version version) {
  const Pair* pair = pairs_.find(id);
  if (pair == nullptr) return {PairRefusal::kUnknown, version, 0};
  if (pair->state == PairState::kUpdating) return {PairRefusal::kBusy, version, 0};
  if (pair->state != PairState::kConnected) return {PairRefusal::kNotConnected, version, 0};
  // A version lower than one that was tried cannot be told from that try's leftovers.
  const bool is_done = pair->last_version.has_value() && version <= *pair->last_version;
  if (is_done || version < pair->trying_version) {
    return {PairRefusal::kStaleVersion, version, 0};
  }
  UpdateTicket ticket{PairRefusal::kNone, version, version == pair->trying_version ? pair->attempt + 1 : 1};
  pairs_.edit(id, [&](Pair& value) {
    value.state = PairState::kUpdating;
    value.trying_version = version;
    value.attempt = ticket.attempt;
  });
  return ticket;
}

PairRefusal PairRegistry::check_update(const Pair* pair, Version version, Attempt attempt) const {
  if (pair == nullptr) return PairRefusal::kUnknown;
  const bool same = pair->trying_version == version && pair->attempt == attempt;
  return pair->state == PairState::kUpdating && same ? PairRefusal::kNone : PairRefusal::kNotUpdating;
}

PairRefusal PairRegistry::finish_update(PairId id, Version version, Attempt attempt) {
  const PairRefusal refusal = check_update(pairs_.find(id), version, attempt);
  if (refusal != PairRefusal::kNone) return refusal;
  pairs_.edit(id, [&](Pair& value) {
    value.state = PairState::kConnected;
    value.last_version = version;
  });
  return PairRefusal::kNone;
}

PairRefusal PairRegistry::fail_update(PairId id, Version version, Attempt attempt) {
  const PairRefusal refusal = check_update(pairs_.find(id), version, attempt);
  if (refusal != PairRefusal::kNone) return refusal;
  pairs_.edit(id, [](Pair& value) { value.state = PairState::kConnected; });
  return PairRefusal::kNone;
}

PairRefusal PairRegistry::mark_broken(PairId id) {
  const Pair* pair = pairs_.find(id);
  if (pair == nullptr) return PairRefusal::kUnknown;
  if (!is_registered(pair->state) || pair->state == PairState::kTearingDown) return PairRefusal::kNotConnected;
  pairs_.edit(id, [](Pair& value) { value.state = PairState::kBroken; });
  return PairRefusal::kNone;
}

PairRefusal PairRegistry::begin_teardown(PairId id) {
  const Pair* pair = pairs_.find(id);
  if (pair == nullptr) return PairRefusal::kUnknown;
  if (pair->state == PairState::kUpdating) return PairRefusal::kBusy;
  if (pair->state != PairState::kConnected && pair->state != PairState::kBroken) return PairRefusal::kNotConnected;
  pairs_.edit(id, [](Pair& value) { value.state = PairState::kTearingDown; });
  return PairRefusal::kNone;
}

std::string refusal_text(PairRefusal refusal, std::string_view pair_name) {
  switch (refusal) {
    case PairRefusal::kNone:
      return "";
    case PairRefusal::kTaken:
      return fmt::format("Pair '{}' already registered", pair_name);
    case PairRefusal::kUnknown:
      return fmt::format("Pair '{}' not found", pair_name);
    case PairRefusal::kNotReserved:
      return fmt::format("Pair '{}' is not reserved", pair_name);
    case PairRefusal::kNotConnected:
      return fmt::format("Pair '{}' is not connected", pair_name);
    case PairRefusal::kBusy:
      return fmt::format("Pair '{}' is updating", pair_name);
    case PairRefusal::kStaleVersion:
      return fmt::format("Pair '{}' already has this version or a later one", pair_name);
    case PairRefusal::kNotUpdating:
      return fmt::format("Pair '{}' is not in that update", pair_name);
    case PairRefusal::kFull:
      return fmt::format("Pair '{}' cannot be added: the registry is full", pair_name);
  }
  return "";
}

Result<PairMode> check_pair_info(std::string_view pair_name, std::string_view mode) {
  if (pair_name.empty()) return Error{Errc::kInvalid, "pair_name must not be empty"};
  if (mode == "awex") return PairMode::kAwex;
  if (mode == "disk") return PairMode::kDisk;
  return Error{Errc::kInvalid, fmt::format("mode must be 'awex' or 'disk', got '{}'", mode)};
}

}  // namespace areal::proto
