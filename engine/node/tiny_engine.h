// What all ranks of a small live model share: the model, who holds which element, and who sends it where.
//
// Elements are numbered once over the whole live model ("cells"), so that a digest and a gradient depend on the tensor
// and the element alone and not on the layout. Immutable and shared by pointer; safe to share between threads.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/dtype.h"
#include "engine/base/result.h"
#include "engine/config/model.h"
#include "engine/delta/adamw.h"
#include "engine/delta/remap.h"
#include "engine/proto/name_policy.h"
#include "engine/proto/reconstruct_plan.h"
#include "engine/proto/shard_meta.h"
#include "engine/proto/transfer_plan.h"

namespace areal::node {

// One tensor's shard on one rank: local elements [first, first + count).
struct TinyPart {
  std::uint32_t tensor = 0;  // Index into TinyShape::model.parameters.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  DType storage = DType::kBf16;
  DType wire = DType::kBf16;
  // Training side: the slice of this part whose optimizer state the rank owns, and with which copies it shares the
  // rest.
  std::uint32_t owned_first = 0;  // Counted from the part's own first.
  std::uint32_t owned_count = 0;
  std::uint8_t replica_kind = 0;
};

// One operation of the plan between two ranks' parts.
struct TinyOp {
  std::uint32_t send_part = 0;
  std::uint32_t recv_part = 0;
  delta::RemapBox box;
  DType wire = DType::kBf16;
  std::uint64_t weight = 1;  // How many elements of the full tensor one live element stands for.
};

// Another name under which engines serve a part. It has no storage: what is written to the part is written to it too.
// With several pipeline stages it counts where its source is, not on the last stage, which no operation writes.
struct TinyAlias {
  std::uint32_t part = 0;
  std::vector<std::uint64_t> keys;  // delta::element_key of each element of the part, with the alias' name index.
};

// Everything that one rank holds, in order of the metas.
struct TinyHolding {
  std::vector<TinyPart> parts;
  std::vector<TinyAlias> aliases;
  std::vector<std::uint32_t> cells;   // Of each local element.
  std::vector<std::uint32_t> copies;  // Training side: how many receivers get the element.
};

// One pair's stream in wire order: element i goes from the sender's local element send[i] to the receiver's recv[i].
// All wire dtypes share it, in the order of the plan's operations.
struct TinyStream {
  proto::TransferRank sender = 0;
  proto::TransferRank receiver = 0;
  std::vector<std::uint32_t> send;
  std::vector<std::uint32_t> recv;
  std::vector<TinyOp> ops;  // In wire order; those of parameters that have no element here are left out.
  // Elements by wire dtype, each counted as often as the full tensor is larger than the live one.
  std::array<std::uint64_t, kDTypeCount> weight{};
};

// What one stream writes of one tensor: its elements [first, first + count).
struct TinyWrite {
  std::uint32_t tensor = 0;  // Index into the plan's tensors.
  std::uint32_t part = 0;    // Index into the receiver's parts.
  std::uint32_t stream = 0;  // Index into TinyShape::streams.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t op = 0;  // Index into the stream's operations.
};

struct TinyShape {
  config::ModelSpec model;  // Live.
  proto::MetaSet train;
  proto::MetaSet infer;                             // One engine.
  std::shared_ptr<const proto::TransferPlan> plan;  // Live.
  delta::AdamWSettings optimizer;
  std::vector<std::uint64_t> keys;             // delta::element_key of each cell, with the tensor's name index.
  std::vector<TinyHolding> trainers;           // By training rank.
  std::vector<TinyHolding> replicas;           // By rank inside an engine.
  std::vector<TinyStream> streams;             // As plan->lists.
  std::vector<std::vector<TinyWrite>> writes;  // By inference transfer rank, in plan order.
  // By training rank, then by window: its parts in traversal order.
  std::vector<std::vector<std::vector<std::uint32_t>>> windows;

  [[nodiscard]] const proto::PlanWorld& world() const { return plan->world; }
};

using TinyShapePtr = std::shared_ptr<const TinyShape>;

struct TinyRequest {
  config::ParallelStrategy train{};
  config::ParallelStrategy infer{};  // One engine instance.
  std::uint32_t engines = 1;
  bool live_all = false;  // Every name of the model instead of a sample.
  delta::AdamWSettings optimizer{};
  // How the engines name training tensors, if that is not what the plan's policy says (a wrong rename map).
  const proto::NamePolicy* engine_names = nullptr;
  // Of the full model; null: every rank owns what it holds, in one window.
  const proto::ReconstructPlans* reconstruct = nullptr;
};

// The engines' names under the numbers of the model's own, so that a number means one tensor on both sides.
std::shared_ptr<const config::NameTable> engine_names(const config::ModelSpec& model, const proto::NamePolicy& policy);

// Builds the live model of `full` and its plan under `policy`. Refuses what live_model, the metas and the plan refuse.
Result<TinyShapePtr> make_tiny_shape(const config::ModelSpec& full, const TinyRequest& request,
                                     const proto::NamePolicy& policy);

}  // namespace areal::node
