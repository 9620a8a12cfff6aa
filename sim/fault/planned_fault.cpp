#include "sim/fault/planned_fault.h"

#include "engine/base/text.h"
#include "sim/fault/fault_kinds.h"

namespace areal::sim {
namespace {

using config::FaultKind;
using config::FaultSpec;

FaultSpec hostile_fault(FaultKind kind, std::uint64_t one_in, Duration lasts) {
  FaultSpec spec;
  spec.kind = kind;
  spec.chance = config::Ratio{1, one_in};
  spec.active = config::Ratio{1, 2};
  spec.lasts = lasts;
  return spec;
}

// Messages go wrong once in a hundred. A rank gets a few thousand inputs in a run, so that most runs with the kill on
// see one or two dead ranks.
std::vector<FaultSpec> hostile_faults() {
  std::vector<FaultSpec> specs{
      hostile_fault(FaultKind::kDelayMessage, 100, {2'000'000'000}), hostile_fault(FaultKind::kLoseMessage, 100, {}),
      hostile_fault(FaultKind::kDuplicateMessage, 100, {}), hostile_fault(FaultKind::kKill, 2'000, {}),
      hostile_fault(FaultKind::kSlowLink, 50, {30'000'000'000})};
  specs[3].limit = 4;
  return specs;
}

Result<Unit> check_spec(const FaultSpec& spec) {
  if (!spec.at && !spec.when && !spec.chance) return error_at(spec.line, "a fault needs `at`, `when` or `chance`");
  if (spec.at && spec.when) return error_at(spec.line, "a fault has either `at` or `when`");
  if (spec.chance && spec.chance->denominator == 0) return error_at(spec.line, "a chance out of 0 means nothing");
  if (spec.active.denominator == 0) return error_at(spec.line, "a chance out of 0 means nothing");
  const bool needs_time = spec.kind == FaultKind::kHang || spec.kind == FaultKind::kDelayMessage;
  if (needs_time && spec.lasts.ns <= 0) return error_at(spec.line, "this fault needs a time above 0 that it lasts");
  if (spec.kind == FaultKind::kSlowLink && spec.factor < 2)
    return error_at(spec.line, "a slow link needs a factor above 1");
  return Unit{};
}

// `what` is the message for faults on messages, the operation for fail_compute, and nothing else.
Result<Unit> compile_what(const FaultSpec& spec, const KindTable& kinds, PlannedFault& fault) {
  if (spec.what.empty()) return Unit{};
  switch (spec.kind) {
    case FaultKind::kLoseMessage:
    case FaultKind::kDelayMessage:
    case FaultKind::kDuplicateMessage: {
      const auto kind = find_kind(kinds, spec.what, spec.line);
      if (!kind) return kind.error();
      if (class_of((*kind)->id) != KindClass::kBody)
        return error_at(spec.line, spec.what + " is not a kind of message");
      fault.body = (*kind)->id;
      return Unit{};
    }
    case FaultKind::kFailCompute: {
      constexpr auto kNames = enum_names(port::ComputeKind{});
      const auto name = std::ranges::find(kNames, spec.what);
      if (name == kNames.end()) {
        return error_at(spec.line, "unknown operation '" + spec.what + "'" + did_you_mean(spec.what, kNames));
      }
      fault.compute = static_cast<port::ComputeKind>(name - kNames.begin());
      return Unit{};
    }
    case FaultKind::kKill:
    case FaultKind::kHang:
    case FaultKind::kPartition:
    case FaultKind::kSlowLink:
    case FaultKind::kFlipByte:
    case FaultKind::kNoMemory:
      break;
  }
  return error_at(spec.line, "`what` means nothing for a " + std::string(to_text(name_of(spec.kind))));
}

Result<PlannedFault> compile_fault(const FaultSpec& spec, const KindTable& kinds, const NodeDirectory& directory) {
  AREAL_TRY(check_spec(spec));
  PlannedFault fault;
  fault.spec = spec;
  auto nodes = NodeSet::find(directory, spec.node, spec.line);
  if (!nodes) return nodes.error();
  auto others = NodeSet::find(directory, spec.other, spec.line);
  if (!others) return others.error();
  fault.nodes = std::move(*nodes);
  fault.others = std::move(*others);
  AREAL_TRY(compile_what(spec, kinds, fault));
  if (spec.when) {
    auto when = EventMatcher::compile(*spec.when, kinds, directory);
    if (!when) return when.error();
    fault.when = std::move(*when);
  }
  return fault;
}

}  // namespace

Result<std::vector<PlannedFault>> compile_faults(std::span<const FaultSpec> specs, Profile profile,
                                                 const KindTable& kinds, const NodeDirectory& directory) {
  std::vector<FaultSpec> all(specs.begin(), specs.end());
  if (profile == Profile::kHostile) {
    for (const FaultSpec& spec : hostile_faults()) all.push_back(spec);
  }
  std::vector<PlannedFault> faults;
  for (const FaultSpec& spec : all) {
    auto fault = compile_fault(spec, kinds, directory);
    if (!fault) return fault.error();
    if (faults.size() >= specs.size()) {  // The profile's own.
      fault->spreads = true;
      const bool ranks_only = fault->is(FaultKind::kKill) || fault->is(FaultKind::kSlowLink);
      if (ranks_only) fault->nodes = NodeSet::of_role(directory, port::Role::kEngine);
    }
    faults.push_back(std::move(*fault));
    faults.back().stream =
        "fault." + std::to_string(faults.size()) + "." + std::string(to_text(name_of(faults.back().spec.kind)));
  }
  return faults;
}

}  // namespace areal::sim
