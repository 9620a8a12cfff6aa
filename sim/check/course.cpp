// Finds members whose course does not fit that of most.
#include "sim/check/course.h"

#include <algorithm>

namespace areal::sim {

bool fit(const Course& a, const Course& b) {
  const std::size_t common = std::min(a.marks.size(), b.marks.size());
  if (!std::equal(a.marks.begin(), a.marks.begin() + static_cast<std::ptrdiff_t>(common), b.marks.begin())) {
    return false;
  }
  const Course& shorter = a.marks.size() < b.marks.size() ? a : b;
  return a.marks.size() == b.marks.size() || !shorter.over;
}

OddOnes find_odd_ones(std::span<const Course> courses) {
  // Who fits everybody says nothing about who is right.
  std::vector<const Course*> torn;
  for (const Course& course : courses) {
    const bool fits_all = std::ranges::all_of(courses, [&](const Course& other) { return fit(course, other); });
    if (!fits_all) torn.push_back(&course);
  }
  OddOnes odd;
  std::ptrdiff_t most = 0;
  for (const Course* course : torn) {
    const auto same = std::ranges::count_if(torn, [&](const Course* other) { return fit(*course, *other); });
    const bool longer = odd.rule != nullptr && course->marks.size() > odd.rule->marks.size();
    if (same > most || (same == most && longer)) {
      odd.rule = course;
      most = same;
    }
  }
  for (const Course* course : torn) {
    if (!fit(*course, *odd.rule)) odd.found.push_back(course);
  }
  return odd;
}

}  // namespace areal::sim
