// What the parts of a merge say alike, and whether they are of one run at all.
#include <fmt/format.h>

#include <algorithm>

#include "replay/analyse/merge.h"

namespace areal::analyse {

namespace {

// The first thing in which two parts differ that must be equal in one run; empty if there is none.
std::string_view contradiction(const record::RunReader& left, const record::RunReader& right) {
  const record::RunInfo& a = left.info();
  const record::RunInfo& b = right.info();
  if (a.scenario_name != b.scenario_name || a.scenario_text != b.scenario_text) return "scenario";
  if (a.seed != b.seed) return "seed";
  if (a.half != b.half) return "half";
  if (a.overrides != b.overrides) return "overrides";
  if (a.program != b.program) return "program";
  if (left.kinds().bytes() != right.kinds().bytes()) return "kinds of events";
  return {};
}

bool is_equal(const record::NodeRow& left, const record::NodeRow& right) {
  return left.name == right.name && left.role == right.role && left.host == right.host && left.slots == right.slots;
}

}  // namespace

Result<MergeHead> read_merge_head(std::span<const NamedReader> parts) {
  AREAL_CHECK(!parts.empty());
  const NamedReader& first = parts.front();
  MergeHead head{first.reader->info(), {}};
  for (const NamedReader& part : parts) {
    const std::string_view what = contradiction(*first.reader, *part.reader);
    if (!what.empty()) {
      return Error{Errc::kInvalid,
                   fmt::format("{} and {} are not of one run: another {}", first.name, part.name, what)};
    }
    for (const record::NodeRow& row : part.reader->nodes()) {
      const auto place = std::ranges::lower_bound(head.nodes, row.id, {}, &record::NodeRow::id);
      if (place == head.nodes.end() || place->id != row.id) {
        head.nodes.insert(place, row);
      } else if (!is_equal(*place, row)) {
        return Error{Errc::kInvalid,
                     fmt::format("{}: its node {} is not the one of the other parts", part.name, row.name)};
      }
    }
  }
  return head;
}

bool MergeResult::is_whole() const {
  const auto is_explained = [](const MergedProcess& process) { return !process.truncated || process.death_shown; };
  return absent.empty() && std::ranges::all_of(processes, is_explained);
}

}  // namespace areal::analyse
