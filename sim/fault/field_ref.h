// A field of an event, found by name on the event's record or on the body that it carries.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/record.h"
#include "engine/base/result.h"
#include "sim/fault/node_directory.h"

namespace areal::sim {

enum class KindClass : std::uint8_t { kInput, kEffect, kNote, kFault, kBody };
KindClass class_of(KindId kind);
// Whether records of this kind carry a body.
bool is_carrier(KindId kind);
// The kinds that may carry `body`, as inputs or as effects.
std::vector<KindId> carriers_of(KindId body, bool is_input);

// What a rule or a fault names: one kind, and the side if the kind is a body.
struct EventKind {
  const KindInfo* info = nullptr;
  bool is_input = false;
};

Result<const KindInfo*> find_kind(const KindTable& kinds, std::string_view name, int line);

// Where a field is in records of one kind.
struct FieldSpot {
  KindId kind = 0;
  std::size_t word = 0;
  FieldInfo field;
};

// All places where events of a kind may have a field: on the kind itself; else, for a body, on its carriers; else, for
// a carrier, on the bodies that have it.
class FieldRef {
 public:
  static Result<FieldRef> find(const KindTable& kinds, const EventKind& event, std::string_view name, int line);

  [[nodiscard]] const std::vector<FieldSpot>& spots() const { return spots_; }
  [[nodiscard]] const FieldInfo& info() const { return spots_.front().field; }
  // Null if neither record has the field. The two forms are the same but for const.
  [[nodiscard]] const std::uint64_t* words(const Record& record, const Record& body) const;
  [[nodiscard]] std::uint64_t* words(Record& record, Record& body) const;

 private:
  std::vector<FieldSpot> spots_;  // Never empty.
};

// The words of a value as people write it: as parse_field reads it, or a node's name, or a slot's name for a field
// whose name ends in "slot". An error says what would fit.
Result<std::array<std::uint64_t, 2>> parse_value(const FieldInfo& field, std::string_view text,
                                                 const NodeDirectory& directory, int line);

// Which kinds are worth a closer look, as record or as body: one look-up each.
class KindFilter {
 public:
  void want(KindId kind);
  [[nodiscard]] bool wants(KindId record, KindId body) const { return has(record) || has(body); }

 private:
  [[nodiscard]] bool has(KindId kind) const { return kind < wanted_.size() && wanted_[kind] != 0; }
  std::vector<std::uint8_t> wanted_;
};

}  // namespace areal::sim
