#include "engine/node/effect_runner.h"

namespace areal::node {
namespace {

struct Runner {
  SlotId slot;
  Ports& ports;

  void operator()(const port::Send& e) const { ports.transport().send(slot, e); }
  void operator()(const port::Tell& e) const { ports.executor().tell(slot, e); }
  void operator()(const port::ArmTimer& e) const { ports.executor().arm(slot, e); }
  void operator()(const port::DisarmTimer& e) const { ports.executor().disarm(slot, e); }
  void operator()(const port::JoinGroup& e) const { ports.transport().join(slot, e); }
  void operator()(const port::PostBatch& e) const { ports.transport().post(slot, e); }
  void operator()(const port::AbortGroup& e) const { ports.transport().abort(slot, e); }
  void operator()(const port::LeaveGroup& e) const { ports.transport().leave(slot, e); }
  void operator()(const port::StartCompute& e) const { ports.compute().start(slot, e); }
  void operator()(const port::StopCompute& e) const { ports.compute().stop(slot, e); }
  void operator()(const port::FreezeCompute& e) const { ports.compute().freeze(slot, e); }
  void operator()(const port::ReserveBuffer& e) const { ports.memory().reserve(slot, e); }
  void operator()(const port::ReleaseBuffer& e) const { ports.memory().release(slot, e); }
  void operator()(const port::QueryMemory& e) const { ports.memory().used(slot, e); }
  void operator()(const port::StorePut& e) const { ports.store().put_if(slot, e); }
  void operator()(const port::StoreGet& e) const { ports.store().get(slot, e); }
  void operator()(const port::LeasePort& e) const { ports.process().lease_port(slot, e); }
  void operator()(const port::ReleasePort& e) const { ports.process().release_port(slot, e); }
  void operator()(const port::StartProcess& e) const { ports.process().start(slot, e); }
  void operator()(const port::StopProcess& e) const { ports.process().stop(slot, e); }
  void operator()(const port::Note& /*note*/) const {}  // The trace already has it.
};

}  // namespace

void run_effect(SlotId slot, const proto::Effect& effect, Ports& ports) { std::visit(Runner{slot, ports}, effect); }

}  // namespace areal::node
