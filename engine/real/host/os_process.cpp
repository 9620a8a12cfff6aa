#include "engine/real/host/os_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "engine/base/check.h"
#include "engine/real/host/child_start.h"
#include "engine/real/host/process_tree.h"

namespace areal::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kKillWait = 1_s;     // spec/transfer.md 6.1
constexpr Duration kLookAgain = 10_ms;  // For descendants that outlive the child.

// Readable when the child has ended. A child that ended already may have no pidfd (spec/transfer.md 6.2): then it is
// readable at once, and poll() looks for itself.
Result<Descriptor> exit_notice(pid_t pid) {
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.is_open()) return pidfd;
  if (errno != EINVAL && errno != ESRCH) return errno_error("pidfd");
  Descriptor ready(::eventfd(1, EFD_CLOEXEC));
  if (!ready.is_open()) return errno_error("eventfd");
  return ready;
}

bool watch(const Descriptor& epoll, const Descriptor& watched) {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, watched.number(), &event) == 0;
}

}  // namespace

// INVARIANT: until the child is reaped its pid and its group cannot be another's. It is reaped once nothing of it is to
// be signalled any more, so that its group can be.
struct OsProcess::State {
  enum class Stop : std::uint8_t { kNone, kAsked, kKilled, kStuck };

  ProcessIdentity identity{};
  Descriptor output;
  Descriptor trouble;
  Descriptor notice;
  Descriptor timer;
  Descriptor epoll;
  std::optional<Exit> exit;
  bool is_reaped = false;

  Stop stop = Stop::kNone;
  Clock::time_point deadline{};  // Of the present step of the stop.
  ProcessTree tree;              // What is to be stopped.
  std::vector<pid_t> stuck;

  Status watch_all();
  void look();
  void reap();
  void advance_stop();
  void kill_now();
  void arm(Clock::duration after) const;
};

Status OsProcess::State::watch_all() {
  auto opened = exit_notice(identity.pid);
  if (!opened) return opened.error();
  notice = std::move(*opened);
  timer = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  epoll = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!timer.is_open() || !epoll.is_open()) return errno_error("descriptors of a process");
  if (!watch(epoll, notice) || !watch(epoll, timer)) return errno_error("epoll");
  return Unit{};
}

void OsProcess::State::arm(Clock::duration after) const {
  // Zero would disarm it.
  const auto ns = std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::nanoseconds>(after).count());
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<decltype(spec.it_value.tv_nsec)>(ns % 1'000'000'000);
  ::timerfd_settime(timer.number(), 0, &spec, nullptr);
}

void OsProcess::State::look() {
  siginfo_t info{};
  const int found = ::waitid(P_PID, static_cast<id_t>(identity.pid), &info, WEXITED | WNOHANG | WNOWAIT);
  if (found == 0 && info.si_pid == 0) return;
  if (found == 0) {
    exit.emplace();
    (info.si_code == CLD_EXITED ? exit->code : exit->signal) = info.si_status;
    exit->reason = trouble_text(trouble);
  } else if (errno == EINTR || is_alive(identity)) {
    return;
  } else {
    exit = {-1, 0, "reaped by others"};
    is_reaped = true;
  }
  ::epoll_ctl(epoll.number(), EPOLL_CTL_DEL, notice.number(), nullptr);
}

void OsProcess::State::reap() {
  if (is_reaped || !exit) return;
  ::kill(-identity.pid, SIGKILL);  // Its group may have other members.
  siginfo_t info{};
  is_reaped = ::waitid(P_PID, static_cast<id_t>(identity.pid), &info, WEXITED | WNOHANG) == 0;
}

void OsProcess::State::kill_now() {
  tree.add_descendants();
  tree.signal(SIGKILL);
  if (!is_reaped) ::kill(-identity.pid, SIGKILL);  // Also who has another parent by now.
  stop = Stop::kKilled;
  deadline = Clock::now() + std::chrono::nanoseconds(kKillWait.ns);
}

void OsProcess::State::advance_stop() {
  if (stop == Stop::kNone) return;
  const bool is_over = tree.survivors().empty();
  if (Clock::now() >= deadline && !is_over) {
    if (stop == Stop::kAsked) {
      kill_now();
    } else {
      stop = Stop::kStuck;
      stuck = tree.survivors();
    }
  }
  if (is_over) {
    stuck.clear();
    return;
  }
  const Clock::duration look_again = std::chrono::nanoseconds(stop == Stop::kStuck ? kKillWait.ns : kLookAgain.ns);
  const Clock::duration left = deadline - Clock::now();
  // While the child itself lives its own end is noticed without looking.
  arm(stop == Stop::kStuck ? look_again : exit ? std::min(look_again, left) : left);
}

OsProcess::OsProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<OsProcess>> OsProcess::start(const ProcessRecipe& recipe) {
  auto child = start_child(recipe);
  if (!child) return child.error();
  auto state = std::make_unique<State>();
  state->identity.pid = child->pid;
  state->output = std::move(child->output);
  state->trouble = std::move(child->trouble);
  // It is not reaped yet, so it is there, be it as a zombie.
  if (const auto info = read_process(child->pid)) state->identity = info->identity;
  std::unique_ptr<OsProcess> process(new OsProcess(std::move(state)));
  AREAL_TRY(process->state_->watch_all());
  return process;
}

OsProcess::~OsProcess() {
  State& state = *state_;
  if (state.is_reaped) return;
  state.tree.add(state.identity);
  state.kill_now();
  state.tree.wait(kKillWait);
  state.look();
  state.reap();
}

const ProcessIdentity& OsProcess::identity() const { return state_->identity; }
int OsProcess::exit_fd() const { return state_->epoll.number(); }
int OsProcess::output_fd() const { return state_->output.number(); }
const std::vector<pid_t>& OsProcess::survivors() const { return state_->stuck; }

std::optional<Exit> OsProcess::poll() {
  State& state = *state_;
  std::uint64_t ticks = 0;
  [[maybe_unused]] const ssize_t drained = ::read(state.timer.number(), &ticks, sizeof ticks);
  if (!state.exit) state.look();
  state.advance_stop();
  if (!state.exit || (state.stop != State::Stop::kNone && !state.tree.survivors().empty())) return std::nullopt;
  state.reap();
  return state.exit;
}

void OsProcess::stop(Duration grace) {
  State& state = *state_;
  const bool is_running = state.stop == State::Stop::kAsked || state.stop == State::Stop::kKilled;
  if (is_running || (state.exit && state.stop == State::Stop::kNone)) return;
  state.stuck.clear();
  state.tree.add(state.identity);
  state.tree.add_descendants();
  state.stop = State::Stop::kAsked;
  state.deadline = Clock::now() + std::chrono::nanoseconds(grace.ns);
  state.tree.signal(SIGTERM);
  state.arm(std::chrono::nanoseconds(grace.ns));
}

}  // namespace areal::host
