// How the loss of a micro-batch is scaled so that gradients averaged over data-parallel ranks are the global token
// mean.
//
// Each micro-batch's loss is a mean over its own w tokens. Scaled by w / W * ranks, with W the tokens of all
// micro-batches of all ranks, the average over ranks is the mean over all W tokens, however they were cut. w counts the
// original mask, before rejection. With gradients summed instead of averaged, ranks is 1. Pure; double. Source: the
// loss scale of AReaL's training engines.
#pragma once
#include "engine/base/result.h"

namespace areal::algo {

// kInvalid: no token on any rank (W not above 0), a negative weight, or a weight above W.
Result<double> loss_scale(double tokens, double tokens_of_all, double ranks);

}  // namespace areal::algo
