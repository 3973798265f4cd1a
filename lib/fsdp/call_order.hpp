#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace lerobot::fsdp {

/// Remembers in which order units are needed in a pass, so that the next pass can fetch one ahead.
///
/// The answer depends on nothing but the calls, which are the same on all ranks; so all ranks fetch the same.
class CallOrder {
 public:
  static constexpr int kUnknown = -1;

  void begin_pass() {
    if (!current_.empty()) last_ = std::exchange(current_, {});
    on_track_ = true;
  }
  /// Forgets the pass that is under way: it broke off.
  void abandon_pass() { current_.clear(); }

  /// Notes that `unit` is needed now. Gives the one needed after it last time, if this pass went like the last so far.
  int note(int unit) {
    const std::size_t at = current_.size();
    current_.push_back(unit);
    on_track_ = on_track_ && at < last_.size() && last_[at] == unit;
    return on_track_ && at + 1 < last_.size() ? last_[at + 1] : kUnknown;
  }

  /// Before the first pass there is no memory: this is what to expect of it.
  void expect_if_new(std::vector<int> order) {
    if (last_.empty()) last_ = std::move(order);
  }
  [[nodiscard]] const std::vector<int>& current() const { return current_; }

 private:
  std::vector<int> last_;
  std::vector<int> current_;
  bool on_track_ = false;
};

}  // namespace lerobot::fsdp
