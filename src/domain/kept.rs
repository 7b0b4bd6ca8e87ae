//! Copies that are kept in the trash for a time (C26): which of them go, in which order, and which one a person means.
//!
//! Their age is not the calendar's. It is counted in time that processes have served this store, so that no clock that
//! jumps, and no node that was off, makes one go earlier than promised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::handle::Handle;
use super::health::Room;
use super::time::Wall;
use super::trash::TrashId;

/// The kept trash goes early where less than this part of the store's bytes, or of its inodes, is left: a kubelet begins
/// to evict pods there, and nobody's pod is worth less than what was thrown away.
pub const BYTES_LEFT_PERCENT_MIN: u64 = 10;
pub const INODES_LEFT_PERCENT_MIN: u64 = 5;
/// Kept copies that a person empties by name at a time at most: a question of so many entries is one line of 4 KiB.
pub const EMPTIED_MAX: usize = 150;

/// How long processes have served this store in all, as they wrote it down. What one did not write before it ended is
/// not in it: it lags behind, and never runs ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServedTime {
    pub ms: u64,
}

/// What is on record of a copy that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// When it was removed, for people: the calendar decides nothing.
    pub removed: Wall,
    /// The same by the store's own time.
    pub since: ServedTime,
    /// What it took up when it was last measured, if it ever was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// How the process that serves the store keeps copies: what tools that only read have to go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeping {
    pub served: ServedTime,
    /// `--trash-for`, where it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trash_for: Option<Duration>,
}

/// A kept copy: the entry of the trash, and the handle it had and can have again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCopy {
    pub id: TrashId,
    pub handle: Handle,
    pub kept: Kept,
}

/// Why a kept copy went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyEmptied {
    /// Its time was over, or copies are no longer kept.
    Over,
    /// The store's file system was full, or nearly.
    Space,
    /// A person said so.
    Person,
}

/// What a person may mean by one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    One(KeptCopy),
    Nothing,
    /// Several kept copies fit: the person must name one of the entries.
    Several(Vec<KeptCopy>),
}

impl ServedTime {
    /// The time `span` later.
    pub fn after(self, span: Duration) -> ServedTime {
        ServedTime { ms: self.ms.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)) }
    }

    /// The time from `earlier` to this one; zero where `earlier` is later.
    pub fn since(self, earlier: ServedTime) -> Duration {
        Duration::from_millis(self.ms.saturating_sub(earlier.ms))
    }
}

impl Kept {
    /// How much longer it is kept, now; `None` where its time is over or nothing is kept any more.
    pub fn left(&self, now: ServedTime, trash_for: Option<Duration>) -> Option<Duration> {
        let left = trash_for?.saturating_sub(now.since(self.since));
        (!left.is_zero()).then_some(left)
    }
}

impl WhyEmptied {
    pub const ALL: [WhyEmptied; 3] = [WhyEmptied::Over, WhyEmptied::Space, WhyEmptied::Person];

    pub fn as_str(self) -> &'static str {
        match self {
            WhyEmptied::Over => "over",
            WhyEmptied::Space => "space",
            WhyEmptied::Person => "person",
        }
    }
}

/// Where a store's own time goes on in a new process: what was written, and never before anything that was kept.
pub fn served_before(written: Option<ServedTime>, kept: &[KeptCopy]) -> ServedTime {
    let latest = kept.iter().map(|copy| copy.kept.since).max();
    written.max(latest).unwrap_or_default()
}

/// Whether the kept trash has to make room.
pub fn is_short(bytes: Room, inodes: Room) -> bool {
    let below = |room: Room, percent: u64| {
        // A total of zero says nothing. Wide enough for any number of bytes.
        u128::from(room.available) * 100 < u128::from(room.total) * u128::from(percent)
    };
    below(bytes, BYTES_LEFT_PERCENT_MIN) || below(inodes, INODES_LEFT_PERCENT_MIN)
}

