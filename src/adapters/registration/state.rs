//! How far the registration has come: what `/readyz` can say about it.

use std::fmt;

use tokio::sync::watch;

/// Where the registration stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Turned off: somebody else registers the driver, or nobody.
    Off,
    /// The kubelet's registry directory is not there.
    NoDirectory,
    /// The socket could not be made; it is tried again.
    NoSocket(String),
    /// The socket is there; the kubelet has not answered yet.
    Waiting,
    /// The kubelet has taken the driver in.
    Registered,
    /// The kubelet could not take the driver in, and why. The socket is made anew.
    Refused(String),
}

impl Phase {
    /// Whether the kubelet can send volumes, as far as this adapter is concerned.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Off | Self::Registered => true,
            Self::NoDirectory | Self::NoSocket(_) | Self::Waiting | Self::Refused(_) => false,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("registration with the kubelet is off"),
            Self::NoDirectory => f.write_str(
                "the kubelet's registration directory is not there: is --kubelet-dir the kubelet's --root-dir?",
            ),
            Self::NoSocket(why) => write!(f, "the registration socket could not be made: {why}"),
            Self::Waiting => f.write_str("the kubelet has not registered the driver yet"),
            Self::Registered => f.write_str("the kubelet has registered the driver"),
            Self::Refused(why) => write!(f, "the kubelet could not register the driver: {why}"),
        }
    }
}

/// The receiving end: the newest [`Phase`] at any time.
pub type Watch = watch::Receiver<Phase>;
