//! Speculation.

pub(super) mod batch_builder;
pub(super) mod columnar_batch;
pub(super) mod columnar_write;
pub(super) mod eager_writes;
pub(super) mod fast_path;
pub(super) mod invalidation;
pub(super) mod ordered_polling;
pub(super) mod own_sessions;
pub(super) mod plan;
pub(super) mod row_cache;
pub(super) mod validation;
