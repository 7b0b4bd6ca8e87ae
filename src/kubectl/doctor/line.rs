//! One line of `doctor`: what was looked at, where, how it is, and the repair.

use serde::Serialize;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Pods cannot get volumes, or lose something.
    Fault,
    /// It works and is not as it should be.
    Warning,
    Ok,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Fault => "fault",
            Verdict::Warning => "warning",
            Verdict::Ok => "ok",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub verdict: Verdict,
    /// A word for programs, one of the table's; it never changes.
    pub check: &'static str,
    /// Missing for what the cluster has once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What was found.
    pub says: String,
    /// What to do; missing where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
}

impl Line {
    /// The check is the table's to name.
    pub fn ok(says: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, check: "", node: None, says: says.into(), repair: None }
    }

    pub fn warning(says: impl Into<String>, repair: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, repair: Some(repair.into()), ..Self::ok(says) }
    }

    pub fn fault(says: impl Into<String>, repair: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fault, repair: Some(repair.into()), ..Self::ok(says) }
    }
}
