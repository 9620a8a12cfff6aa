// Parameters to entries and back.
#include "engine/delta/payload_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/fields.h"

namespace areal::delta {
namespace {

// Bits that a 32-bit word cannot hold, or that do not fit their dtype.
Status check_bits(std::string_view name, DType dtype, std::span<const std::uint32_t> bits) {
  if (fits_dtype(dtype, bits)) return Unit{};
  return Error{Errc::kInvalid, fmt::format("'{}': bits that are no {} in 32-bit words", name, to_text(dtype))};
}

Status check_view(std::string_view name, const BitsView& view) {
  if (!view.half.empty() && size_of(view.dtype) != sizeof(std::uint16_t)) {
    return Error{Errc::kInvalid, fmt::format("'{}': 16 bits an element for {}", name, to_text(view.dtype))};
  }
  return check_bits(name, view.dtype, view.word);
}

// Indices as given, or those of a mask, ascending.
Result<std::vector<std::int64_t>> indices_of(const ChangeSet& changes, std::uint64_t elements) {
  std::vector<std::int64_t> indices;
  if (changes.dtype == DType::kBool) {
    if (changes.mask.size() != elements) {
      return Error{Errc::kInvalid, fmt::format("a mask of {} for {} elements", changes.mask.size(), elements)};
    }
    for (std::size_t i = 0; i < changes.mask.size(); ++i) {
      if (changes.mask[i] != 0) indices.push_back(static_cast<std::int64_t>(i));
    }
    return indices;
  }
  if (changes.dtype == DType::kI32) {
    indices.assign(changes.narrow.begin(), changes.narrow.end());
  } else if (changes.dtype == DType::kI64) {
    indices.assign(changes.wide.begin(), changes.wide.end());
  } else {
    return Error{Errc::kInvalid, fmt::format("a change set is bool, int32, or int64, not {}", to_text(changes.dtype))};
  }
  std::vector<std::int64_t> ordered = indices;
  std::ranges::stable_sort(ordered);
  if (!ordered.empty() && (ordered.front() < 0 || static_cast<std::uint64_t>(ordered.back()) >= elements)) {
    return Error{Errc::kInvalid,
                 fmt::format("indices {}..{} of {} elements", ordered.front(), ordered.back(), elements)};
  }
  if (std::ranges::adjacent_find(ordered) != ordered.end()) return Error{Errc::kInvalid, "an index occurs twice"};
  return indices;
}

void add_sparse(const EncodedParameter& parameter, std::vector<std::int64_t> indices,
                std::vector<PayloadEntry>& entries) {
  PayloadEntry values{std::string(parameter.name) + std::string(kValueSuffix), parameter.current.dtype, {}, {}};
  values.bits.reserve(indices.size());
  for (const std::int64_t index : indices) {
    values.bits.push_back(parameter.current.at(static_cast<std::uint64_t>(index)));
  }
  entries.push_back({std::string(parameter.name) + std::string(kIndexSuffix), DType::kI32, std::move(indices), {}});
  entries.push_back(std::move(values));
}

void add_dense(const EncodedParameter& parameter, std::vector<PayloadEntry>& entries) {
  PayloadEntry values{std::string(parameter.name), parameter.current.dtype, {}, {}};
  const std::uint64_t elements = parameter.current.size();
  values.bits.reserve(elements);
  for (std::uint64_t i = 0; i < elements; ++i) values.bits.push_back(parameter.current.at(i));
  entries.push_back(std::move(values));
}

Status encode_parameter(const EncodedParameter& parameter, EncodedDelta& out) {
  AREAL_TRY(check_parameter_name(parameter.name));
  AREAL_TRY(check_view(parameter.name, parameter.current));
  EncodedSize size{parameter.current.size(), parameter.current.size(), size_of(parameter.current.dtype)};
  Encoding encoding = size.elements == 0 ? Encoding::kSkipped : Encoding::kDense;
  std::vector<std::int64_t> indices;
  if (parameter.changes) {
    Result<std::vector<std::int64_t>> changed = indices_of(*parameter.changes, size.elements);
    if (!changed) {
      return Error{changed.error().code, fmt::format("'{}': {}", parameter.name, changed.error().detail)};
    }
    indices = std::move(*changed);
    size.changed = indices.size();
    encoding = choose_encoding(size);
  }
  out.stats.elements += size.elements;
  switch (encoding) {
    case Encoding::kSkipped:
      ++out.stats.skipped;
      break;
    case Encoding::kUnchanged:
      ++out.stats.unchanged;
      break;
    case Encoding::kSparse:
      ++out.stats.sparse;
      out.stats.changed += size.changed;
      add_sparse(parameter, std::move(indices), out.entries);
      break;
    case Encoding::kDense:
      ++out.stats.dense;
      out.stats.changed += size.elements;
      add_dense(parameter, out.entries);
      break;
  }
  return Unit{};
}

// Entries by name.
class NameIndex {
 public:
  explicit NameIndex(std::span<const PayloadEntry> entries) {
    for (const PayloadEntry& entry : entries) entries_.push_back(&entry);
    std::ranges::stable_sort(entries_, {}, &PayloadEntry::name);
  }

  // Refuses a name that occurs twice.
  [[nodiscard]] Status check() const {
    const auto twice = std::ranges::adjacent_find(entries_, std::ranges::equal_to{}, &PayloadEntry::name);
    if (twice == entries_.end()) return Unit{};
    return Error{Errc::kCorrupt, fmt::format("entry '{}' occurs twice", (*twice)->name)};
  }

