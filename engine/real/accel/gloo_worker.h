// One member of one group: a queue of batches and the thread that executes them.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/real/accel/gloo_groups.h"
#include "engine/real/accel/gloo_meeting.h"
#include "engine/real/accel/gloo_mesh.h"
#include "engine/real/accel/gloo_moves.h"
#include "engine/real/accel/rendezvous_store.h"

namespace areal::accel {

// What all groups of a process share: options, the way out, and Gloo's device with its thread. Outlives every worker.
// Any thread may call it.
class Shared {
 public:
  Shared(GlooOptions asked, std::function<void(GroupEvent)> deliver)
      : options(std::move(asked)), deliver_(std::move(deliver)) {}
  // Says nothing any more once mute() returned.
  void deliver(GroupEvent event);
  void mute();
  // Null if there is no such address here; throws what Gloo throws. The caller must have blocked all signals: the
  // device's thread is born with its mask.
  std::shared_ptr<gloo::transport::Device> device();

  const GlooOptions options;

 private:
  std::mutex deliver_mutex_;
  std::function<void(GroupEvent)> deliver_;
  std::mutex device_mutex_;
  std::shared_ptr<gloo::transport::Device> device_;
};

// Where the members of a group meet: a new epoch has a new group, hence a new folder.
std::filesystem::path folder_of(const GlooOptions& options, GroupId group);

// Blocks all signals for the calling thread: the process's own threads handle them, and a write to a connection that
// the peer closed would else end the process.
void block_signals();

// The end of a batch that changed nothing; takes the memory of `wish`.
GroupEvent done_event(BatchWish& wish, port::Outcome outcome);

class GroupWorker {
 public:
  GroupWorker(std::shared_ptr<Shared> shared, const JoinWish& wish);
  ~GroupWorker();
  GroupWorker(const GroupWorker&) = delete;
  GroupWorker& operator=(const GroupWorker&) = delete;

  // The thread's work: from the join to the end of the group. Called once.
  void run();

  // Any thread. False: the group has ended, nothing was taken.
  bool post(BatchWish& wish);
  bool abort();
  void leave();
  // Ends without telling, as fast as may be: leaves if it was to leave anyway and nothing is under way, else aborts.
  void finish();
  // Makes whatever blocks look around.
  void nudge() { mesh_.nudge(); }
  [[nodiscard]] bool has_ended();
  [[nodiscard]] GroupId group() const { return wish_.group; }

 private:
  void join();
  [[nodiscard]] bool is_to_abort();
  void execute(BatchWish& wish);
  [[nodiscard]] port::Outcome attempt(BatchWish& wish);
  void tell(GroupEvent event);
  void give_up(const MeshFailure& failure);
  void close(bool leaves, std::optional<std::uint32_t> blamed);
  std::optional<BatchWish> next();
  void end();

  std::shared_ptr<Shared> shared_;
  JoinWish wish_;
  FolderStore store_;
  Mesh mesh_;
  std::unique_ptr<Meeting> meeting_;
  SumParts parts_;                      // Of the batch under way.
  std::optional<MeshFailure> failure_;  // Every later batch ends with it.
  std::uint64_t batches_ = 0;           // Begun since the join.

  std::mutex mutex_;  // Of what follows.
  std::condition_variable wake_;
  std::deque<BatchWish> queue_;
  bool aborting_ = false;
  bool leaving_ = false;
  bool busy_ = true;  // The join or a batch is under way.
  bool ended_ = false;
  std::uint32_t askers_ = 0;  // Of aborts that are to be told.
};

}  // namespace areal::accel
