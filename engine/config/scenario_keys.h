// The one table of what a scenario file may say: every key with its type, limits, default and meaning.
//
// A table is made for one Scenario and points into it: the reader writes through it, the printer reads through it, and the
// JSON Schema, the reference in docs/scenarios.md and "did you mean" are made from it. A default is what a fresh
// Scenario holds. Valid as long as the Scenario stays where it is; an item of a list only until the next append.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/config/scenario.h"

namespace areal::config {

enum class ValueType : std::uint8_t {
  kText,
  kNumber,     // Whole.
  kFlag,
  kTime,       // "30s"
  kTimeRange,  // "200us..2ms" or one time.
  kBytes,      // "141GB"
  kRate,       // "25GB/s"
  kRatio,      // "1/500"
  kDecimal,    // "3e-6"; kept as text.
  kChoice,
  kFields,     // A mapping of names that are not known here to scalars.
  kMapping,
  kList,       // Of mappings.
};

struct Key;

// The keys of one mapping.
struct KeyGroup {
  std::vector<Key> keys;
  EventMatch* match = nullptr;  // Set: the mapping is a match; it also names its kind, and other keys are its fields.
  std::string_view shorthand = {};  // A bare value stands for this key; empty: there is no short form.
};

struct ChoiceRef {
  std::vector<std::string_view> names;
  std::function<std::size_t()> get;  // names.size(): nothing chosen.
  std::function<void(std::size_t)> set;
};
// `line` is where the mapping is; 0 if it is in no file.
struct GroupRef {
  std::function<bool()> present;
  std::function<KeyGroup(int line)> open;  // Makes it present.
};
struct ListRef {
  std::function<std::size_t()> size;
  std::function<KeyGroup(std::size_t index)> item;
  std::function<KeyGroup(int line)> append;
};

using ValueRef =
    std::variant<std::string*, std::uint32_t*, std::uint64_t*, std::int64_t*, bool*, Duration*, std::optional<Duration>*,
                 DurationRange*, Ratio*, std::optional<Ratio>*, std::vector<FieldValue>*, ChoiceRef, GroupRef, ListRef>;

struct Key {
  std::string_view name;
  ValueType type = ValueType::kText;
  ValueRef value;
  std::string_view doc;
  bool required = false;
  std::uint64_t least = 0;  // Of numbers, nanoseconds, bytes.
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

// What stands under `scenario:`.
KeyGroup scenario_keys(Scenario& scenario);

// Words that name the kind in a match. Those that mean an input come last.
inline constexpr std::array<std::string_view, 7> kKindWords = {"effect", "note",     "message", "tell",
                                                              "input",  "received", "told"};
inline constexpr std::size_t kFirstInputWord = 4;

// Calls `visit` with every key there is, in the order of the table; paths are relative to `scenario:`, as in
// "work.updates" and "faults[].at". `scenario` gets one item in every list, with default values.
void visit_keys(Scenario& scenario, const std::function<void(const std::string& path, const Key& key)>& visit);

}  // namespace areal::config
