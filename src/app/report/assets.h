#pragma once

#include <string_view>

namespace satrap::app {

// The files of this folder, as the build has read them.
extern const std::string_view kReportPage;      // page.html, with a place for each of the others
extern const std::string_view kReportStyle;     // page.css
extern const std::string_view kReportCharts;    // charts.js
extern const std::string_view kReportHeadline;  // headline.js
extern const std::string_view kReportScript;    // page.js

}  // namespace satrap::app
