#include "src/data/text/named_columns.h"

#include <string>
#include <unordered_map>

namespace satrap::data {

NamedColumns::NamedColumns(const Schema& schema) {
  std::unordered_map<std::string, std::size_t> places;
  const auto place_of = [&](const std::string& name) {
    const auto [place, is_new] = places.try_emplace(name, names.size());
    if (is_new) names.push_back(name);
    return place->second;
  };
  for (const ColumnRead& read : reads_of(schema)) {
    Use& use = uses.emplace_back();
    use.place = place_of(read.column);
    use.column.name = read.column;
    use.column.consumers = {read.consumer};
  }
  for (const Schema::SelectingColumn& column : schema.selecting) {
    selecting.push_back(place_of(column.column));
  }
}

}  // namespace satrap::data
