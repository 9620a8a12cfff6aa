// The kinds of records as a recording holds them, so that an old one prints with its own names.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/record.h"
#include "engine/base/result.h"

namespace areal::record {

class StoredKinds {
 public:
  StoredKinds() = default;
  // A copy that needs `kinds` no longer.
  explicit StoredKinds(const KindTable& kinds);
  // kCorrupt if the bytes are not what bytes() gives.
  static Result<StoredKinds> from_bytes(std::span<const std::uint8_t> bytes);
  [[nodiscard]] std::vector<std::uint8_t> bytes() const;

  // Null if unknown. The pointer is good as long as this object.
  [[nodiscard]] const KindInfo* find(KindId id) const;
  // "update_prepare{version=5 attempt=2}", as areal::to_text of the table it was made from; "" for kind 0.
  [[nodiscard]] std::string to_text(const Record& record) const;
  // The name, or "kind" and the number.
  [[nodiscard]] std::string name(KindId id) const;

 private:
  // KindInfo looks at names and fields that live elsewhere; here they live as long as their kind does.
  struct Field {
    std::string name;
    std::vector<std::string> names;
    std::vector<std::string_view> name_views;
  };
  struct Kind {
    std::string name;
    std::vector<Field> fields;
    std::vector<FieldInfo> infos;
    KindInfo info;
  };

  void add(Kind kind);

  std::vector<std::unique_ptr<Kind>> kinds_;  // Sorted by id.
};

}  // namespace areal::record
