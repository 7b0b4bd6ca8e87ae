//! Markdown as far as the documentation's tests need it: its fenced blocks, and the mark above each. It renders nothing.

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The word after the fence: `sh`, `yaml`, or none.
    pub language: String,
    /// What the HTML comment on the line before the fence says, or nothing.
    pub mark: Option<String>,
    pub text: String,
    /// The number of the fence's line.
    pub line: usize,
}

/// Every fenced block, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut above = "";
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                let mark = above.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
                open = Some(Block {
                    language: language.trim().to_owned(),
                    mark: mark.map(|mark| mark.trim().to_owned()),
                    text: String::new(),
                    line: at + 1,
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
        above = line;
    }
    found
}

impl Block {
    /// What follows `word` in the mark.
    pub fn marked(&self, word: &str) -> Option<&str> {
        self.mark.as_deref()?.strip_prefix(word).map(str::trim)
    }
}
