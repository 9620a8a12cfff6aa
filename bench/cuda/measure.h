// Times of device work by events, and the report they go to: one JSON object a row, and a line of text.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/cuda/device_array.h"

namespace areal::bench {

using tests::DeviceArray;
using tests::must;

struct Times {
  double median_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
};

inline constexpr int kRepeats = 20;

// Of kRepeats calls after three that do not count. `act` only starts work, on the default stream.
template <class Act>
Times time_of(const Act& act) {
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  must(cudaEventCreate(&start), "event");
  must(cudaEventCreate(&stop), "event");
  for (int i = 0; i < 3; ++i) act();
  std::vector<float> all;
  for (int i = 0; i < kRepeats; ++i) {
    must(cudaEventRecord(start), "event");
    act();
    must(cudaEventRecord(stop), "event");
    must(cudaEventSynchronize(stop), "measured work");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, start, stop), "event");
    all.push_back(ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(all.begin(), all.end());
  return {(all[kRepeats / 2 - 1] + all[kRepeats / 2]) / 2.0, all.front(), all.back()};
}

// A row: names with numbers or words.
class Row {
 public:
  Row(const std::string& bench, const std::string& what) { add("bench", bench).add("what", what); }
  Row& add(const std::string& name, const std::string& word) { return put(name, '"' + word + '"', word); }
  Row& add(const std::string& name, double number) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g", number);
    return put(name, text, text);
  }
  Row& add(const std::string& name, std::uint64_t number) {
    return put(name, std::to_string(number), std::to_string(number));
  }
  Row& add(const Times& times) {
    return add("ms", times.median_ms).add("ms_min", times.min_ms).add("ms_max", times.max_ms);
  }
  [[nodiscard]] const std::string& json() const { return json_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  Row& put(const std::string& name, const std::string& value, const std::string& shown) {
    json_ += (json_.empty() ? "\"" : ", \"") + name + "\": " + value;
    text_ += (text_.empty() ? "" : "  ") + name + " " + shown;
    return *this;
  }
  std::string json_;
  std::string text_;
};

// What was measured so far. Written as a whole after every row, so that a run that is cut short leaves what it has.
class Report {
 public:
  explicit Report(std::string path) : path_(std::move(path)) {}
  void add(const Row& row) {
    std::printf("%s\n", row.text().c_str());
    std::fflush(stdout);
    rows_.push_back(row.json());
    if (path_.empty()) return;
    std::FILE* file = std::fopen(path_.c_str(), "w");
    if (file == nullptr) return;
    std::fprintf(file, "{\"rows\": [\n");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::fprintf(file, "  {%s}%s\n", rows_[i].c_str(), i + 1 < rows_.size() ? "," : "");
    }
    std::fprintf(file, "]}\n");
    std::fclose(file);
  }
  // A correctness check of what is measured; the program's exit status depends on it.
  void check(const std::string& what, bool holds) {
    add(Row("check", what).add("holds", std::string(holds ? "yes" : "NO")));
    if (!holds) failed_ = true;
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::string path_;
  std::vector<std::string> rows_;
  bool failed_ = false;
};

}  // namespace areal::bench
