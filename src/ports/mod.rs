//! What the domain needs of the world: one trait and its error enum a file. An adapter implements them; the
//! domain awaits nothing else but its own locks.

pub mod clock;
pub mod cluster;
pub mod copies;
pub mod event_sink;
pub mod failure;
pub mod in_place;
pub mod mounts;
pub mod records;
