// What a range of seeds came to: one outcome a seed, of fixed size because workers write them into shared memory.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "sim/cli/options.h"
#include "sim/fault/fault_kinds.h"

namespace areal::cli {

enum class SeedEnd : std::uint8_t {
  kNotRun,
  kHeld,
  kUnmet,  // Held, but was not what the scenario expects.
  kSafety,
  kInconclusive,
  kLiveness,
  kBroken,  // The program itself failed: its process died, or the run could not be started.
};
inline constexpr std::size_t kSeedEnds = 7;
std::string_view to_text(SeedEnd end);  // "held", "violated", ...

inline constexpr std::size_t kFaultsCounted = 64;
inline constexpr std::size_t kDetailBytes = 448;

// Zero bytes are the right initial state: the memory comes from the system.
struct SeedOutcome {
  SeedEnd end;
  bool repeated;  // It was run again ...
  bool changed;   // ... and came out otherwise.
  Digest128 digest;
  std::uint64_t events;
  std::int64_t ended_at_ns;
  std::uint64_t published;
  // One bit a fault of the plan, the first kFaultsCounted of them.
  std::uint64_t faults_active;
  std::uint64_t faults_applied;
  std::uint64_t faults_skipped;
};

// Only written for seeds that did not hold, so that the pages of the others are never touched.
struct SeedDetail {
  std::uint32_t violations;  // How many there were; the fields below are of the first.
  std::uint32_t invariant;   // sim::InvariantId.
  std::uint64_t node;
  std::uint64_t seq;
  std::int64_t at_ns;
  std::uint64_t version;
  bool has_version;
  std::array<char, kDetailBytes> text;  // Its message, or why there was none; ends with a zero byte.
};

struct PlannedName {
  sim::FaultName kind = sim::FaultName::kKill;
  std::string node;  // Pattern of its targets; empty: none is named.
};

struct SeedsReport {
  std::string scenario;  // The file.
  std::string half;
  std::string profile;
  SeedRange range;
  std::span<const SeedOutcome> outcomes;  // outcomes[i] is of seed range.first + i.
  std::span<const SeedDetail> details;
  std::vector<PlannedName> faults;      // Of the plan: the scenario's, then the profile's.
  std::vector<std::string> node_names;  // By node id; [0] is "".
  double wall_s = 0;
  int exit_code = 0;
  std::string reproduce;  // A command that was run and gave the same; empty if all held.

  [[nodiscard]] std::uint64_t seed_of(std::size_t index) const { return range.first + index; }
  [[nodiscard]] std::string node_name(std::uint64_t node) const {
    return node < node_names.size() ? node_names[node] : std::string();
  }
};

struct SeedCounts {
  std::array<std::uint64_t, kSeedEnds> of_end{};  // By SeedEnd.
  std::uint64_t done = 0;
  std::uint64_t repeated = 0;
  std::uint64_t changed = 0;
  std::uint64_t events = 0;
  // In how many seeds the n-th fault of the plan was on, did something, was forbidden.
  std::array<std::uint64_t, kFaultsCounted> active{};
  std::array<std::uint64_t, kFaultsCounted> applied{};
  std::array<std::uint64_t, kFaultsCounted> skipped{};

  [[nodiscard]] std::uint64_t of(SeedEnd end) const { return of_end[static_cast<std::size_t>(end)]; }
};
SeedCounts count_seeds(std::span<const SeedOutcome> outcomes);

// Exit code of one seed: 0, 1, 2, 3, 70, or 4 if it changed and nothing worse happened.
int exit_code(const SeedOutcome& outcome);
// Which of two exit codes says more: 1 over 4 over 70 over 3 over 2 over 0.
int worse(int left, int right);

// Failing seeds that failed alike.
struct SeedGroup {
  std::string name;  // "INV-1", or the end in words.
  SeedEnd end = SeedEnd::kNotRun;
  std::vector<std::size_t> indices;  // Into outcomes, ascending.
};
// The groups with the worst exit codes first.
std::vector<SeedGroup> group_failures(const SeedsReport& report);

}  // namespace areal::cli
