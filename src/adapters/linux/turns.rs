//! One value in a file of two slots, which are written in turns: a write that is cut short leaves the one before.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::failure::{Failure, Outcome};
use super::slots::{Access, Layout};
use super::table::Table;

/// The value; of the two slots the one with the higher turn counts.
pub struct Turns<T>(Table<u8, Turn<T>>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Turn<T> {
    turn: u64,
    value: T,
}

impl<T: Clone + Serialize + DeserializeOwned> Turns<T> {
    pub fn open(directory: BorrowedFd<'_>, layout: Layout, access: Access) -> Outcome<Turns<T>> {
        let key = |turn: &Turn<T>| u8::from(turn.turn % 2 == 1);
        Ok(Turns(Table::open_for(directory, layout, access, key)?))
    }

    /// The same for what can be done without: `None` where the file is not there and the disk too full to make it.
    pub fn open_if_there_is_space(
        directory: BorrowedFd<'_>,
        layout: Layout,
        access: Access,
    ) -> Outcome<Option<Turns<T>>> {
        match Turns::open(directory, layout, access) {
            Err(Failure { errno: Errno::NOSPC | Errno::DQUOT, .. }) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn newest(&self) -> Option<Turn<T>> {
        self.0.select(|_| true).into_iter().max_by_key(|turn| turn.turn)
    }

    /// Whether there was a value and neither slot can be read.
    pub fn is_lost(&self) -> bool {
        self.newest().is_none() && self.0.was_damaged()
    }

    pub fn get(&self) -> Option<T> {
        self.newest().map(|turn| turn.value)
    }

    pub fn put(&self, value: T) -> Outcome<()> {
        let turn = self.newest().map_or(0, |newest| newest.turn + 1);
        self.0.put(u8::from(turn % 2 == 1), Turn { turn, value })
    }

    pub fn sync(&self) -> Outcome<()> {
        self.0.sync()
    }
}
