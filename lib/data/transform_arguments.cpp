#include <algorithm>
#include <cmath>
#include <limits>

#include "data/transform.hpp"
#include "lerobot/core/error.hpp"

namespace lerobot::data {

std::uint64_t Draws::bits() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::int64_t Draws::integer(std::int64_t low, std::int64_t high) {
  const auto count = static_cast<double>(high - low + 1);
  return std::min(high, low + static_cast<std::int64_t>(uniform() * count));
}

double Draws::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * M_PI * uniform());
}

Arguments::Arguments(std::string where, const Json& kwargs) : where_(std::move(where)), kwargs_(kwargs) {
  if (kwargs_.is_null()) kwargs_ = Json::object();
  if (!kwargs_.is_object()) fail(ErrorKind::kConfig, "{}: kwargs is {}; expected an object.", where_, kwargs_.dump());
}

const Json* Arguments::find(const char* key) {
  known_.emplace_back(key);
  const auto it = kwargs_.find(key);
  return it == kwargs_.end() || it->is_null() ? nullptr : &*it;
}

bool Arguments::has(const char* key) const { return kwargs_.contains(key) && !kwargs_[key].is_null(); }

void Arguments::bad(const char* key, const std::string& expected) const {
  fail(ErrorKind::kConfig, "{}: {} is {}; expected {}.", where_, key, has(key) ? kwargs_[key].dump() : "missing",
       expected);
}

double Arguments::number(const char* key, double fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) bad(key, "a number");
  return value->get<double>();
}

std::int64_t Arguments::integer(const char* key, std::int64_t fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_integer()) bad(key, "an integer");
  return value->get<std::int64_t>();
}

bool Arguments::boolean(const char* key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) bad(key, "true or false");
  return value->get<bool>();
}

std::string Arguments::text(const char* key, const std::string& fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) bad(key, "text");
  return value->get<std::string>();
}

std::optional<std::vector<double>> Arguments::numbers(const char* key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const Json list = value->is_array() ? *value : Json::array({*value});
  std::vector<double> out;
  for (const Json& item : list) {
    if (!item.is_number() || !std::isfinite(item.get<double>())) bad(key, "numbers");
    out.push_back(item.get<double>());
  }
  return out;
}

Range Arguments::range(const char* key, Range fallback, Range bounds) {
  const auto values = numbers(key);
  if (!values) return fallback;
  const bool one = values->size() == 1;
  if ((!one && values->size() != 2) ||
      !(bounds.first <= values->front() && values->front() <= values->back() && values->back() <= bounds.second))
    bad(key, fmt::format("low <= high within {}..{}", bounds.first, bounds.second));
  return {values->front(), values->back()};
}

std::optional<Range> Arguments::around(const char* key, double center, Range bounds) {
  const auto values = numbers(key);
  if (!values) return std::nullopt;
  if (values->size() != 1) return range(key, {}, bounds);
  const double spread = values->front();
  const double low = std::max(center - spread, center == 0 ? -std::numeric_limits<double>::infinity() : bounds.first);
  if (spread < 0 || low < bounds.first || center + spread > bounds.second)
    bad(key, fmt::format("a number that keeps within {}..{}", bounds.first, bounds.second));
  return Range{low, center + spread};
}

double Arguments::probability(const char* key, double fallback) {
  const double value = number(key, fallback);
  if (!(value >= 0 && value <= 1)) bad(key, "a probability in 0..1");
  return value;
}

std::pair<std::int64_t, std::int64_t> Arguments::size(const char* key) {
  const auto values = numbers(key);
  if (!values || values->empty() || values->size() > 2) bad(key, "a size or [height, width]");
  for (const double value : *values)
    if (!(value >= 1 && value <= 1 << 14) || value != std::floor(value)) bad(key, "whole numbers above 0");
  return {static_cast<std::int64_t>(values->front()), static_cast<std::int64_t>(values->back())};
}

bool Arguments::bilinear(bool fallback) {
  const Json* value = find("interpolation");
  if (value == nullptr) return fallback;
  // torchvision takes the name of its enumeration or PIL's number.
  if (*value == "bilinear" || *value == "BILINEAR" || *value == 2) return true;
  if (*value == "nearest" || *value == "NEAREST" || *value == 0) return false;
  bad("interpolation", "nearest or bilinear");
}

void Arguments::done() const {
  for (const auto& [key, value] : kwargs_.items())
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
      fail(ErrorKind::kConfig, "{}: there is no argument \"{}\"; it takes {}.", where_, key,
           names.empty() ? "none" : names);
    }
}

}  // namespace lerobot::data
