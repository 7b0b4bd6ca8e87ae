//! A question survives the wire, and nothing else is one.

use super::*;

#[test]
fn c26_a_question_is_read_as_it_was_asked() {
    let word = || "t17".to_owned();
    for question in [
        Question::Show,
        Question::Confirm,
        Question::Restore(word()),
        Question::Empty(word()),
        Question::EmptyAll,
    ] {
        assert_eq!(Question::parse(&format!("{}\n", question.line())), Some(question));
    }
}

#[test]
fn c26_what_is_no_question_is_none() {
    for line in
        ["", "shows", "restore", "restore ", "restore ../a", "restore a b", "empty", "empty *", "show x"]
    {
        assert_eq!(Question::parse(line), None, "{line:?}");
    }
}
