// Reads backend strings and allocation modes; every error names a column and what would be right.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "engine/base/fields.h"
#include "engine/config/layout.h"

namespace areal::config {
namespace {

constexpr std::string_view kAllDimensions = "dtpce";

Error refused(std::string detail) { return {Errc::kInvalid, std::move(detail)}; }

// Sizes as they were written; what was not written is empty.
struct WrittenSizes {
  std::optional<std::uint32_t> data, tensor, pipeline, context, expert;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { skip_blanks(); }

  [[nodiscard]] bool at_end() const { return place_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[place_]; }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    advance(1);
    return true;
  }

  Status expect(char wanted, std::string_view why) {
    if (take(wanted)) return Unit{};
    return unexpected(fmt::format("'{}' {}", wanted, why));
  }

  // The lower-case letters here, without moving on.
  [[nodiscard]] std::string_view peek_word() const {
    std::size_t end = place_;
    while (end < text_.size() && text_[end] >= 'a' && text_[end] <= 'z') ++end;
    return text_.substr(place_, end - place_);
  }

  void advance(std::size_t count) {
    place_ += count;
    skip_blanks();
  }

  // A word's letters, digits and signs up to a closing bracket.
  Result<std::string> take_name() {
    const std::size_t end = text_.find(']', place_);
    if (end == std::string_view::npos) return at("a name must end with ']'");
    std::string name(text_.substr(place_, end - place_));
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.pop_back();
    const auto is_name_char = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    };
    if (name.empty() || !std::ranges::all_of(name, is_name_char)) {
      return at("a name is made of letters, digits, '_' and '-'");
    }
    place_ = end;
    advance(1);
    return name;
  }

  // One or more of letter and size, letters out of `allowed`.
  Result<WrittenSizes> take_dimensions(std::string_view allowed, std::string_view owner) {
    WrittenSizes sizes;
    bool any = false;
    while (!at_end() && is_letter(peek())) {
      const char letter = peek();
      if (kAllDimensions.find(letter) == std::string_view::npos) {
        return fail(fmt::format("unknown dimension '{}' at column {}; known: {}", letter, column(), spaced(allowed)));
      }
      if (allowed.find(letter) == std::string_view::npos) {
        return fail(fmt::format("dimension '{}' at column {} does not fit {}; known there: {}", letter, column(), owner,
                                spaced(allowed)));
      }
      advance(1);
      Result<std::uint32_t> size = take_size(letter);
      if (!size) return std::move(size).error();
      slot(sizes, letter) = *size;
      any = true;
    }
    if (!any) return unexpected(fmt::format("a dimension out of {} and its size", spaced(allowed)));
    return sizes;
  }

  [[nodiscard]] Error unexpected(std::string_view wanted) const {
    if (at_end()) return fail(fmt::format("unexpected end at column {}; wanted {}", column(), wanted));
    return fail(fmt::format("unexpected '{}' at column {}; wanted {}", peek(), column(), wanted));
  }

  [[nodiscard]] Error at(std::string_view what) const { return fail(fmt::format("column {}: {}", column(), what)); }

 private:
  static bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

  static std::optional<std::uint32_t>& slot(WrittenSizes& sizes, char letter) {
    switch (letter) {
      case 'd':
        return sizes.data;
      case 't':
        return sizes.tensor;
      case 'p':
        return sizes.pipeline;
      case 'c':
        return sizes.context;
      default:
        return sizes.expert;
    }
  }

  static std::string spaced(std::string_view letters) {
    std::string text;
    for (const char letter : letters) text += text.empty() ? std::string(1, letter) : std::string{' ', letter};
    return text;
  }

  Result<std::uint32_t> take_size(char letter) {
    if (peek() < '1' || peek() > '9') {
      return unexpected(fmt::format("a size for '{}': a number without leading zeros", letter));
    }
    std::uint32_t size = 0;
    const char* first = text_.data() + place_;
    const auto [end, problem] = std::from_chars(first, text_.data() + text_.size(), size);
    if (problem != std::errc() || size > 0xFFFF) return at("a size is at most 65535");
    advance(static_cast<std::size_t>(end - first));
    return size;
  }

  void skip_blanks() {
    while (!at_end() && (text_[place_] == ' ' || text_[place_] == '\t' || text_[place_] == '\n')) ++place_;
  }

  [[nodiscard]] std::size_t column() const { return place_ + 1; }
  [[nodiscard]] Error fail(const std::string& what) const { return refused(fmt::format("'{}': {}", text_, what)); }

  std::string_view text_;
  std::size_t place_ = 0;
};

