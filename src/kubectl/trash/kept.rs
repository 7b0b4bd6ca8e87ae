//! The kept copies of all nodes, as each plugin's own `trash ls -o json` tells them.

use serde::{Deserialize, Serialize};

use super::flags::NodeFlags;
use crate::api::Api;
use crate::exec::{ExecError, Target, each, said};
use crate::output;
use crate::plugins::nodes_without;

/// The shape of a plugin's list that this tool reads.
const VERSION: u32 = 1;

/// One kept copy of one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    pub node: String,
    #[serde(flatten)]
    pub copy: Copy,
}

/// What the plugin says of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Copy {
    pub handle: String,
    /// Its name in that node's trash.
    pub entry: String,
    pub removed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How much longer it is kept at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_seconds: Option<u64>,
}

#[derive(Deserialize)]
struct List {
    version: u32,
    kept: Vec<Copy>,
}

/// What the nodes keep, and what is missing from that.
#[derive(Debug, Default)]
pub struct Trash {
    pub kept: Vec<Kept>,
    /// One sentence for each node that is not in it.
    pub missing: Vec<String>,
    /// How many nodes were asked.
    pub asked: usize,
    /// What is to be said of nodes that could not be asked, because no plugin runs there or nobody may list them.
    pub unasked: Option<String>,
}

/// Asks every target.
pub async fn read(api: &Api, targets: &[Target], nodes: &NodeFlags) -> Trash {
    let answers = each(api, targets, &["trash", "ls", "-o", "json"], nodes.node_deadline).await;
    let mut trash = Trash { asked: targets.len(), ..Trash::default() };
    for (target, answer) in targets.iter().zip(answers) {
        match said(answer).and_then(|text| decoded(&text)) {
            Ok(copies) => {
                let node = &target.node;
                trash.kept.extend(copies.into_iter().map(|copy| Kept { node: node.clone(), copy }));
            }
            Err(why) => trash.missing.push(format!("the node {}: {why}", target.node)),
        }
    }
    trash.kept.sort();
    if nodes.node.is_none() {
        let with = targets.iter().map(|target| target.node.as_str());
        trash.unasked = nodes_without(api, with).await.unwrap_or_else(|failure| Some(failure.to_string()));
    }
    trash
}

fn decoded(text: &str) -> Result<Vec<Copy>, ExecError> {
    match serde_json::from_str::<List>(text) {
        Ok(List { version: VERSION, kept }) => Ok(kept),
        Ok(List { version, .. }) => Err(ExecError::Refused {
            said: format!("its list has version {version}, which this tool cannot read: use a newer one"),
        }),
        Err(_) => Err(ExecError::Refused { said: "its list cannot be read".to_owned() }),
    }
}

impl Trash {
    /// Says on standard error what is missing.
    pub fn say_missing(&self) {
        for why in self.missing.iter().chain(&self.unasked) {
            output::say(&format!("not seen: {why}"));
        }
    }

    /// Only what has this handle, or this entry.
    pub fn only(mut self, which: Option<&str>) -> Self {
        if let Some(which) = which {
            self.kept.retain(|kept| kept.copy.handle == which || kept.copy.entry == which);
        }
        self
    }

    /// The nodes that keep something, each once.
    pub fn nodes(&self) -> Vec<&str> {
        let mut nodes: Vec<&str> = self.kept.iter().map(|kept| kept.node.as_str()).collect();
        nodes.dedup();
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c26_a_list_of_another_version_is_not_guessed_at() {
        let text = r#"{"version": 1, "kept": [{"entry": "t17", "handle": "a", "removed": "2026-11-30T00:00:00Z",
                       "bytes": null, "leftSeconds": 5, "news": 1}]}"#;
        let kept = decoded(text).expect("readable");
        assert_eq!((kept[0].entry.as_str(), kept[0].bytes, kept[0].left_seconds), ("t17", None, Some(5)));
        let newer = decoded(r#"{"version": 2, "kept": []}"#).expect_err("newer").to_string();
        assert!(newer.contains("version 2"), "{newer}");
        assert!(decoded("no copies are kept").is_err());
    }

    #[test]
    fn c26_what_is_meant_is_a_handle_or_an_entry() {
        let kept = |node: &str, entry: &str, handle: &str| Kept {
            node: node.into(),
            copy: Copy {
                handle: handle.into(),
                entry: entry.into(),
                removed: String::new(),
                bytes: None,
                left_seconds: None,
            },
        };
        let all = || Trash {
            kept: vec![kept("n1", "t1", "a"), kept("n1", "t2", "b"), kept("n2", "t9", "a")],
            ..Trash::default()
        };
        assert_eq!(all().only(Some("a")).nodes(), ["n1", "n2"]);
        assert_eq!(all().only(Some("t2")).kept.len(), 1);
        assert_eq!(all().only(None).nodes(), ["n1", "n2"]);
        assert!(all().only(Some("c")).kept.is_empty());
    }
}
