//! The kernel's mounts and the store's directories, as Linux has them.
//!
//! | what | where |
//! |---|---|
//! | the port `Mounts` | [`mounts`]; its parts [`attach`], [`detach`], [`look`], [`index`], [`events`], [`polled`], [`target`] |
//! | what the kernel says about mounts | [`view`], [`mountinfo`], [`syscalls`] |
//! | which place of the store a mount shows | [`places`] |
//! | the port `Copies` | [`copies`]; its parts [`store`], [`descent`], [`removal`], [`usage`] ([`count`]), [`examine`] |
//! | the port `Records` | [`records`]; its parts [`table`], [`turns`], [`slots`]; for who only reads, [`kept_list`] |
//! | before anything is served | [`self_check`], [`confine`], [`syscall_filter`], [`lock`], [`leftovers`] |
//!
//! Blocking calls run in [`blocking`]. Own `unsafe` is in [`syscalls`] alone.

#[forbid(unsafe_code)]
pub mod attach;
#[forbid(unsafe_code)]
pub mod blocking;
#[forbid(unsafe_code)]
pub mod confine;
#[forbid(unsafe_code)]
pub mod copies;
#[forbid(unsafe_code)]
pub mod count;
#[forbid(unsafe_code)]
pub mod descent;
#[forbid(unsafe_code)]
pub mod detach;
#[forbid(unsafe_code)]
pub mod events;
#[forbid(unsafe_code)]
pub mod examine;
#[forbid(unsafe_code)]
pub mod failure;
#[forbid(unsafe_code)]
pub mod index;
#[forbid(unsafe_code)]
pub mod kept_list;
#[forbid(unsafe_code)]
pub mod leftovers;
#[forbid(unsafe_code)]
pub mod lock;
#[forbid(unsafe_code)]
pub mod look;
#[forbid(unsafe_code)]
pub mod mountinfo;
#[forbid(unsafe_code)]
pub mod mounts;
#[forbid(unsafe_code)]
pub mod other_store;
#[forbid(unsafe_code)]
pub mod places;
#[forbid(unsafe_code)]
pub mod polled;
#[forbid(unsafe_code)]
pub mod records;
#[forbid(unsafe_code)]
pub mod removal;
#[forbid(unsafe_code)]
pub mod renames;
#[forbid(unsafe_code)]
pub mod self_check;
#[forbid(unsafe_code)]
pub mod slots;
#[forbid(unsafe_code)]
pub mod store;
#[forbid(unsafe_code)]
pub mod syscall_filter;
pub mod syscalls;
#[forbid(unsafe_code)]
pub mod table;
#[forbid(unsafe_code)]
pub mod target;
#[forbid(unsafe_code)]
pub mod traffic;
#[forbid(unsafe_code)]
pub mod turns;
#[forbid(unsafe_code)]
pub mod usage;
#[forbid(unsafe_code)]
pub mod view;
