// Vectors of encoded deltas: header, bitset, choice of encoding, payload layout, apply, and when a full transfer is
// due.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/fields.h"
#include "engine/delta/base_tensors.h"
#include "engine/delta/bitset.h"
#include "engine/delta/header_codec.h"
#include "engine/delta/payload_codec.h"
#include "engine/delta/tracker.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

Outcome check_header(const Json& vector) {
  const Json& in = vector.at("inputs");
  const delta::DeltaHeader header{in.at("payload_version"), in.at("base_version"), in.at("num_sparse"),
                                  in.at("num_dense")};
  const auto words = delta::encode_header(header);
  const Result<delta::DeltaHeader> back = delta::decode_header(words);
  if (!back || *back != header) return failed("the header does not decode to what was encoded");
  return expect_equal(vector.at("outputs"), {{"header", words}});
}

Outcome check_pack(const Json& vector) {
  const std::vector<std::uint8_t> mask = vector.at("inputs").at("mask");
  const std::vector<std::uint8_t> packed = delta::pack_mask(mask);
  const auto back = delta::unpack_mask(packed, static_cast<std::int64_t>(mask.size()));
  if (!back || *back != mask) return failed("the bitset does not unpack to the mask");
  return expect_equal(vector.at("outputs"), {{"packed", packed}});
}

Outcome check_decision(const Json& vector) {
  Json modes = Json::array();
  for (const Json& row : vector.at("inputs").at("rows")) {
    modes.push_back(to_text(delta::choose_encoding({row.at(0), row.at(1), row.at(2)})));
  }
  return expect_equal(vector.at("outputs"), {{"mode", modes}});
}

std::vector<std::uint32_t> words_of(const Json& hex) {
  std::vector<std::uint32_t> words;
  for (const Json& item : hex) {
    words.push_back(static_cast<std::uint32_t>(std::stoul(item.get<std::string>(), nullptr, 16)));
  }
  return words;
}

Json hex_of(const std::vector<std::uint32_t>& words) {
  Json hex = Json::array();
  for (const std::uint32_t word : words) hex.push_back(fmt::format("{:04x}", word));
  return hex;
}

struct SmallModel {
  std::vector<std::string> names;
  std::vector<delta::NamedTensor> base;
  std::vector<std::vector<std::uint32_t>> current;
  std::vector<std::vector<std::uint8_t>> masks;
};

SmallModel model_of(const Json& params) {
  SmallModel model;
  for (const Json& param : params) {
    model.names.push_back(param.at("name"));
    model.base.push_back({param.at("name"), DType::kBf16, words_of(param.at("base"))});
    model.current.push_back(words_of(param.at("current")));
    model.masks.push_back(param.at("mask"));
  }
  return model;
}

// Whether the payload turns the base into the current weights.
bool reconstructs(const SmallModel& model, const std::vector<delta::PayloadEntry>& entries, std::int64_t base_version) {
  const Result<delta::DecodedDelta> decoded = delta::decode_delta(entries);
  if (!decoded) return false;
  delta::BaseTensors base(model.base, base_version);
  if (!base.apply(*decoded)) return false;
  for (std::size_t i = 0; i < model.names.size(); ++i) {
    if (base.find(model.names[i])->bits != model.current[i]) return false;
  }
  return true;
}

Outcome check_encode(const Json& vector) {
  const Json& in = vector.at("inputs");
  const SmallModel model = model_of(in.at("params"));
  std::vector<delta::EncodedParameter> parameters;
  for (std::size_t i = 0; i < model.names.size(); ++i) {
    parameters.push_back({model.names[i], {DType::kBf16, {}, model.current[i]}, delta::change_mask(model.masks[i])});
  }
  const auto encoded = delta::encode_delta(in.at("payload_version"), in.at("base_version"), parameters);
  if (!encoded) return failed("refused: " + encoded.error().detail);
  Json names = Json::array();
  Json payload = Json::array();
  for (const delta::PayloadEntry& entry : encoded->entries) {
    names.push_back(entry.name);
    if (entry.name == delta::kHeaderName) continue;
    payload.push_back(entry.dtype == DType::kI32 ? Json(entry.integers) : hex_of(entry.bits));
  }
  if (!reconstructs(model, encoded->entries, in.at("base_version"))) return failed("the payload does not rebuild it");
  return expect_equal(vector.at("outputs"),
                      {{"names", names}, {"header", encoded->entries.front().integers}, {"payload", payload}});
}

Outcome check_apply(const Json& vector) {
  const Json& in = vector.at("inputs");
  std::vector<std::uint32_t> target = in.at("base");
  const delta::SparsePatch patch{DType::kI32, in.at("indices"), in.at("values")};
  const Status applied = delta::apply_patch(delta::view_of(patch), DType::kI32, std::span(target));
  if (!applied) return failed("refused: " + applied.error().detail);
  return expect_equal(vector.at("outputs"), {{"result", target}});
}

// The tracker's reason is a code; `request` is the word that came with the last request.
Json reason_text(port::FullReason reason, std::uint64_t interval, const std::string& request) {
  if (reason == port::FullReason::kNone) return nullptr;
  if (reason == port::FullReason::kBaseMismatch) return "requested:" + request;
  if (reason == port::FullReason::kAnchorInterval) return fmt::format("anchor_interval:{}", interval);
  return to_text(reason);
}

Outcome check_full_sync(const Json& vector) {
  const Json& in = vector.at("inputs");
  const std::uint64_t interval = in.at("anchor_interval");
  delta::DeltaTracker tracker(interval);
  Json reasons = Json::array();
  std::string request;
  for (const std::string event : in.at("events")) {
    const std::size_t blank = event.find(' ');
    const std::string verb = event.substr(0, blank);
    const std::string word = blank == std::string::npos ? "" : event.substr(blank + 1);
    if (verb == "query") {
      reasons.push_back(reason_text(tracker.reason(), interval, request));
    } else if (verb == "seed") {
      tracker.seed(std::stoull(word));
    } else if (verb == "commit") {
      if (!tracker.mark_delta_committed(std::stoull(word))) return failed("refused: " + event);
    } else if (verb == "request") {
      request = word;
      tracker.request_full(port::FullReason::kBaseMismatch);
    } else {
      return failed("unknown event " + event);
    }
  }
  return expect_equal(vector.at("outputs"), {{"reasons", reasons}});
}

}  // namespace

void add_dte_codec(std::vector<Checker>& registry) {
  registry.push_back({"dte_codec", "header", check_header});
  registry.push_back({"dte_codec", "pack_bool_mask", check_pack});
  registry.push_back({"dte_codec", "encode_decision", check_decision});
  registry.push_back({"dte_codec", "encode", check_encode});
  registry.push_back({"dte_codec", "apply", check_apply});
  registry.push_back({"dte_codec", "full_sync", check_full_sync});
}

}  // namespace areal::vectors
