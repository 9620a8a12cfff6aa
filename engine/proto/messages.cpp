#include "engine/proto/messages.h"

namespace areal::proto {

void add_kinds(KindTable& kinds) {
  kinds.add<Ack, ConnectRequest, ConnectReply, UpdateRequest, UpdateReply, DisconnectRequest>();
  kinds.add<ReportMeta, MetaReport, InitGroups, InitDone, Prepare, Prepared, Execute, Executed, Commit, Committed,
            AbortUpdate, UpdateAborted, Teardown, TornDown>();
  kinds.add<WorkerExited, WorkerStarted, ReservePort, PortReserved, ReturnPort, EngineMember, EnginesLost>();
  kinds.add<RouteRequest, RouteReply, GenerateRequest, GenerateReply, SegmentReport, PauseEngine, EnginePaused,
            ContinueEngine, EngineContinued, SetVersion>();
  kinds.add<AssignShard, TrainStep, StepDone, PutShard, FetchShard, ShardData, DropShard, DropBatch, Dropped,
            QueryBatch, BatchStats, JoinTraining, TrainingJoined, SaveCheckpoint, CheckpointSaved, LeaveTraining>();
  kinds.add<WantBatch, BatchReady, PausePool, ResumePool, PoolVersion, PauseAll, AllPaused, ContinueAll, AllContinued,
            DrainShard, ClearBatch, BatchCleared, ResetPool, PoolReset>();
  kinds.add<WantWrite, WriteGranted, WriteEnded, WeightsCommitted, WeightsUnproven, WeightsReplaced, StepMade>();
}

}  // namespace areal::proto
