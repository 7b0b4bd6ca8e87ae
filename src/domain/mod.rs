//! The core: it decides publish, refuse, hold and sweep. Decisions are values, time is an argument, and the
//! world is behind the traits of `ports`. Nothing here names a runtime, a wire format or a system call.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod event_series;
pub mod handle;
pub mod health;
pub mod holds;
pub mod kept;
pub mod locks;
pub mod mount_options;
pub mod mount_table;
pub mod outage;
pub mod pod;
pub mod proof;
pub mod publish;
pub mod recent_refusals;
pub mod refusal;
pub mod signal;
pub mod sweep;
pub mod tally;
pub mod target;
pub mod time;
pub mod trash;
pub mod unpublish;
pub mod use_cases;
pub mod volume_request;
