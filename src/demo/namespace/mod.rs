//! A namespace of this process's own, in which mounts are nobody else's business.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{clear, enter, set_apart, try_bind};

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{clear, enter, set_apart, try_bind};

/// What is entered, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A mount namespace: enough for root.
    Mount,
    /// A user namespace and a mount namespace in it: for everybody else, where the system allows it.
    User,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Mount, Kind::User];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Mount => "mount",
            Kind::User => "user",
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            Kind::Mount => "a mount namespace of this process's own",
            Kind::User => "a user and a mount namespace of this process's own",
        }
    }

    /// The command with which another program enters the namespace of this process.
    pub fn nsenter(self, process: u32) -> String {
        match self {
            Kind::Mount => format!("nsenter --target {process} --mount -- sh"),
            Kind::User => format!("nsenter --target {process} --user --mount --preserve-credentials -- sh"),
        }
    }
}
