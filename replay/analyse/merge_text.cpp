// What came of a merge, in words.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "replay/analyse/merge.h"

namespace areal::analyse {

namespace {

constexpr std::size_t kMostClocks = 10;

std::string clocks_text(const MergeResult& result) {
  if (result.offsets.empty()) return "clocks     no two processes sent each other anything\n";
  std::vector<std::string> names;
  for (const MergedProcess& process : result.processes) names.push_back(process.name);
  std::vector<ClockOffset> apart;
  std::ranges::copy_if(result.offsets, std::back_inserter(apart), &ClockOffset::is_certain);
  const auto error = [](const ClockOffset& offset) { return offset.error; };
  std::string text =
      fmt::format("clocks     {} of {} pairs of processes are apart; known to within {} at worst\n", apart.size(),
                  result.offsets.size(), areal::to_text(std::ranges::max(result.offsets, {}, error).error));
  for (std::size_t i = 0; i < std::min(apart.size(), kMostClocks); ++i) {
    text += "           " + to_text(apart[i], names) + "\n";
  }
  if (apart.size() > kMostClocks) text += fmt::format("           and {} more\n", apart.size() - kMostClocks);
  return text;
}

}  // namespace

std::string to_text(const MergeResult& result) {
  std::string text =
      fmt::format("merged     {} events of {} processes\n", count_text(result.events), result.processes.size());
  for (const MergedProcess& process : result.processes) {
    if (!process.truncated) continue;
    text += fmt::format("truncated  {} after {} events; {}\n", process.name, count_text(process.events),
                        process.death_shown ? "the trace shows its death" : "nothing shows why");
  }
  if (!result.absent.empty()) {
    text += fmt::format("absent     {}: named as causes\n", fmt::join(result.absent, ", "));
  }
  if (result.lost_causes > 0) text += fmt::format("lost       {} causes\n", count_text(result.lost_causes));
  if (result.open_meetings > 0) {
    text += fmt::format("meetings   {} of groups end before all members come\n", count_text(result.open_meetings));
  }
  return text + clocks_text(result);
}

}  // namespace areal::analyse
