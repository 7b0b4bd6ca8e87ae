//! One answer to "why": a sentence, what it rests on, and the one thing to do.

use serde::Serialize;

/// How sure a finding is; the surest is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// What was read leaves no other way: the pod cannot run like this.
    Certain,
    /// It fits what was read, and something else may be the reason.
    Likely,
    /// It keeps no pod from running, and should be known.
    Note,
}

impl Certainty {
    pub fn word(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Note => "note",
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// A word for programs, one of the table's; it never changes.
    pub cause: &'static str,
    pub certainty: Certainty,
    /// One sentence.
    pub sentence: String,
    /// The fields, events and answers that it rests on.
    pub evidence: Vec<String>,
    /// The one thing to do.
    pub remedy: String,
}

impl Finding {
    pub fn certain(sentence: impl Into<String>) -> Self {
        Self::new(Certainty::Certain, sentence)
    }

    pub fn likely(sentence: impl Into<String>) -> Self {
        Self::new(Certainty::Likely, sentence)
    }

    pub fn note(sentence: impl Into<String>) -> Self {
        Self::new(Certainty::Note, sentence)
    }

    /// The cause is the table's to name.
    fn new(certainty: Certainty, sentence: impl Into<String>) -> Self {
        let (cause, evidence, remedy) = Default::default();
        Self { cause, certainty, sentence: sentence.into(), evidence, remedy }
    }

    pub fn because(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    pub fn because_all(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    pub fn then(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}
