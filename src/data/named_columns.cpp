#include "src/data/named_columns.h"

#include <algorithm>

namespace satrap::data {

NamedColumns::NamedColumns(const Schema& schema) {
  const auto place_of = [&](const std::string& name) {
    const auto place = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (place == names.size()) names.push_back(name);
    return place;
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
