// One member of Gloo groups for tests: its object, an inbox, and waits that never last for ever.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/real/accel/gloo_groups.h"

namespace areal::test {

using What = accel::GroupEvent::What;

// Where the members of one test meet; gone afterwards, with what was left in it.
class MeetingPlace {
 public:
  MeetingPlace() {
    std::string name = (std::filesystem::temp_directory_path() / "gloo-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~MeetingPlace() { std::filesystem::remove_all(path_); }
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path_); }
  [[nodiscard]] accel::GlooOptions options() const {
    accel::GlooOptions options;
    options.folder = path_.string();
    options.run = "run";
    return options;
  }

 private:
  std::filesystem::path path_;
};

class GlooMember {
 public:
  explicit GlooMember(const accel::GlooOptions& options)
      : groups_(std::make_unique<accel::GlooGroups>(options, [this](accel::GroupEvent event) {
          const std::lock_guard lock(mutex_);
          events_.push_back(std::move(event));
          wake_.notify_all();
        })) {}

  accel::GlooGroups& groups() { return *groups_; }
  void end() { groups_.reset(); }

  // The next event not taken yet. A test that waits in vain fails here, and goes on with an event that fits nothing.
  accel::GroupEvent take() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, std::chrono::seconds(30), [&] { return taken_ < events_.size(); })) {
      ADD_FAILURE() << "no event came";
      accel::GroupEvent none;
      none.outcome = port::Outcome::kFailed;
      return none;
    }
    return std::move(events_[taken_++]);
  }
  [[nodiscard]] std::size_t untaken() {
    const std::lock_guard lock(mutex_);
    return events_.size() - taken_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<accel::GroupEvent> events_;
  std::size_t taken_ = 0;
  std::unique_ptr<accel::GlooGroups> groups_;  // Last: it ends before the inbox does.
};

// Members with ranks in a row, in one process.
class GlooTeam {
 public:
  GlooTeam(const MeetingPlace& place, std::uint32_t world) : GlooTeam(place.options(), world) {}
  GlooTeam(const accel::GlooOptions& options, std::uint32_t world) {
    for (std::uint32_t rank = 0; rank < world; ++rank) members_.push_back(std::make_unique<GlooMember>(options));
  }
  GlooMember& at(std::uint32_t rank) { return *members_[rank]; }
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(members_.size()); }

  void meet(GroupId group) {
    for (std::uint32_t rank = 0; rank < world(); ++rank) at(rank).groups().join({group, rank, world()});
    for (const accel::GroupEvent& event : take_all()) {
      ASSERT_EQ(event.what, What::kJoined);
      ASSERT_EQ(event.outcome, port::Outcome::kOk);
      ASSERT_EQ(event.group, group);
    }
  }
  // One event of each member, by rank.
  std::vector<accel::GroupEvent> take_all() {
    std::vector<accel::GroupEvent> events;
    for (const auto& member : members_) events.push_back(member->take());
    return events;
  }
  // Posts to each member what `make` says for its rank.
  template <class Make>
  void post_all(Make&& make) {
    for (std::uint32_t rank = 0; rank < world(); ++rank) at(rank).groups().post(make(rank));
  }

 private:
  std::vector<std::unique_ptr<GlooMember>> members_;
};

inline accel::BatchWish control(GroupId group, std::uint64_t batch, port::BatchKind kind, std::uint64_t value = 0,
                                std::uint64_t count = 0) {
  accel::BatchWish wish;
  wish.group = group;
  wish.batch = BatchId{batch};
  wish.kind = kind;
  wish.tag = batch;
  wish.value = value;
  wish.count = count;
  return wish;
}

inline accel::PeerBytes filled(std::uint32_t rank, std::size_t bytes, unsigned seed) {
  accel::PeerBytes all{rank, std::vector<std::byte>(bytes)};
  for (std::size_t i = 0; i < bytes; ++i) all.bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xFF);
  return all;
}

}  // namespace areal::test
