//! The documentation held to the code: every command in it is run or says why not, every object in it is one that the driver
//! takes, the reference is what the code says, and ARCHITECTURE.md names what there is.
//!
//! Reads files alone. `PER_NODE_DOCS=write` writes the generated parts of docs/reference anew.

mod architecture;
mod commands;
mod objects;
mod pages;
mod reference;

#[path = "../support/flags_table.rs"]
mod flags_table;
#[path = "../support/generated.rs"]
mod generated;
#[path = "../support/markdown.rs"]
mod markdown;
