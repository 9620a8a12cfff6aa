// Why an update is full: causes that the trace records, and the reasons that each of them may be given as.
//
// What comes up while an update runs counts for the next one, or for the next try if it fails; an update that ends well
// takes those away that it began with. Values; not thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/port/notes.h"

namespace areal::sim {

enum class AnchorCause : std::uint8_t {
  kUnseeded,   // No full update was ever committed.
  kLost,       // The pair was torn down, or one of its processes began anew.
  kFailed,     // An attempt failed inside its collectives.
  kRefused,    // An attempt failed before anybody entered them: it may be tried as a delta again.
  kRecovered,  // Training went back: its trackers are empty.
  kSteps,      // More than one optimizer step since the last update.
  kInterval,   // As many deltas as the anchor interval allows.
  kInversion,  // A reconstruction failed: its rank may ask for a full update.
};

// Whether an update must be full because of this, or only may.
constexpr bool compels(AnchorCause cause) { return cause != AnchorCause::kRefused && cause != AnchorCause::kInversion; }
// Whether `reason` may be said for `cause`. A gateway that sees one thing knows by several names why it must not send a
// delta. Source: spec/transfer.md 1.8 and Appendix D.
bool explains(AnchorCause cause, port::FullReason reason);

struct CauseFact {
  AnchorCause cause = AnchorCause::kUnseeded;
  std::uint64_t seq = 0;  // Where it was seen; 0 if it is the beginning.
  std::string words;
};

class AnchorCauses {
 public:
  void add(CauseFact fact) { coming_.push_back(std::move(fact)); }
  // About the update that is under way.
  void add_now(CauseFact fact) { present_.push_back(std::move(fact)); }
  void begin_update();
  void end_update(bool well);
  [[nodiscard]] const std::vector<CauseFact>& present() const { return present_; }

 private:
  std::vector<CauseFact> present_;
  std::vector<CauseFact> coming_;
};

}  // namespace areal::sim
