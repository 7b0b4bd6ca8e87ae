//! Systems without mount namespaces.

use std::path::Path;

use super::Kind;

const WHY: &str = "this is not Linux";

pub fn enter(_kind: Kind) -> Result<(), String> {
    Err(WHY.to_owned())
}

pub fn set_apart(_directory: &Path) -> Result<(), String> {
    Err(WHY.to_owned())
}

pub fn clear(_directory: &Path) -> Result<(), String> {
    Err(WHY.to_owned())
}

pub fn try_bind(_scratch: &Path) -> Result<(), String> {
    Err(WHY.to_owned())
}
