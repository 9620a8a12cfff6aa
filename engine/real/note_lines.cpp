#include "engine/real/note_lines.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace areal::real {
namespace {

void append(std::string& line, const Record& record) {
  line += fmt::format(" {:x}:{:x}", record.kind, record.size);
  for (std::size_t i = 0; i < record.size; ++i) line += fmt::format(",{:x}", record.words[i]);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text = text.substr(end + 1);
  }
}

bool take(std::string_view text, std::uint64_t& value) {
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return problem == std::errc{} && rest == text.data() + text.size();
}

bool take(std::string_view text, Record& record) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::vector<std::string_view> words = split(text.substr(colon + 1), ',');
  std::uint64_t kind = 0;
  std::uint64_t size = 0;
  if (!take(text.substr(0, colon), kind) || !take(words[0], size)) return false;
  if (size > kMaxRecordWords || words.size() != size + 1) return false;
  record.kind = static_cast<KindId>(kind);
  record.size = static_cast<decltype(record.size)>(size);
  for (std::size_t i = 0; i < size; ++i) {
    if (!take(words[i + 1], record.words[i])) return false;
  }
  return true;
}

}  // namespace

std::string line_of(const port::TraceEvent& event) {
  std::string line =
      fmt::format("N {:x} {:x} {:x} {:x} {:x} {:x} {:x}", event.seq, static_cast<std::uint64_t>(event.at.ns),
                  event.node.value, event.incarnation, event.slot.value, static_cast<unsigned>(event.what), event.rule);
  append(line, event.record);
  append(line, event.body);
  return line;
}

std::optional<port::TraceEvent> event_of(std::string_view line) {
  const std::vector<std::string_view> parts = split(line, ' ');
  if (parts.size() != 10 || parts[0] != "N") return std::nullopt;
  std::uint64_t at = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t what = 0;
  std::uint64_t rule = 0;
  port::TraceEvent event;
  const bool fits = take(parts[1], event.seq) && take(parts[2], at) && take(parts[3], event.node.value) &&
                    take(parts[4], incarnation) && take(parts[5], event.slot.value) && take(parts[6], what) &&
                    take(parts[7], rule) && take(parts[8], event.record) && take(parts[9], event.body);
  if (!fits || what > static_cast<std::uint64_t>(port::TraceWhat::kDropped)) return std::nullopt;
  event.at.ns = static_cast<std::int64_t>(at);
  event.incarnation = static_cast<Incarnation>(incarnation);
  event.what = static_cast<port::TraceWhat>(what);
  event.rule = static_cast<std::uint32_t>(rule);
  return event;
}

std::string line_of(const FaultOrder& order) {
  if (order.kill) return fmt::format("F kill {:x}", order.node.value);
  return fmt::format("F stop {:x} {:x}", order.node.value, static_cast<std::uint64_t>(order.lasts.ns));
}

std::optional<FaultOrder> order_of(std::string_view line) {
  const std::vector<std::string_view> parts = split(line, ' ');
  if (parts.size() < 3 || parts[0] != "F") return std::nullopt;
  FaultOrder order;
  std::uint64_t lasts = 0;
  if (!take(parts[2], order.node.value)) return std::nullopt;
  if (parts[1] == "kill" && parts.size() == 3) return order;
  if (parts[1] != "stop" || parts.size() != 4 || !take(parts[3], lasts)) return std::nullopt;
  order.kill = false;
  order.lasts = Duration{static_cast<std::int64_t>(lasts)};
  return order;
}

}  // namespace areal::real