std::optional<Backend> backend_named(std::string_view word) {
  constexpr auto kNames = enum_names(Backend{});
  const auto place = std::ranges::find(kNames, word);
  if (place == kNames.end()) return std::nullopt;
  return static_cast<Backend>(place - kNames.begin());
}

ParallelStrategy flat_strategy(const WrittenSizes& sizes) {
  return {.dp = sizes.data.value_or(1),
          .tp = sizes.tensor.value_or(1),
          .pp = sizes.pipeline.value_or(1),
          .cp = sizes.context.value_or(1),
          .ep = sizes.expert.value_or(1)};
}

// Attention and expert sizes that were written apart must count the same ranks.
Result<ParallelStrategy> join_strategies(const WrittenSizes& attention, const WrittenSizes& experts) {
  ParallelStrategy joined = flat_strategy(attention);
  const std::uint32_t expert_pp = experts.pipeline.value_or(joined.pp);
  if (expert_pp != joined.pp) {
    return refused(
        fmt::format("Pipeline parallel size for attention and FFN modules must be identical. Got attention: "
                    "{}, FFN: {}.",
                    joined.pp, expert_pp));
  }
  joined.ep = experts.expert.value_or(1);
  joined.etp = experts.tensor.value_or(1);
  const std::uint32_t owners = joined.ep * joined.etp * expert_pp;
  const std::uint32_t world = joined.world_size();
  if (experts.data.has_value() && *experts.data * owners != world) {
    return refused(
        fmt::format("World size for expert modules and attention modules must be identical. Got attention: "
                    "{}, expert: {}.",
                    world, *experts.data * owners));
  }
  if (world % owners != 0) {
    return refused(fmt::format("Cannot derive expert dp: attn world_size ({}) is not divisible by ffn ep*tp*pp ({}).",
                               world, owners));
  }
  return joined;
}

// attn:...|ffn:..., with or without parentheses around it.
Result<ParallelStrategy> read_hybrid(Reader& reader) {
  const bool wrapped = reader.take('(');
  if (reader.peek_word() != "attn") return reader.unexpected("'attn:'");
  reader.advance(4);
  AREAL_TRY(reader.expect(':', "after 'attn'"));
  Result<WrittenSizes> attention = reader.take_dimensions("dtpc", "attention");
  if (!attention) return std::move(attention).error();
  AREAL_TRY(reader.expect('|', "between attention and experts"));
  if (reader.peek_word() != "ffn") return reader.unexpected("'ffn:'");
  reader.advance(3);
  AREAL_TRY(reader.expect(':', "after 'ffn'"));
  Result<WrittenSizes> experts = reader.take_dimensions("dtpe", "experts");
  if (!experts) return std::move(experts).error();
  if (wrapped) AREAL_TRY(reader.expect(')', "to close the layout"));
  return join_strategies(*attention, *experts);
}

// Says which backend is missing for text that starts with dimensions, a name or a hybrid layout.
std::optional<Error> missing_backend(Reader& reader) {
  constexpr std::string_view kMust = "Backend must be explicitly specified";
  constexpr std::string_view kNoAuto = "Auto-backend selection is no longer supported.";
  if (reader.peek() == '[') {
    return refused(
        fmt::format("{}. Got a named component without a backend prefix. Use e.g. 'fsdp[actor]:d4', "
                    "'megatron[actor]:d4t2p2'. {}",
                    kMust, kNoAuto));
  }
  const std::string_view word = reader.peek_word();
  if (reader.peek() == '(' || word == "attn") {
    return refused(fmt::format("{} for hybrid MoE parallelism. Use e.g. 'megatron:(attn:d1p12t4|ffn:d1p12e4)'. {}",
                               kMust, kNoAuto));
  }
  if (word.size() != 1 || kAllDimensions.find(word[0]) == std::string_view::npos) return std::nullopt;
  Result<WrittenSizes> sizes = reader.take_dimensions(kAllDimensions, "a layout");
  if (!sizes) return std::move(sizes).error();
  return refused(
      fmt::format("{}. Got bare parallelism dimensions without a backend prefix. Use e.g. 'fsdp:d4', "
                  "'megatron:d4t2p2', 'sglang:d4'. {}",
                  kMust, kNoAuto));
}

Status check_backend(const ModelAllocation& allocation) {
  const ParallelStrategy& parallel = allocation.parallel;
  if (allocation.backend == Backend::kFsdp && (parallel.pp > 1 || parallel.ep > 1 || parallel.etp > 1)) {
    return refused(
        fmt::format("FSDP backend only supports data/tensor/context parallelism. Got strategy: {}", to_text(parallel)));
  }
  return check_strategy(parallel);
}

