#include "engine/base/record.h"

#include <charconv>

#include "engine/base/text.h"

namespace areal {

void KindTable::add_info(const KindInfo* info) {
  AREAL_CHECK(find(info->id) == nullptr);
  AREAL_CHECK(find(info->name) == nullptr);
  const auto place = std::ranges::lower_bound(kinds_, info->id, {}, [](const KindInfo* kind) { return kind->id; });
  kinds_.insert(place, info);
}

const KindInfo* KindTable::find(KindId id) const {
  const auto place = std::ranges::lower_bound(kinds_, id, {}, [](const KindInfo* kind) { return kind->id; });
  return place != kinds_.end() && (*place)->id == id ? *place : nullptr;
}

const KindInfo* KindTable::find(std::string_view name) const {
  const auto place = std::ranges::find(kinds_, name, [](const KindInfo* kind) { return kind->name; });
  return place != kinds_.end() ? *place : nullptr;
}

std::string field_text(const FieldInfo& field, std::span<const std::uint64_t> words) {
  switch (field.type) {
    case FieldType::kUnsigned:
      return std::to_string(words[0]);
    case FieldType::kSigned:
      return std::to_string(static_cast<std::int64_t>(words[0]));
    case FieldType::kBool:
      return words[0] != 0 ? "yes" : "no";
    case FieldType::kEnum:
      return words[0] < field.names.size() ? std::string(field.names[words[0]]) : std::to_string(words[0]);
    case FieldType::kDuration:
    case FieldType::kInstant:
      return to_text(Duration{static_cast<std::int64_t>(words[0])});
    case FieldType::kDigest:
      return to_hex({.high = words[0], .low = words[1]});
  }
  return {};
}

std::optional<std::array<std::uint64_t, 2>> parse_field(const FieldInfo& field, std::string_view text) {
  std::array<std::uint64_t, 2> words{};
  if (field.type == FieldType::kEnum) {
    const auto place = std::ranges::find(field.names, text);
    if (place == field.names.end()) return std::nullopt;
    words[0] = static_cast<std::uint64_t>(place - field.names.begin());
    return words;
  }
  if (field.type == FieldType::kBool) {
    if (text == "yes" || text == "true") return std::array<std::uint64_t, 2>{1, 0};
    if (text == "no" || text == "false") return words;
    return std::nullopt;
  }
  if (field.type == FieldType::kDuration || field.type == FieldType::kInstant) {
    const auto duration = parse_duration(text);
    if (!duration) return std::nullopt;
    words[0] = static_cast<std::uint64_t>(duration->ns);
    return words;
  }
  const char* end = text.data() + text.size();
  if (field.type == FieldType::kDigest) {
    if (text.size() != 32) return std::nullopt;
    const auto high = std::from_chars(text.data(), text.data() + 16, words[0], 16);
    const auto low = std::from_chars(text.data() + 16, end, words[1], 16);
    const bool whole = high.ptr == text.data() + 16 && low.ptr == end;
    return whole ? std::optional(words) : std::nullopt;
  }
  if (field.type == FieldType::kSigned) {
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), end, value);
    words[0] = static_cast<std::uint64_t>(value);
    return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(words) : std::nullopt;
  }
  const auto parsed = std::from_chars(text.data(), end, words[0]);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(words) : std::nullopt;
}

std::optional<FieldPlace> find_field(const KindInfo& kind, std::string_view name) {
  std::size_t word = 0;
  for (const FieldInfo& field : kind.fields) {
    if (field.name == name) return FieldPlace{word, field};
    word += field.words;
  }
  return std::nullopt;
}

std::string to_text(const KindTable& kinds, const Record& record) {
  if (record.kind == 0) return {};
  const KindInfo* kind = kinds.find(record.kind);
  std::string text;
  if (kind == nullptr) {
    text = "kind" + std::to_string(record.kind) + "{";
    for (const std::uint64_t word : record.view()) text += std::to_string(word) + " ";
  } else {
    text = std::string(kind->name) + "{";
    std::size_t word = 0;
    for (const FieldInfo& field : kind->fields) {
      text += std::string(field.name) + "=" + field_text(field, std::span(record.words).subspan(word)) + " ";
      word += field.words;
    }
  }
  if (text.back() == ' ') text.pop_back();
  return text + "}";
}

}  // namespace areal
