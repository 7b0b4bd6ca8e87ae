//! `status --watch`: looks again and again until it is interrupted. A terminal is repainted; elsewhere what has changed since
//! the look before is appended, as kubectl does. A look that fails is told once for each reason and tried again.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use super::answer::ClusterStatus;
use super::gather::{self, Question};
use super::{rows, tell};
use crate::api::Api;
use crate::cli::StatusFlags;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// Clears the screen and goes to its upper left corner.
const REPAINT: &str = "\u{1b}[2J\u{1b}[H";

/// What was shown last, where it is appended to.
#[derive(Default)]
struct Shown {
    rows: BTreeMap<(String, Option<String>), String>,
    object: Option<ClusterStatus>,
    told: Vec<String>,
    failure: Option<String>,
    has_head: bool,
}

/// Follows until it is interrupted, or the answer can no longer be written.
pub async fn follow(api: &Api, question: &Question, flags: &StatusFlags) -> Result<Exit, Failure> {
    let mut shown = Shown::default();
    loop {
        match gather::gather(api, question).await {
            Ok(status) => {
                shown.failure = None;
                shown.show(&status, flags.output.format)?;
            }
            Err(failure) => {
                let text = failure.to_string();
                if shown.failure.as_ref() != Some(&text) {
                    output::say(&text);
                    shown.failure = Some(text);
                }
            }
        }
        tokio::time::sleep(flags.watch_every).await;
    }
}

impl Shown {
    fn show(&mut self, status: &ClusterStatus, format: Format) -> Result<(), Failure> {
        match format {
            Format::Json | Format::Yaml => {
                if self.object.as_ref() != Some(status) {
                    output::print_object(status, format)?;
                    self.object = Some(status.clone());
                }
                Ok(())
            }
            Format::Table | Format::Wide if std::io::stdout().is_terminal() => {
                let table = rows::table(&rows::rows(status), format == Format::Wide);
                output::print(&format!("{REPAINT}{}", table.render(output::colours())))?;
                tell(status);
                Ok(())
            }
            Format::Table | Format::Wide => self.append(status, format == Format::Wide),
        }
    }

    /// The rows that are new or different. A row that is gone is not told, as kubectl does not.
    fn append(&mut self, status: &ClusterStatus, wide: bool) -> Result<(), Failure> {
        let all = rows::rows(status);
        let changed: Vec<_> =
            all.iter().filter(|row| self.rows.get(&row.key()) != Some(&row.content())).copied().collect();
        self.rows = all.iter().map(|row| (row.key(), row.content())).collect();
        if !changed.is_empty() || !self.has_head {
            let text = rows::table(&changed, wide).render(false);
            let head = text.find('\n').map_or(0, |end| end + 1);
            output::print(if self.has_head { &text[head..] } else { &text })?;
            self.has_head = true;
        }
        if self.told != status.missing {
            self.told.clone_from(&status.missing);
            tell(status);
        }
        Ok(())
    }
}
