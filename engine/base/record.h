// A Record is any described struct with its type erased: a kind and its fields as words.
//
// What crosses the seam (inputs, effects, messages, notes) is declared once as a struct with AREAL_RECORD and travels
// as a Record: rules match and change its fields by name, recordings store its words, digests hash them, text prints
// them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/fields.h"

namespace areal {

// Numbers of kinds by owner: 0x01xx inputs, 0x02xx effects, 0x03xx notes (engine/port); 0x10xx and up messages, one
// 0x100 block a protocol (engine/proto). 0 is "no record".
using KindId = std::uint16_t;

// Gives a struct its kind, its name and its fields.
#define AREAL_RECORD(number, name, ...)            \
  static constexpr ::areal::KindId kKind = number; \
  static constexpr std::string_view kName = name;  \
  AREAL_FIELDS(__VA_ARGS__)                        \
  static constexpr bool kIsRecord = true;

template <class T>
concept RecordType = Described<T> && T::kIsRecord;

inline constexpr std::size_t kMaxRecordWords = 14;

struct Record {
  KindId kind = 0;
  std::uint8_t size = 0;
  std::array<std::uint64_t, kMaxRecordWords> words{};

  [[nodiscard]] std::span<const std::uint64_t> view() const { return {words.data(), size}; }
  bool operator==(const Record& other) const { return kind == other.kind && std::ranges::equal(view(), other.view()); }
};

template <class T>
constexpr std::size_t words_of_field() {
  return std::same_as<std::remove_cv_t<T>, Digest128> ? 2 : 1;
}

template <RecordType T>
constexpr std::size_t record_words() {
  std::size_t count = 0;
  T value{};
  T::visit_fields(value, [&count](std::string_view, auto& field) {
    count += words_of_field<std::remove_reference_t<decltype(field)>>();
  });
  return count;
}

template <RecordType T>
Record to_record(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert(record_words<T>() <= kMaxRecordWords);
  Record record;
  record.kind = T::kKind;
  T::visit_fields(value, [&record](std::string_view, const auto& field) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(field)>, Digest128>) {
      record.words[record.size++] = field.high;
      record.words[record.size++] = field.low;
    } else {
      record.words[record.size++] = to_word(field);
    }
  });
  return record;
}

// REQUIRES: record.kind == T::kKind.
template <RecordType T>
T from_record(const Record& record) {
  AREAL_CHECK(record.kind == T::kKind);
  T value{};
  std::size_t next = 0;
  T::visit_fields(value, [&](std::string_view, auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::same_as<Field, Digest128>) {
      field.high = record.words[next++];
      field.low = record.words[next++];
    } else {
      field = from_word<Field>(record.words[next++]);
    }
  });
  return value;
}

// Whether `record` is a T whose words fit: their number, and every enum's and bool's range.
template <RecordType T>
bool fits_record(const Record& record) {
  if (record.kind != T::kKind || record.size != record_words<T>()) return false;
  bool fits = true;
  std::size_t next = 0;
  T value{};
  T::visit_fields(value, [&](std::string_view, auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    const std::uint64_t word = record.words[next];
    next += words_of_field<Field>();
    if constexpr (NamedEnum<Field>) fits = fits && word < enum_names(Field{}).size();
    if constexpr (std::same_as<Field, bool>) fits = fits && word <= 1;
  });
  return fits;
}

// Calls `handler` with the typed value if `record` is a well-formed one of Ts; says whether it was. One handler takes
// all Ts: use `if constexpr`, or call once for each kind.
template <RecordType... Ts, class Handler>
bool dispatch_record(const Record& record, Handler&& handler) {
  return ((fits_record<Ts>(record) && (handler(from_record<Ts>(record)), true)) || ...);
}

// ---- What is known about a kind at run time ----

enum class FieldType : std::uint8_t { kUnsigned, kSigned, kBool, kEnum, kDuration, kInstant, kDigest };

struct FieldInfo {
  std::string_view name;
  FieldType type = FieldType::kUnsigned;
  std::uint8_t words = 1;
  std::span<const std::string_view> names;  // Values of an enum.
};

struct KindInfo {
  KindId id = 0;
  std::string_view name;
  std::span<const FieldInfo> fields;
};

template <class Field>
constexpr FieldType field_type() {
  if constexpr (std::same_as<Field, Digest128>)
    return FieldType::kDigest;
  else if constexpr (std::same_as<Field, bool>)
    return FieldType::kBool;
  else if constexpr (std::is_enum_v<Field>)
    return FieldType::kEnum;
  else if constexpr (std::same_as<Field, Duration>)
    return FieldType::kDuration;
  else if constexpr (std::same_as<Field, Instant>)
    return FieldType::kInstant;
  else if constexpr (std::signed_integral<Field>)
    return FieldType::kSigned;
  else
    return FieldType::kUnsigned;
}

template <NamedEnum T>
inline constexpr auto kEnumNames = enum_names(T{});

template <RecordType T>
consteval std::size_t field_count() {
  std::size_t count = 0;
  T value{};
  T::visit_fields(value, [&count](std::string_view, auto&) { ++count; });
  return count;
}

template <RecordType T>
consteval auto make_field_infos() {
  std::array<FieldInfo, field_count<T>()> infos{};
  std::size_t next = 0;
  T value{};
  T::visit_fields(value, [&](std::string_view name, auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    FieldInfo info{name, field_type<Field>(), static_cast<std::uint8_t>(words_of_field<Field>()), {}};
    if constexpr (NamedEnum<Field>) info.names = kEnumNames<Field>;
    infos[next++] = info;
  });
  return infos;
}

template <RecordType T>
inline constexpr auto kFieldInfos = make_field_infos<T>();
template <RecordType T>
inline constexpr KindInfo kKindInfo{T::kKind, T::kName, kFieldInfos<T>};

// All kinds a program knows, by number and by name. Built once at start; not changed afterwards.
class KindTable {
 public:
  template <RecordType... Ts>
  void add() {
    (add_info(&kKindInfo<Ts>), ...);
  }
  [[nodiscard]] const KindInfo* find(KindId id) const;
  [[nodiscard]] const KindInfo* find(std::string_view name) const;
  [[nodiscard]] std::span<const KindInfo* const> all() const { return kinds_; }

 private:
  void add_info(const KindInfo* info);  // REQUIRES: neither the number nor the name is taken.

  std::vector<const KindInfo*> kinds_;  // Sorted by id.
};

// "update_prepare{version=5 attempt=2}". A kind that the table does not know prints its number and words.
std::string to_text(const KindTable& kinds, const Record& record);

// One field's words as text for people. `words` holds at least field.words words.
std::string field_text(const FieldInfo& field, std::span<const std::uint64_t> words);
// One field's words from text as people write it: times are whole numbers with a unit ("1500us"), which is not how
// field_text() prints them. Nothing if the text does not fit the field's type.
std::optional<std::array<std::uint64_t, 2>> parse_field(const FieldInfo& field, std::string_view text);

// The index of the first word of field `name`, and the field; nothing if the kind has no such field.
struct FieldPlace {
  std::size_t word = 0;
  FieldInfo field;
};
std::optional<FieldPlace> find_field(const KindInfo& kind, std::string_view name);

}  // namespace areal
