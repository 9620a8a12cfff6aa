#include "engine/port/notes.h"

namespace areal::port {

void add_note_kinds(KindTable& kinds) {
  kinds
      .add<PairChanged, UpdateStarted, UpdateEnded, VersionPublished, AnchorSet, PlanBuilt, PlanPeer, CollectiveEntered,
           Exported, ApplyStarted, Applied, WeightsState, Decoded, SegmentStored, Routed, EligibleChanged, PauseChanged,
           Admitted, GroupFinished, GroupConsumed, PhaseEntered, VersionSet, StepTrained, RunEnded, ShardStored,
           ShardFetched, ShardsDropped, Receipt, LeaseChanged, ProcessChanged, Refused, DeltaVoted, WindowCompared,
           DeltaPacked, TrackerMoved, GradientsChanged, TrainingWorldChanged, CheckpointRank, CheckpointInfo>();
}

}  // namespace areal::port
