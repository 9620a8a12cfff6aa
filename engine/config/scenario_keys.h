// The one table of what a scenario file may say: every key with its type, limits, default and meaning.
//
// A table is made for one Scenario and points into it: the reader writes through it, the printer reads through it, and
// the JSON Schema, the reference in docs/scenarios.md and "did you mean" are made from it. A default is what a fresh
// Scenario holds. Valid as long as the Scenario stays where it is; an item of a list only until the next append.
#pragma once
#include <array>
#include <cstdint>
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
  kNumber,  // Whole.
  kFlag,
  kTime,       // "30s"
  kTimeRange,  // "200us..2ms" or one time.
  kBytes,      // "141GB"
  kRate,       // "25GB/s"
  kRatio,      // "1/500"
  kDecimal,    // "3e-6"; kept as text.
  kChoice,
  kFields,  // A mapping of names that are not known here to scalars.
  kMapping,
  kList,  // Of mappings.
};

struct Key;

// The keys of one mapping.
struct KeyGroup {
  std::vector<Key> keys;
  EventMatch* match = nullptr;  // Set: the mapping is a match; it also names its kind, and other keys are its fields.
  std::string_view shorthand = {};  // A bare value stands for this key; empty: there is no short form.
};

// One of a few words, kept in whatever way the target keeps it.
struct ChoiceRef {
  std::vector<std::string_view> names;
  void* target = nullptr;
  std::size_t (*read)(const ChoiceRef& choice) = nullptr;
  void (*write)(const ChoiceRef& choice, std::size_t index) = nullptr;

  [[nodiscard]] std::size_t get() const { return read(*this); }  // names.size(): nothing chosen.
  void set(std::size_t index) const { write(*this, index); }
};

// A mapping. `line` is where it is in the file; 0 if it is in none.
struct GroupRef {
  void* target = nullptr;
  bool (*is_present)(const void* target) = nullptr;
  KeyGroup (*make)(void* target, int line) = nullptr;

  [[nodiscard]] bool present() const { return is_present(target); }
  [[nodiscard]] KeyGroup open(int line) const;  // Makes it present.
};

// A list of mappings.
struct ListRef {
  void* target = nullptr;
  std::size_t (*count)(const void* target) = nullptr;
  void (*grow)(void* target, int line) = nullptr;
  KeyGroup (*at)(void* target, std::size_t index) = nullptr;

  [[nodiscard]] std::size_t size() const { return count(target); }
  [[nodiscard]] KeyGroup item(std::size_t index) const;
  [[nodiscard]] KeyGroup append(int line) const;
};

using ValueRef = std::variant<std::string*, std::uint32_t*, std::uint64_t*, std::int64_t*, bool*, Duration*,
                              std::optional<Duration>*, DurationRange*, Ratio*, std::optional<Ratio>*,
                              std::vector<FieldValue>*, ChoiceRef, GroupRef, ListRef>;

struct Key {
  std::string_view name;
  ValueType type = ValueType::kText;
  ValueRef value;
  std::string_view doc;
  bool required = false;
  std::uint64_t least = 0;  // Of numbers, nanoseconds, bytes.
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::string_view least_means = {};  // What the least value stands for, as a refusal says it: "0 = never".
};

// Complete only here: a KeyGroup holds Keys.
inline KeyGroup GroupRef::open(int line) const { return make(target, line); }
inline KeyGroup ListRef::item(std::size_t index) const { return at(target, index); }
inline KeyGroup ListRef::append(int line) const {
  grow(target, line);
  return at(target, count(target) - 1);
}

// What stands under `scenario:`.
KeyGroup scenario_keys(Scenario& scenario);

// Words that name the kind in a match. Those that mean an input come last.
inline constexpr std::array<std::string_view, 7> kKindWords = {"effect", "note",     "message", "tell",
                                                               "input",  "received", "told"};
inline constexpr std::size_t kFirstInputWord = 4;

struct KeyPath {
  std::string path;  // Relative to `scenario:`, as in "work.updates" and "faults[].at".
  Key key;
};
// Every key there is, in the order of the table. `scenario` gets one item in every list and every optional mapping,
// with default values.
std::vector<KeyPath> all_keys(Scenario& scenario);

}  // namespace areal::config
