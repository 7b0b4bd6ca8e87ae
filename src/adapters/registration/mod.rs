//! Makes the driver known to the kubelet, in this process: no sidecar is needed (C43).
//!
//! The kubelet watches its registry directory, calls back on every socket that appears there, and forgets the driver
//! when the socket goes. So the whole protocol is a socket that is there as long as the driver is, and is made anew
//! when that is the only way to be asked again. This adapter never talks to the kubelet first and never serves a
//! volume.

mod keeper;
mod service;
mod state;

pub use keeper::{Pace, Registration, SOCKET_SUFFIX};
pub use state::{Phase, Watch};
