#include "satrap/loader/loaders.h"

#include <utility>

#include "satrap/data/dataset.h"
#include "src/loader/merged_streams.h"
#include "src/loader/topic_streams.h"

namespace satrap::loader {

class Loaders::Impl {
 public:
  Impl(net::EndpointOptions endpoint,
       const std::shared_ptr<net::Rendezvous>& store,
       std::string name,
       const LoadersOptions& options)
      : side{.endpoint = net::Endpoint(std::move(endpoint)),
             .store = store,
             .name = std::move(name),
             .options = options,
             .list = LoaderList(store)} {}

  RankSide side;
};

Loaders::Loaders(net::EndpointOptions endpoint,
                 const std::shared_ptr<net::Rendezvous>& store,
                 std::string name,
                 const LoadersOptions& options)
    : impl_(std::make_unique<Impl>(std::move(endpoint), store, std::move(name), options)) {}
Loaders::~Loaders() = default;

data::OpenDeliveries Loaders::opener() {
  return [side = &impl_->side](const data::Dataset& data,
                               const data::RowPass& pass) -> std::unique_ptr<data::RowDeliveries> {
    PassRequest request{
        .config = data.config(), .num_ranks = side->options.num_ranks, .pass = pass};
    if (request.config.eval.by_tail()) request.first_eval_row = data.first_eval_row();
    if (data.is_topic()) {
      request.place = *data.topic_start();
    } else {
      request.config.train.path = data.training_paths();
    }
    if (request.place && request.place->is_endless()) {
      return std::make_unique<TopicStreams>(*side, std::move(request));
    }
    return std::make_unique<MergedStreams>(*side, std::move(request));
  };
}

}  // namespace satrap::loader
