//! The outside world, inbound and outbound. Adapters do not import one another; `main` wires them.

pub mod cli;
pub mod confirm;
pub mod csi;
pub mod event_log;
pub mod http;
pub mod kube;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(feature = "demo")]
pub mod memory;
pub mod registration;
#[cfg(feature = "demo")]
pub mod rootless;
pub mod socket;
pub mod system_clock;
