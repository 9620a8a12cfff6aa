#include "sim/fault/field_ref.h"

#include "engine/base/text.h"
#include "engine/port/types.h"

namespace areal::sim {
namespace {

constexpr std::array kCarriers{port::MessageIn::kKind, port::TellIn::kKind, port::Send::kKind, port::Tell::kKind,
                               port::Note::kKind};

std::vector<const KindInfo*> fallbacks(const KindTable& kinds, const EventKind& event) {
  std::vector<const KindInfo*> found;
  const KindClass kind_class = class_of(event.info->id);
  if (kind_class == KindClass::kBody || kind_class == KindClass::kNote) {
    for (const KindId carrier : carriers_of(event.info->id, event.is_input)) found.push_back(kinds.find(carrier));
  } else if (is_carrier(event.info->id)) {
    const KindClass wanted = event.info->id == port::Note::kKind ? KindClass::kNote : KindClass::kBody;
    for (const KindInfo* kind : kinds.all()) {
      if (class_of(kind->id) == wanted) found.push_back(kind);
    }
  }
  std::erase(found, nullptr);
  return found;
}

std::string field_list(const EventKind& event, const std::vector<const KindInfo*>& more) {
  std::vector<std::string_view> names;
  const auto add = [&names](const KindInfo& kind) {
    for (const FieldInfo& field : kind.fields) {
      if (std::ranges::find(names, field.name) == names.end()) names.push_back(field.name);
    }
  };
  add(*event.info);
  if (!is_carrier(event.info->id)) {
    for (const KindInfo* kind : more) add(*kind);
  }
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text.empty() ? "none" : text;
}

std::string what_fits(const FieldInfo& field) {
  switch (field.type) {
    case FieldType::kUnsigned:
      return "a whole number, not negative";
    case FieldType::kSigned:
      return "a whole number";
    case FieldType::kBool:
      return "yes or no";
    case FieldType::kEnum: {
      std::string text = "one of";
      for (const std::string_view name : field.names) text += " " + std::string(name);
      return text;
    }
    case FieldType::kDuration:
    case FieldType::kInstant:
      return "a whole number with a unit, such as 200us or 30s";
    case FieldType::kDigest:
      return "32 hex digits";
  }
  return {};
}

std::optional<std::uint64_t> slot_number(const NodeDirectory& directory, std::string_view name) {
  std::optional<std::uint64_t> found;
  for (const NodeEntry& node : directory) {
    for (std::uint64_t slot = 0; slot < node.slots.size(); ++slot) {
      if (node.slots[slot] != name) continue;
      if (found.has_value() && *found != slot) return std::nullopt;  // Elsewhere on other nodes: a number must say it.
      found = slot;
    }
  }
  return found;
}

}  // namespace

KindClass class_of(KindId kind) {
  switch (kind >> 8) {
    case 0x01:
      return KindClass::kInput;
    case 0x02:
      return KindClass::kEffect;
    case 0x03:
      return KindClass::kNote;
    case 0x04:
      return KindClass::kFault;
    default:
      return KindClass::kBody;
  }
}

bool is_carrier(KindId kind) { return std::ranges::find(kCarriers, kind) != kCarriers.end(); }

std::vector<KindId> carriers_of(KindId body, bool is_input) {
  if (class_of(body) == KindClass::kNote) return {port::Note::kKind};
  if (class_of(body) != KindClass::kBody) return {};
  if (is_input) return {port::MessageIn::kKind, port::TellIn::kKind};
  return {port::Send::kKind, port::Tell::kKind};
}

Result<const KindInfo*> find_kind(const KindTable& kinds, std::string_view name, int line) {
  if (const KindInfo* kind = kinds.find(name)) return kind;
  std::vector<std::string_view> names;
  for (const KindInfo* kind : kinds.all()) names.push_back(kind->name);
  return error_at(line, "unknown kind '" + std::string(name) + "'" + did_you_mean(name, names));
}

Result<FieldRef> FieldRef::find(const KindTable& kinds, const EventKind& event, std::string_view name, int line) {
  FieldRef ref;
  if (const auto place = find_field(*event.info, name)) {
    ref.spots_.push_back({event.info->id, place->word, place->field});
    return ref;
  }
  const std::vector<const KindInfo*> more = fallbacks(kinds, event);
  for (const KindInfo* kind : more) {
    if (const auto place = find_field(*kind, name)) ref.spots_.push_back({kind->id, place->word, place->field});
  }
  if (!ref.spots_.empty()) return ref;
  return error_at(line, std::string(event.info->name) + " has no field '" + std::string(name) +
                            "'; its fields are: " + field_list(event, more));
}

const std::uint64_t* FieldRef::words(const Record& record, const Record& body) const {
  for (const FieldSpot& spot : spots_) {
    if (body.kind == spot.kind) return &body.words[spot.word];
    if (record.kind == spot.kind) return &record.words[spot.word];
  }
  return nullptr;
}

std::uint64_t* FieldRef::words(Record& record, Record& body) const {
  for (const FieldSpot& spot : spots_) {
    if (body.kind == spot.kind) return &body.words[spot.word];
    if (record.kind == spot.kind) return &record.words[spot.word];
  }
  return nullptr;
}

Result<std::array<std::uint64_t, 2>> parse_value(const FieldInfo& field, std::string_view text,
                                                 const NodeDirectory& directory, int line) {
  if (const auto words = parse_field(field, text)) return *words;
  if (field.type == FieldType::kUnsigned) {
    for (std::uint64_t node = 1; node < directory.size(); ++node) {
      if (directory[node].name == text) return std::array<std::uint64_t, 2>{node, 0};
    }
    if (field.name.ends_with("slot")) {
      if (const auto slot = slot_number(directory, text)) return std::array<std::uint64_t, 2>{*slot, 0};
    }
  }
  return error_at(
      line, "'" + std::string(text) + "' does not fit the field " + std::string(field.name) + ": " + what_fits(field));
}

void KindFilter::want(KindId kind) {
  if (wanted_.size() <= kind) wanted_.resize(std::size_t{kind} + 1);
  wanted_[kind] = 1;
}

}  // namespace areal::sim
