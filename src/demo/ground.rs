//! Which mounts the demonstration stands on: real bind mounts in a namespace of this process's own, or the
//! rootless double. What is possible is found out by trying a real bind, in a child, because a process that
//! entered a user namespace cannot leave it again.

use std::path::Path;
use std::process::{Command, Stdio};

use super::namespace::{self, Kind};

/// Tells the child what to try.
const PROBE: &str = "PER_NODE_DEMO_PROBE";

/// What the mounts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// Real binds; this process has entered the namespace.
    Real(Kind),
    /// The rootless double, and why.
    Double { why: String },
}

/// Where this process was started to try a bind, tries it and answers whether it works. `None` where it was not.
pub fn probe(scratch: &Path) -> Option<Result<(), String>> {
    let kind = std::env::var(PROBE).ok()?;
    let kind = Kind::ALL.into_iter().find(|known| known.word() == kind)?;
    Some(namespace::enter(kind).and_then(|()| namespace::try_bind(scratch)))
}

/// Enters the first kind of namespace in which a real bind works, and sets `scratch` apart in it. Call it before
/// any thread is started.
pub fn enter(want_double: bool, scratch: &Path) -> Ground {
    if want_double {
        return Ground::Double { why: "--rootless asks for it".to_owned() };
    }
    let mut why = String::new();
    for kind in Kind::ALL {
        let entered = in_child(kind).and_then(|()| namespace::enter(kind));
        match entered.and_then(|()| namespace::set_apart(scratch)) {
            Ok(()) => return Ground::Real(kind),
            Err(error) => why = format!("no real bind is possible in {}: {error}", kind.sentence()),
        }
    }
    Ground::Double { why }
}

fn in_child(kind: Kind) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| format!("this program is not found again: {error}"))?;
    let child = Command::new(own)
        .arg("demo")
        .env(PROBE, kind.word())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("this program cannot be started again: {error}"))?;
    if child.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&child.stderr);
    let said = said.lines().next().unwrap_or("the trial ended without a word");
    Err(said.strip_prefix(super::COMPLAINT).unwrap_or(said).to_owned())
}

impl Ground {
    /// Takes away every mount below `scratch`, so that it can be removed.
    pub fn clear(&self, scratch: &Path) -> Result<(), String> {
        match self {
            Ground::Real(_) => namespace::clear(scratch),
            Ground::Double { .. } => Ok(()),
        }
    }

    pub fn is_real(&self) -> bool {
        match self {
            Ground::Real(_) => true,
            Ground::Double { .. } => false,
        }
    }

    /// What the mounts are, for people.
    pub fn sentence(&self) -> String {
        match self {
            Ground::Real(kind) => format!("real bind mounts, in {}", kind.sentence()),
            Ground::Double { why } => format!("the rootless double: {why}"),
        }
    }
}
