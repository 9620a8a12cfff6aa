#include "sim/cli/open_recording.h"

#include <fmt/core.h>

#include "sim/cli/command.h"

namespace areal::cli {

std::unique_ptr<record::RunReader> open_recording_file(const std::string& path, int* code) {
  auto opened = record::RunReader::open(path);
  if (opened) return std::move(*opened);
  const std::string& detail = opened.error().detail;
  const bool names_path = detail.find(path) != std::string::npos;
  fmt::print(stderr, "areal-sim: {}{}\n", names_path ? "" : path + ": ", detail);
  const int now = opened.error().code == Errc::kCorrupt ? kDamaged : kBadUsage;
  if (*code != kDamaged) *code = now;
  return nullptr;
}

}  // namespace areal::cli
