#include "src/embedding/cached_parts.h"

#include "satrap/core/error.h"

namespace satrap::embedding {

void CachedParts::begin() {
  if (is_queued_) cached_.completed.wait_beyond(step_ - 1);
  is_queued_ = false;
}

void CachedParts::pool(std::span<float* const> out) const {
  for (std::size_t g = 0; g < parts.size(); ++g) {
    cached_.device.pool_forward({cached_.caches[g]->view(), parts[g]->batch.bags(),
                                 parts[g]->view(), FloatType::kFp32, out[g]},
                                cached_.compute);
  }
}

void CachedParts::update(std::span<const float* const> gradients,
                         std::int64_t step,
                         const float* flag) {
  check_step(step);
  cached_.device.use_on_this_thread();
  const backend::StreamTimes::Span span(cached_.options.times, backend::StreamTimes::kUpdate);
  table_steps_.assign(cached_.num_tables, TableStep{RowStep({}, 1.0, 1), 0, 0});
  cached_.groups.fill_steps(step, table_steps_);
  const TableStep* const uploaded = steps_.upload(table_steps_, cached_.compute);
  for (std::size_t g = 0; g < parts.size(); ++g) {
    const backend::PlanView plan = parts[g]->view();
    if (flag != nullptr) cached_.device.cancel_update({flag, plan}, cached_.compute);
    cached_.device.backward_update({cached_.caches[g]->view(), plan, FloatType::kFp32, gradients[g],
                                    parts[g]->group.optimizer, uploaded},
                                   cached_.compute);
  }
  cached_.note_changed();
  cached_.note_applied(step);
  is_queued_ = true;
}

void CachedParts::make_plan(std::int64_t step) {
  step_ = step;
  for (std::size_t g = 0; g < parts.size(); ++g) cached_.caches[g]->make_plan(*parts[g]);
  cached_.sample(parts, step);  // while the device plans
}

void CachedParts::request(std::int64_t step) {
  check_step(step);
  cached_.resolve(parts, step);
  ask_for_missing();
}

void CachedParts::wait() {
  cached_.fetcher.wait(step_);
  cached_.device.use_on_this_thread();
  arrived_.make_wait(cached_.compute);
}

void CachedParts::check_step(std::int64_t step) const {
  SATRAP_CHECK(step == step_, "step ", step, " with the plan of step ", step_);
}

/// Rows that are on their way to the store come from there.
void CachedParts::ask_for_missing() {
  missing_.clear();
  places_.clear();
  for (const auto& part : parts) {
    const std::int64_t row_bytes = part->row_bytes();
    const std::int64_t bytes = std::ssize(part->missing) * row_bytes;
    if (bytes > part->staging.bytes()) {
      part->staging = {};
      part->staging = {cached_.device, backend::Place::kPinnedHost, bytes + bytes / 4,
                       "rows that are fetched"};
    }
    for (std::size_t i = 0; i < part->missing.size(); ++i) {
      missing_.add(part->missing[i], std::ssize(places_));
      places_.push_back(part->staging.data() + static_cast<std::int64_t>(i) * row_bytes);
    }
  }
  missing_.sort();
  keys_.clear();
  rows_.clear();
  numbers_.clear();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    keys_.push_back(missing_.key(i));
    numbers_.push_back(missing_.number(i));
    rows_.push_back(places_[numbers_[i]]);
  }
  cached_.write_back.find(keys_, rows_, found_);
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (found_[i]) continue;
    keys_[count] = keys_[i];
    numbers_[count] = numbers_[i];
    rows_[count++] = rows_[i];
  }
  keys_.resize(count);
  rows_.resize(count);
  cached_.count_fetched(keys_);
  cached_.fetcher.start({.step = step_,
                         .keys = keys_,
                         .rows = rows_,
                         .may_stay = cached_.options.reads_in_store,
                         .arrive = [this] {
                           cached_.device.use_on_this_thread();
                           queue_arrival();
                         }});
}

void CachedParts::queue_arrival() {
  // Also where no row is missing: so the part is not used again while its room is being made.
  for (const auto& part : parts) part->made_room.make_wait(cached_.copies);
  if (cached_.options.reads_in_store) {
    queue_load();
  } else {
    for (std::size_t g = 0; g < parts.size(); ++g) {
      cached_.caches[g]->scatter(*parts[g], cached_.copies);
    }
  }
  arrived_.record(cached_.copies);
}

/// Rows that the store has told the places of are read there: nothing puts them before they have
/// arrived, been updated and left the cache.
void CachedParts::queue_load() {
  for (std::size_t i = 0; i < rows_.size(); ++i) places_[numbers_[i]] = rows_[i];
  std::span<const std::byte* const> places = places_;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    const std::size_t count = parts[g]->missing.size();
    cached_.caches[g]->load(*parts[g], places.first(count), cached_.copies);
    places = places.subspan(count);
  }
}

}  // namespace satrap::embedding
