//! The outside world, inbound and outbound. Adapters do not import one another; `main` wires them.

#[forbid(unsafe_code)]
pub mod cli;
#[forbid(unsafe_code)]
pub mod console;
#[forbid(unsafe_code)]
pub mod csi;
#[forbid(unsafe_code)]
pub mod event_log;
/// What the tests of several adapters compare the reference with.
#[cfg(test)]
#[forbid(unsafe_code)]
#[path = "../../tests/support/generated.rs"]
mod generated;
#[forbid(unsafe_code)]
pub mod http;
#[forbid(unsafe_code)]
pub mod human;
#[forbid(unsafe_code)]
pub mod kube;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(feature = "demo")]
#[forbid(unsafe_code)]
pub mod memory;
#[forbid(unsafe_code)]
pub mod registration;
#[cfg(feature = "demo")]
#[forbid(unsafe_code)]
pub mod rootless;
#[forbid(unsafe_code)]
pub mod socket;
#[forbid(unsafe_code)]
pub mod system_clock;
#[forbid(unsafe_code)]
pub mod table;
