// The receiver's side of encoded deltas: named tensors at one version, rebuilt from a delta against that version.
//
// A delta is taken whole or not at all. Tensors are copies of their own: nothing of a payload is kept by reference
// (spec/transfer.md 1.12). A value; not thread-safe.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/delta/payload_codec.h"

namespace areal::delta {

struct Reconstructed {
  std::uint64_t sparse = 0;  // Tensors.
  std::uint64_t dense = 0;
  std::uint64_t unchanged = 0;
  constexpr bool operator==(const Reconstructed&) const = default;
};

class BaseTensors {
 public:
  BaseTensors() = default;
  // After a full transfer. REQUIRES: names differ.
  BaseTensors(std::vector<NamedTensor> tensors, std::int64_t version);

  // Refuses a header that is for another base, a sparse entry of a tensor that is not there ("absent from base") or
  // does not fit it, and a dense entry of another dtype or size than what is there. Adopts a dense entry of a new name.
  // Ends at the header's payload version.
  Result<Reconstructed> apply(const DecodedDelta& delta);

  [[nodiscard]] std::int64_t version() const { return version_; }
  // Ascending by name.
  [[nodiscard]] std::span<const NamedTensor> tensors() const { return tensors_; }
  // Null if there is none.
  [[nodiscard]] const NamedTensor* find(std::string_view name) const;

 private:
  [[nodiscard]] Status check(const DecodedDelta& delta) const;
  void adopt(const NamedTensor& tensor);

  std::vector<NamedTensor> tensors_;  // Ascending by name.
  std::int64_t version_ = 0;
};

}  // namespace areal::delta
