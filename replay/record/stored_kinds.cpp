#include "replay/record/stored_kinds.h"

#include <algorithm>

#include "engine/base/bytes.h"

namespace areal::record {

StoredKinds::StoredKinds(const KindTable& kinds) {
  for (const KindInfo* info : kinds.all()) {
    Kind kind{
        .name = std::string(info->name), .fields = {}, .infos = {}, .info = {.id = info->id, .name = {}, .fields = {}}};
    for (const FieldInfo& field : info->fields) {
      kind.fields.push_back({std::string(field.name), {field.names.begin(), field.names.end()}, {}});
      kind.infos.push_back({.name = {}, .type = field.type, .words = field.words, .names = {}});
    }
    add(std::move(kind));
  }
}

void StoredKinds::add(Kind kind) {
  auto owned = std::make_unique<Kind>(std::move(kind));
  for (std::size_t i = 0; i < owned->fields.size(); ++i) {
    Field& field = owned->fields[i];
    field.name_views.assign(field.names.begin(), field.names.end());
    owned->infos[i].name = field.name;
    owned->infos[i].names = field.name_views;
  }
  owned->info.name = owned->name;
  owned->info.fields = owned->infos;
  kinds_.push_back(std::move(owned));
}

std::vector<std::uint8_t> StoredKinds::bytes() const {
  ByteWriter out;
  out.varint(kinds_.size());
  for (const auto& kind : kinds_) {
    out.varint(kind->info.id);
    out.text(kind->name);
    out.varint(kind->fields.size());
    for (std::size_t i = 0; i < kind->fields.size(); ++i) {
      out.text(kind->fields[i].name);
      out.u8(static_cast<std::uint8_t>(kind->infos[i].type));
      out.u8(kind->infos[i].words);
      out.varint(kind->fields[i].names.size());
      for (const std::string& name : kind->fields[i].names) out.text(name);
    }
  }
  return out.take();
}

Result<StoredKinds> StoredKinds::from_bytes(std::span<const std::uint8_t> bytes) {
  ByteReader in(bytes);
  StoredKinds kinds;
  bool fits = true;
  // A count larger than what follows ends at the first failed read.
  for (std::uint64_t left = in.varint(); left > 0 && in.ok() && fits; --left) {
    Kind kind;
    const std::uint64_t id = in.varint();
    fits = id <= 0xFFFF && (kinds.kinds_.empty() || kinds.kinds_.back()->info.id < id);
    kind.info.id = static_cast<KindId>(id);
    kind.name = in.text();
    for (std::uint64_t fields = in.varint(); fields > 0 && in.ok() && fits; --fields) {
      Field field;
      FieldInfo info;
      field.name = in.text();
      const std::uint8_t type = in.u8();
      info.type = static_cast<FieldType>(type);
      info.words = in.u8();
      fits = type <= static_cast<std::uint8_t>(FieldType::kDigest) &&
             info.words == (info.type == FieldType::kDigest ? 2 : 1);
      for (std::uint64_t names = in.varint(); names > 0 && in.ok(); --names) field.names.push_back(in.text());
      kind.fields.push_back(std::move(field));
      kind.infos.push_back(info);
    }
    kinds.add(std::move(kind));
  }
  if (!in.ok() || !in.at_end() || !fits) return Error{Errc::kCorrupt, "the kinds of the recording do not decode"};
  return kinds;
}

const KindInfo* StoredKinds::find(KindId id) const {
  const auto place = std::ranges::lower_bound(kinds_, id, {}, [](const auto& kind) { return kind->info.id; });
  return place != kinds_.end() && (*place)->info.id == id ? &(*place)->info : nullptr;
}

std::string StoredKinds::name(KindId id) const {
  const KindInfo* kind = find(id);
  return kind != nullptr ? std::string(kind->name) : "kind" + std::to_string(id);
}

std::string StoredKinds::to_text(const Record& record) const {
  if (record.kind == 0) return {};
  const KindInfo* kind = find(record.kind);
  std::string text = name(record.kind) + "{";
  std::size_t word = 0;
  if (kind != nullptr) {
    for (const FieldInfo& field : kind->fields) {
      if (word + field.words > record.size) break;
      text += std::string(field.name) + "=" + field_text(field, record.view().subspan(word)) + " ";
      word += field.words;
    }
  }
  // Words that no field names: of an unknown kind all.
  for (; word < record.size; ++word) text += std::to_string(record.words[word]) + " ";
  if (text.back() == ' ') text.pop_back();
  return text + "}";
}

}  // namespace areal::record
