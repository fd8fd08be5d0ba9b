// How fast the messages of a topic become batches, beside librdkafka's own reading of them, from a
// broker that listens at SATRAP_KAFKA (host:port), on another core:
//
//   SATRAP_KAFKA=127.0.0.1:9092 taskset -c 1 data_kafka_bench

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include "satrap/data/open_rows.h"
#include "satrap/data/row_block.h"
#include "satrap/data/synthetic.h"
#include "satrap/data/synthetic_tsv.h"

namespace satrap::data {
namespace {

constexpr std::int64_t kRows = 500'000;
constexpr int kTimeoutMs = 60'000;

const char* brokers() { return std::getenv("SATRAP_KAFKA"); }

rd_kafka_t* open_client(rd_kafka_type_t type) {
  char why[512];
  rd_kafka_conf_t* const properties = rd_kafka_conf_new();
  rd_kafka_conf_set(properties, "bootstrap.servers", brokers(), why, sizeof why);
  rd_kafka_conf_set(properties, "enable.partition.eof", "true", why, sizeof why);
  return rd_kafka_new(type, properties, why, sizeof why);
}

/// Writes rows in Criteo's format, one a message, to a new topic; returns its name.
std::string write_topic() {
  const std::string name = "satrap-bench-" + std::to_string(getpid());
  const SyntheticGenerator generator{SyntheticConfig{}};
  rd_kafka_t* const client = open_client(RD_KAFKA_PRODUCER);
  rd_kafka_topic_t* const topic = rd_kafka_topic_new(client, name.c_str(), nullptr);
  RowBlock block;
  constexpr std::int64_t kBlock = 5000;
  for (std::int64_t row = 0; row < kRows; row += kBlock) {
    std::string text;
    generator.generate(row, kBlock, block);
    append_criteo_tsv(generator, block, text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK, text.data() + at,
                       end - at, nullptr, 0, nullptr);
      at = end;
    }
    rd_kafka_poll(client, 0);
  }
  rd_kafka_flush(client, kTimeoutMs);
  rd_kafka_topic_destroy(topic);
  rd_kafka_destroy(client);
  return name;
}

const std::string& topic_name() {
  static const std::string kName = write_topic();
  return kName;
}

bool has_broker(benchmark::State& state) {
  if (brokers() != nullptr) return true;
  state.SkipWithError("SATRAP_KAFKA names no broker");
  return false;
}

void count_rows(benchmark::State& state, std::int64_t rows) {
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}

/// The yardstick: the messages, a thousand at a time, and nothing made of them.
void BM_Consume(benchmark::State& state) {
  if (!has_broker(state)) return;
  std::int64_t rows = 0;
  const std::string& name = topic_name();
  for (auto _ : state) {
    rd_kafka_t* const client = open_client(RD_KAFKA_CONSUMER);
    rd_kafka_topic_t* const topic = rd_kafka_topic_new(client, name.c_str(), nullptr);
    rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING);
    std::vector<rd_kafka_message_t*> messages(1000);
    for (bool at_end = false; !at_end;) {
      const ssize_t taken = rd_kafka_consume_batch(topic, 0, 100, messages.data(), messages.size());
      for (ssize_t i = 0; i < taken; ++i) {
        rd_kafka_message_t* const message = messages[static_cast<std::size_t>(i)];
        at_end |= message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
        rows += message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? 1 : 0;
        rd_kafka_message_destroy(message);
      }
    }
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
  }
  count_rows(state, rows);
}

void BM_Batches(benchmark::State& state) {
  if (!has_broker(state)) return;
  DataConfig config;
  config.schema_name = "criteo";
  config.train.path = {std::string("kafka://") + brokers() + "/" + topic_name()};
  config.reader_threads = 1;
  const Schema schema = resolve_schema(config);
  std::int64_t rows = 0;
  for (auto _ : state) {
    const auto source =
        open_batches(Dataset(config), fixed_transforms(schema), Role::kTrain, {.batch_size = 2048});
    Batch batch;
    while (source->next(batch)) rows += batch.num_examples;
  }
  count_rows(state, rows);
}

BENCHMARK(BM_Consume)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK(BM_Batches)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace satrap::data
