//! A file of slots: records of a bounded size, each written in place into space that is set aside when the file is
//! made, so that a full disk stops no write (C16).
//!
//! A slot is one line of text, `HASH LENGTH JSON`, filled up with spaces: a person can read the file. A slot whose
//! hash does not fit (torn by a kill, or not ours) counts as free. Nothing here is synced unless asked: most records
//! speak of mounts, and what loses the page cache loses the mounts too.

use std::fs::File;
use std::hash::Hasher;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, IFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use siphasher::sip::SipHasher13;

use super::failure::{Failure, Outcome, Step};
use super::store::open_below;

/// A file of slots of one size.
#[derive(Debug)]
pub struct SlotFile {
    file: File,
    slot_bytes: usize,
}

/// How often a file that another process writes is read again for the sake of a record that is half written.
const LOOKS_MAX: u32 = 4;

/// What is to be done with a file.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    Write,
    /// It is read as it is, which another process may be writing; one that is not there has no records. Every write fails.
    Read,
}

/// How a file is laid out when it is made.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub name: &'static str,
    pub slot_bytes: usize,
    /// Slots whose space is set aside.
    pub slots: usize,
}

/// What a file held when it was opened.
#[derive(Debug)]
pub struct Read<T> {
    /// By slot.
    pub records: Vec<(usize, T)>,
    /// Slots without a record.
    pub free: Vec<usize>,
    /// Slots that held something that is no record.
    pub damaged: usize,
}

impl SlotFile {
    /// Opens the file in `directory`, makes it if it is missing, sets its space aside, and reads it.
    pub fn open<T: DeserializeOwned>(
        directory: BorrowedFd<'_>,
        layout: Layout,
    ) -> Outcome<(SlotFile, Read<T>)> {
        SlotFile::open_for(directory, layout, Access::Write)
    }

    /// The same, or read as it is. One body for both, so that each kind of record is compiled once.
    pub fn open_for<T: DeserializeOwned>(
        directory: BorrowedFd<'_>,
        layout: Layout,
        access: Access,
    ) -> Outcome<(SlotFile, Read<T>)> {
        let slots = SlotFile::opened(directory, layout, access)?;
        let looks_max = match access {
            Access::Write => 1,
            Access::Read => LOOKS_MAX,
        };
        let mut looks = 0;
        loop {
            let read = slots.read()?;
            looks += 1;
            // What is damaged may be half of a record that is being written this instant.
            if read.damaged == 0 || looks == looks_max {
                return Ok((slots, read));
            }
        }
    }

    fn opened(directory: BorrowedFd<'_>, layout: Layout, access: Access) -> Outcome<SlotFile> {
        let always = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match access {
            Access::Write => {
                let flags = OFlags::RDWR | OFlags::CREATE | always;
                open_below(directory, layout.name, flags, Mode::RUSR | Mode::WUSR)
            }
            Access::Read => match open_below(directory, layout.name, always, Mode::empty()) {
                // The directory stands in for it: it has no records and takes no write either.
                Err(Errno::NOENT) => open_below(directory, ".", always, Mode::empty()),
                opened => opened,
            },
        };
        let file = File::from(opened.step("open a record file in")?);
        let slots = SlotFile { file, slot_bytes: layout.slot_bytes };
        match access {
            Access::Write => {
                slots.write_in_place();
                slots.set_space_aside(layout.slots)?;
            }
            Access::Read => {}
        }
        Ok(slots)
    }

    /// On btrfs a write goes elsewhere, to new space, unless the file was told otherwise while it was empty. Other
    /// file systems have no such flag and need none.
    fn write_in_place(&self) {
        if self.file.metadata().is_ok_and(|found| found.len() == 0)
            && let Ok(flags) = rustix::fs::ioctl_getflags(&self.file)
        {
            let _ = rustix::fs::ioctl_setflags(&self.file, flags | IFlags::NOCOW);
        }
    }

    /// Allocates what is missing and really writes it: a file system may promise space and not have it.
    fn set_space_aside(&self, slots: usize) -> Outcome<()> {
        let length = self.file.metadata().step("stat a record file in")?.len();
        let wanted = (slots * self.slot_bytes) as u64;
        if length >= wanted {
            return Ok(());
        }
        match rustix::fs::fallocate(self.file.as_fd(), FallocateFlags::empty(), 0, wanted) {
            // A file system without the call gets its space by the writes alone.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(errno) => return Err(errno).step("set space aside in"),
        }
        let whole_slots = usize::try_from(length).unwrap_or(usize::MAX) / self.slot_bytes;
        for slot in whole_slots..slots {
            self.write_line(slot, "")?;
        }
        self.file.sync_all().step("sync a record file in")
    }

    fn read<T: DeserializeOwned>(&self) -> Outcome<Read<T>> {
        let mut read = Read { records: Vec::new(), free: Vec::new(), damaged: 0 };
        let found = self.file.metadata().step("stat a record file in")?;
        let length = if found.is_file() { found.len() } else { 0 };
        let slots = usize::try_from(length).unwrap_or(usize::MAX) / self.slot_bytes;
        let mut buffer = vec![0; self.slot_bytes];
        for slot in 0..slots {
            self.file.read_exact_at(&mut buffer, self.offset(slot)).step("read a record in")?;
            match parse(&buffer) {
                Some(record) => read.records.push((slot, record)),
                None => {
                    read.damaged += usize::from(!buffer.iter().all(u8::is_ascii_whitespace));
                    read.free.push(slot);
                }
            }
        }
        Ok(read)
    }

