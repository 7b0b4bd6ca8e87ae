//! The kernel's mounts and the store's directories, as Linux has them.
//!
//! | what | where |
//! |---|---|
//! | the port `Mounts` | [`mounts`]; its parts [`attach`], [`detach`], [`look`], [`index`], [`events`], [`polled`], [`target`] |
//! | what the kernel says about mounts | [`view`], [`mountinfo`], [`syscalls`] |
//! | which place of the store a mount shows | [`places`] |
//! | the port `Copies` | [`copies`]; its parts [`store`], [`descent`], [`removal`], [`usage`], [`examine`] |
//! | the port `Records` | [`records`]; its parts [`table`], [`slots`] |
//! | before anything is served | [`self_check`], [`confine`], [`lock`], [`leftovers`] |
//!
//! Blocking calls run in [`blocking`]. Own `unsafe` is in [`syscalls`] alone.

pub mod attach;
pub mod blocking;
pub mod confine;
pub mod copies;
pub mod descent;
pub mod detach;
pub mod events;
pub mod examine;
pub mod failure;
pub mod index;
pub mod leftovers;
pub mod lock;
pub mod look;
pub mod mountinfo;
pub mod mounts;
pub mod places;
pub mod polled;
pub mod records;
pub mod removal;
pub mod self_check;
pub mod slots;
pub mod store;
pub mod syscalls;
pub mod table;
pub mod target;
pub mod usage;
pub mod view;
