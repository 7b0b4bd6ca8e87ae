//! Linux.
pub mod failure;
pub mod mountinfo;
pub mod places;
pub mod syscalls;
pub mod target;
pub mod view;