/// The order in which they go where room is needed.
pub fn oldest_first(mut kept: Vec<KeptCopy>) -> Vec<KeptCopy> {
    kept.sort_by_key(|copy| (copy.kept.since, copy.id));
    kept
}

/// Which kept copy a person means by an entry's name or a handle. An entry's name is a handle too: where both fit, the
/// person has to say which.
pub fn meant(word: &str, kept: &[KeptCopy]) -> Meant {
    let fits = |copy: &&KeptCopy| copy.id.to_string() == word || copy.handle.as_str() == word;
    let mut found: Vec<KeptCopy> = kept.iter().filter(fits).cloned().collect();
    match found.len() {
        0 => Meant::Nothing,
        1 => Meant::One(found.remove(0)),
        _ => Meant::Several(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(id: u64, handle: &str, since: u64) -> KeptCopy {
        let kept = Kept { removed: Wall::default(), since: ServedTime { ms: since }, bytes: None };
        KeptCopy { id: TrashId(id), handle: Handle::parse(handle).unwrap(), kept }
    }

    #[test]
    fn c26_a_kept_copy_goes_when_its_time_was_served_and_no_sooner() {
        let kept = copy(1, "a", 1_000).kept;
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(kept.left(ServedTime { ms: 1_000 }, hour), hour);
        assert_eq!(kept.left(ServedTime { ms: 3_600_999 }, hour), Some(Duration::from_millis(1)));
        assert_eq!(kept.left(ServedTime { ms: 3_601_000 }, hour), None);
        // A store whose time was lost counts anew from what it knows.
        assert_eq!(kept.left(ServedTime { ms: 0 }, hour), hour);
        assert_eq!(kept.left(ServedTime { ms: 1_000 }, None), None, "the flag was switched off");
    }

    #[test]
    fn c26_the_stores_time_never_goes_behind_what_was_kept() {
        let kept = [copy(1, "a", 500), copy(2, "b", 900)];
        assert_eq!(served_before(None, &[]), ServedTime { ms: 0 });
        assert_eq!(served_before(None, &kept), ServedTime { ms: 900 });
        assert_eq!(served_before(Some(ServedTime { ms: 100 }), &kept), ServedTime { ms: 900 });
        assert_eq!(served_before(Some(ServedTime { ms: 1_000 }), &kept), ServedTime { ms: 1_000 });
    }

    #[test]
    fn c26_the_oldest_goes_first() {
        let ids = |kept: Vec<KeptCopy>| kept.iter().map(|copy| copy.id.0).collect::<Vec<_>>();
        assert_eq!(ids(oldest_first(vec![copy(1, "a", 9), copy(3, "b", 2), copy(2, "c", 2)])), [2, 3, 1]);
    }

    #[test]
    fn c26_room_is_short_by_bytes_or_by_inodes() {
        let room = |available, total| Room { available, total };
        assert!(!is_short(room(10, 100), room(5, 100)));
        assert!(is_short(room(9, 100), room(5, 100)));
        assert!(is_short(room(10, 100), room(4, 100)));
        assert!(!is_short(room(10, 100), room(0, 0)), "a file system that does not count inodes");
        assert!(!is_short(room(u64::MAX / 2, u64::MAX), room(0, 0)));
    }

    #[test]
    fn c26_what_fits_several_kept_copies_is_no_answer() {
        let kept = [copy(1, "a", 1), copy(2, "a", 2), copy(3, "b", 3), copy(4, "t3", 4)];
        assert_eq!(meant("t2", &kept), Meant::One(kept[1].clone()));
        assert_eq!(meant("b", &kept), Meant::One(kept[2].clone()));
        assert_eq!(meant("none", &kept), Meant::Nothing);
        assert_eq!(meant("a", &kept), Meant::Several(vec![kept[0].clone(), kept[1].clone()]));
        assert_eq!(meant("t3", &kept), Meant::Several(vec![kept[2].clone(), kept[3].clone()]));
    }
}
