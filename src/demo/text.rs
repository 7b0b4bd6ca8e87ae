//! Plain text for a terminal: no colours, no line longer than it has to be.

/// The widest line that the demonstration prints.
pub const COLUMNS_MAX: usize = 100;

/// Breaks a text between words into lines of at most `width` characters. A longer word stays whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_lose_none() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable words", 4), ["unbreakable", "words"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("a  b\nc", 9), ["a b c"]);
    }
}
