//! Linux.
pub mod attach;
pub mod blocking;
pub mod detach;
pub mod events;
pub mod failure;
pub mod index;
pub mod look;
pub mod mountinfo;
pub mod mounts;
pub mod places;
pub mod store;
pub mod syscalls;
pub mod target;
pub mod view;
