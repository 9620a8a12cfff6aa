// The list of all judges.
#include "sim/check/anchor_judge.h"
#include "sim/check/base_judge.h"
#include "sim/check/bytes_judge.h"
#include "sim/check/decode_judge.h"
#include "sim/check/fence_judge.h"
#include "sim/check/gradient_judge.h"
#include "sim/check/group_judge.h"
#include "sim/check/judge.h"
#include "sim/check/label_judge.h"
#include "sim/check/lease_judge.h"
#include "sim/check/loop_judge.h"
#include "sim/check/once_judge.h"
#include "sim/check/pair_judge.h"
#include "sim/check/plan_judge.h"
#include "sim/check/publish_judge.h"
#include "sim/check/recovery_judge.h"
#include "sim/check/rounds_judge.h"
#include "sim/check/route_judge.h"
#include "sim/check/staleness_judge.h"
#include "sim/check/step_judge.h"
#include "sim/check/store_judge.h"
#include "sim/check/task_judge.h"
#include "sim/check/tracker_judge.h"
#include "sim/check/window_judge.h"

namespace areal::sim {
namespace {

template <class... Each>
void add_all(Judges& judges, const SetupPtr& setup) {
  (judges.add(std::make_unique<Each>(setup)), ...);
}

}  // namespace

Judges make_judges(const SetupPtr& setup) {
  Judges judges;
  add_all<LabelJudge, PublishJudge, BytesJudge, GroupJudge, FenceJudge, PlanJudge, PairJudge, OnceJudge, RouteJudge,
          DecodeJudge, LeaseJudge, StalenessJudge, LoopJudge, StoreJudge, TaskJudge, BaseJudge, TrackerJudge,
          RoundsJudge, WindowJudge, GradientJudge, AnchorJudge, StepJudge, RecoveryJudge>(judges, setup);
  return judges;
}

}  // namespace areal::sim