  // Null if there is none.
  [[nodiscard]] const PayloadEntry* find(std::string_view name) const {
    const auto place = std::ranges::lower_bound(entries_, name, {}, &PayloadEntry::name);
    return place != entries_.end() && (*place)->name == name ? *place : nullptr;
  }

 private:
  std::vector<const PayloadEntry*> entries_;
};

// What an entry of bits must be: no numbers beside them, and bits of its dtype.
Status check_values(const PayloadEntry& entry) {
  if (!entry.integers.empty()) {
    return Error{Errc::kCorrupt, fmt::format("'{}': integers where bits should be", entry.name)};
  }
  return check_bits(entry.name, entry.dtype, entry.bits);
}

// The same of the header and of indices.
Status check_integers(const PayloadEntry& entry, DType dtype) {
  if (entry.dtype == dtype && entry.bits.empty()) return Unit{};
  return Error{Errc::kCorrupt, fmt::format("'{}': {} with {} words of bits, should be {} and none", entry.name,
                                           to_text(entry.dtype), entry.bits.size(), to_text(dtype))};
}

Result<SparseEntry> decode_pair(const std::string& name, const PayloadEntry& indices, const PayloadEntry& values) {
  AREAL_TRY(check_integers(indices, DType::kI32));
  AREAL_TRY(check_values(values));
  if (indices.integers.size() != values.bits.size()) {
    return Error{Errc::kCorrupt,
                 fmt::format("'{}': {} indices with {} values", name, indices.integers.size(), values.bits.size())};
  }
  SparseEntry entry{name, {values.dtype, {}, values.bits}};
  for (const std::int64_t index : indices.integers) {
    if (index < 0 || static_cast<std::uint64_t>(index) >= kIndexLimit) {
      return Error{Errc::kCorrupt, fmt::format("'{}': index {}", name, index)};
    }
    entry.patch.indices.push_back(static_cast<std::int32_t>(index));
  }
  return entry;
}

Status decode_entry(const PayloadEntry& entry, const NameIndex& index, DecodedDelta& out) {
  const std::string_view name = entry.name;
  const std::string plain(name.substr(0, name.find_last_of('@')));
  if (name.ends_with(kValueSuffix)) {
    if (index.find(plain + std::string(kIndexSuffix)) != nullptr) return Unit{};
    return Error{Errc::kCorrupt, fmt::format("unpaired '{}': values without indices", name)};
  }
  if (!name.ends_with(kIndexSuffix)) {
    AREAL_TRY(check_values(entry));
    out.dense.push_back({entry.name, entry.dtype, entry.bits});
    return Unit{};
  }
  const PayloadEntry* values = index.find(plain + std::string(kValueSuffix));
  if (values == nullptr) return Error{Errc::kCorrupt, fmt::format("unpaired '{}': indices without values", name)};
  if (index.find(plain) != nullptr) return Error{Errc::kCorrupt, fmt::format("'{}' is both sparse and dense", plain)};
  Result<SparseEntry> pair = decode_pair(plain, entry, *values);
  if (!pair) return std::move(pair).error();
  out.sparse.push_back(std::move(*pair));
  return Unit{};
}

Status check_names(std::span<const EncodedParameter> parameters) {
  std::vector<std::string_view> names;
  names.reserve(parameters.size());
  for (const EncodedParameter& parameter : parameters) names.push_back(parameter.name);
  std::ranges::stable_sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return Unit{};
  return Error{Errc::kInvalid, fmt::format("parameter '{}' occurs twice", *twice)};
}

}  // namespace

Result<EncodedDelta> encode_delta(std::int64_t payload_version, std::int64_t base_version,
                                  std::span<const EncodedParameter> parameters) {
  AREAL_TRY(check_names(parameters));
  EncodedDelta out;
  out.entries.push_back({std::string(kHeaderName), DType::kI64, {}, {}});
  for (const EncodedParameter& parameter : parameters) AREAL_TRY(encode_parameter(parameter, out));
  const auto words = encode_header({payload_version, base_version, static_cast<std::int64_t>(out.stats.sparse),
                                    static_cast<std::int64_t>(out.stats.dense)});
  out.entries.front().integers.assign(words.begin(), words.end());
  return out;
}

Result<DecodedDelta> decode_delta(std::span<const PayloadEntry> entries) {
  const NameIndex index(entries);
  AREAL_TRY(index.check());
  const PayloadEntry* first = index.find(kHeaderName);
  if (first == nullptr) return Error{Errc::kCorrupt, "a delta without header"};
  AREAL_TRY(check_integers(*first, DType::kI64));
  Result<DeltaHeader> header = decode_header(first->integers);
  if (!header) return std::move(header).error();
  DecodedDelta out{*header, {}, {}};
  for (const PayloadEntry& entry : entries) {
    if (&entry != first) AREAL_TRY(decode_entry(entry, index, out));
  }
  if (std::cmp_equal(out.sparse.size(), header->sparse) && std::cmp_equal(out.dense.size(), header->dense)) return out;
  return Error{Errc::kCorrupt, fmt::format("count mismatch: header says {} sparse and {} dense, there are {} and {}",
                                           header->sparse, header->dense, out.sparse.size(), out.dense.size())};
}

}  // namespace areal::delta
