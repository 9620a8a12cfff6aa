#include "engine/real/host/child_start.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "engine/base/check.h"

namespace areal::host {
namespace {

constexpr int kNotRun = 127;  // As shells say it.
constexpr std::array<std::string_view, 6> kSteps{"parent",         "process group", "descriptors",
                                                 "working folder", "signals",       "program"};
enum Step : std::uint8_t { kParent, kGroup, kDescriptors, kFolder, kSignals, kProgram };

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  if (::fcntl(pipe.read.number(), F_SETFL, O_NONBLOCK) != 0) return errno_error("pipe");
  return pipe;
}

// All that the child needs, made before the fork: after it nothing may be allocated, as another thread may have held
// the allocator's lock.
struct Preparation {
  pid_t parent = 0;
  std::vector<std::string> words;  // The environment's.
  std::vector<char*> argv;
  std::vector<char*> environment;
  const char* folder = nullptr;
  int input = -1;
  int output = -1;  // -1: the parent's.
  int trouble = -1;
};

std::vector<std::string> laid_over(char** environment, const std::vector<config::Variable>& variables) {
  std::vector<std::string> words;
  for (; *environment != nullptr; ++environment) {
    const std::string_view word(*environment);
    const std::string_view name = word.substr(0, word.find('='));
    if (std::ranges::find(variables, name, &config::Variable::name) == variables.end()) words.emplace_back(word);
  }
  for (const config::Variable& variable : variables) words.push_back(variable.name + "=" + variable.value);
  return words;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));  // As execve() wants it.
  pointers.push_back(nullptr);
  return pointers;
}

// ---- In the child: only calls that are safe after the fork of a program with threads ----

[[noreturn]] void give_up(int trouble, Step step, int error) {
  const StartTrouble written{step, error};
  [[maybe_unused]] const ssize_t size = ::write(trouble, &written, sizeof written);
  ::_exit(kNotRun);
}

// Handlers are reset by the program's start, but not what is ignored or blocked.
bool reset_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);  // Fails where it may not.
  sigset_t none{};
  ::sigemptyset(&none);
  return ::pthread_sigmask(SIG_SETMASK, &none, nullptr) == 0;
}

bool place_descriptors(const Preparation& prepared) {
  if (::dup2(prepared.input, STDIN_FILENO) < 0) return false;
  if (prepared.output >= 0) {
    if (::dup2(prepared.output, STDOUT_FILENO) < 0 || ::dup2(prepared.output, STDERR_FILENO) < 0) return false;
  }
  // Not all libraries mark what they open.
  return ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

[[noreturn]] void run_program(const Preparation& prepared) {
  const int trouble = prepared.trouble;
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(trouble, kParent, errno);
  // A parent that died before the line above sends no signal any more.
  if (::getppid() != prepared.parent) give_up(trouble, kParent, ESRCH);
  if (::setpgid(0, 0) != 0) give_up(trouble, kGroup, errno);
  if (!place_descriptors(prepared)) give_up(trouble, kDescriptors, errno);
  if (prepared.folder != nullptr && ::chdir(prepared.folder) != 0) give_up(trouble, kFolder, errno);
  if (!reset_signals()) give_up(trouble, kSignals, errno);
  ::execvpe(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  give_up(trouble, kProgram, errno);
}

// ---- In the parent ----

// With all signals blocked, so that no handler of this program runs in the child.
pid_t fork_quietly(const Preparation& prepared) {
  sigset_t all{};
  sigset_t before{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) run_program(prepared);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

}  // namespace

Result<StartedChild> start_child(const ProcessRecipe& recipe) {
  if (recipe.argv.empty()) return Error{Errc::kInvalid, "a process without a program"};
  Preparation prepared;
  prepared.parent = ::getpid();
  prepared.words = laid_over(environ, recipe.environment);
  prepared.argv = pointers_to(recipe.argv);
  prepared.environment = pointers_to(prepared.words);
  if (!recipe.working_folder.empty()) prepared.folder = recipe.working_folder.c_str();

  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.is_open()) return errno_error("/dev/null");
  prepared.input = null.number();
  auto trouble = make_pipe();
  if (!trouble) return trouble.error();
  prepared.trouble = trouble->write.number();
  StartedChild child;
  Descriptor written;
  if (recipe.output == ProcessOutput::kFile) {
    written =
        Descriptor(::open(recipe.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!written.is_open()) return errno_error(recipe.output_file.string());
  } else if (recipe.output == ProcessOutput::kPipe) {
    auto pipe = make_pipe();
    if (!pipe) return pipe.error();
    written = std::move(pipe->write);
    child.output = std::move(pipe->read);
  }
  prepared.output = written.number();

  child.pid = fork_quietly(prepared);
  if (child.pid < 0) return errno_error("fork");
  // The child does the same; whoever comes first, a signal to the group finds it from now on.
  ::setpgid(child.pid, child.pid);
  child.trouble = std::move(trouble->read);
  return child;
}

std::string trouble_text(const Descriptor& trouble) {
  StartTrouble found;
  if (!trouble.is_open() || ::read(trouble.number(), &found, sizeof found) != static_cast<ssize_t>(sizeof found))
    return {};
  AREAL_CHECK(found.step >= 0 && found.step < static_cast<std::int32_t>(kSteps.size()));
  return std::string(kSteps[static_cast<std::size_t>(found.step)]) + ": " +
         std::error_code(found.error, std::generic_category()).message();
}

}  // namespace areal::host
