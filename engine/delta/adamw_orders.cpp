#include "engine/delta/adamw_orders.h"

#include "engine/base/check.h"

namespace areal::delta {
namespace {

double power_of(double base, std::uint64_t exponent) {
  double power = 1.0;
  for (std::uint64_t i = 0; i < exponent; ++i) power *= base;
  return power;
}

template <StepOrder order>
StepFunction contracted(Contraction contraction) {
  switch (contraction) {
    case Contraction::kOff:
      return &stepped_weight<order, Contraction::kOff>;
    case Contraction::kOn:
      return &stepped_weight<order, Contraction::kOn>;
    case Contraction::kOther:
      return &stepped_weight<order, Contraction::kOther>;
  }
  AREAL_CHECK(false);
}

}  // namespace

OrderScalars order_scalars(const AdamWSettings& settings, std::uint64_t t) {
  AREAL_CHECK(t > 0);
  const auto in_fp32 = [](double value) { return static_cast<float>(value); };
  const double bc1 = 1.0 - power_of(settings.beta1, t);
  const double bc2 = 1.0 - power_of(settings.beta2, t);
  OrderScalars scalars;
  scalars.rate = in_fp32(settings.learning_rate);
  scalars.weight_decay = in_fp32(settings.weight_decay);
  scalars.shrink = scalars.rate * scalars.weight_decay;
  scalars.decay = in_fp32(1.0 - settings.learning_rate * settings.weight_decay);
  scalars.epsilon = in_fp32(settings.epsilon);
  scalars.step_size = in_fp32(settings.learning_rate / bc1);
  scalars.bc2 = in_fp32(bc2);
  scalars.root_bc2 = in_fp32(std::sqrt(bc2));
  scalars.reciprocal_root = 1.0F / scalars.root_bc2;
  scalars.apex_bc1 = in_fp32(1.0 - power_of(double{in_fp32(settings.beta1)}, t));
  scalars.apex_bc2 = in_fp32(1.0 - power_of(double{in_fp32(settings.beta2)}, t));
  const float tensor_bc1 = 1.0F - in_fp32(power_of(double{in_fp32(settings.beta1)}, t));
  const float tensor_bc2 = 1.0F - in_fp32(power_of(double{in_fp32(settings.beta2)}, t));
  scalars.tensor_step = -(scalars.rate / tensor_bc1);
  scalars.tensor_scale = std::sqrt(tensor_bc2) * scalars.tensor_step;
  scalars.tensor_epsilon = scalars.epsilon / scalars.tensor_step;
  return scalars;
}

StepFunction step_function(StepOrder order, Contraction contraction) {
  switch (order) {
    case StepOrder::kTorch:
      return contracted<StepOrder::kTorch>(contraction);
    case StepOrder::kTorchGpu:
      return contracted<StepOrder::kTorchGpu>(contraction);
    case StepOrder::kCapturable:
      return contracted<StepOrder::kCapturable>(contraction);
    case StepOrder::kTorchFused:
      return contracted<StepOrder::kTorchFused>(contraction);
    case StepOrder::kApex:
      return contracted<StepOrder::kApex>(contraction);
    case StepOrder::kInverse:
      return contracted<StepOrder::kInverse>(contraction);
    case StepOrder::kReciprocal:
      return contracted<StepOrder::kReciprocal>(contraction);
  }
  AREAL_CHECK(false);
}

}  // namespace areal::delta
