#include "engine/real/accel/gloo_groups.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "engine/real/accel/gloo_worker.h"

namespace areal::accel {
namespace {

GroupEvent aborted(GroupId group) { return {.what = GroupEvent::What::kAborted, .group = group}; }

}  // namespace

// The keeper is one more thread: it nudges the workers, joins those that ended and answers for groups without a worker.
class GlooGroups::Impl {
 public:
  Impl(GlooOptions options, std::function<void(GroupEvent)> deliver)
      : shared_(std::make_shared<Shared>(std::move(options), std::move(deliver))), keeper_([this] { keep(); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      for (Entry& entry : entries_) entry.worker->finish();
      closing_ = true;
      wake_.notify_one();
    }
    keeper_.join();
    // Only if a worker hangs inside Gloo; what it needs is its own.
    for (Entry& entry : entries_) entry.thread.detach();
    shared_->mute();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void join(const JoinWish& wish) {
    const std::lock_guard lock(mutex_);
    GroupEvent refused{.what = GroupEvent::What::kJoined, .group = wish.group, .outcome = port::Outcome::kRefused};
    if (find(wish.group) != nullptr || wish.rank >= wish.world) return answer(std::move(refused));
    try {
      auto worker = std::make_shared<GroupWorker>(shared_, wish);
      entries_.push_back({worker, std::thread([worker] { worker->run(); })});
    } catch (const std::system_error&) {
      refused.outcome = port::Outcome::kFailed;  // No thread to be had.
      return answer(std::move(refused));
    }
    wake_.notify_one();
  }

  void post(BatchWish wish) {
    const std::lock_guard lock(mutex_);
    GroupWorker* worker = find(wish.group);
    if (worker != nullptr && worker->post(wish)) return;
    answer(done_event(wish, port::Outcome::kAborted));
  }

  void abort(GroupId group) {
    const std::lock_guard lock(mutex_);
    GroupWorker* worker = find(group);
    if (worker == nullptr || !worker->abort()) return answer(aborted(group));
    urgent_ = true;
    wake_.notify_one();
  }

  void leave(GroupId group) {
    const std::lock_guard lock(mutex_);
    if (GroupWorker* worker = find(group); worker != nullptr) worker->leave();
  }

 private:
  struct Entry {
    std::shared_ptr<GroupWorker> worker;
    std::thread thread;
  };

  GroupWorker* find(GroupId group) {
    const auto place =
        std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.worker->group() == group; });
    return place != entries_.end() ? place->worker.get() : nullptr;
  }

  void answer(GroupEvent event) {
    answers_.push_back(std::move(event));
    wake_.notify_one();
  }

  void keep() {
    block_signals();
    const auto slice = std::chrono::nanoseconds(shared_->options.slice.ns);
    std::optional<SteadyTime> until;
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto has_work = [&] { return urgent_ || !answers_.empty() || (closing_ && !until); };
      if (entries_.empty() && !closing_) {
        wake_.wait(lock, [&] { return has_work() || !entries_.empty(); });
      } else if (!(closing_ && entries_.empty())) {
        wake_.wait_for(lock, slice, has_work);
      }
      urgent_ = false;
      if (closing_ && !until) {
        until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(shared_->options.end_bound.ns);
      }
      work(lock);
      if (!until || !answers_.empty()) continue;
      if (entries_.empty() || std::chrono::steady_clock::now() >= *until) return;
    }
  }

  // Lets the host in while it nudges and tells.
  void work(std::unique_lock<std::mutex>& lock) {
    std::deque<GroupEvent> answers;
    answers.swap(answers_);
    std::vector<std::shared_ptr<GroupWorker>> workers;
    for (const Entry& entry : entries_) workers.push_back(entry.worker);
    lock.unlock();
    for (GroupEvent& event : answers) {
      // Nobody here has joined; others may wait there.
      if (event.what == GroupEvent::What::kAborted) FolderStore(folder_of(shared_->options, event.group)).close();
      shared_->deliver(std::move(event));
    }
    for (const auto& worker : workers) worker->nudge();
    lock.lock();
    for (Entry& entry : entries_) {
      if (entry.worker->has_ended()) entry.thread.join();
    }
    std::erase_if(entries_, [](const Entry& entry) { return !entry.thread.joinable(); });
  }

  std::shared_ptr<Shared> shared_;

  std::mutex mutex_;  // Of what follows, but for the keeper itself.
  std::condition_variable wake_;
  std::vector<Entry> entries_;
  std::deque<GroupEvent> answers_;
  bool urgent_ = false;
  bool closing_ = false;
  std::thread keeper_;
};

GlooGroups::GlooGroups(GlooOptions options, std::function<void(GroupEvent)> deliver)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(deliver))) {}
GlooGroups::~GlooGroups() = default;

void GlooGroups::join(JoinWish wish) { impl_->join(wish); }
void GlooGroups::post(BatchWish wish) { impl_->post(std::move(wish)); }
void GlooGroups::abort(GroupId group) { impl_->abort(group); }
void GlooGroups::leave(GroupId group) { impl_->leave(group); }

}  // namespace areal::accel
