// Takes an inference rank's fused tensors apart.
#include "engine/proto/layout_convert.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace areal::proto {
namespace {

Error refused(std::string detail) { return {Errc::kInvalid, std::move(detail)}; }

std::string replaced(std::string_view name, std::string_view from, std::string_view to) {
  std::string text(name);
  const std::size_t place = text.find(from);
  if (place != std::string::npos) text.replace(place, from.size(), to);
  return text;
}

bool has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

Result<Views> split_qkv(std::string_view name, const Shape& shape, const FusedConfig& config) {
  const std::uint32_t kv_heads = config.kv_heads == 0 ? config.heads : config.kv_heads;
  const std::uint64_t parts = std::uint64_t{config.heads} + 2ULL * kv_heads;
  const std::uint64_t rows = shape.extent[0];
  if (parts == 0 || rows * config.heads % parts != 0 || rows * kv_heads % parts != 0) {
    return refused(fmt::format("{}: {} rows are not divisible into {} query and 2 x {} key-value heads", name, rows,
                               config.heads, kv_heads));
  }
  const auto query = static_cast<std::uint32_t>(rows * config.heads / parts);
  const auto key = static_cast<std::uint32_t>(rows * kv_heads / parts);
  Views views;
  views.push_back(row_view(replaced(name, "qkv_proj", "q_proj"), shape, 0, query));
  views.push_back(row_view(replaced(name, "qkv_proj", "k_proj"), shape, query, key));
  views.push_back(row_view(replaced(name, "qkv_proj", "v_proj"), shape, query + key, key));
  return views;
}

Result<Views> split_gate_up(std::string_view name, std::string_view fused, std::string_view suffix,
                            const Shape& shape) {
  const std::uint32_t half = shape.extent[0] / 2;
  if (shape.extent[0] % 2 != 0) {
    return refused(fmt::format("{}: {} rows are not divisible into gate and up", name, shape.extent[0]));
  }
  Views views;
  views.push_back(row_view(replaced(name, fused, "gate_proj" + std::string(suffix)), shape, 0, half));
  views.push_back(row_view(replaced(name, fused, "up_proj" + std::string(suffix)), shape, half, half));
  return views;
}

// "prefix.experts.7." or, from the first shared one on, "prefix.shared_experts.".
std::string expert_prefix(std::string_view prefix, std::uint32_t id, std::uint32_t total, const FusedConfig& config) {
  const std::uint32_t routed = config.routed_experts == 0 ? total : config.routed_experts;
  if (id < routed) return fmt::format("{}experts.{}.", prefix, id);
  // A single shared expert carries no number.
  if (total - routed == 1) return fmt::format("{}shared_experts.", prefix);
  return fmt::format("{}shared_experts.{}.", prefix, id - routed);
}

Result<Views> split_experts(std::string_view name, const Shape& shape, const FusedConfig& config) {
  const bool gate_up = has(name, "experts.w13_weight");
  if (shape.rank != 3 || (gate_up && shape.extent[1] % 2 != 0)) {
    return refused(fmt::format("{}: fused experts are [experts, {}, ...]", name, gate_up ? "2 x width" : "hidden"));
  }
  const std::string_view prefix = name.substr(0, name.find("experts."));
  const std::uint32_t local = shape.extent[0];
  const std::uint32_t first = local * config.ep_rank;
  const std::uint32_t rows = gate_up ? shape.extent[1] / 2 : shape.extent[1];
  const Shape flat = Shape::of(local * shape.extent[1], shape.extent[2]);
  Views views;
  for (std::uint32_t i = 0; i < local; ++i) {
    // Ranks of an expert-parallel engine see only their own experts; the total is known from the routed count there.
    const std::string expert = expert_prefix(prefix, first + i, first + local, config);
    const std::uint32_t start = i * shape.extent[1];
    if (gate_up) {
      views.push_back(row_view(expert + "gate_proj.weight", flat, start, rows));
      views.push_back(row_view(expert + "up_proj.weight", flat, start + rows, rows));
    } else {
      views.push_back(row_view(expert + "down_proj.weight", flat, start, rows));
    }
  }
  return views;
}

}  // namespace

TensorView row_view(std::string name, const Shape& source, std::uint32_t first_row, std::uint32_t rows) {
  const std::uint64_t row = row_size(source);
  TensorView view;
  view.name = std::move(name);
  view.shape = source;
  view.shape.extent[0] = rows;
  view.offset = first_row * row;
  view.extent = {1, 1, rows, static_cast<std::uint32_t>(row)};
  view.stride = {0, 0, row, 1};
  return view;
}

Result<Views> unfuse_engine_tensor(std::string_view name, const Shape& shape, const FusedConfig& config) {
  if (shape.rank == 0) return refused(fmt::format("{}: a tensor has at least one dimension", name));
  if (has(name, "qkv_proj")) return split_qkv(name, shape, config);
  if (has(name, "gate_up_proj")) return split_gate_up(name, "gate_up_proj", "", shape);
  if (has(name, "gate_up_weight")) return split_gate_up(name, "gate_up_weight", ".weight", shape);
  if (has(name, "experts.w13_weight") || has(name, "experts.w2_weight")) return split_experts(name, shape, config);
  std::string own =
      has(name, "shared_experts.down_weight") ? replaced(name, "down_weight", "down_proj.weight") : std::string(name);
  return Views{row_view(std::move(own), shape, 0, shape.extent[0])};
}

}  // namespace areal::proto
