// Vectors of the fingerprint of a tensor's bytes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/delta/fingerprint.h"
#include "tests/vectors/registry.h"

namespace areal::vectors {
namespace {

constexpr std::string_view kDTypePrefix = "torch.";

std::vector<std::uint8_t> bytes_of(const Json& in) {
  std::vector<std::uint8_t> bytes;
  if (in.contains("bytes_gen")) {
    const Json& made = in.at("bytes_gen");
    const auto factor = made.at("mul").get<std::uint64_t>();
    const auto offset = made.at("add").get<std::uint64_t>();
    for (std::uint64_t i = 0; i < made.at("n"); ++i) bytes.push_back(static_cast<std::uint8_t>(factor * i + offset));
    return bytes;
  }
  const std::string hex = in.at("bytes_hex");
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Outcome check_fingerprint(const Json& vector) {
  // Bytes come with no shape here, so a tensor without dimensions cannot be refused.
  if (vector.contains("error")) return skipped("shapes");
  const std::string name = vector.at("inputs").at("dtype");
  const std::optional<DType> dtype = parse_dtype(name.substr(kDTypePrefix.size()));
  if (!dtype) return failed(fmt::format("no such dtype: {}", name));
  const delta::Fingerprint print = delta::fingerprint_of(bytes_of(vector.at("inputs")), *dtype);
  Json got{fmt::format("{}{}", kDTypePrefix, to_text(print.dtype)),
           print.bytes,
           print.total,
           print.weighted,
           print.sampled,
           print.first};
  // The tuple of an empty tensor is one shorter.
  if (print.bytes > 0) got.push_back(print.last);
  return expect_equal(vector.at("outputs"), {{"fingerprint", got}});
}

}  // namespace

void add_tensor_fingerprint(std::vector<Checker>& registry) {
  registry.push_back({"tensor_fingerprint", "_tensor_fingerprint", check_fingerprint});
}

}  // namespace areal::vectors
