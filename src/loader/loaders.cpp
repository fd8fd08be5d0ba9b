#include "satrap/loader/loaders.h"

#include <utility>

#include "src/loader/merged_streams.h"
#include "src/loader/topic_streams.h"

namespace satrap::loader {

class Loaders::Impl {
 public:
  Impl(net::EndpointOptions endpoint,
       const std::shared_ptr<net::Store>& store,
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
                 const std::shared_ptr<net::Store>& store,
                 std::string name,
                 const LoadersOptions& options)
    : impl_(std::make_unique<Impl>(std::move(endpoint), store, std::move(name), options)) {}
Loaders::~Loaders() = default;

data::OpenDeliveries Loaders::opener() {
  return [side = &impl_->side](const data::DataConfig& config,
                               const data::RowPass& pass) -> std::unique_ptr<data::RowDeliveries> {
    PassRequest request{config, side->options.num_ranks, pass};
    const auto& position = config.kafka.position;
    if (position && position->is_endless()) {
      return std::make_unique<TopicStreams>(*side, std::move(request));
    }
    return std::make_unique<MergedStreams>(*side, std::move(request));
  };
}

}  // namespace satrap::loader
