//! A question survives the wire, and nothing else is one.

use super::*;
use crate::domain::kept::EMPTIED_MAX;

#[test]
fn c26_a_question_is_read_as_it_was_asked() {
    let word = || "t17".to_owned();
    for question in [
        Question::Show,
        Question::Confirm(None),
        Question::Confirm(Seen::parse("00c0ffee00c0ffee")),
        Question::Restore(word()),
        Question::Empty(vec![word()]),
        Question::Empty(vec![word(), "t18".to_owned()]),
        Question::EmptyAll,
    ] {
        assert_eq!(Question::parse(&format!("{}\n", question.line())), Some(question));
    }
}

#[test]
fn c26_what_is_no_question_is_none() {
    for line in [
        "",
        "shows",
        "restore",
        "restore ",
        "restore ../a",
        "restore a b",
        "empty",
        "empty *",
        "empty a  b",
        "empty a *",
        "show x",
        "confirm c0ffee",
        "confirm 00C0FFEE00C0FFEE",
    ] {
        assert_eq!(Question::parse(line), None, "{line:?}");
    }
}

#[test]
fn c26_as_many_entries_as_a_question_may_name_fit_into_it() {
    let longest = Question::Empty(vec![format!("t{}", u64::MAX); EMPTIED_MAX]);
    assert!(longest.line().len() < QUESTION_LENGTH_MAX as usize);
}
