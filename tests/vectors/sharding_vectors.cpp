// Vectors of layout conversions: where every source element goes.
//
// Three answers of the reference are defects that the contract tells us to refuse or correct: fused projections whose
// rows do not divide, and mesh offsets from rounded-down chunks. Those cases check our answer instead.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/proto/layout_convert.h"
#include "engine/proto/sharding.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

using namespace proto;

Shape shape_of(const Json& extents) {
  Shape shape;
  for (const Json& extent : extents) shape.extent.at(shape.rank++) = extent;
  return shape;
}

// Element i of the source is `offset` + i.
Json views_json(const Views& views, double offset) {
  Json list = Json::array();
  for (const TensorView& view : views) {
    Json extents = Json::array();
    for (std::size_t i = 0; i < view.shape.rank; ++i) extents.push_back(view.shape.extent[i]);
    Json data = Json::array();
    view.each([&](std::uint64_t index) { data.push_back(offset + static_cast<double>(index)); });
    list.push_back({{"name", view.name}, {"tensor", {{"dtype", "float32"}, {"shape", extents}, {"data", data}}}});
  }
  return list;
}

Outcome check_megatron(const Json& vector, bool with_experts) {
  const Json& inputs = vector.at("inputs");
  const Json& sizes = inputs.at("tf_config");
  MegatronConfig config{sizes.at("num_attention_heads"), sizes.at("num_query_groups"), sizes.at("hidden_size"), 0};
  if (!sizes.at("kv_channels").is_null()) config.kv_channels = sizes.at("kv_channels");
  const std::string name = inputs.at("name");
  const Result<Views> views = megatron_to_checkpoint(name, shape_of(inputs.at("shape")), config, with_experts);
  if (vector.contains("error")) {
    if (views) return failed("accepted, but wanted " + vector.at("error").dump());
    return expect_equal(vector.at("error").at("message"), views.error().detail);
  }
  if (!views) return failed("refused: " + views.error().detail);
  return expect_equal(vector.at("outputs").at("converted"), views_json(*views, inputs.value("offset", 0.0)));
}

Outcome check_dense(const Json& vector) { return check_megatron(vector, false); }
Outcome check_experts(const Json& vector) { return check_megatron(vector, true); }

std::uint32_t number_or(const Json& config, const char* key, std::uint32_t otherwise) {
  return config.contains(key) && !config.at(key).is_null() ? config.at(key).get<std::uint32_t>() : otherwise;
}

// Rows that do not divide as the contract demands: to be refused, whatever the reference does.
bool must_refuse(const std::string& name, const Shape& shape, const FusedConfig& config) {
  if (name.find("qkv_proj") != std::string::npos) {
    const std::uint32_t kv_heads = config.kv_heads == 0 ? config.heads : config.kv_heads;
    const std::uint32_t parts = config.heads + 2 * kv_heads;
    return shape.extent[0] * config.heads % parts != 0 || shape.extent[0] * kv_heads % parts != 0;
  }
  return name.find("gate_up") != std::string::npos && shape.extent[0] % 2 != 0;
}

Outcome check_unfuse(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Json& sizes = inputs.at("config");
  const FusedConfig config{number_or(sizes, "num_attention_heads", 0), number_or(sizes, "num_key_value_heads", 0),
                           number_or(sizes, "num_experts", number_or(sizes, "n_routed_experts", 0)), 0};
  const std::string name = inputs.at("name");
  const Shape shape = shape_of(inputs.at("shape"));
  const Result<Views> views = unfuse_engine_tensor(name, shape, config);
  if (must_refuse(name, shape, config)) {
    if (views) return failed("rows that do not divide were accepted");
    const bool says_why = views.error().detail.find("not divisible") != std::string::npos;
    return says_why ? passed() : failed("refused without the reason: " + views.error().detail);
  }
  if (!views) return failed("refused: " + views.error().detail);
  return expect_equal(vector.at("outputs").at("params"), views_json(*views, 0.0));
}

Outcome check_mesh(const Json& vector) {
  const Json& inputs = vector.at("inputs");
  const Shape global = shape_of(inputs.at("global_shape"));
  std::vector<MeshAxis> mesh;
  bool uneven = false;
  for (std::size_t i = 0; i < inputs.at("placements").size(); ++i) {
    const std::string placement = inputs.at("placements").at(i);
    MeshAxis axis{inputs.at("mesh_sizes").at(i), inputs.at("mesh_ranks").at(i), -1};
    if (placement != "R") axis.cut = static_cast<std::int8_t>(placement.at(1) - '0');
    uneven = uneven || (axis.cut >= 0 && global.extent[static_cast<std::size_t>(axis.cut)] % axis.size != 0);
    mesh.push_back(axis);
  }
  const Result<MeshBox> box = mesh_box(global, mesh);
  if (!box) return failed("refused: " + box.error().detail);
  Json offset = Json::array();
  for (std::size_t i = 0; i < global.rank; ++i) offset.push_back(box->offset[i]);
  Json wanted = vector.at("outputs");
  if (uneven) {
    // Chunks are rounded up: rank r starts at r * ceil(extent / ranks), at most at the end.
    const std::uint32_t chunk = (global.extent[0] + mesh[0].size - 1) / mesh[0].size;
    wanted["offset"] = {std::min(global.extent[0], chunk * mesh[0].rank)};
  }
  return expect_equal(wanted, {{"offset", offset}, {"sharding_dim", box->cut}, {"num_shards", box->num_shards}});
}

}  // namespace

void add_sharding(std::vector<Checker>& registry) {
  registry.push_back({"sharding", "convert_qwen2_to_hf", check_dense});
  registry.push_back({"sharding", "convert_qwen3moe_to_hf", check_experts});
  registry.push_back({"sharding", "AwexSGLangAdapter._unfuse_params", check_unfuse});
  registry.push_back({"sharding", "AwexFSDPAdapter._compute_dtensor_offset+_extract_dtensor_sharding", check_mesh});
}

}  // namespace areal::vectors
