#include "engine/port/types.h"

#include "engine/port/notes.h"

namespace areal::port {

void add_kinds(KindTable& kinds) {
  kinds.add<Started, MessageIn, TellIn, TimerFired, GroupJoined, BatchDone, GroupAborted, ComputeDone, BufferReady,
            BufferReleased, StoreDone, PortLeased, ProcessStarted, ProcessExited, MemoryUsed>();
  kinds.add<Send, Tell, ArmTimer, DisarmTimer, JoinGroup, PostBatch, AbortGroup, LeaveGroup, StartCompute, StopCompute,
            FreezeCompute, ReserveBuffer, ReleaseBuffer, QueryMemory, StorePut, StoreGet, LeasePort, ReleasePort,
            StartProcess, StopProcess, Note>();
  add_note_kinds(kinds);
}

}  // namespace areal::port
