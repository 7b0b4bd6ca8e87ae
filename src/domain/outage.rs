//! An outage is told once: when it begins or turns into another one, and when it ends. What every retry in between would
//! say is nothing new. It knows no log; whoever asks it writes the line.

/// What was last told of an outage that goes on.
#[derive(Debug, Default)]
pub struct Outage {
    told: Option<String>,
}

impl Outage {
    /// An attempt has failed. Answers whether that is news.
    pub fn failed(&mut self, why: &str) -> bool {
        let is_news = self.told.as_deref() != Some(why);
        if is_news {
            self.told = Some(why.to_owned());
        }
        is_news
    }

    /// An attempt has worked. Answers whether that is news.
    pub fn worked(&mut self) -> bool {
        self.told.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::Outage;

    #[test]
    fn an_outage_is_news_when_it_begins_changes_and_ends() {
        let mut outage = Outage::default();
        assert!(!outage.worked(), "there was none");
        assert!(outage.failed("forbidden"));
        assert!(!outage.failed("forbidden"), "the same again");
        assert!(outage.failed("unreachable"));
        assert!(outage.worked());
        assert!(!outage.worked());
        assert!(outage.failed("unreachable"), "another outage");
    }
}
