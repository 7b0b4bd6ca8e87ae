//! One YAML document with comments, line by line. A comment stands above its line, at the same depth.
//!
//! No library writes comments, and these are what the command is for. Values are names and sizes that have been checked; what
//! YAML would take for something other than text is quoted.

/// Spaces that one level is moved in by.
const INDENT: usize = 2;

/// Words that a YAML 1.1 reader takes for a boolean or for nothing.
const RESERVED: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A document under construction.
#[derive(Debug, Default)]
pub struct Document(String);

impl Document {
    /// A line without a comment: what every object has.
    pub fn bare(mut self, depth: usize, line: &str) -> Document {
        self.push(depth, line);
        self
    }

    /// A field with the comment that says what it is for.
    pub fn field(mut self, depth: usize, line: &str, comment: &str) -> Document {
        self.push(depth, &format!("# {comment}"));
        self.push(depth, line);
        self
    }

    pub fn text(self) -> String {
        self.0
    }

    fn push(&mut self, depth: usize, line: &str) {
        self.0.push_str(&" ".repeat(depth * INDENT));
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// A checked size as a YAML scalar that is read as text: plain where its unit leaves no doubt.
pub fn size(text: &str) -> String {
    if text.ends_with(['i', 'k', 'M', 'G', 'T', 'P']) { text.to_owned() } else { format!("\"{text}\"") }
}

/// A checked name as a YAML scalar that is read as text.
pub fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_lowercase()) && !RESERVED.contains(&text);
    if plain { text.to_owned() } else { format!("\"{text}\"") }
}
