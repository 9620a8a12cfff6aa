#include "engine/delta/change_mask.h"

namespace areal::delta {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

bool is_forced_dense(std::string_view name, std::string_view suffixes) {
  while (!suffixes.empty()) {
    const std::size_t comma = suffixes.find(',');
    const std::string_view suffix = trimmed(suffixes.substr(0, comma));
    if (!suffix.empty() && name.ends_with(suffix)) return true;
    if (comma == std::string_view::npos) return false;
    suffixes.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace areal::delta
