// The gateway's book of (training, inference) pairs: who is reserved, connected, updating or broken.
//
//   absent --try_reserve--> reserved --register_reserved--> connected --begin_update--> updating
//   reserved --begin_rollback--> rolling_back --release_reservation--> absent
//   updating --finish_update--> connected       updating --mark_broken--> broken
//   connected, broken --begin_teardown--> tearing_down --unregister--> absent
//
// Updates of one pair are serial. A version is published once: the next one is greater than the last that finished; the
// same version may be tried again, under a greater attempt. Names are the caller's: the registry knows numbers only.
// A described value: copyable, digested, restorable. Only the gateway's loop changes it.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/table.h"

namespace areal::proto {

using PairId = Id<struct PairTag>;

enum class PairMode : std::uint8_t { kAwex, kDisk };
constexpr std::array<std::string_view, 2> enum_names(PairMode /*tag*/) { return {"awex", "disk"}; }

enum class PairState : std::uint8_t { kReserved, kRollingBack, kConnected, kUpdating, kBroken, kTearingDown };
constexpr std::array<std::string_view, 6> enum_names(PairState /*tag*/) {
  return {"reserved", "rolling_back", "connected", "updating", "broken", "tearing_down"};
}

enum class PairRefusal : std::uint8_t {
  kNone,
  kTaken,    // The name is registered or reserved.
  kUnknown,  // No such pair.
  kNotReserved,
  kNotConnected,  // Reserved, rolling back, broken or tearing down.
  kBusy,          // An update is under way.
  kStaleVersion,  // Not greater than the last version that finished.
  kNotUpdating,   // No update under way, or one of another version or attempt.
  kFull,
};
constexpr std::array<std::string_view, 9> enum_names(PairRefusal /*tag*/) {
  return {"none", "taken", "unknown", "not_reserved", "not_connected", "busy", "stale_version", "not_updating", "full"};
}

struct Pair {
  PairState state = PairState::kReserved;
  PairMode mode = PairMode::kAwex;
  std::uint64_t order = 0;                // Registrations before this one.
  std::optional<Version> last_version{};  // That finished.
  Version trying_version = 0;             // The last that began.
  Attempt attempt = 0;                    // Of trying_version.
  AREAL_FIELDS(state, mode, order, last_version, trying_version, attempt)
};

struct UpdateTicket {
  PairRefusal refusal = PairRefusal::kNone;
  Version version = 0;
  Attempt attempt = 0;
};

class PairRegistry {
 public:
  // `limit`: pairs at one time.
  explicit PairRegistry(std::size_t limit = 64) : pairs_(limit) {}

  // False if the pair is in any state but absent.
  bool try_reserve(PairId id);
  // Makes a reserved or rolling-back pair absent; anything else stays as it is. May be repeated.
  void release_reservation(PairId id);
  // A failed connect has things to undo first.
  PairRefusal begin_rollback(PairId id);
  PairRefusal register_reserved(PairId id, PairMode mode);
  // Reserves and registers in one act.
  PairRefusal register_pair(PairId id, PairMode mode);
  // The pair as it was, now absent; nothing if there was none.
  std::optional<Pair> unregister(PairId id);

  // Null if absent. Good until the next change.
  [[nodiscard]] const Pair* get(PairId id) const { return pairs_.find(id); }
  // Registered pairs (not reserved ones), in order of registration.
  [[nodiscard]] std::vector<PairId> list() const;

  UpdateTicket begin_update(PairId id, Version version);
  PairRefusal finish_update(PairId id, Version version, Attempt attempt);
  // The update failed before any rank could have been left inside a collective: the last version keeps serving.
  PairRefusal fail_update(PairId id, Version version, Attempt attempt);
  // The update may have left ranks inside a collective: only a teardown helps.
  PairRefusal mark_broken(PairId id);
  PairRefusal begin_teardown(PairId id);

  AREAL_FIELDS(pairs_, registrations_)

 private:
  [[nodiscard]] PairRefusal check_update(const Pair* pair, Version version, Attempt attempt) const;

  Table<PairId, Pair> pairs_;
  std::uint64_t registrations_ = 0;
};

// "Pair 'a' already registered": the reference's text where it has one. `kNone` gives an empty text.
std::string refusal_text(PairRefusal refusal, std::string_view pair_name);

// What a connect request must say: a name, then a known mode.
Result<PairMode> check_pair_info(std::string_view pair_name, std::string_view mode);

}  // namespace areal::proto
