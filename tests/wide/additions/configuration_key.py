"""train.say_at_start: a text that a run logs when it starts."""

from places import Addition, after, before

ADDITION = Addition("configuration key", [
    after("include/satrap/job/job_config.h", "  bool tensorboard = false;\n", '  std::string say_at_start = "";\n'),
    before("src/job/job_config.cpp", '  v.section("early_stopping", early_stopping,', """\
  v.field("say_at_start", say_at_start, "Text that is logged when training starts. Empty: none.",
          {.resume = kSameTraining});
"""),
    before("src/trainer/training_run.cpp",
           "  const std::vector<std::string> shared = data::common_files(start_.data);\n", """\
  if (!config_.train.say_at_start.empty()) log_info("{}", config_.train.say_at_start);
"""),
])
