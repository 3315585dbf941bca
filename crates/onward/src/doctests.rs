//! The repository's documents, included here so that `cargo test` compiles their examples.

mod readme {
    #![doc = include_str!("../../../README.md")]
}

mod aggregation {
    #![doc = include_str!("../../../docs/guides/aggregation.md")]
}

mod children {
    #![doc = include_str!("../../../docs/guides/children.md")]
}

mod keys {
    #![doc = include_str!("../../../docs/guides/keys.md")]
}

mod dependencies {
    #![doc = include_str!("../../../docs/guides/dependencies.md")]
}

mod handlers {
    #![doc = include_str!("../../../docs/guides/handlers.md")]
}

mod progress {
    #![doc = include_str!("../../../docs/guides/progress.md")]
}

mod exactly_once {
    #![doc = include_str!("../../../docs/guides/exactly-once.md")]
}

mod external_completion {
    #![doc = include_str!("../../../docs/guides/external-completion.md")]
}

mod queues {
    #![doc = include_str!("../../../docs/guides/queues.md")]
}

mod priorities {
    #![doc = include_str!("../../../docs/guides/priorities.md")]
}

#[cfg(target_os = "linux")]
mod pressure {
    #![doc = include_str!("../../../docs/guides/pressure.md")]
}

mod affinity {
    #![doc = include_str!("../../../docs/guides/affinity.md")]
}

mod limits {
    #![doc = include_str!("../../../docs/guides/limits.md")]
}

mod inspector {
    #![doc = include_str!("../../../docs/guides/inspector.md")]
}

mod schedules {
    #![doc = include_str!("../../../docs/guides/schedules.md")]
}

mod tags {
    #![doc = include_str!("../../../docs/guides/tags.md")]
}

mod embedding {
    #![doc = include_str!("../../../docs/guides/embedding.md")]
}

mod operating {
    #![doc = include_str!("../../../docs/guides/operating.md")]
}

mod orchestrations {
    #![doc = include_str!("../../../docs/guides/orchestrations.md")]
}

mod workflows {
    #![doc = include_str!("../../../docs/guides/workflows.md")]
}