Result<ModelAllocation> read_component(Reader& reader) {
  if (std::optional<Error> error = missing_backend(reader)) return *std::move(error);
  const std::string_view word = reader.peek_word();
  const std::optional<Backend> backend = backend_named(word);
  if (!backend.has_value()) {
    if (word.empty()) return reader.unexpected("a backend: sglang, vllm, fsdp or megatron");
    return reader.at(fmt::format("unknown backend '{}'; known: sglang vllm fsdp megatron", word));
  }
  ModelAllocation allocation;
  allocation.backend = *backend;
  reader.advance(word.size());
  if (reader.take('[')) {
    Result<std::string> name = reader.take_name();
    if (!name) return std::move(name).error();
    allocation.name = std::move(name).value();
  }
  AREAL_TRY(reader.expect(':', "after the backend"));
  const bool hybrid = reader.peek() == '(' || reader.peek_word() == "attn";
  if (hybrid && !is_inference(*backend)) {
    Result<ParallelStrategy> strategy = read_hybrid(reader);
    if (!strategy) return std::move(strategy).error();
    allocation.parallel = *strategy;
  } else {
    const std::string_view allowed = is_inference(*backend) ? "dtp" : kAllDimensions;
    Result<WrittenSizes> sizes = reader.take_dimensions(allowed, areal::to_text(*backend));
    if (!sizes) return std::move(sizes).error();
    allocation.parallel = flat_strategy(*sizes);
  }
  AREAL_TRY(check_backend(allocation));
  return allocation;
}

// The components from `first` on share the GPUs of the one there.
Status colocate(std::vector<ModelAllocation>& all, std::size_t first) {
  if (all.size() - first < 2) return Unit{};
  for (std::size_t i = first; i < all.size(); ++i) {
    if (all[i].name.empty()) return refused("Components in colocation group must have names");
  }
  const ModelAllocation& host = all[first];
  for (std::size_t i = first + 1; i < all.size(); ++i) {
    if (all[i].parallel.world_size() != host.parallel.world_size()) {
      return refused(fmt::format("Colocated components must have matching world sizes. '{}' has {}, '{}' has {}.",
                                 host.name, host.parallel.world_size(), all[i].name, all[i].parallel.world_size()));
    }
    all[i].placement = Placement::kColocation;
    all[i].target = host.name;
  }
  return Unit{};
}

Result<std::vector<ModelAllocation>> read_all(std::string_view text) {
  Reader reader(text);
  std::vector<ModelAllocation> all;
  while (true) {
    const std::size_t first = all.size();
    do {
      Result<ModelAllocation> component = read_component(reader);
      if (!component) return std::move(component).error();
      all.push_back(std::move(component).value());
    } while (reader.take('|'));
    AREAL_TRY(colocate(all, first));
    if (!reader.take('+')) break;
  }
  if (!reader.at_end()) return reader.unexpected("a dimension, '|', '+' or the end");
  return all;
}

Status check_names(const std::vector<ModelAllocation>& all) {
  const auto unnamed = std::ranges::count_if(all, [](const ModelAllocation& one) { return one.name.empty(); });
  if (all.size() >= 3 && unnamed > 0) {
    return refused(fmt::format("When using 3+ components, all must have names. Found {} unnamed components.", unnamed));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!all[i].name.empty() && all[i].name == all[j].name) {
        return refused(fmt::format("Duplicate component name: {}", all[i].name));
      }
    }
  }
  return Unit{};
}

}  // namespace

Result<ModelAllocation> parse_allocation(std::string_view text, std::string_view name) {
  if (text.find('+') != std::string_view::npos) {
    return refused(
        "ModelAllocation.from_str() accepts a single component spec. Multi-component strings containing '+' "
        "are not allowed. Use separate per-engine 'backend' fields instead (e.g., actor.backend='fsdp:d4', "
        "rollout.backend='sglang:d4').");
  }
  Result<std::vector<ModelAllocation>> all = read_all(text);
  if (!all) return std::move(all).error();
  if (all->size() != 1) return refused(fmt::format("'{}': one component is wanted, not a colocation group", text));
  ModelAllocation allocation = std::move(all->front());
  if (!name.empty()) allocation.name = name;
  return allocation;
}

Result<AllocationMode> parse_allocation_mode(std::string_view text) {
  Result<std::vector<ModelAllocation>> all = read_all(text);
  if (!all) return std::move(all).error();
  AREAL_TRY(check_names(*all));
  return AllocationMode{std::move(all).value()};
}

}  // namespace areal::config
