// Sizes of layouts and what can be asked of a whole allocation; the text reader is in layout_parse.cpp.
#include "engine/config/layout.h"

#include <fmt/format.h>

#include "engine/base/fields.h"

namespace areal::config {
namespace {

Error ambiguous(std::string_view property, std::size_t found, std::string_view what) {
  const std::string_view part = property.ends_with("_backend") ? ".backend" : "";
  return {Errc::kInvalid,
          fmt::format("Ambiguous '{}' property: found {} {} allocations. Use allocation_mode[name]{} or "
                      "allocation_mode.allocations instead.",
                      property, found, what, part)};
}

}  // namespace

std::string to_text(const ParallelStrategy& strategy) {
  std::string text = fmt::format("Parallel(tp={},pp={},dp={}", strategy.tp, strategy.pp, strategy.dp);
  if (strategy.cp > 1) text += fmt::format(",cp={}", strategy.cp);
  if (strategy.ep > 1) text += fmt::format(",ep={}", strategy.ep);
  if (strategy.etp > 1) text += fmt::format(",ep_tp={}", strategy.etp);
  return text + ")";
}

Status check_strategy(const ParallelStrategy& strategy) {
  for (const std::uint32_t size : {strategy.dp, strategy.tp, strategy.pp, strategy.cp, strategy.ep, strategy.etp}) {
    if (size == 0 || size > 0xFFFF) return Error{Errc::kInvalid, "a parallel size is a number from 1 to 65535"};
  }
  const std::uint64_t world = std::uint64_t{strategy.dp} * strategy.tp * strategy.pp * strategy.cp;
  const std::uint64_t expert = std::uint64_t{strategy.pp} * strategy.etp * strategy.ep;
  if (world > 0xFFFF) return Error{Errc::kInvalid, fmt::format("a world of {} ranks; at most 65535", world)};
  if (world % expert != 0) {
    return Error{Errc::kInvalid,
                 fmt::format("Expert model parallel size {} cannot divide world size {}.", expert, world)};
  }
  return Unit{};
}

Result<std::uint32_t> check_virtual_stages(const ParallelStrategy& strategy, std::uint32_t virtual_stages) {
  if (virtual_stages > 1 && strategy.pp <= 1) {
    return Error{Errc::kInvalid, "Virtual pipeline parallelism requires pipeline_parallel_size > 1."};
  }
  return virtual_stages == 0 ? 1 : virtual_stages;
}

std::string to_text(const ModelAllocation& allocation) {
  std::string text(areal::to_text(allocation.backend));
  if (!allocation.name.empty()) text += fmt::format("({})", allocation.name);
  text += ':';
  const ParallelStrategy& p = allocation.parallel;
  const std::size_t before = text.size();
  for (const auto& [letter, size] :
       {std::pair('d', p.dp), std::pair('p', p.pp), std::pair('t', p.tp), std::pair('c', p.cp), std::pair('e', p.ep)}) {
    if (size > 1) text += fmt::format("{}{}", letter, size);
  }
  if (text.size() == before) text += "d1";
  return text;
}

std::uint32_t AllocationMode::world_size() const {
  std::uint32_t total = 0;
  for (const ModelAllocation& allocation : allocations) total += allocation.world_size();
  return total;
}

Result<AllocationType> AllocationMode::type() const {
  if (allocations.size() == 1) {
    return is_inference(allocations[0].backend) ? AllocationType::kServerOnly : AllocationType::kColocate;
  }
  if (allocations.size() != 2) {
    return Error{Errc::kInvalid, "Can only infer allocation type from 1 or 2 allocations."};
  }
  if (is_inference(allocations[0].backend) == is_inference(allocations[1].backend)) {
    return Error{Errc::kInvalid, "Ambiguous allocation type: expected one inference and one training allocation."};
  }
  return allocations[1].placement == Placement::kColocation ? AllocationType::kColocate
                                                            : AllocationType::kDecoupledTrain;
}

Result<const ModelAllocation*> AllocationMode::generation(std::string_view property) const {
  const ModelAllocation* found = nullptr;
  std::size_t count = 0;
  for (const ModelAllocation& allocation : allocations) {
    if (!is_inference(allocation.backend)) continue;
    found = &allocation;
    ++count;
  }
  if (count > 1) return ambiguous(property, count, "inference");
  return found;
}

Result<const ModelAllocation*> AllocationMode::training(std::string_view property) const {
  const ModelAllocation* found = nullptr;
  std::size_t count = 0;
  for (const ModelAllocation& allocation : allocations) {
    if (is_inference(allocation.backend)) continue;
    found = &allocation;
    ++count;
  }
  if (count > 1) return ambiguous(property, count, "training");
  return found;
}

Result<std::uint32_t> AllocationMode::generation_instance_size() const {
  Result<const ModelAllocation*> found = generation("gen_instance_size");
  if (!found) return std::move(found).error();
  if (*found == nullptr) return Error{Errc::kInvalid, "No inference allocations found"};
  return (*found)->parallel.tp * (*found)->parallel.pp;
}

}  // namespace areal::config
