#include "engine/real/accel/gloo_worker.h"

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <pthread.h>
#include <signal.h>

#include <exception>
#include <filesystem>
#include <new>

#include "engine/real/accel/local_address.h"

namespace areal::accel {
namespace {

using Clock = std::chrono::steady_clock;
using port::BatchKind;
using port::Outcome;

// Nothing if there is no limit.
std::optional<SteadyTime> deadline_of(Duration limit) {
  if (limit == Duration{}) return std::nullopt;
  return Clock::now() + std::chrono::nanoseconds(limit.ns);
}

}  // namespace

void Shared::deliver(GroupEvent event) {
  const std::lock_guard lock(deliver_mutex_);
  if (deliver_) deliver_(std::move(event));
}

void Shared::mute() {
  const std::lock_guard lock(deliver_mutex_);
  deliver_ = nullptr;
}

std::shared_ptr<gloo::transport::Device> Shared::device() {
  const std::lock_guard lock(device_mutex_);
  if (device_ == nullptr) {
    const bool usable = options.interface.empty() ? can_listen_at(options.hostname) : has_interface(options.interface);
    if (!usable) return nullptr;
    gloo::transport::tcp::attr attributes;
    attributes.hostname = options.hostname;
    attributes.iface = options.interface;
    device_ = gloo::transport::tcp::CreateDevice(attributes);
  }
  return device_;
}

std::filesystem::path folder_of(const GlooOptions& options, GroupId group) {
  return std::filesystem::path(options.folder) / (options.run + ".group-" + std::to_string(group.value));
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

GroupEvent done_event(BatchWish& wish, Outcome outcome) {
  GroupEvent event{.what = GroupEvent::What::kDone, .group = wish.group, .batch = wish.batch, .outcome = outcome};
  event.value = wish.value;
  event.count = wish.count;
  event.received = std::move(wish.receives);
  event.sent = std::move(wish.sends);
  event.sums = std::move(wish.sums);
  event.statuses = std::move(wish.statuses);
  return event;
}

GroupWorker::GroupWorker(std::shared_ptr<Shared> shared, const JoinWish& wish)
    : shared_(std::move(shared)),
      wish_(wish),
      store_(folder_of(shared_->options, wish.group)),
      mesh_(wish.rank, wish.world) {}

GroupWorker::~GroupWorker() = default;

void GroupWorker::run() {
  block_signals();
  GroupEvent joined{.what = GroupEvent::What::kJoined, .group = wish_.group};
  std::optional<MeshFailure> failure;
  try {
    join();
  } catch (const MeshFailure& caught) {
    failure = caught;
  } catch (const std::bad_alloc&) {
    failure = MeshFailure{Outcome::kNoMemory};
  }
  if (failure) {
    if (is_to_abort()) store_.close();
    give_up(*failure);
    joined.outcome = failure->outcome;
    joined.peer_rank = failure->peer;
  }
  tell(std::move(joined));
  while (std::optional<BatchWish> wish = next()) execute(*wish);
  end();
}

void GroupWorker::join() {
  std::shared_ptr<gloo::transport::Device> device;
  try {
    device = shared_->device();
  } catch (const std::exception&) {
    throw MeshFailure{Outcome::kFailed};
  }
  if (device == nullptr) throw MeshFailure{Outcome::kFailed};
  mesh_.connect(device, store_, deadline_of(shared_->options.join_timeout));
  meeting_ = std::make_unique<Meeting>(mesh_);
  meeting_->exchange(plain_card(wish_.world));
  mesh_.leave_store();
}

// None if the group has come to its end.
std::optional<BatchWish> GroupWorker::next() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return aborting_ || leaving_ || !queue_.empty(); });
  if (aborting_ || queue_.empty()) return std::nullopt;
  std::optional<BatchWish> wish = std::move(queue_.front());
  queue_.pop_front();
  busy_ = true;
  return wish;
}

void GroupWorker::execute(BatchWish& wish) {
  const bool failed_before = failure_.has_value();
  std::optional<MeshFailure> failure = failure_;
  Outcome outcome = Outcome::kOk;
  try {
    if (!failure) outcome = attempt(wish);
  } catch (const MeshFailure& caught) {
    failure = caught;
  } catch (const std::bad_alloc&) {
    failure = MeshFailure{Outcome::kNoMemory};
  }
  // Before the host gets its memory back: until then a message may still be written there.
  if (failure && !failed_before) give_up(*failure);
  GroupEvent event = done_event(wish, failure ? failure->outcome : outcome);
  if (failure) event.peer_rank = failure->peer;
  tell(std::move(event));
}

// Leaves the reduced words in `wish`.
Outcome GroupWorker::attempt(BatchWish& wish) {
  mesh_.begin(++batches_, deadline_of(shared_->options.operation_timeout));
  const Verdict verdict = judge(meeting_->exchange(card_of(wish, wish_.rank, wish_.world)), wish_.rank, wish_.world);
  if (!verdict.fits) return Outcome::kMismatch;
  if (wish.kind == BatchKind::kReduce) move_sums(mesh_, wish, parts_);
  if (wish.kind == BatchKind::kSend || wish.kind == BatchKind::kReceive) move_payload(mesh_, wish);
  parts_ = {};
  wish.value = verdict.value;
  wish.count = verdict.count;
  return Outcome::kOk;
}

// Whoever is told may leave at once: nothing is under way then.
void GroupWorker::tell(GroupEvent event) {
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
  shared_->deliver(std::move(event));
}

// The others learn of it at once, and half-read messages do not keep the device busy.
void GroupWorker::give_up(const MeshFailure& failure) {
  failure_ = failure;
  close(false, failure.outcome == Outcome::kPeerGone ? failure.peer : std::nullopt);
}

// What messages may be written to goes after the connections.
void GroupWorker::close(bool leaves, std::optional<std::uint32_t> blamed) {
  if (meeting_) meeting_->end();
  mesh_.close(leaves, blamed);
  meeting_.reset();
  parts_ = {};
}

void GroupWorker::end() {
  std::unique_lock lock(mutex_);
  const bool leaves = !aborting_;
  lock.unlock();
  close(leaves, std::nullopt);
  lock.lock();
  while (!queue_.empty() || askers_ > 0) {
    GroupEvent event{.what = GroupEvent::What::kAborted, .group = wish_.group};
    if (!queue_.empty()) {
      event = done_event(queue_.front(), Outcome::kAborted);
      queue_.pop_front();
    } else {
      --askers_;
    }
    lock.unlock();
    shared_->deliver(std::move(event));
    lock.lock();
  }
  ended_ = true;
}

bool GroupWorker::post(BatchWish& wish) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  queue_.push_back(std::move(wish));
  wake_.notify_one();
  return true;
}

bool GroupWorker::abort() {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  aborting_ = true;
  ++askers_;
  mesh_.stop();
  wake_.notify_one();
  return true;
}

void GroupWorker::finish() {
  const std::lock_guard lock(mutex_);
  if (leaving_ && queue_.empty() && !busy_) return;
  aborting_ = true;
  mesh_.stop();
  wake_.notify_one();
}

void GroupWorker::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  wake_.notify_one();
}

bool GroupWorker::is_to_abort() {
  const std::lock_guard lock(mutex_);
  return askers_ > 0;
}

bool GroupWorker::has_ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace areal::accel
