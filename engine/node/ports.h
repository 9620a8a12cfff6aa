// The ports of one node, together, and what the node tells them about the effect it carries out.
#pragma once
#include "engine/port/clock.h"
#include "engine/port/compute.h"
#include "engine/port/device_memory.h"
#include "engine/port/executor.h"
#include "engine/port/fault_hook.h"
#include "engine/port/process.h"
#include "engine/port/store.h"
#include "engine/port/trace_sink.h"
#include "engine/port/transport.h"

namespace areal::node {

// Where an effect comes from; whatever it leads to carries `seq` as its cause.
struct Origin {
  std::uint64_t seq = 0;
  std::uint64_t lamport = 0;
  AREAL_FIELDS(seq, lamport)
};

class Ports {
 public:
  virtual ~Ports() = default;
  virtual port::Clock& clock() = 0;
  virtual port::Executor& executor() = 0;
  virtual port::Transport& transport() = 0;
  virtual port::DeviceMemory& memory() = 0;
  virtual port::Store& store() = 0;
  virtual port::Process& process() = 0;
  virtual port::Compute& compute() = 0;

  virtual port::TraceSink& sink() = 0;
  virtual port::FaultHook* hook() = 0;  // Null in production.

  // The next port calls are made for this effect.
  virtual void begin_effect(const Origin& origin) = 0;
  // Takes the next number of the trace this node writes to.
  virtual std::uint64_t next_seq() = 0;
  // Does what a hook asked to be done later, at another node, or as an input of this one; nothing of it passes the hook
  // again. The host drops it if the node's process has ended or been replaced by then.
  virtual void defer(const port::Passing& passing, const Origin& origin) = 0;
};

// Ports that are one object: every accessor gives itself.
class OwnPorts : public Ports,
                 public port::Clock,
                 public port::Executor,
                 public port::Transport,
                 public port::DeviceMemory,
                 public port::Store,
                 public port::Process,
                 public port::Compute {
 public:
  port::Clock& clock() final { return *this; }
  port::Executor& executor() final { return *this; }
  port::Transport& transport() final { return *this; }
  port::DeviceMemory& memory() final { return *this; }
  port::Store& store() final { return *this; }
  port::Process& process() final { return *this; }
  port::Compute& compute() final { return *this; }
};

}  // namespace areal::node