    /// Writes a record into a slot. EMSGSIZE where it does not fit.
    pub fn write(&self, slot: usize, record: &impl Serialize) -> Outcome<()> {
        let json = serde_json::to_string(record)
            .map_err(|_| Failure { step: "encode a record for", errno: Errno::INVAL })?;
        self.write_line(slot, &format!("{:016x} {} {json}", hash(json.as_bytes()), json.len()))
    }

    /// Empties a slot.
    pub fn clear(&self, slot: usize) -> Outcome<()> {
        self.write_line(slot, "")
    }

    /// Makes what was written outlive a power failure.
    pub fn sync(&self) -> Outcome<()> {
        self.file.sync_data().step("sync a record in")
    }

    fn write_line(&self, slot: usize, line: &str) -> Outcome<()> {
        if line.len() >= self.slot_bytes {
            return Err(Failure { step: "fit a record into its slot in", errno: Errno::MSGSIZE });
        }
        let mut bytes = vec![b' '; self.slot_bytes];
        bytes[..line.len()].copy_from_slice(line.as_bytes());
        bytes[self.slot_bytes - 1] = b'\n';
        self.file.write_all_at(&bytes, self.offset(slot)).step("write a record in")
    }

    fn offset(&self, slot: usize) -> u64 {
        (slot * self.slot_bytes) as u64
    }
}

/// The record of a slot; `None` where it is empty or damaged.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut fields = text.splitn(3, ' ');
    let kept = u64::from_str_radix(fields.next()?, 16).ok()?;
    let length: usize = fields.next()?.parse().ok()?;
    let json = fields.next()?.get(..length)?;
    (hash(json.as_bytes()) == kept).then(|| serde_json::from_str(json).ok())?
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { name: "records", slot_bytes: 128, slots: 4 };

    fn open(directory: &tempfile::TempDir) -> (SlotFile, Read<String>) {
        let opened = File::open(directory.path()).unwrap();
        SlotFile::open(opened.as_fd(), LAYOUT).unwrap()
    }

    #[test]
    fn c16_space_is_set_aside_before_the_first_record() {
        let directory = tempfile::tempdir().unwrap();
        let (_, read) = open(&directory);
        assert_eq!(read.free, [0, 1, 2, 3]);
        let metadata = std::fs::metadata(directory.path().join("records")).unwrap();
        assert_eq!(metadata.len(), 512);
        assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) > 0, "no block is allocated");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o600);
    }

    #[test]
    fn a_record_outlives_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let (slots, _) = open(&directory);
        slots.write(2, &"kept ü").unwrap();
        slots.write(1, &"cleared").unwrap();
        slots.clear(1).unwrap();
        let (_, read) = open(&directory);
        assert_eq!(read.records, [(2, "kept ü".to_owned())]);
        assert_eq!((read.free, read.damaged), (vec![0, 1, 3], 0));
    }

    #[test]
    fn c15_a_torn_record_is_a_free_slot() {
        let directory = tempfile::tempdir().unwrap();
        let (slots, _) = open(&directory);
        slots.write(0, &"whole").unwrap();
        slots.write(1, &"torn").unwrap();
        slots.file.write_all_at(b"x", 128 + 21).unwrap();
        slots.file.write_all_at(&[0xff; 128], 256).unwrap();
        let (_, read) = open(&directory);
        assert_eq!(read.records, [(0, "whole".to_owned())]);
        assert_eq!((read.free, read.damaged), (vec![1, 2, 3], 2));
    }

    #[test]
    fn a_record_that_does_not_fit_is_refused_and_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (slots, _) = open(&directory);
        slots.write(3, &"before").unwrap();
        assert_eq!(slots.write(3, &"x".repeat(128)).unwrap_err().errno, Errno::MSGSIZE);
        assert_eq!(open(&directory).1.records, [(3, "before".to_owned())]);
    }

    #[test]
    fn c40_a_file_that_is_only_read_is_not_made_and_takes_no_write() {
        let directory = tempfile::tempdir().unwrap();
        let opened = File::open(directory.path()).unwrap();
        let look = || SlotFile::open_for::<String>(opened.as_fd(), LAYOUT, Access::Read).unwrap();
        let (missing, read) = look();
        assert!(read.records.is_empty() && missing.write(0, &"x").is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        open(&directory).0.write(1, &"kept").unwrap();
        let (slots, read) = look();
        assert_eq!(read.records, [(1, "kept".to_owned())]);
        assert!(slots.write(0, &"x").is_err() && slots.clear(1).is_err());
        assert_eq!(look().1.records, read.records);
    }

    #[test]
    fn a_record_file_that_is_a_symlink_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", directory.path().join("records")).unwrap();
        let opened = File::open(directory.path()).unwrap();
        let error = SlotFile::open::<String>(opened.as_fd(), LAYOUT).unwrap_err();
        assert_eq!(error.errno, Errno::LOOP);
    }
}
